#!/usr/bin/env python3
"""AQ as a qdisc in BPF against core's golden traces, in a guest: `bpf.py FOLDER INPUT GOLDENS`. FOLDER has aq.o, of
kernel/bpf/aq.bpf.c compiled with ASYMQ_TEST, and aq-defect1.o and aq-defect2.o with such a defect. Prints a line for each check and ends with `checks: ...`.

The trace of a golden says which packet came and left in which order. The same packets are given to the qdisc in the same
order, and one is let out where the trace has one that leaves; it must be the same, and the same arrivals must be refused.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import time

DEVICE = "d0"
ETHERNET = bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)) + b"\x08\x00"
# Discipline of core's, data's share in steps of 2^-30, packets of ACKs and of data. AQ's own share stays the same for the
# first interval of its controller, 200 ms, in which all packets of the input arrive.
GOLDENS = ("wrr", 1 << 29, 20, 20), ("wrr-data-share-0.9", 966367642, 20, 20), ("aq", 787971006, 5, 15)
SYS_BPF, BPF_MAP_GET_FD_BY_ID = 321, 14
LIBC = ctypes.CDLL(None, use_errno=True)


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True,
                          env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def expect(holds, text):
    if not holds:
        raise AssertionError(text)


class Section:
    """A section of the program's data, which it shares."""

    def __init__(self, name, layout):
        maps = json.loads(run("bpftool -j map list"))
        # Those of a program before may not be gone yet.
        number = max(one["id"] for one in maps if one.get("name") == name)
        request = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 64)
        fd = LIBC.syscall(SYS_BPF, BPF_MAP_GET_FD_BY_ID, request, 12)
        expect(fd >= 0, f"map {name}: {os.strerror(ctypes.get_errno())}")
        self.memory, self.layout = mmap.mmap(fd, mmap.PAGESIZE), layout
        os.close(fd)

    def set(self, *values):
        struct.pack_into(self.layout, self.memory, 0, *values)


class Qdisc:
    """The program at the root of a device of its own."""

    def __init__(self):
        run(f"ip link add {DEVICE} type dummy; sysctl -qw net.ipv6.conf.{DEVICE}.disable_ipv6=1; ip link set {DEVICE} up;"
            f"tc qdisc add dev {DEVICE} root bpf_aq")
        self.config, self.permits = Section(".data.config", "=QIIIi"), Section(".data.permits", "=q")
        self.permits.set(0)
        self.sender = self.socket(0)
        self.listener = self.socket(3)
        self.listener.setsockopt(socket.SOL_SOCKET, 35, 1)

    def socket(self, protocol):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        made.bind((DEVICE, protocol))
        made.settimeout(1)
        return made

    def enqueue(self, frame):
        """Whether it is taken."""
        try:
            self.sender.send(frame)
        except OSError as error:
            expect(error.errno == errno.ENOBUFS, str(error))
            return False
        return True

    def leaves(self):
        """The number of the next packet that leaves and when, in ns."""
        while True:
            data, ancillary, _, address = self.listener.recvmsg(2048, 64)
            if address[2] == socket.PACKET_OUTGOING:
                seconds, nanos = struct.unpack("=qq", ancillary[0][2][:16])
                return int.from_bytes(data[18:20], "big"), seconds * 10**9 + nanos

    def dequeue(self):
        """The number of the packet that leaves, or None."""
        self.permits.set(1)
        try:
            return self.leaves()[0]
        except TimeoutError:
            return None

    def shown(self):
        return json.loads(run(f"tc -s -j qdisc show dev {DEVICE}"))[0]

    def close(self):
        self.sender.close()
        self.listener.close()
        run(f"ip link del {DEVICE}")


@contextlib.contextmanager
def program(path):
    """Registered, at the root of a device."""
    run(f"bpftool struct_ops register {path}")
    try:
        qdisc = Qdisc()
        try:
            yield qdisc
        finally:
            qdisc.close()
    finally:
        run("bpftool struct_ops unregister name aq")


