#!/usr/bin/env python3
"""Compares asymq's BBRv3 with noq-proto's over one link without uploads. `scripts/quic/run` starts it.

Prints, per setting, the share of the link that one flow took, the median sojourn in its queue and the packets
dropped there, as means over seeds. The settings are held out: nothing in crates/sim was tuned on them.
"""

import argparse
import json
import statistics
import subprocess

# Rate in Mbit/s, round-trip time in ms, buffer in packets, random losses behind the link in %.
SETTINGS = [
    (10, 100, 50, 0), (10, 100, 20, 0), (20, 40, 100, 0), (5, 200, 40, 0),
    (50, 20, 60, 0), (2, 60, 15, 0), (10, 100, 400, 0), (40, 80, 100, 0),
    (10, 100, 100, 0.5), (10, 100, 100, 1), (20, 40, 100, 1), (10, 100, 100, 3),
]
SPANS = [(60, 5), (5, 0)]
MS, SECOND = 10**6, 10**9


def noq(driver, setting, span, seeds):
    rate, rtt, buffer, loss = setting
    duration, warmup = span
    lines = [
        f"{rate * 10**6} {rtt * MS} {buffer} {round(loss * 10**4)} {duration * SECOND} {warmup * SECOND} {seed}\n"
        for seed in seeds
    ]
    output = subprocess.run(
        [driver, "bbr3"], input="".join(lines), check=True, capture_output=True, text=True
    )
    return [[float(word) for word in line.split()] for line in output.stdout.splitlines()]


def asymq(command, setting, span, seeds):
    rate, rtt, buffer, loss = setting
    duration, warmup = span
    words = [
        command, "sim", "--json", "--qdisc=droptail", f"--up={rate}mbit", f"--down={rate}mbit",
        "--flows-up=0", "--flows-down=1", f"--rtt={rtt}ms", "--tcp=bbr3", "--sack",
        f"--buffer={buffer}p", f"--buffer-down={buffer}p", "--start-within=1ms",
        f"--duration={duration}s", f"--warmup={warmup}s", f"--seed={seeds[0]}", f"--runs={len(seeds)}",
    ]
    if loss:
        words.append(f"--netem-down=loss {loss}%")
    output = subprocess.run(words, check=True, capture_output=True, text=True)
    downs = [run["down"] for run in json.loads(output.stdout)["runs"]]
    return [[d["utilization"], d["sojourn_ms"]["p50"], d["dropped"]] for d in downs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True, help="the program that scripts/quic/run builds")
    parser.add_argument("--asymq", required=True)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    seeds = list(range(1, args.seeds + 1))
    for span in SPANS:
        print(f"{span[0]} s without the first {span[1]}".ljust(46) + f"{'used':>14}{'queue ms':>16}{'lost':>14}")
        print(" " * 46 + f"{'noq':>7}{'asymq':>7}" + 2 * f"{'noq':>8}{'asymq':>7}")
        for setting in SETTINGS:
            runs = noq(args.driver, setting, span, seeds), asymq(args.asymq, setting, span, seeds)
            means = [[statistics.mean(column) for column in zip(*part)] for part in runs]
            (a, b), *rest = zip(*means)
            rate, rtt, buffer, loss = setting
            title = f"{rate} Mbit/s, {rtt} ms, {buffer} packets" + (f", {loss} % lost" if loss else "")
            print(f"{title:46}{a:7.3f}{b:7.3f}" + "".join(f"{x:9.1f}{y:7.1f}" for x, y in rest))


main()
