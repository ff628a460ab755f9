#!/usr/bin/env python3
"""Compares asymq's simulated TCP with ns-3's: CUBIC, Reno, DCTCP, pacing, HyStart, BBR.

    python3 -m venv /tmp/ns3 && /tmp/ns3/bin/pip install ns3==3.44.post0
    scripts/ns3/compare.py --python /tmp/ns3/bin/python [--asymq PATH] [--only dctcp] [--seeds 3]

Needs a built asymq. Prints, per setting, the share of the downlink that each simulator's flows took, the
median sojourn in its queue, and the packets lost and marked there. One download or three without uploads:
the papers' disciplines for ACKs are not under test here, and ns-3 has none of them.

The settings are held out: nothing in crates/sim was tuned on them. A seed gives different draws in the two
simulators. ns-3 has neither HyStart++ nor BBRv3. Its HyStart (2011) and BBRv1 are printed instead, as a
rough indication only.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Rate in Mbit/s, round-trip time in ms, buffer in packets.
PLAIN = [(10, 100, 50), (10, 100, 20), (20, 40, 100), (5, 200, 40)]
# Like PLAIN, plus the marking threshold in packets.
MARKED = [(10, 100, 100, 20), (10, 20, 100, 10), (20, 40, 200, 30), (5, 200, 200, 40)]
# Our name, ns-3's name, and options other than the window.
PAIRS = [
    ("reno", "newreno", "TcpLinuxReno", {}),
    ("cubic", "cubic", "TcpCubic", {}),
    ("pacing", "cubic", "TcpCubic", {"pacing": True}),
    ("hystart", "cubic", "TcpCubic", {"hystart": True}),
    ("bbr", "bbr3", "TcpBbr", {}),
    ("ecn", "newreno", "TcpLinuxReno", {"ecn": True}),
    ("ecn-cubic", "cubic", "TcpCubic", {"ecn": True}),
    ("dctcp", "dctcp", "TcpDctcp", {"ecn": True}),
]
DURATION, WARMUP = 60, 5


def settings(only):
    """Yields every comparison: name, our TCP, ns-3's TCP, options, flows and place."""
    for name, ours, theirs, options in PAIRS:
        if only and name not in only:
            continue
        places = MARKED if "ecn" in options else PLAIN
        for place in places:
            for flows in (1, 3) if name == "dctcp" else (1,):
                yield name, ours, theirs, options, flows, place


def ns3(python, cases, seeds):
    """Returns ns-3's results: a list by seed for each case. Uses one process, because a start takes 20 s."""
    asked = [
        {
            "up": place[0] * 1e6,
            "down": place[0] * 1e6,
            "flows_up": 0,
            "flows_down": flows,
            "rtt": place[1] / 1e3,
            "buffer": place[2],
            "mark_above": place[3] if len(place) > 3 else 0,
            "duration": DURATION,
            "warmup": WARMUP,
            "tcp": f"ns3::{theirs}",
            "ecn": options.get("ecn", False),
            "hystart": options.get("hystart", False),
            "pacing": options.get("pacing", False),
            "seed": seed,
        }
        for _, _, theirs, options, flows, place in cases
        for seed in seeds
    ]
    output = subprocess.run(
        [python, str(HERE / "dumbbell.py")],
        input=json.dumps(asked), check=True, capture_output=True, text=True,
    )
    runs = [json.loads(line) for line in output.stdout.splitlines()]
    count = len(seeds)
    return [
        [(r["down"], r["sojourn_ms"][1], r["dropped"][1], r["marked"][1]) for r in runs[i : i + count]]
        for i in range(0, len(runs), count)
    ]


def asymq(command, case, seeds):
    """Returns asymq's results for a case, in the form of `ns3`."""
    _, ours, _, options, flows, place = case
    words = [
        *command, "sim", "--json", "--qdisc=droptail", f"--up={place[0]}mbit", f"--down={place[0]}mbit",
        "--flows-up=0", f"--flows-down={flows}", f"--rtt={place[1]}ms",
        f"--buffer={place[2]}p", f"--buffer-down={place[2]}p", f"--tcp={ours}", "--sack",
        f"--duration={DURATION}s", f"--warmup={WARMUP}s", f"--seed={seeds[0]}", f"--runs={len(seeds)}",
    ]
    words += [f"--{name}" for name in ("hystart", "pacing") if options.get(name)]
    if "ecn" in options:
        words += ["--tcp-ecn", "--param-down=aqm=step", f"--param-down=mark-above={place[3]}p"]
    output = subprocess.run(words, check=True, capture_output=True, text=True)
    downs = [run["down"] for run in json.loads(output.stdout)["runs"]]
    return [
        (d["utilization"], d["sojourn_ms"]["p50"], d["dropped"], d["marked"]) for d in downs
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="a Python that has ns3")
    parser.add_argument("--asymq", default=str(ROOT / "target/release/asymq"))
    parser.add_argument("--only", nargs="*", choices=[pair[0] for pair in PAIRS])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    cases = list(settings(args.only))
    seeds = list(range(1, args.seeds + 1))
    theirs = ns3(args.python, cases, seeds)
    print(f"{'':46}{'used':>14}{'queue ms':>16}{'lost':>14}{'marked':>16}")
    print(f"{'':46}" + f"{'ns-3':>7}{'asymq':>7}" + 3 * f"{'ns-3':>8}{'asymq':>7}")
    for case, reference in zip(cases, theirs):
        name, ours, kind, _, flows, place = case
        rate, rtt, buffer, *step = place
        at = f", K {step[0]}" if step else ""
        title = f"{name}: {flows} x {rate} Mbit/s, {rtt} ms, {buffer}{at}"
        own = asymq([args.asymq], case, seeds)
        means = [
            [statistics.mean(run[index] for run in runs) for runs in (reference, own)]
            for index in range(4)
        ]
        (a, b), *rest = means
        print(f"{title:46}{a:7.3f}{b:7.3f}" + "".join(f"{x:9.1f}{y:7.1f}" for x, y in rest))


main()