def frame(number, kind, length, ack, version=4):
    """A packet of the golden input, of so many bytes without Ethernet's header; its number is in IP's identification."""
    tcp = struct.pack("!HHIIBBHHH", 1000, 443, 1, ack, 0x50, 0x10, 65535, 0, 0)
    rest = tcp if kind in ("ack", "data") else struct.pack("!HHHH", 1000, 53, length - 20, 0)
    rest += bytes(length - 20 - len(rest))
    protocol = 6 if kind in ("ack", "data") else 17
    return ETHERNET + struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, number, 0x4000, 64, protocol, 0,
                                  bytes((10, 9, 9, 1)), bytes((10, 9, 8, 1))) + rest


def read_input(path):
    with open(path) as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    return [(int(at), kind, int(length), int(ack)) for at, kind, _, length, ack in lines]


def read_golden(path):
    """Time in us, verdict and number of each packet that leaves."""
    with open(path) as file:
        lines = [line.split() for line in file]
    return [(int(line[0]), line[1], int(line[2][1:])) for line in lines]


def trace(qdisc, packets, golden):
    """What the qdisc does where the golden has an arrival or a departure: the same, if it decides the same."""
    seen, waiting = [], 0
    departures = [at for at, verdict, _ in golden if verdict == "sent"]
    for number, (at, kind, length, ack) in enumerate(packets):
        # What comes to an idle link leaves at the same moment, but after it came.
        while departures and departures[0] <= at and waiting:
            departures.pop(0)
            waiting -= 1
            seen.append(("sent", qdisc.dequeue()))
        if qdisc.enqueue(frame(number, kind, length, ack)):
            waiting += 1
        else:
            seen.append(("over-limit", number))
    return seen + [("sent", qdisc.dequeue()) for _ in departures]


def first_difference(seen, golden):
    wanted = [(verdict, number) for _, verdict, number in golden]
    for at, (left, right) in enumerate(zip(seen, wanted)):
        if left != right:
            return f"event {at}: {left[0]} #{left[1]} where the golden has {right[0]} #{right[1]}"
    return None if len(seen) == len(wanted) else f"{len(seen)} events where the golden has {len(wanted)}"


def goldens(folder, input_path, goldens_path):
    """Each golden whole; and one of them at least differs for each of two defects, so that the comparison can fail."""
    packets, counts, unseen = read_input(input_path), [], {1, 2}
    for name, share, acks, data in GOLDENS:
        golden = read_golden(f"{goldens_path}/{name}.txt")

        def difference(path):
            with program(path) as qdisc:
                qdisc.config.set(0, share, acks, data, -14)
                return first_difference(trace(qdisc, packets, golden), golden), qdisc.shown()

        wrong, shown = difference(f"{folder}/aq.o")
        expect(wrong is None, f"{name}: {wrong}")
        sent = sum(verdict == "sent" for _, verdict, _ in golden)
        counted = shown["packets"], shown["drops"], shown["qlen"], shown["backlog"]
        expect(counted == (sent, len(golden) - sent, 0, 0), f"{name}: tc shows {counted}")
        unseen -= {defect for defect in unseen if difference(f"{folder}/aq-defect{defect}.o")[0]}
        counts.append(f"{len(golden)} events of {name}")
    expect(not unseen, f"defects {unseen} have the same traces")
    return ", ".join(counts) + "; two defects are seen"


def shaper(folder, *_):
    """At 1 Mbit/s full packets leave 12 ms apart."""
    with program(f"{folder}/aq.o") as qdisc:
        qdisc.config.set(125_000, 1 << 29, 20, 20, -14)
        for number in range(12):
            expect(qdisc.enqueue(frame(number, "data", 1500, 1)), "a packet is refused")
        qdisc.permits.set(1 << 40)
        times = [qdisc.leaves()[1] for _ in range(12)]
        # What it lost while nothing might leave, up to 5 ms, it makes up.
        gaps = [later - earlier for earlier, later in zip(times[1:], times[2:])]
        expect(all(11.5e6 < gap < 12.5e6 for gap in gaps), f"gaps of {[gap // 1000 for gap in gaps]} us")
        expect(qdisc.shown()["overlimits"] > 0, "no overlimits")
        # An overhead below what the packet has charges a byte, and not 4 GB.
        qdisc.config.set(125_000, 1 << 29, 20, 20, -200)
        for number in range(3):
            expect(qdisc.enqueue(frame(number, "ack", 40, 1)), "an ACK is refused")
            qdisc.leaves()
    return f"gaps of {min(gaps) / 1e6:.1f} to {max(gaps) / 1e6:.1f} ms"


