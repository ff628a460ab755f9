#!/usr/bin/env python3
"""Compares the papers' mechanisms with figures from ns-2, row by row, and says what the comparison can see.

    scripts/ns2/mechanisms.py FIGURES.json [--asymq PATH] [--effect 0.05] [--jobs 2] [--only TEXT] [--json]

FIGURES.json has, by figure, rows of `params` (deviations from AQ's default setting) and `result`
(`util`, `util_sd`, `upD`, `dnD` and `n` seeds). Each row runs in the simulator with the
papers' readings and at least ten seeds, and is compared by its utility:

  agrees    the means differ by at most the effect
  differs   they differ by more
  untested  the 95 % interval of the difference is wider than the effect: the row could not tell

A setting that the simulator does not have is listed with its reason, and so is a row of one or two
flows with random round-trip times, whose draws are nearly equal in ns-2. Exits 1 only if a run fails.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import subprocess
import sys

DEFAULT = {"disc": "droptail", "nup": 5, "ndn": 10, "cu": 1, "cd": 10, "bufu": 50, "bufd": 50,
           "seg": 1460, "tcp": "Newreno", "dur": 60, "warm": 5, "startmax": 1}
# Student's t at 97.5 %, by degrees of freedom.
T95 = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 15: 2.13, 20: 2.09}
RUNS = 10

# Words for each discipline of the figures.
QDISCS = {
    "droptail": ["--qdisc=droptail"],
    "fifo": ["--qdisc=droptail"],
    "aq": ["--qdisc=aq", "--beyond-limit=starve-acks"],
    "acksfirst": ["--qdisc=acks-first"],
    "wrr": ["--qdisc=wrr"],
    "prr": ["--qdisc=prr"],
    "nwc": ["--qdisc=cbq"],
    "acq": ["--qdisc=acq", "--service=wrr"],
    "acqnwc": ["--qdisc=acq"],
    "dcbq": ["--qdisc=dcbq", "--service=wrr"],
    "dcbqnwc": ["--qdisc=dcbq"],
    "vaq": ["--qdisc=vaq"],
    "afvq": ["--qdisc=afvq"],
}
ACK_QUEUES = {1: ["--ack-queue=af", "--max-stretch=none", "--max-gap=none"], 2: ["--ack-queue=sad", "--max-stretch=none"]}
# Parameters that describe the access links and the bottleneck's delay: contained in the round-trip time.
IGNORED = {"bnu", "bnd", "home", "acc"}


def rate(mbit):
    """A rate as flags write it."""
    return f"{round(mbit * 1e6)}bit"


# Flags for the values of further parameters.
FLAGS = {
    "win": lambda packets: [f"--window={packets}p"],
    "web": lambda _: ["--web=down:1:30kb:1.3"],
    "uu": lambda mbit: [f"--udp=up:{rate(mbit)}"],
    "ud": lambda mbit: [f"--udp=down:{rate(mbit)}"],
    "nlinks": lambda links: [f"--links={links}"],
    "delack": lambda delayed: ["--delayed-ack=100ms"] if delayed else [],
    "ar": lambda _: ["--regenerate=1", "--regenerate-spacing=smoothed"],
    "q.ackpol": ACK_QUEUES.get,
    "q.wD": lambda share: [f"--data-share={share}"],
    "q.limA": lambda packets: [f"--ack-limit={packets}p"],
    "q.limD": lambda packets: [f"--data-limit={packets}p"],
    "q.T": lambda seconds: [f"--interval={seconds}s"],
    "q.gamma": lambda gamma: [f"--gamma={gamma}"],
    "q.nacct": lambda _: ["--credit=segment"],
    "q.cls": lambda _: ["--classifier=size<=40"],
    "q.Cu": lambda bits: [f"--configured-rate={round(bits)}bit"],
}


class Unsupported(Exception):
    """A setting that the simulator does not have."""


def words(params):
    """The simulator's flags for a row of the figures."""
    p = DEFAULT | params
    few = p["nup"] <= 2 and p["ndn"] <= 2
    if "rtt" not in p and few:
        raise Unsupported("one or two flows with random round-trip times")
    if "type" in p:
        raise Unsupported("ns-2's own CBQ")
    disc = p["disc"]
    flags = [
        "--readings=papers", *QDISCS[disc],
        f"--up={rate(p['cu'])}", f"--down={rate(p['cd'])}",
        f"--flows-up={p['nup']}", f"--flows-down={p['ndn']}",
        f"--rtt={p['rtt']}ms" if "rtt" in p else "--rtt=20ms..300ms",
        # ns-2's DropTail holds one packet less than its limit; the figures' other queues hold the limit.
        f"--buffer={p['bufu'] - (disc == 'droptail')}p", f"--buffer-down={p['bufd'] - 1}p",
        f"--mss={p['seg']}b", f"--tcp={p['tcp'].lower()}",
        f"--duration={p['dur']}s", f"--warmup={p['warm']}s", f"--start-within={p['startmax']}s",
    ]
    for key, value in params.items():
        if key in FLAGS:
            flags += FLAGS[key](value)
        elif key not in DEFAULT and key not in IGNORED and key != "rtt":
            raise Unsupported(f"{key} = {value}")
    # A paced class of the figures makes up nothing of another.
    if disc.endswith("nwc"):
        flags.append("--made-up=own")
    return flags


