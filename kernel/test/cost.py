#!/usr/bin/env python3
"""Measures the cost of a packet under each qdisc. `cost.py measure FOLDER KERNEL-ROOT` prints a line, in a guest whose
clock counts instructions. `cost.py judge FILE...` reads the lines of several boots, prints medians, and exits with 1 if
one exceeds its bound.

Three loads:
- "alone": pktgen's UDP through a root qdisc without a shaper. Packets may bypass some empty qdiscs.
- "leaf": the same UDP through a qdisc below HTB, where no packet can bypass it.
- "acks": every second packet is a pure ACK of one of four downloads. The load exceeds the qdisc's 1 Mbit/s, so that ACKs
  are queued and thinned.
For "alone" and "leaf", the cost of `pfifo` (making and sending a packet) is subtracted before costs are compared.
"""

import ctypes
import json
import os
import socket
import statistics
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from traffic import run  # noqa: E402

ALONE = {
    "pfifo": "pfifo limit 1000", "fq_codel": "fq_codel", "cake": "cake unlimited", "asymq droptail": "asymq droptail",
    "asymq aq": "asymq aq up 1gbit down 1gbit unshaped", "asymq sad": "asymq sad",
    "asymq": "asymq up 1gbit down 1gbit unshaped",
}
LEAF = {
    "pfifo": "pfifo limit 1000", "fq_codel": "fq_codel", "cake": "cake unlimited",
    "asymq droptail": "asymq droptail unshaped", "asymq aq": "asymq aq up 1gbit down 1gbit unshaped",
    "asymq sad": "asymq sad unshaped", "asymq": "asymq up 1gbit down 1gbit unshaped",
}
ACKS = {
    "tbf": "tbf rate 1mbit burst 5kb limit 75kb", "cake": "cake bandwidth 1mbit",
    "cake ack-filter": "cake bandwidth 1mbit ack-filter", "asymq aq": "asymq aq up 1mbit down 10mbit",
    "asymq sad": "asymq sad up 1mbit", "asymq": "asymq up 1mbit down 10mbit",
}
# Upper bounds: a qdisc's cost relative to another's.
BARS = [
    ("alone", "asymq aq", "cake", 0.31),
    ("leaf", "asymq aq", "cake", 0.28),
    ("leaf", "asymq", "cake", 0.54),
    ("acks", "asymq aq", "cake", 1.0),
    ("acks", "asymq sad", "cake ack-filter", 0.55),
    ("acks", "asymq", "cake ack-filter", 0.53),
]
LIBC = ctypes.CDLL(None, use_errno=True)
BATCH = 64


def alone(qdisc, count=10000):
    """Returns the nanoseconds per packet of pktgen."""
    for file, lines in (
        ("kpktgend_0", ("rem_device_all", "add_device p0")),
        ("p0", (f"count {count}", "clone_skb 0", "pkt_size 1000", "delay 0", "xmit_mode queue_xmit", "dst 10.9.9.9",
                "dst_mac 02:00:00:00:00:01", "flag UDPSRC_RND", "udp_src_min 1000", "udp_src_max 1016")),
    ):
        for line in lines:
            with open(f"/proc/net/pktgen/{file}", "w") as control:
                control.write(line + "\n")
    with open("/proc/net/pktgen/pgctrl", "w") as control:
        control.write("start\n")
    with open("/proc/net/pktgen/p0") as result:
        return int(result.read().split("Result: OK: ")[1].split("(")[0]) * 1e3 / count


def checksum(data, total=0):
    data += bytes(len(data) % 2)
    total += sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(number):
    """Returns a TCP/IPv4 frame: an ACK of one of four downloads, or a full segment of one of four uploads."""
    flow, ack = number // 2 % 4, number % 2 == 0
    payload = b"" if ack else bytes(1000)
    sequence, acked = (1, 1 + 1460 * (number // 8)) if ack else (1 + 1000 * (number // 8), 1)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), number & 0xFFFF, 0x4000, 64, 6, 0,
                     bytes((10, 9, 9, 1)), bytes((10, 9, 8, 1 + flow)))
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    tcp = struct.pack("!HHIIBBHHH", 1000 + flow + 8 * ack, 443, sequence, acked, 0x50, 0x10, 65535, 0, 0) + payload
    pseudo = ip[12:20] + struct.pack("!HH", 6, len(tcp))
    # The payload of zeros adds nothing to the sum.
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp[:20])) + tcp[18:]
    return bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)) + ip + tcp


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Message(ctypes.Structure):
    """The kernel's struct mmsghdr: a frame for sendmmsg()."""
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.c_void_p),
                ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int), ("len", ctypes.c_uint)]


