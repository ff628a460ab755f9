"""Functions for all checks: the module, its parameters, the kernel's log, the list of checks."""

import json
import os
import sys
import time

from traffic import run

FOLDER, ROOT = sys.argv[1:3]
PARAMETERS = "/sys/module/sch_asymq/parameters/"
# Maximum lateness of the guest's clock in ms. If it is exceeded, a shaper's delay comes from the guest, not from the qdisc.
LATE = float(os.environ.get("ASYMQ_LATE", "4"))
QUICK = os.environ.get("ASYMQ_QUICK")
# Set with a kernel that detects errors, which is about ten times slower: some checks are smaller then.
SLOW = os.environ.get("ASYMQ_SLOW")
CHECKS, RESULTS = [], []
# Signs of an error in the kernel's log. Most kernels use only the first three.
REPORTS = "WARNING", "BUG", "Oops", "KASAN", "lockdep", "circular", "ODEBUG", "UBSAN", "INFO: task", "rcu_sched"
KMEMLEAK = "/sys/kernel/debug/kmemleak"


def check(function):
    CHECKS.append(function)
    return function


def sized(usual, slow):
    return slow if SLOW else usual


class Wrong(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Wrong(text)


def module(name, *parameters):
    run(f"modprobe -d {ROOT} {name} {' '.join(parameters)}")


def load(test=True, *parameters):
    """Removes the loaded module with its qdiscs, and loads the test build or the delivered module."""
    end = time.monotonic() + 10
    run("tc -n home qdisc del dev h0 root; tc -n path qdisc del dev m0 root; rmmod sch_asymq", check=False)
    while os.path.exists("/sys/module/sch_asymq"):
        expect(time.monotonic() < end, "the module stays in use")
        time.sleep(0.1)
        run("rmmod sch_asymq", check=False)
    name = "sch_asymq_test.ko" if test else "sch_asymq.ko"
    return run(f"insmod {FOLDER}/{name} {' '.join(parameters)}", check=False)


def log():
    return run("dmesg").stdout


def reported():
    return [line for line in log().splitlines() if any(sign in line for sign in REPORTS)]


def set_parameter(name, value):
    with open(PARAMETERS + name, "w") as file:
        file.write(str(value))


def parameter(name):
    with open(PARAMETERS + name) as file:
        return int(file.read())


def no_allocation_left():
    alive = parameter("alive")
    expect(alive == 0, f"{alive} allocations are left")


def asymq(options, space="home", device="h0"):
    run(f"tc -n {space} qdisc replace dev {device} root asymq {options}")


def shown(space="home", device="h0"):
    """Returns the asymq of a device as `tc -s -j` shows it."""
    qdiscs = json.loads(run(f"tc -n {space} -s -j qdisc show dev {device}").stdout)
    return next(qdisc for qdisc in qdiscs if qdisc["kind"] == "asymq")


def plain():
    """Removes the uplink's qdisc, and sets a downlink of 10 Mbit/s with a buffer of 50 packets."""
    run("tc -n home qdisc del dev h0 root", check=False)
    run("tc -n path qdisc del dev m0 root", check=False)
    asymq("droptail up 10mbit buffer 50p", "path", "m0")


def timed(measure, attempts=3):
    """Returns the results of `measure` and the lateness, its last result. Repeats a late measurement; the last try must not
    be late."""
    for _ in range(attempts):
        *answer, late = measure()
        if late <= LATE:
            return answer, late
    raise Wrong(f"late: a sleeper of 20 ms wakes {late:.1f} ms late at p99: not counted")
