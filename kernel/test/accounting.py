"""Four invariants of a tree of qdiscs with asymq in it. A check tests them after each of its steps.

1. Each packet that arrived was sent, dropped, filtered or flushed by a reset, or is still queued. This holds in packets
   and in bytes, for the counters of C, of Rust and of tc.
2. Every ancestor counts exactly the packets that are queued below it; zero if all queues are empty.
3. No counter decreases, even at a change or a fault.
4. At the end, the kernel's slab of packets has its initial size again.
"""

import os
import socket
import struct
import time

from cost import frame
from netlink import ROOT, Netlink, words as numbers_of
from traffic import run

DEVICE = "acc0"
QUEUES = 2
SLAB = "/sys/kernel/slab/skbuff_head_cache/"
FATES = "dropped", "filtered", "flushed"
CLASSES = "ack", "data", "other"

# For each parent: commands that build the tree, places of asymq in the tree, true if the parent shapes, class of packets.
PARENTS = {
    "none": ([], ["root"], False, 0),
    "htb": (["qdisc add dev acc0 root handle 1: htb default 1",
             "class add dev acc0 parent 1: classid 1:1 htb rate 100kbit burst 1600 cburst 1600"], ["1:1"], True, 0x10001),
    "tbf": (["qdisc add dev acc0 root handle 1: tbf rate 100kbit burst 1600 limit 1mb"], ["1:1"], True, 0),
    "hfsc": (["qdisc add dev acc0 root handle 1: hfsc default 1",
              "class add dev acc0 parent 1: classid 1:1 hfsc sc rate 100kbit ul rate 100kbit"], ["1:1"], True, 0x10001),
    "qfq": (["qdisc add dev acc0 root handle 1: tbf rate 100kbit burst 1600 limit 1mb",
             "qdisc add dev acc0 parent 1:1 handle 2: qfq",
             "class add dev acc0 parent 2: classid 2:1 qfq weight 1 maxpkt 2048"], ["2:1"], True, 0x20001),
    "drr": (["qdisc add dev acc0 root handle 1: tbf rate 100kbit burst 1600 limit 1mb",
             "qdisc add dev acc0 parent 1:1 handle 2: drr",
             "class add dev acc0 parent 2: classid 2:1 drr quantum 1600"], ["2:1"], True, 0x20001),
    "prio": (["qdisc add dev acc0 root handle 1: prio"], ["1:1"], False, 0x10001),
    "mq": (["qdisc add dev acc0 root handle 1: mq"], ["1:1", "1:2"], False, 0),
}


class Broken(Exception):
    """A violated invariant."""


def number(place):
    """Returns the kernel's number of a class or of the root."""
    if place == "root":
        return ROOT
    major, minor = place.split(":")
    return int(major, 16) << 16 | int(minor, 16)


def packets_in_slab():
    """Returns the number of allocated packets, without spare packets of CPUs; 0 if the kernel has no slab statistics."""
    if not os.path.exists(SLAB):
        return 0
    with open(SLAB + "shrink", "w") as file:
        file.write("1")
    with open(SLAB + "objects") as file:
        return int(file.read().split()[0])