def classes(folder, *_):
    """What is no pure ACK of IPv4 or IPv6 is data, what is malformed too, and none of it is refused elsewhere."""
    ack = frame(0, "ack", 40, 1)

    def changed(at, value, base=ack):
        return base[:at] + bytes(value) + base[at + len(value):]

    v6 = ETHERNET[:12] + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 20, 6, 64) + bytes(32) + ack[34:]
    stamped = changed(16, (0, 52), changed(46, (0x80,))) + bytes(12)
    acks = {"IPv4": ack, "IPv6": v6, "with timestamps": stamped}
    data = {
        "SYN": changed(47, (0x12,)), "FIN": changed(47, (0x11,)), "RST": changed(47, (0x14,)), "no ACK": changed(47, (0,)),
        "payload": changed(16, (0, 41)) + b"x", "UDP": changed(23, (17,)), "a fragment": changed(20, (0x20, 0)),
        "a later fragment": changed(21, (1,)), "IPv5": changed(14, (0x55,)), "ARP": changed(12, (8, 6)),
        "a short IPv4": ack[:30], "a short TCP": ack[:50], "Ethernet alone": ETHERNET + b"\0" * 6,
        "a header of 60 bytes": changed(14, (0x4f,)), "IPv6 with UDP": changed(20, (17,), v6),
        "a data offset beyond": changed(46, (0xf0,)),
    }
    with program(f"{folder}/aq.o") as qdisc:
        for name, packet in [*acks.items(), *data.items()]:
            # Room for one of its class alone tells which that is.
            qdisc.config.set(0, 1 << 29, int(name in acks), int(name in data), -14)
            expect(qdisc.enqueue(packet), f"{name}: in the wrong class")
            qdisc.permits.set(1)
            qdisc.leaves()
    return f"{len(acks)} ACKs and {len(data)} others"


def rooms(folder, *_):
    """One qdisc of the program at a time; a new one after it was deleted with packets in it, which are freed."""
    with program(f"{folder}/aq.o") as qdisc:
        qdisc.config.set(0, 1 << 29, 20, 20, -14)
        run("ip link add d1 type dummy; ip link set d1 up")
        refused = subprocess.run("tc qdisc add dev d1 root bpf_aq", shell=True, capture_output=True, text=True)
        expect("busy" in refused.stderr, f"a second one: {refused.stderr or 'taken'}")
        refused = subprocess.run("tc qdisc add dev d1 root bpf_aq", shell=True, capture_output=True, text=True)
        expect("busy" in refused.stderr, f"a third one: {refused.stderr or 'taken'}")
        for number in range(15):
            qdisc.enqueue(frame(number, "data", 1500, 1))
        expect(qdisc.shown()["qlen"] == 15, "15 packets wait")
        run(f"tc qdisc del dev {DEVICE} root; tc qdisc add dev d1 root bpf_aq; ip link del d1;"
            f"tc qdisc add dev {DEVICE} root bpf_aq")
        expect(qdisc.shown()["qlen"] == 0, "an empty one")
        expect(qdisc.enqueue(frame(77, "data", 1500, 1)) and qdisc.dequeue() == 77, "packets of the one before")
    return "a second is refused; packets of a deleted one are gone"


def main(folder, input_path, goldens_path):
    results = []
    for check in (goldens, classes, shaper, rooms):
        try:
            print(f"check: ok bpf {check.__name__}: {check(folder, input_path, goldens_path)}", flush=True)
            results.append(True)
        except (AssertionError, RuntimeError, OSError) as error:
            print(f"check: FAILED bpf {check.__name__}: {type(error).__name__} {error}", flush=True)
            results.append(False)
    print(f"checks: {sum(results)} ok, {len(results) - sum(results)} failed", flush=True)
    sys.exit(not all(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
