"""Messages to RTNETLINK by hand: what no tc sends, too."""

import errno
import os
import random
import socket
import struct
import subprocess
import sys
import time

NEW_LINK, NEW, DELETE, GET = 16, 36, 37, 38
ERROR, DONE = 2, 3
REQUEST, ACK, REPLACE, DUMP, CREATE = 1, 4, 0x100, 0x300, 0x400
ROOT = 0xFFFFFFFF
KIND, OPTIONS = 1, 2
STATISTICS = 7
BASIC, QUEUE, OWN = 1, 3, 4
SET, VALUE, FAILED = 1, 2, 3


def attribute(kind, payload, length=None):
    length = 4 + len(payload) if length is None else length
    data = struct.pack("=HH", length & 0xFFFF, kind) + payload
    return data + bytes(-len(data) % 4)


def word(text):
    return attribute(SET, text.encode() + b"\0")


def attributes(data):
    """Kind and payload of each."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind & 0x3FFF, data[at + 4:at + length]
        at += (length + 3) & ~3


def qdisc(handle, parent, told):
    statistics = list(attributes(told[STATISTICS]))
    first = dict(statistics)
    byte_count, packets = struct.unpack_from("=QI", first[BASIC])
    waits, backlog, drops = struct.unpack_from("=III", first[QUEUE])
    values = {}
    for kind, payload in attributes(first.get(OWN, b"")):
        if kind == VALUE:
            values[payload[9:].decode()] = struct.unpack_from("=Q", payload)[0]
        elif kind == FAILED:
            values["failed"] = struct.unpack_from("=I", payload)[0]
    return {
        "kind": told[KIND].rstrip(b"\0").decode(), "handle": handle, "parent": parent, "bytes": byte_count,
        "packets": packets, "qlen": waits, "backlog": backlog, "drops": drops, "values": values,
    }


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.settimeout(10)
        self.sequence = 0
        # Nanoseconds in which the kernel carried out the last request: it does so before send() returns.
        self.took = 0

    def qdisc(self, device, options, delete=False, parent=ROOT, handle=0):
        """Adds, changes or deletes a qdisc; answers with an error's number, 0 for success."""
        body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), handle, parent, 0)
        body += attribute(KIND, b"asymq\0")
        if options is not None:
            body += attribute(OPTIONS, options)
        return self.ask(*(DELETE, 0) if delete else (NEW, CREATE | REPLACE), body)

    def link(self, device, up):
        """Sets a link up or down."""
        return self.ask(NEW_LINK, 0, struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(device), up, 1))

    def ask(self, kind, flags, body):
        self.request(kind, ACK | flags, body)
        while True:
            answer = self.socket.recv(65536)
            length, kind, _, sequence, _ = struct.unpack_from("=IHHII", answer)
            if kind == ERROR and sequence == self.sequence:
                return -struct.unpack_from("=i", answer, 16)[0]

    def show(self):
        """Has the kernel tell of all qdiscs of the namespace, with statistics; answers with the bytes of that."""
        self.request(GET, DUMP, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0))
        data = b""
        while True:
            answer = self.socket.recv(65536)
            data += answer
            if struct.unpack_from("=IH", answer)[1] == DONE:
                return data

    def qdiscs(self, device):
        """The qdiscs of a device: kind, handle, parent, tc's counters, and asymq's values by name."""
        data, found, at = self.show(), [], 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == NEW:
                index, handle, parent = struct.unpack_from("=iII", data, at + 20)
                if index == socket.if_nametoindex(device):
                    found.append(qdisc(handle, parent, dict(attributes(data[at + 36:at + length]))))
            at += (length + 3) & ~3
        return found

    def request(self, kind, flags, body):
        self.sequence += 1
        message = struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, self.sequence, 0) + body
        begin = time.monotonic_ns()
        self.socket.send(message)
        self.took = time.monotonic_ns() - begin


HOSTILE = [
    "buffer 4000000000p", "buffer 4gb", "buffer 1000000p", "buffer 0p", "up 0bit", "up 0mbit", "up 1bit",
    "up 2Mbps", "interval 0.1",
    "up 99999999999999999999gbit", "down 0bit", "up 1mbit", "interval 0s", "interval 1000000000s",
    "ack-size 0b", "ack-size 4000000000b", "max-stretch 4gb", "max-gap 0s", "gamma nan", "gamma inf",
    "gamma -1e308", "data-share 0", "data-share 1", "data-share 1e-300", "data-per-ack 0",
    "overhead overhead 4000000000", "overhead mpu 9999", "overhead " + "ethernet " * 20, "ack-limit 0p",
    "data-limit 4000000000p", "ack-limit 1000000p", "qdisc ", "qdisc", "", " ", "x", "no-such 1", "up \udcff",
]


def fuzz(device, count, seed):
    """Random messages; prints how each error came, or what was none of those that are allowed."""
    dice, netlink, seen = random.Random(seed), Netlink(), {}
    names = "qdisc up down buffer shaped overhead ack-queue data-queue aqm service controller data-share " \
        "interval ack-limit data-limit classifier buffer-split borrow max-stretch max-gap gamma utility".split()
    values = "aq sad droptail fq red vaq afvq 1mbit 10mbit 50p 64kb true false default auto fifo af none shared " \
        "wrr cbq 0.5 20ms 1500b size<=40 in-ratio separate docsis 1000000p 4gb 8kbit".split()

    def one():
        kind = dice.randrange(10)
        if kind < 6:
            return word(f"{dice.choice(names)} {dice.choice(values)}")
        if kind == 6:
            return attribute(SET, dice.choice(HOSTILE).encode(errors="surrogateescape") + b"\0")
        if kind == 7:
            return attribute(dice.randrange(65536), dice.randbytes(dice.randrange(300)))
        if kind == 8:
            return attribute(SET, dice.randbytes(dice.randrange(220)))
        return attribute(SET, dice.randbytes(dice.randrange(20)), dice.randrange(400))

    for text in HOSTILE:
        answer = netlink.qdisc(device, attribute(SET, text.encode(errors="surrogateescape") + b"\0"))
        seen[answer] = seen.get(answer, 0) + 1
    for number in range(count):
        if dice.randrange(4) == 0:
            netlink.qdisc(device, None, delete=True)
        options = b"".join(one() for _ in range(dice.choice((0, 1, 2, 3, 5, 80))))
        options = options[: dice.randrange(len(options) + 1)] if dice.randrange(8) == 0 else options
        answer = netlink.qdisc(device, options if dice.randrange(20) else None)
        seen[answer] = seen.get(answer, 0) + 1
    netlink.qdisc(device, None, delete=True)
    print(" ".join(f"{errno.errorcode.get(code, code)}:{n}" for code, n in sorted(seen.items())))
    return set(seen) <= {0, errno.EINVAL, errno.ENOMEM, errno.EMSGSIZE}


if __name__ == "__main__":
    # In a user namespace of its own, where anybody is root.
    subprocess.run("ip link add f0 type dummy && ip link set f0 up", shell=True, check=True)
    sys.exit(0 if fuzz("f0", int(sys.argv[1]), int(sys.argv[2])) else 1)
