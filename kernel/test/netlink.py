"""Messages to RTNETLINK built by hand, including ones that tc cannot send."""

import ctypes
import errno
import functools
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
# Attributes of a qdisc, kernel/module/parameters.h.
WORDS, VERSION, GIVEN, QDISC, UP, DOWN, FIRST, ATTRIBUTES = 1, 2, 3, 4, 5, 6, 32, 92


def attribute(kind, payload, length=None):
    length = 4 + len(payload) if length is None else length
    data = struct.pack("=HH", length & 0xFFFF, kind) + payload
    return data + bytes(-len(data) % 4)


class Request(ctypes.Structure):
    """The structure asymq_request of kernel/tc/words.h."""

    _fields_ = [("words", ctypes.POINTER(ctypes.c_char_p)), ("count", ctypes.c_size_t), ("before", ctypes.c_char_p),
                ("before_len", ctypes.c_size_t), ("queue_len", ctypes.c_uint32), ("ifb", ctypes.c_bool),
                ("numbers", ctypes.c_bool)]


SAY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64)


@functools.cache
def plugin():
    """Loads the Rust half of tc's plugin."""
    library = ctypes.CDLL(os.environ["TC_LIB_DIR"] + "/asymq_words.so")
    library.asymq_read.argtypes = [ctypes.POINTER(Request), ctypes.c_char_p, ctypes.c_size_t]
    library.asymq_read.restype = ctypes.c_long
    library.asymq_tell.argtypes = [ctypes.c_char_p, ctypes.c_size_t, SAY, ctypes.c_void_p]
    return library


def words(*texts, numbers=False):
    """Returns the attributes that tc sends for these words, for a device with a txqueuelen of 1000."""
    line = " ".join(texts).encode().split()
    request = Request((ctypes.c_char_p * len(line))(*line), len(line), None, 0, 1000, False, numbers)
    room = ctypes.create_string_buffer(4096)
    length = plugin().asymq_read(request, room, len(room))
    if length < 0:
        raise ValueError(room.value.decode())
    return room.raw[:length]