class Tree:
    """A tree of one parent with asymq below it, at a device of its own."""

    def __init__(self, parent):
        self.netlink = Netlink()
        commands, self.places, self.shaped, self.priority = PARENTS[parent]
        self.parent = parent
        self.before = {}
        self.refused = 0
        if commands:
            run("tc -batch - <<'END'\n" + "\n".join(commands) + "\nEND")
        self.sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, self.priority)
        PACKET_VNET_HDR = 15
        self.sender.setsockopt(263, PACKET_VNET_HDR, 1)
        self.sender.bind((DEVICE, 0x0800))
        self.sent = 0
        self.said = {}

    def asymq(self, words, rate="100kbit"):
        """Adds or changes asymq at all its places."""
        # As with tc, an earlier word stays valid until it is given again.
        self.said |= {word.split()[0]: word for word in words}
        words = [*self.said.values(), f"up {rate}", "down 10mbit", "unshaped" if self.shaped else "shaped"]
        for at, place in enumerate(self.places):
            # Without a handle the kernel would assign a new one.
            options = numbers_of(*words)
            error = self.netlink.qdisc(DEVICE, options, parent=number(place), handle=0xA0000 + (at << 16))
            if error:
                raise Broken(f"{words}: {os.strerror(error)}")

    def send(self, count):
        """Sends packets. Every second packet is an ACK of one of four downloads; the others are full segments."""
        for _ in range(count):
            data = frame(self.sent)
            self.sent += 1
            self.post(bytes(10) + data)

    def send_aggregate(self, segments=3, protocol=6):
        """Sends an aggregate of TCP segments. With an unknown protocol, the aggregate cannot be segmented."""
        data = frame(1)
        payload = bytes(1000 * segments)
        data = data[:16] + struct.pack("!H", 40 + len(payload)) + data[18:23] + bytes([protocol]) + data[24:54] + payload
        # struct virtio_net_hdr: checksum needed, TCPv4, 54 bytes of headers.
        self.post(struct.pack("=BBHHHH", 1, 1, 54, 1000, 34, 16) + data)

    def post(self, data):
        try:
            self.sender.send(data)
        except OSError:
            self.refused += 1

    def see(self, step):
        """Checks invariants 1 to 3 after a step. Repeats a failed check, because packets may leave during a dump."""
        for attempt in range(10):
            try:
                return self.look(step)
            except Broken:
                if attempt == 9:
                    raise
                time.sleep(0.001)

    def look(self, step):
        found = self.netlink.qdiscs(DEVICE)
        ours = [qdisc for qdisc in found if qdisc["kind"] == "asymq"]
        if len(ours) != len(self.places):
            raise Broken(f"{step}: {len(ours)} of {len(self.places)} qdiscs")
        wrong = []
        for qdisc in ours:
            wrong += sums(qdisc) + self.passed(qdisc)
        for qdisc in found:
            wrong += self.decreased(qdisc)
            below = [other for other in found if other["parent"] >> 16 == qdisc["handle"] >> 16 and other is not qdisc]
            more = {what: qdisc[what] - sum(other[what] for other in below) for what in ("qlen", "backlog")}
            # A qdisc may hold one packet itself, if its own parent has peeked.
            holds = qdisc["parent"] != ROOT and more["qlen"] == 1 and 0 < more["backlog"] < 2000
            if below and any(more.values()) and not holds:
                wrong.append(f"ancestors: {qdisc['kind']} counts {more['qlen']} packets of {more['backlog']} bytes more"
                             " than wait below it")
        if wrong:
            raise Broken(f"{step} below {self.parent}: " + "; ".join(wrong))
        self.before = {(qdisc["kind"], qdisc["parent"]): qdisc for qdisc in found}
        return ours

    def told_of_drops(self, step, qdiscs):
        """Checks that the sender got an error for each drop of a FIFO, which drops only arrivals."""
        if qdiscs[0]["values"]["queue.dropped.packets"] != self.refused and self.is_fifo:
            raise Broken(f"{step}: {qdiscs[0]['values']['queue.dropped.packets']} drops, {self.refused} told to its sender")

    def wait_for_fault(self, fault):
        end = time.monotonic() + 2
        while True:
            seen = self.see(f"after a fault, {fault}")
            if any("failed" in qdisc["values"] for qdisc in seen):
                return seen
            if time.monotonic() > end:
                raise Broken(f"fault: nothing is said of {fault} below {self.parent}")
            time.sleep(0.01)

    def passed(self, qdisc):
        """Returns an error if packets bypassed a qdisc. None may bypass here: each qdisc shapes, or is below a parent."""
        count = qdisc["values"]["queue.bypassed.packets"]
        return [f"sums: {count} packets passed"] if count else []

    def decreased(self, qdisc):
        before = self.before.get((qdisc["kind"], qdisc["parent"]))
        if not before:
            return []
        pairs = [(name, before[name], qdisc[name]) for name in ("bytes", "packets", "drops")]
        for name, value in before["values"].items():
            if is_counter(name):
                pairs.append((name, value, qdisc["values"].get(name, -1)))
        return [f"counters: {name} of {qdisc['kind']} went from {old} to {new}" for name, old, new in pairs if new < old]

    def idle(self, step):
        """Waits until all queues are empty, by the counters of every qdisc and every ancestor."""
        end = time.monotonic() + 20
        while True:
            left = [f"{qdisc['kind']} {qdisc['qlen']} of {qdisc['backlog']} bytes"
                    for qdisc in self.netlink.qdiscs(DEVICE) if qdisc["qlen"] or qdisc["backlog"]]
            if not left:
                return self.see(step)
            if time.monotonic() > end:
                raise Broken(f"{step} below {self.parent}: idle: stranded: {', '.join(left)}")
            time.sleep(0.1)

    def close(self):
        self.sender.close()
        root = "1:" if PARENTS[self.parent][0] else "a:"
        run(f"tc qdisc del dev {DEVICE} root handle {root}")


def is_counter(name):
    head, *rest = name.split(".")
    if head in ("dropped", "filtered", "marked"):
        return True
    if head == "queue":
        return rest[0] != "peeked"
    return head in CLASSES and rest[0] not in ("backlog", "rate", "sojourn")


