#!/usr/bin/env python3
"""Compares asymq's simulated TCP with ns-2.35's at the settings of AQ, sec. 4 (DropTail).

    scripts/ns2/compare.py [--seeds 10] [--tcp newreno] [--delayed-ack] [--asymq PATH]
    scripts/ns2/compare.py --speed

Needs `ns` (Debian: apt-get install ns2) and a built asymq. Prints, per setting and direction, both
simulators' mean utilization and the range over seeds, and whether asymq's mean lies within ns-2's
range. Exits 1 if one does not. A seed gives different random draws in the two simulators, so only
the distributions are comparable.

With --speed, compares the CPU time of both processes on the paper's default scenario (5 up, 10 down,
20 to 300 ms, 1/10 Mbit/s, buffers 50) over 600 simulated seconds, in 15 rounds: times and ratios are
medians, as the machine's speed may change from round to round.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPT = HERE / "dumbbell.tcl"

# Up and down in Mbit/s, flows up and down, round-trip times in ms, buffer in packets.
SETTINGS = [
    ("1 up + 1 down, 100 ms, 1/10, buffers 50", 1, 10, 1, 1, 100, 100, 50),
    ("1 up + 1 down, 100 ms, 1/10, buffers 100", 1, 10, 1, 1, 100, 100, 100),
    ("5 up + 10 down, 20..300 ms, 1/10", 1, 10, 5, 10, 20, 300, 50),
    ("5 up + 10 down, 20..300 ms, 1/1", 1, 1, 5, 10, 20, 300, 50),
    ("3 up + 21 down, 20..300 ms, 1/10", 1, 10, 3, 21, 20, 300, 50),
]
SPEED_ROUNDS = 15
NS2_TCP = {"newreno": "Newreno", "reno": "Reno"}


def ns2(setting, seed, tcp, delayed_ack):
    """Returns the utilizations up and down of one ns-2 run."""
    _, up, down, flows_up, flows_down, shortest, longest, buffer = setting
    keys = {
        "up": up * 1e6,
        "down": down * 1e6,
        "flows-up": flows_up,
        "flows-down": flows_down,
        "rtt-min": shortest / 1e3,
        "rtt-max": longest / 1e3,
        "buffer": buffer,
        "buffer-down": buffer,
        "tcp": NS2_TCP[tcp],
        "sink": "TCPSink/DelAck" if delayed_ack else "TCPSink",
        "seed": seed,
    }
    words = [str(word) for pair in keys.items() for word in pair]
    output = subprocess.run(
        ["ns", str(SCRIPT), *words], check=True, capture_output=True, text=True
    )
    up, down, *_ = output.stdout.split()
    return float(up), float(down)


def asymq(command, setting, seeds, tcp, delayed_ack):
    """Returns the utilizations up and down of asymq's runs, one pair per seed."""
    _, up, down, flows_up, flows_down, shortest, longest, buffer = setting
    words = [
        *command,
        "--json",
        "--qdisc=droptail",
        f"--up={up}mbit",
        f"--down={down}mbit",
        f"--flows-up={flows_up}",
        f"--flows-down={flows_down}",
        f"--rtt={shortest}ms..{longest}ms",
        f"--buffer={buffer}p",
        f"--buffer-down={buffer}p",
        f"--tcp={tcp}",
        f"--runs={seeds}",
        f"--delayed-ack={'100ms' if delayed_ack else '0'}",
    ]
    output = subprocess.run(words, check=True, capture_output=True, text=True)
    runs = json.loads(output.stdout)["runs"]
    return [(run["up"]["utilization"], run["down"]["utilization"]) for run in runs]


def cpu_seconds(words):
    """Returns the CPU time of a command in seconds."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return spent() - before


def compare_speed(command):
    """Prints the CPU time of both simulators on the default scenario: medians over rounds. Each round runs
    both once, so that a change of the machine's speed affects both."""
    ours = [*command, "--json", "--runs=1", "--duration=600s"]
    commands = {
        "ns-2.35, DropTail": ["ns", str(SCRIPT), "duration", "600"],
        "asymq, droptail": [*ours, "--qdisc=droptail"],
        "asymq, aq": [*ours, "--qdisc=aq"],
    }
    rounds = [[cpu_seconds(words) for words in commands.values()] for _ in range(SPEED_ROUNDS)]
    reference = [spent[0] for spent in rounds]
    for place, name in enumerate(commands):
        spent = [spent[place] for spent in rounds]
        line = f"{name}: {statistics.median(spent) * 1000:.0f} ms of CPU for 600 s"
        if place > 0:
            low, middle, high = statistics.quantiles(
                [theirs / own for theirs, own in zip(reference, spent)]
            )
            line += f", {middle:.1f} times as fast (quartiles {low:.1f} and {high:.1f})"
        print(line)


def find_asymq():
    """Returns the simulation command: a build, or asymq on the PATH. The profile dist is as installed; in release, the
    command line's code is not optimized."""
    builds = [ROOT / "target" / profile / "asymq" for profile in ["dist", "release"]]
    for path in [*builds, shutil.which("asymq")]:
        if path and os.access(path, os.X_OK):
            return [str(path), "sim"]
    sys.exit("no asymq found; build it with: cargo build --profile dist -p asymq")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10, help="runs per setting [10]")
    parser.add_argument("--tcp", choices=NS2_TCP, default="newreno")
    parser.add_argument("--delayed-ack", action="store_true", help="delayed ACKs, 100 ms")
    parser.add_argument("--speed", action="store_true", help="compare CPU time instead")
    parser.add_argument("--asymq", help="the asymq binary [target/dist, target/release, or the path's]")
    args = parser.parse_args()
    if not shutil.which("ns"):
        sys.exit("no ns found; ns-2.35 is Debian's package ns2")
    command = [args.asymq, "sim"] if args.asymq else find_asymq()

    if args.speed:
        return compare_speed(command)

    print(f"{args.tcp}, {args.seeds} seeds; utilization: mean (minimum to maximum)")
    print(f"{'setting':42} {'':4} {'ns-2.35':>23} {'asymq':>23}")
    outside = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for setting in SETTINGS:
            theirs = list(
                pool.map(
                    lambda seed: ns2(setting, seed, args.tcp, args.delayed_ack),
                    range(1, args.seeds + 1),
                )
            )
            ours = asymq(command, setting, args.seeds, args.tcp, args.delayed_ack)
            for index, direction in enumerate(["up", "down"]):
                reference = [run[index] for run in theirs]
                values = [run[index] for run in ours]
                mean = statistics.mean(values)
                within = min(reference) <= mean <= max(reference)
                outside += not within
                print(
                    f"{setting[0] if index == 0 else '':42} {direction:4} {show(reference)}"
                    f" {show(values)}  {'within' if within else 'OUTSIDE'}"
                )
    sys.exit(1 if outside else 0)


def show(values):
    return f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


if __name__ == "__main__":
    main()