def attributes(data):
    """Yields the kind and the payload of each attribute."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind & 0x3FFF, data[at + 4:at + length]
        at += (length + 3) & ~3


def qdisc(handle, parent, told):
    statistics = list(attributes(told[STATISTICS]))
    first = dict(statistics)
    byte_count, packets = struct.unpack_from("=QI", first[BASIC])
    waits, backlog, drops, _, overlimits = struct.unpack_from("=IIIII", first[QUEUE])
    values, own = {}, first.get(OWN, b"")
    if own:
        plugin().asymq_tell(own, len(own), SAY(lambda _, name, unit, value: values.__setitem__(name.decode(), value)), None)
    return {
        "options": told.get(OPTIONS, b""), "kind": told[KIND].rstrip(b"\0").decode(), "handle": handle, "parent": parent, "bytes": byte_count,
        "packets": packets, "qlen": waits, "backlog": backlog, "drops": drops, "overlimits": overlimits, "values": values,
    }


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.settimeout(10)
        # The kernel's text of the last refusal. Answers contain this text, and no copy of the request.
        SOL_NETLINK, CAP_ACK, EXT_ACK = 270, 10, 11
        for option in CAP_ACK, EXT_ACK:
            self.socket.setsockopt(SOL_NETLINK, option, 1)
        self.text = ""
        self.sequence = 0
        # Nanoseconds that the kernel took for the last request. send() returns only after the kernel has handled it.
        self.took = 0

    def qdisc(self, device, options, delete=False, parent=ROOT, handle=0, kind="asymq"):
        """Adds, changes or deletes a qdisc; returns the error number, 0 for success."""
        body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), handle, parent, 0)
        body += attribute(KIND, kind.encode() + b"\0")
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
                MESSAGE = 1
                self.text = dict(attributes(answer[36:length])).get(MESSAGE, b"").rstrip(b"\0").decode()
                return -struct.unpack_from("=i", answer, 16)[0]

    def get(self, device, parent=ROOT, handle=0):
        """Returns the statistics of one qdisc, by attribute. Requests only this qdisc, without a dump."""
        ECHO = 8  # without this flag, kernels before 6.8 answer only other sockets
        self.request(GET, ECHO, struct.pack("=BxxxiIII", 0, socket.if_nametoindex(device), handle, parent, 0))
        told = dict(attributes(self.socket.recv(65536)[36:]))
        return dict(attributes(told[STATISTICS]))

    def show(self, room=65536):
        """Dumps all qdiscs of the namespace with statistics. Returns the messages as bytes. `room` is the maximum size of a
        message."""
        self.request(GET, DUMP, struct.pack("=BxxxiIII", 0, 0, 0, 0, 0))
        data = b""
        while True:
            answer = self.socket.recv(room)
            data += answer
            if struct.unpack_from("=IH", answer)[1] == DONE:
                return data

    def qdiscs(self, device, room=65536):
        """Returns the qdiscs of a device: kind, handle, parent, tc's counters, and asymq's values by name."""
        data, found, at = self.show(room), [], 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if length < 16:
                raise ValueError("a message was cut")
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


NAMES = "aq sad droptail fq red acc vaq afvq acq dcbq cbq wrr prr codel fq_codel cake dualpi2 asymq".split()
NUMBERS = [0, 1, 2, 3, 19, 20, 31, 63, 64, 1500, 7999, 8000, 1 << 16, 10**6, 10**6 + 1, 10**9, 1 << 30, (1 << 31) - 1, 1 << 31,
           (1 << 32) - 1, 1 << 32, 10**11, 10**11 + 1, 10**18, 1 << 63, (1 << 63) | 1, (1 << 63) | (1 << 32), (1 << 63) | 10**12,
           (1 << 64) - 2, (1 << 64) - 1]


def fuzz(device, count, seed):
    """Sends random messages, and prints how often each error was returned. Returns false for an error that is not allowed."""
    dice, netlink, seen = random.Random(seed), Netlink(), {}
    whole = [list(attributes(words(name, "up 1mbit down 10mbit"))) for name in NAMES]
    widths = {kind: len(payload) for attrs in whole for kind, payload in attrs}

    def number(kind):
        """Returns a random number as bytes, mostly with the attribute's width."""
        width = dice.choice((1, 4, 8)) if dice.randrange(10) == 0 else widths.get(kind, 8)
        value = dice.choice(NUMBERS) if dice.randrange(2) else dice.randrange(100)
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, sys.byteorder) if width in (1, 4, 8) else b""

    def mutated(attrs):
        """Returns a message with a few attributes changed, duplicated, cut or removed."""
        attrs = [list(attr) for attr in attrs]
        for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 9))):
            place, way = dice.randrange(len(attrs)), dice.randrange(8)
            kind = attrs[place][0]
            if way < 3:
                attrs[place][1] = number(kind)
            elif way == 3:
                del attrs[place]
            elif way == 4:
                kind = dice.choice((dice.randrange(FIRST, ATTRIBUTES), dice.randrange(65536), WORDS, GIVEN | 0x8000))
                attrs.insert(place, [kind, number(kind) if dice.randrange(2) else dice.randbytes(dice.randrange(300))])
            elif way == 5:
                attrs[place][1] = attrs[place][1][: dice.randrange(9)]
            elif way == 6:
                attrs.insert(place, [VERSION, number(VERSION)])
            else:
                attrs.append([kind, number(kind)])
        return b"".join(attribute(kind | (0x8000 if kind == GIVEN else 0), payload) for kind, payload in attrs)

    def some():
        """Returns a message with a few random values, for a change of the present discipline."""
        kinds = [dice.choice((UP, DOWN, 7, 8, 9, *range(10, 16), dice.randrange(FIRST, ATTRIBUTES))) for _ in range(dice.randrange(4))]
        return attribute(VERSION, b"\1\0\0\0") + b"".join(attribute(kind, number(kind)) for kind in kinds)

    for value in NUMBERS:
        for kind in (QDISC, UP, DOWN, 7, 20, 23, 24, FIRST, FIRST + 2, FIRST + 3, FIRST + 8):
            width = widths.get(kind, 8)
            extra = attribute(kind, (value & ((1 << 8 * width) - 1)).to_bytes(width, sys.byteorder))
            answer = netlink.qdisc(device, words("cbq up 1mbit down 10mbit") + extra)
            seen[answer] = seen.get(answer, 0) + 1
    for sequence in range(count):
        if dice.randrange(4) == 0:
            netlink.qdisc(device, None, delete=True)
        way = dice.randrange(10)
        if way < 5:
            options = mutated(dice.choice(whole))
        elif way < 7:
            options = some()
        elif way == 7:
            options = dice.randbytes(dice.randrange(300))
        elif way == 8:
            options = attribute(WORDS, b"up 1mbit\0")
        else:
            options = words(dice.choice(NAMES), "up 1mbit down 10mbit")
        options = options[: dice.randrange(len(options) + 1)] if dice.randrange(8) == 0 else options
        answer = netlink.qdisc(device, options if dice.randrange(20) else None)
        seen[answer] = seen.get(answer, 0) + 1
        if sequence % 16 == 0:
            netlink.show()
    netlink.qdisc(device, None, delete=True)
    print(" ".join(f"{errno.errorcode.get(code, code)}:{n}" for code, n in sorted(seen.items())))
    return set(seen) <= {0, errno.EINVAL, errno.ENOMEM, errno.EMSGSIZE, errno.ERANGE, errno.EOPNOTSUPP} and seen.get(0, 0) > count // 10


if __name__ == "__main__":
    # Runs in its own user namespace, in which any user is root.
    subprocess.run("ip link add f0 type dummy && ip link set f0 up", shell=True, check=True)
    sys.exit(0 if fuzz("f0", int(sys.argv[1]), int(sys.argv[2])) else 1)