def mechanism(params):
    """The name of a row's mechanism: its discipline with its ACK policy."""
    name = params.get("disc", "ns-2's CBQ")
    policy = {1: "+af", 2: "+sad"}.get(params.get("q.ackpol"), "")
    return name + policy + ("+ar" if params.get("ar") else "")


def half_width(ours, runs, theirs, seeds):
    """Half the 95 % interval of a difference of means with these squared errors (Welch)."""
    square = ours + theirs
    if square == 0 or seeds < 2:
        return 0.0 if square == 0 else math.inf
    degrees = square**2 / (ours**2 / (runs - 1) + theirs**2 / (seeds - 1))
    return T95[max(known for known in T95 if known <= max(1, degrees))] * math.sqrt(square)


def row(asymq, figure, params, result, effect):
    """The verdict on a row."""
    said = {"figure": figure, "mechanism": mechanism(params), "params": params}
    if not {"util", "util_sd", "n"} <= result.keys():
        return said | {"verdict": "left out", "reason": "a row without utility, deviation or number of seeds"}
    try:
        flags = words(params)
    except Unsupported as error:
        return said | {"verdict": "left out", "reason": str(error)}
    runs = max(RUNS, result["n"])
    done = subprocess.run([*asymq, "sim", "--json", f"--runs={runs}", *flags], capture_output=True, text=True)
    if done.returncode:
        return said | {"verdict": "failed", "reason": done.stderr.strip()}
    each = [run["utility"] for run in json.loads(done.stdout)["runs"]]
    mean = sum(each) / runs
    variance = sum((value - mean) ** 2 for value in each) / (runs - 1)
    half = half_width(variance / runs, runs, result["util_sd"] ** 2 / result["n"], result["n"])
    difference = mean - result["util"]
    agrees = "agrees" if abs(difference) <= effect else "differs"
    return said | {"verdict": "untested" if half > effect else agrees, "ours": mean, "ns2": result["util"],
                   "difference": difference, "half_width": half, "our_sd": math.sqrt(variance), "ns2_sd": result["util_sd"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures")
    parser.add_argument("--asymq", default="target/release/asymq")
    parser.add_argument("--effect", type=float, default=0.05, help="difference in utility that a row should detect")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="rows whose figure or mechanism contains this")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with open(args.figures, encoding="utf-8") as file:
        figures = json.load(file)
    rows = [(figure, row["params"], row["result"]) for figure, about in figures.items() for row in about["rows"]]
    rows = [one for one in rows if args.only in one[0] or args.only in mechanism(one[1])]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        found = list(pool.map(lambda one: row([args.asymq], *one, args.effect), rows))
    if args.json:
        json.dump(found, sys.stdout, indent=1)
        return print()
    verdicts = ["agrees", "differs", "untested", "left out", "failed"]
    table = collections.defaultdict(collections.Counter)
    for one in found:
        table[one["mechanism"]][one["verdict"]] += 1
    print(f"| mechanism | {' | '.join(verdicts)} | largest difference |\n|{' --- |' * (len(verdicts) + 2)}")
    for name, counts in sorted(table.items()):
        tested = [one for one in found if one["mechanism"] == name and one["verdict"] in ("agrees", "differs")]
        largest = max(tested, key=lambda one: abs(one["difference"]), default=None)
        largest = f"{largest['difference']:+.3f} ({largest['figure']})" if largest else "–"
        print(f"| {name} | {' | '.join(str(counts[v]) for v in verdicts)} | {largest} |")
    for verdict in ("differs", "untested", "left out", "failed"):
        print(f"\n{verdict}:")
        for one in (one for one in found if one["verdict"] == verdict):
            about = ", ".join(f"{key} {value}" for key, value in one["params"].items())
            numbers = one.get("reason") or (f"{one['ours']:.3f} here, {one['ns2']:.3f} in ns-2, "
                                            f"{one['difference']:+.3f} ± {one['half_width']:.3f}")
            print(f"- {one['figure']} ({about}): {numbers}")
    if any(one["verdict"] == "failed" for one in found):
        sys.exit(1)


main()
