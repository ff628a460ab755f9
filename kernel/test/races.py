"""Operations on a qdisc during traffic, on two CPUs: dumps by another user, changes, deletes, resets, a device that is
unregistered or moves to another network namespace, an exiting namespace, and removal of the module."""

import os
import socket
import time

from cost import BATCH, LIBC, Load, Message
from netlink import Netlink, words
from traffic import End, run

import ctypes

NOBODY = 65534
DEVICE, PEER, IFB = "v0", "v1", "ifb9"
FAST = "burst 20kb limit 1mb"
# For each parent: commands that build the tree, places of asymq in the tree, class of the packets.
PARENTS = {
    "none": ([], ["root"], 0),
    "tbf": ([f"qdisc add dev v0 root handle 1: tbf rate 50mbit {FAST}"], ["1:1"], 0),
    "hfsc": (["qdisc add dev v0 root handle 1: hfsc default 1",
              "class add dev v0 parent 1: classid 1:1 hfsc sc rate 50mbit ul rate 50mbit"], ["1:1"], 0x10001),
    "qfq": ([f"qdisc add dev v0 root handle 1: tbf rate 50mbit {FAST}", "qdisc add dev v0 parent 1:1 handle 2: qfq",
             "class add dev v0 parent 2: classid 2:1 qfq weight 1 maxpkt 2048"], ["2:1"], 0x20001),
    "mq": (["qdisc add dev v0 root handle 1: mq"], ["1:1", "1:2"], 0),
    # With a further qdisc at an IFB, for the downlink, which follows the device's departures.
    "ifb": ([], ["root"], 0),
}
# Parents for which the device moves to another namespace before it is unregistered. The move destroys its qdiscs.
MOVED = "tbf", "mq", "ifb"
WORDS = ["aq up 5mbit down 50mbit", "sad up 5mbit", "up 5mbit down 50mbit", "droptail up 5mbit"]
AUTO = ["up auto", "cake up auto"]


def place_number(place):
    if place == "root":
        return 0xFFFFFFFF
    major, minor = place.split(":")
    return int(major, 16) << 16 | int(minor, 16)


def flood(_say, device, priority):
    """Sends frames until the process is killed. If the device is removed, repeats the failing call."""
    load = Load(256)
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    sender.bind((device, 0x0800))
    size, at = ctypes.sizeof(Message), 0
    while True:
        place = ctypes.addressof(load.messages) + at * size
        sent = LIBC.sendmmsg(sender.fileno(), ctypes.c_void_p(place), BATCH, 0)
        at = (at + max(sent, 1)) % (len(load.frames) - BATCH)
        if sent < 0 and ctypes.get_errno() in (6, 19, 100):  # ENXIO, ENODEV, ENETDOWN
            time.sleep(0.001)


def dumps(_say):
    """Dumps all qdiscs with their statistics, as a user without capabilities."""
    os.setgroups([])
    os.setresuid(NOBODY, NOBODY, NOBODY)
    messages = Netlink()
    while True:
        messages.show()


class Place:
    """A tree with asymq at a veth device, processes that send traffic in both directions, and a process that dumps."""

    def __init__(self, parent, namespace=None):
        commands, self.places, priority = PARENTS[parent]
        self.parent, self.namespace = parent, namespace
        where = f"-n {namespace}" if namespace else ""
        into = f"netns {namespace}" if namespace else ""
        run(f"ip link add {PEER} numtxqueues 2 numrxqueues 2 type veth peer name {DEVICE} numtxqueues 2 numrxqueues 2 {into};"
            f"ip {where} link set {DEVICE} up; ip link set {PEER} up")
        if parent == "ifb":
            run(f"ip {where} link add {IFB} type ifb; ip {where} link set {IFB} up; tc {where} qdisc add dev {DEVICE} ingress;"
                f"tc {where} filter add dev {DEVICE} ingress matchall action mirred egress redirect dev {IFB};"
                f"tc {where} qdisc add dev {IFB} root asymq {AUTO[1]}")
        if commands:
            run(f"tc {where} -batch - <<'END'\n" + "\n".join(commands) + "\nEND")
        for at, place in enumerate(self.places):
            where_at = place if place == "root" else f"parent {place}"
            words_of = AUTO[0] if parent == "ifb" else WORDS[0]
            shaped = "" if parent in ("none", "ifb", "mq") else "unshaped"
            run(f"tc {where} qdisc add dev {DEVICE} {where_at} handle {0xa + at:x}: asymq {words_of} {shaped}")
        self.ends = [End(namespace, flood, DEVICE, priority), End(None, flood, PEER, 0), End(namespace, dumps)]

    def expect_alive(self):
        """Checks that no process has ended early, because a check without traffic would prove nothing."""
        if any(os.waitid(os.P_PID, end.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) for end in self.ends):
            raise RuntimeError(f"below {self.parent}: a process ended early")

    def close(self):
        for end in self.ends:
            end.kill()