class Load:
    """Frames in memory, prepared for sending."""

    def __init__(self, count=4096):
        self.frames = [ctypes.create_string_buffer(data, len(data)) for data in map(frame, range(count))]
        self.vectors = (Vector * count)(*((ctypes.addressof(data), len(data)) for data in self.frames))
        self.messages = (Message * count)()
        for number in range(count):
            self.messages[number].iov = ctypes.addressof(self.vectors[number])
            self.messages[number].iovlen = 1

    def send(self, device):
        """Sends all frames; returns the nanoseconds per frame."""
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sender.bind((device, 0x0800))
        SO_SNDBUFFORCE = 32
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
        count, at = len(self.frames), 0
        size = ctypes.sizeof(Message)
        begin = time.monotonic_ns()
        while at < count:
            # If the qdisc drops the first packet, the call fails with ENOBUFS; the packet counts as sent here.
            place = ctypes.addressof(self.messages) + at * size
            sent = LIBC.sendmmsg(sender.fileno(), ctypes.c_void_p(place), min(BATCH, count - at), 0)
            at += max(sent, 1)
        return (time.monotonic_ns() - begin) / count


def measure(folder, root):
    os.environ["TC_LIB_DIR"] = folder
    run(f"modprobe -d {root} -a dummy pktgen sch_htb sch_cake sch_fq_codel sch_tbf; insmod {folder}/sch_asymq.ko")
    run("ip link add p0 numtxqueues 1 numrxqueues 1 type dummy; ip link set p0 up")
    load = Load()
    answer = {}
    loads = ("alone", ALONE, alone), ("leaf", LEAF, alone), ("acks", ACKS, lambda _: load.send("p0"))
    for name, kinds, cost in loads:
        times = {kind: [] for kind in kinds}
        # Keeps the smaller of two results, because interrupts only add instructions.
        for _ in range(2):
            for kind, qdisc in kinds.items():
                run("tc qdisc del dev p0 root", check=False)
                parent = "root"
                if name == "leaf":
                    parent = "parent 1:1"
                    run("tc qdisc add dev p0 root handle 1: htb default 1")
                    run("tc class add dev p0 parent 1: classid 1:1 htb rate 10gbit burst 10m")
                run(f"tc qdisc add dev p0 {parent} {qdisc}")
                times[kind].append(cost(qdisc))
                if name == "acks" and os.environ.get("VERBOSE"):
                    print(run("tc -s qdisc show dev p0").stdout)
        answer[name] = {kind: min(values) for kind, values in times.items()}
    print("cost:", json.dumps(answer), flush=True)


def judge(files):
    boots = []
    for path in files:
        with open(path) as file:
            lines = [line for line in file if line.startswith("cost: ")]
        if not lines:
            sys.exit(f"cost: {path} has no figures")
        boots.append(json.loads(lines[-1].removeprefix("cost: ")))
    failed = False
    medians = {}
    for load in boots[0]:
        medians[load] = {kind: statistics.median(boot[load][kind] for boot in boots) for kind in boots[0][load]}
        print(f"cost: {load}: " + ", ".join(f"{kind} {value:.0f}" for kind, value in medians[load].items()) + " ns")
    for load, kind, other, most in BARS:
        base = medians[load].get("pfifo", 0)
        ratio = (medians[load][kind] - base) / (medians[load][other] - base)
        verdict = "ok" if ratio <= most else "FAILED"
        failed |= ratio > most
        print(f"check: {verdict} cost of {kind}, {load}: {ratio:.2f} of {other}'s, at most {most}")
    print(f"cost: {len(boots)} boots, medians")
    sys.exit(failed)


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(*sys.argv[2:4])
    else:
        judge(sys.argv[2:])