def sums(qdisc):
    """Returns the errors in the sums of one asymq."""
    values, wrong = qdisc["values"], []

    def same(what, left, right):
        if left != right:
            wrong.append(f"sums: {what}: {left} is not {right}")

    for unit, sent, waits in (("packets", "packets", "qlen"), ("bytes", "bytes", "backlog")):
        counts = {name: values[f"queue.{name}.{unit}"] for name in
                  ("arrived", *FATES, "peeked", "fallback_sent", "fallback_dropped", "bypassed")}
        waiting = qdisc[waits] - counts["peeked"]
        same(f"{unit} that arrived", counts["arrived"], qdisc[sent] + sum(counts[fate] for fate in FATES) + waiting)
        same(f"{unit} that Rust sent", qdisc[sent],
             sum(values[f"{name}.sent.{unit}"] for name in CLASSES) + counts["fallback_sent"] + counts["bypassed"])
        same(f"{unit} that wait in Rust", 0 if values.get("failed") else waiting,
             sum(values[f"{name}.backlog.{unit}"] for name in CLASSES))
        if unit == "packets":
            same("packets that tc counts as dropped", qdisc["drops"], counts["dropped"])
            same("packets that Rust dropped", counts["dropped"], values["dropped"] + counts["fallback_dropped"])
            same("packets that Rust filtered", counts["filtered"], values["filtered"])
    for fate, reasons in (("dropped", ("over-limit", "aqm")), ("filtered", ("ack-filtered", "opaque-filtered")), ("marked", ("marked",))):
        same(f"packets {fate}, by class and reason", values[fate], sum(values[f"{name}.{reason}"] for name in CLASSES for reason in reasons))
    for name in CLASSES:
        times = [values[f"{name}.sojourn.{part}"] for part in ("p50", "p95", "p99", "max")]
        if times != sorted(times):
            wrong.append(f"sums: sojourn times of {name}: {times}")
    return wrong


def walk(parent, name, following, inject):
    """Tests one discipline below one parent: overflow, a change that drops packets, faults, a change to another discipline,
    aggregates, empty queues, a reset."""
    tree = Tree(parent)
    tree.is_fifo = name == "droptail" and parent == "none"
    try:
        tree.asymq([f"qdisc {name}", "buffer 20p"])
        tree.see("when new")
        tree.send(48)
        tree.told_of_drops("overloaded", tree.see("overloaded"))
        time.sleep(0.2)
        tree.asymq(["buffer 8p"])
        tree.see("changed to fewer packets")
        tree.send(24)
        tree.see("overloaded again")
        time.sleep(1)
        tree.send(4)
        tree.see("served for a second")
        for fault in ("drops-foreign", "forgets", "foreign"):
            tree.send(4)
            inject(fault)
            tree.send(1)
            # Some disciplines hold more packets than the FIFO's limit. The FIFO then accepts no packet.
            most = {qdisc["parent"]: max(8, qdisc["qlen"]) for qdisc in tree.wait_for_fault(fault)
                    if "failed" in qdisc["values"]}
            tree.send(16)
            for qdisc in tree.see(f"overloaded after a fault, {fault}"):
                if qdisc["qlen"] > most.get(qdisc["parent"], 99) + 1:
                    raise Broken(f"limit: {qdisc['qlen']} packets of {name} wait below {parent} after a fault")
            tree.asymq([f"qdisc {following}", "buffer 8p"])
            tree.see(f"recovered from {fault}")
        tree.asymq(["buffer 16p"])
        tree.see(f"changed to {following}")
        tree.send_aggregate()
        tree.send_aggregate()
        tree.see("with an aggregate")
        tree.send_aggregate(protocol=253)
        tree.see("with an aggregate that cannot be segmented")
        tree.asymq([f"qdisc {name}"])
        tree.idle("drained")
        if name == "droptail":
            tree.asymq(["buffer 1p"])
            tree.send_aggregate()
            tree.see("with one packet of a lone aggregate")
            time.sleep(0.1)
            waits = [qdisc["qlen"] for qdisc in tree.see("after it")]
            if parent == "htb" and waits != [0]:
                raise Broken(f"a lone aggregate: {waits} packets are stranded below {parent}")
            tree.asymq(["buffer 16p"])
            tree.idle("drained of it")
        if parent == "hfsc":
            return  # in Linux 6.1, HFSC never sends packets that arrive after a reset, with any leaf
        tree.send(12)
        tree.see("loaded")
        tree.netlink.link(DEVICE, False)
        tree.idle("reset")
        tree.netlink.link(DEVICE, True)
        tree.send(2)
        tree.idle("after a reset")
        tree.asymq([], "100kbit")
        tree.send(12)
        inject("drops")
        tree.idle("with all dropped at once")
        refused = tree.refused
        inject("filters")
        tree.send(1)
        if tree.refused != refused:
            raise Broken(f"verdict: a filtered arrival below {parent} is told to its sender as a loss")
        # close() deletes the qdisc while it waits for its timer.
        tree.send(12)
    finally:
        tree.close()


def walk_all(names, parents, inject):
    """Tests every discipline below every parent, and checks the slab after each discipline."""
    run(f"ip link add {DEVICE} numtxqueues {QUEUES} numrxqueues {QUEUES} type dummy; ip link set {DEVICE} up", check=False)
    walk("none", names[0], names[-1], inject)
    before = packets_in_slab()
    waiting = []
    for at, name in enumerate(names):
        following = names[(at + 1) % len(names)]
        for parent in parents:
            # QFQ reports an error if a leaf holds back packets, as some disciplines do.
            if parent == "qfq" and "non-work-conserving" in run("dmesg").stdout:
                waiting.append(name)
                continue
            walk(parent, name, following, inject)
        time.sleep(1)
        after = packets_in_slab()
        if after > before:
            raise Broken(f"slab: {after - before} packets more than before {name}")
        run("dmesg | grep -E 'WARNING|BUG' || dmesg -C")
    return len(names) * len(parents) - len(waiting)