def operate(place, seconds):
    """Changes, deletes and resets for a time; returns the number of operations."""
    messages, number = Netlink(), 0
    shaped = [] if place.parent in ("none", "ifb", "mq") else ["unshaped"]
    handles = [(name, 0xA0000 + (at << 16)) for at, name in enumerate(place.places)]
    options = [words(text, *shaped) for text in (AUTO[:1] if place.parent == "ifb" else WORDS)]
    rates = [words(f"up {rate}mbit down 50mbit", *shaped) for rate in (4, 5)]
    auto = words(AUTO[1])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        name, handle = handles[number % len(handles)]
        at = place_number(name)
        errors = [messages.qdisc(DEVICE, options[number % len(options)], parent=at, handle=handle)]
        if place.parent != "ifb":
            errors += [messages.qdisc(DEVICE, rate, parent=at, handle=handle) for rate in rates]
        if number % 3 == 0:
            errors += [messages.qdisc(DEVICE, None, delete=True, parent=at, handle=handle),
                       messages.qdisc(DEVICE, options[0], parent=at, handle=handle)]
        if place.parent == "ifb":
            errors += [messages.qdisc(IFB, None, delete=True), messages.qdisc(IFB, auto)]
        if number % 7 == 0:
            errors += [messages.link(DEVICE, False), messages.link(DEVICE, True)]
        if any(errors):
            raise RuntimeError(f"below {place.parent}: operation {number}: {errors}")
    return number


def in_use():
    """Checks that the module cannot be removed while one of its qdiscs exists."""
    done = run("rmmod sch_asymq", check=False)
    if done.returncode == 0:
        raise RuntimeError("the module was removed while in use")


def beside_traffic(parent, seconds):
    """Performs all operations on one tree; then the device moves or is unregistered during traffic. Builds a second tree,
    and removes it with its namespace."""
    place = Place(parent)
    try:
        number = operate(place, seconds)
        place.expect_alive()
        in_use()
        if parent in MOVED:
            run(f"ip netns add other; ip link set {DEVICE} netns other; ip -n other link set {DEVICE} up; ip netns del other")
        run(f"ip link del {DEVICE}; ip link del {IFB}", check=False)
    finally:
        place.close()
        run(f"ip link del {DEVICE}; ip link del {IFB}", check=False)
    run("ip netns add leaving")
    place = Place(parent, "leaving")
    try:
        time.sleep(0.3)
        in_use()
        # Ends the processes in the namespace, which would keep it alive. The outer end continues to send.
        for end in (place.ends[0], place.ends[2]):
            end.kill()
        run("ip netns del leaving")
        end = time.monotonic() + 20
        while os.path.exists(f"/sys/class/net/{PEER}"):
            if time.monotonic() > end:
                raise RuntimeError(f"below {parent}: the namespace does not exit")
            time.sleep(0.05)
    finally:
        place.ends[1].kill()
        run("ip netns del leaving", check=False)
    return number


def dumps_below_tbf(seconds, least):
    """Dumps as a user without capabilities during a flood below tbf, which peeks. Takes at least `seconds`, and at least
    `least` packets. Returns the number of packets sent."""
    place, messages = Place("tbf"), Netlink()
    place.ends.append(End(None, dumps))
    begin = time.monotonic()
    try:
        while True:
            time.sleep(1)
            place.expect_alive()
            packets = next(qdisc["packets"] for qdisc in messages.qdiscs(DEVICE) if qdisc["kind"] == "asymq")
            took = time.monotonic() - begin
            if took >= seconds and packets >= least:
                return packets
            if took > seconds + 100:
                raise RuntimeError(f"{packets} packets in {took:.0f} s")
    finally:
        place.close()
        run(f"ip link del {DEVICE}", check=False)
