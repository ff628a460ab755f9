"""Checks of one kind of defect each: locks, lifetimes, leaks, the short path of a change."""

import contextlib
import errno
import os
import socket
import struct
import time

import accounting
import cost
import links
import netlink
from guest import FOLDER, ROOT, check, expect, load, no_allocation_left, parameter, set_parameter, sized
from traffic import End, run

VERSION = netlink.attribute(netlink.VERSION, struct.pack("=I", 1))
SHAPED, NAT = 8, 9
TRACING = "/sys/kernel/tracing/"


def rate(kind, bits, pattern="=Q"):
    return netlink.attribute(kind, struct.pack(pattern, bits))


def dummy(name, queue_len=1000):
    """Creates a dummy device without traffic of its own."""
    run(f"ip link del {name}", check=False)
    run(f"ip link add {name} numtxqueues 1 numrxqueues 1 txqueuelen {queue_len} type dummy;"
        f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1; ip link set {name} up")


def sender(device, protocol=0x0800):
    """Returns a socket that sends frames. With protocol 0, the kernel reads the protocol from each frame."""
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    SO_SNDBUFFORCE = 32
    out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 28)
    out.bind((device, protocol))
    return out


def asymq_of(messages, device):
    return next(qdisc for qdisc in messages.qdiscs(device) if qdisc["kind"] == "asymq")


def reordered(options):
    """Returns the attributes in reverse order."""
    return b"".join(netlink.attribute(kind | (0x8000 if kind == netlink.GIVEN else 0), payload)
                    for kind, payload in reversed(list(netlink.attributes(options))))


@check
def short_change():
    """The short path of a change checks ranges, widths and the version, as the policy does. Rates above 32 bits are stored
    completely, and queued packets leave at the new rate without a further packet. A later request gets statistics."""
    load(True, "selftest=0")
    dummy("d0")
    messages = netlink.Netlink()
    # Loads tc's plugin before the timed part.
    whole = netlink.words("droptail up 1mbit down 10mbit buffer 100p")
    expect(messages.qdisc("d0", whole, handle=1 << 16) == 0, "not added")

    def change(what, options, *allowed):
        answer = messages.qdisc("d0", options, handle=1 << 16)
        expect(answer in allowed, f"{what}: {errno.errorcode.get(answer, answer)}")

    refused = errno.ERANGE, errno.EINVAL
    up = rate(netlink.UP, 1000000)
    for what, options in (
        ("DOWN=0", VERSION + rate(netlink.DOWN, 0)),
        ("UP=7999", VERSION + rate(netlink.UP, 7999)),
        ("BUFFER=0", VERSION + rate(7, 0)),
        *((f"{name} beyond its range", VERSION + rate(kind, most + 1)) for name, kind, most in
          (("UP", netlink.UP, 10**11), ("DOWN", netlink.DOWN, 10**11), ("BUFFER", 7, 10**6))),
        ("DOWN=0 among all attributes", whole.replace(rate(netlink.DOWN, 10000000), rate(netlink.DOWN, 0))),
        ("UP as u32", VERSION + rate(netlink.UP, 1000000, "=I")),
        ("UP as u8", VERSION + rate(netlink.UP, 100, "=B")),
        ("another version", netlink.attribute(netlink.VERSION, struct.pack("=I", 2)) + up),
        ("no version", up),
        ("a version as u8", netlink.attribute(netlink.VERSION, b"\1") + up),
        ("rest", VERSION + up + b"\3\0"),
        ("UP of 12 bytes", VERSION + netlink.attribute(netlink.UP, struct.pack("=QI", 1000000, 0))),
        ("NAT of 2 bytes", VERSION + netlink.attribute(NAT, b"\1\0")),
        ("UP as u32 among the given", VERSION + netlink.attribute(netlink.GIVEN | 0x8000, rate(netlink.UP, 1000000, "=I"))),
        ("UP=1 among the given", VERSION + netlink.attribute(netlink.GIVEN | 0x8000, rate(netlink.UP, 1))),
        *((f"UP={wrong} among the given of a whole message", rate(netlink.UP, wrong).join(whole.rsplit(up, 1))) for wrong in (1, 10**11 + 1)),
        ("the first unknown attribute", VERSION + up + netlink.attribute(netlink.ATTRIBUTES - 1, bytes(8))),
        ("an unknown attribute", VERSION + up + netlink.attribute(netlink.ATTRIBUTES + 9, bytes(4))),
        ("eight bytes at the end", VERSION + up + bytes(8)),
    ):
        # The kernel accepts some bytes behind the last attribute.
        change(what, options, *refused, *([0] if what == "rest" else []))
    expect(asymq_of(messages, "d0")["options"] == whole, "a refused change has changed the options")
    change("NAT alone", VERSION + netlink.attribute(NAT, b"\1"), 0)
    change("NAT back", VERSION + netlink.attribute(NAT, b"\0"), 0)

    out = sender("d0")
    for what, slow, fast in (
        ("rates alone", VERSION + rate(netlink.UP, 8000), VERSION + rate(netlink.UP, 10000000)),
        ("more than 32 bits", VERSION + rate(netlink.UP, 8000), VERSION + rate(netlink.UP, (1 << 32) + 8000)),
        ("more than 32 bits of all attributes", VERSION + rate(netlink.UP, 8000),
         whole.replace(rate(netlink.UP, 1000000), rate(netlink.UP, (1 << 32) + 8000))),
        ("the same attributes in another order", VERSION + rate(netlink.UP, 8000), reordered(whole)),
        ("another instance", VERSION + rate(netlink.UP, 8000), netlink.words("sad up 10mbit")),
        ("another instance beyond 32 bits", netlink.words("droptail up 8kbit"), netlink.words("sad up 4294975296bit")),
    ):
        change(what, slow, 0)
        for number in range(20):
            out.send(cost.frame(2 * number + 1))
        before = asymq_of(messages, "d0")
        expect(before["qlen"] >= 18, f"{what}: {before['qlen']} of 20 packets wait")
        change(what, fast, 0)
        # Statistics are present at once, and counters continue.
        expect(netlink.OWN in messages.get("d0"), f"{what}: a request after a change has no statistics")
        told, asked = (dict(netlink.attributes(data))[netlink.UP] for data in (asymq_of(messages, "d0")["options"], fast))
        expect(told == asked, f"{what}: another rate is shown")
        time.sleep(0.2)
        after = asymq_of(messages, "d0")
        expect(after["qlen"] == 0, f"{what}: {after['qlen']} packets wait after the change")
        lost = [name for name, value in before["values"].items() if accounting.is_counter(name) and after["values"][name] < value]
        expect(not lost and after["packets"] == before["packets"] + before["qlen"], f"{what}: counters lost: {lost}, {after['packets']}")
    # A packet's time of arrival stays at a change.
    change("slow", netlink.words("droptail up 8kbit"), 0)
    for number in range(5):
        out.send(cost.frame(2 * number + 1))
    before = asymq_of(messages, "d0")["overlimits"]
    time.sleep(0.5)
    # An overlimit is a call of dequeue() that sends nothing. A timer that fires too early would cause more.
    early = asymq_of(messages, "d0")["overlimits"] - before
    expect(early < 20, f"{early} calls for a packet in 0.5 s, in which none may leave")
    change("fast", netlink.words("sad up 10mbit"), 0)
    time.sleep(0.2)
    longest = asymq_of(messages, "d0")["values"]["data.sojourn.max"] / 1e9
    expect(0.45 < longest < 3, f"packets that have waited 0.5 s before a change: the longest sojourn time is {longest:.3f} s")
    # Each of 20 packets waits 84 ms longer than the one before. Percentiles are accurate to one eighth, and cover 10 to 20 s.
    change("for times", netlink.words("droptail up 100kbit"), 0)
    time.sleep(21)
    for _ in range(20):
        out.send(cost.frame(1))
    time.sleep(11)
    for silent in 0, 22:
        time.sleep(silent)
        values = asymq_of(messages, "d0")["values"]
        times = [values[f"data.sojourn.{part}"] / 1e9 for part in ("p50", "p95", "p99", "max")]
        right = [least * 0.084 * 0.98 < value < most * 0.084 * 1.13 for value, least, most in zip(times, (9, 18, 19, 19), (10, 19, 20, 20))]
        expect(not any(times) and not values["data.rate"] if silent else all(right) and 5e3 < values["data.rate"] < 3e4,
               f"after {silent} s: sojourn times of {times} s, {values['data.rate']} bit/s")
    # Another instance continues the windows of recent rates, and a shared buffer has its new limit at once.
    change("droptail", netlink.words("droptail up 1mbit"), 0)
    for _ in range(20):
        out.send(cost.frame(1))
    time.sleep(0.2)
    change("sad", netlink.words("sad up 1mbit"), 0)
    recent = asymq_of(messages, "d0")["values"]["data.rate"]
    expect(0 < recent < 1.5e6, f"after a change of a shaper of 1 Mbit/s, the rate is {recent} bit/s")
    change("100 packets", netlink.words("droptail up 8kbit buffer 100p"), 0)
    change("10 packets", VERSION + rate(7, 10), 0)
    for _ in range(20):
        with contextlib.suppress(OSError):
            out.send(cost.frame(1))
    waiting = asymq_of(messages, "d0")["qlen"]
    expect(8 <= waiting <= 10, f"{waiting} packets wait in a buffer that was cut to 10")
    # If some options change, the others have the values of a new qdisc, or those that the user gave.
    for before, alone, after in (
        ("aq up 1mbit down 10mbit", rate(netlink.UP, 2000000), "aq up 2mbit down 10mbit"),
        ("aq up 1mbit down 10mbit configured-rate 3mbit", rate(netlink.UP, 2000000), "aq up 2mbit down 10mbit configured-rate 3mbit"),
        ("aq up 1mbit down 10mbit", rate(netlink.DOWN, 20000000), "aq up 1mbit down 20mbit"),
        ("acq up 1mbit down 10mbit", rate(netlink.UP, 2000000), "acq up 2mbit down 10mbit"),
        ("dcbq up 1mbit down 10mbit gamma 9kbit", rate(netlink.UP, 2000000), "dcbq up 2mbit down 10mbit gamma 9kbit"),
        ("dcbq up 1mbit down 10mbit", rate(netlink.UP, 2000000), "dcbq up 2mbit down 10mbit"),
        ("up 1mbit down 10mbit", rate(netlink.UP, 2000000), "up 2mbit down 10mbit"),
        ("up 1mbit down 10mbit", rate(netlink.UP, 50000000), "up 50mbit down 10mbit"),
        ("up 1mbit down 10mbit ack-limit 33p", rate(netlink.UP, 50000000), "up 50mbit down 10mbit ack-limit 33p"),
        ("up 50mbit down 10mbit", rate(netlink.UP, 1000000), "up 1mbit down 10mbit"),
        ("droptail up 1mbit", rate(netlink.UP, 50000000), "droptail up 50mbit"),
        ("droptail up 1mbit buffer 70p", rate(netlink.UP, 50000000), "droptail up 50mbit buffer 70p"),
        ("sad up 1mbit", rate(7, 77), "sad up 1mbit buffer 77p"),
        ("cake up 1mbit cake-rtt 1s", rate(netlink.UP, 50000000), "cake up 50mbit cake-rtt 1s"),
        ("cake up auto", rate(netlink.UP, 2000000), "cake up 2mbit"),
    ):
        change(before, netlink.words(before), 0)
        change(f"a part of {before}", VERSION + alone, 0)
        changed = asymq_of(messages, "d0")
        wrong = set(netlink.attributes(changed["options"])) ^ set(netlink.attributes(netlink.words(after)))
        expect(not wrong, f"{before}, of the change to {after}: {sorted(wrong)}")
        expect("control.auto_rate" not in changed["values"], f"{before}: the rate is learnt after the change to {after}")
        # The instance has the variables of a new one.
        messages.qdisc("d0", None, delete=True)
        change(f"new: {after}", netlink.words(after), 0)
        control = [{name: value for name, value in each["values"].items() if name.startswith("control.")}
                   for each in (changed, asymq_of(messages, "d0"))]
        expect(control[0] == control[1], f"{before}, variables after the change to {after}: {control}")
    # AQ does not follow rates, even if the discipline before it did.
    change("droptail", netlink.words("droptail up 1mbit down 10mbit"), 0)
    change("AQ", netlink.words("aq up 2mbit down 10mbit"), 0)
    before = parameter("allocations")
    change("another rate of AQ", VERSION + rate(netlink.UP, 500000), 0)
    expect(parameter("allocations") > before, "AQ, which does not follow rates, is not built anew")
    # tc builds its next message from the given values. The last rate must be one of them.
    change("for tc", netlink.words("droptail up 1mbit buffer 100p"), 0)
    change("a rate before tc's change", VERSION + rate(netlink.UP, 5000000), 0)
    run("tc qdisc change dev d0 root asymq buffer 50p")
    options = run("tc -j qdisc show dev d0 root").stdout
    expect('"up":"5mbit"' in options.replace(" ", ""), f"a change by tc after one of a rate: {options}")
    change("slow", VERSION + rate(netlink.UP, 8000), 0)
    change("the buffer alone", VERSION + rate(7, 8), 0)
    for number in range(20):
        # send() fails for a dropped packet.
        with contextlib.suppress(OSError):
            out.send(cost.frame(2 * number + 1))
    shallow = asymq_of(messages, "d0")
    expect(6 <= shallow["qlen"] <= 9 and shallow["overlimits"], f"a buffer of 8 packets: {shallow['qlen']} wait, {shallow['overlimits']} overlimits")
    change("an empty queue", netlink.words("sad up 10mbit"), 0)
    time.sleep(0.2)
    # After a fault, the FIFO must have the rate of the last change.
    change("for a fault", netlink.words("droptail up 8kbit buffer 100p"), 0)
    change("beyond 32 bits", VERSION + rate(netlink.UP, (1 << 32) + 8000), 0)
    set_parameter("inject", "drops-foreign")
    for number in range(20):
        out.send(cost.frame(2 * number + 1))
    time.sleep(0.2)
    after = asymq_of(messages, "d0")
    expect(after["qlen"] == 0 and "failed" in after["values"], f"a fault beyond 32 bits: {after['qlen']} packets wait")
    change("rates alone after a fault", VERSION + rate(netlink.UP, 10000000), 0)
    expect("failed" not in asymq_of(messages, "d0")["values"], "a change of rates alone does not recover from a fault")
    # After a change of rates, alone or in a whole message, the FIFO after a fault shapes if the discipline did. No packet
    # bypasses WRR, so each packet triggers the fault.
    for words, most in ("droptail shaped", 20), ("wrr unshaped", 0):
        whole = netlink.words(f"{words} up 8kbit buffer 100p")
        for slow in VERSION + rate(netlink.UP, 8000), whole, reordered(whole):
            change(f"{words}, for a fault", netlink.words(f"{words} up 10mbit buffer 100p"), 0)
            time.sleep(0.2)
            built = parameter("allocations")
            change("slow", slow, 0)
            more = parameter("allocations") - built
            expect(more < 30, f"{words}: built anew by a change of its rate, with {more} allocations")
            set_parameter("inject", "drops-foreign")
            for number in range(20):
                out.send(cost.frame(2 * number + 1))
            time.sleep(0.2)
            after = asymq_of(messages, "d0")
            expect(most - 3 <= after["qlen"] <= most and "failed" in after["values"],
                   f"{words}, after a fault: {after['qlen']} of 20 packets wait")
    # With given limits of both classes, a change of the buffer alone concerns only the FIFO.
    change("for the buffer alone", netlink.words("wrr buffer-split separate ack-limit 50p data-limit 50p up 8kbit buffer 100p"), 0)
    change("the buffer alone", VERSION + rate(7, 9), 0)
    set_parameter("inject", "drops-foreign")
    for number in range(20):
        with contextlib.suppress(OSError):
            out.send(cost.frame(2 * number + 1))
    after = asymq_of(messages, "d0")
    expect(after["qlen"] == 9 and "failed" in after["values"], f"after a fault {after['qlen']} wait in a buffer that was cut to 9")
    change("an empty queue", netlink.words("sad up 10mbit"), 0)
    time.sleep(0.2)
    change("for the limit of the FIFO", netlink.words("droptail up 100kbit buffer 10p"), 0)
    set_parameter("inject", "drops-foreign")
    for number in range(30):
        with contextlib.suppress(OSError):
            out.send(cost.frame(2 * number + 1))
    full = asymq_of(messages, "d0")
    # Each packet takes 84 ms.
    time.sleep(1.2)
    empty = asymq_of(messages, "d0")["qlen"]
    expect(empty == 0, f"after a fault {empty} of 10 packets still wait after 1.2 s")
    expect(full["qlen"] == 10 and "failed" in full["values"], f"after a fault {full['qlen']} packets wait in a buffer of 10")
    run("ip link del d0")
    no_allocation_left()
    return "ranges, widths and versions are checked, 64 bits arrive, packets leave, statistics are there"


@check
def long_backlog():
    """A change of a long queue holds the locks only briefly, and keeps all packets and their order."""
    # Disables the test build's own walks over the queue, because the delivered module does not have them.
    load(True, "selftest=0", "examine=0")
    dummy("d0")
    messages, count = netlink.Netlink(), 12000
    options = [netlink.words(f"droptail up 8kbit buffer {places}p") for places in (20000, 20001)]
    expect(messages.qdisc("d0", options[0], handle=1 << 16) == 0, "not added")
    out = sender("d0")

    def send(first, last):
        for number in range(first, last):
            # The number is the identification of the IP header.
            data = cost.frame(0)
            out.send(data[:18] + struct.pack("!H", number) + data[20:24] + bytes(2) + data[26:])

    def change():
        """Returns the time in ms for which a change holds the locks: the least of four, because interrupts only add time."""
        times = []
        for number in 1, 0, 1, 0:
            expect(messages.qdisc("d0", options[number], handle=1 << 16) == 0, "not changed")
            times.append(parameter("held") / 1e6)
        return min(times)

    empty = change()
    send(0, count)
    full = change()
    waits = asymq_of(messages, "d0")["qlen"]
    send(count, count + 100)
    # A second change, before all packets were offered to the instance of the first one.
    expect(messages.qdisc("d0", options[1], handle=1 << 16) == 0, "not changed twice")
    send(count + 100, count + 200)
    sniffer = links.Sniffer("d0")
    # A change of only the rate keeps the order within the instance.
    fast = netlink.words("droptail up 1gbit buffer 20001p")
    expect(messages.qdisc("d0", fast, handle=1 << 16) == 0, "not made fast")
    seen, end = [], time.monotonic() + sized(20, 200)
    while asymq_of(messages, "d0")["qlen"]:
        seen += sniffer.identifications()
        expect(time.monotonic() < end, "stranded")
        time.sleep(0.002)
    seen += sniffer.identifications()
    qdisc = asymq_of(messages, "d0")
    wrong = accounting.sums(qdisc)
    text = f"a change holds the locks for {full:.1f} ms with {waits} packets in the queue, and for {empty:.1f} ms with none"
    expect(not wrong, f"{text}; {wrong}")
    expect(waits > count * 0.9 and qdisc["packets"] == count + 200, f"{text}; {qdisc['packets']} of {count + 200} were sent")
    expect(seen == sorted(seen) and len(seen) > count // 2, f"{text}; {len(seen)} were seen, out of order")
    expect(full - empty < sized(10, 150), text)
    out.close()
    run("ip link del d0")
    no_allocation_left()
    return f"{text}; {len(seen)} packets in order"


@check
def size_table():
    """Packets are charged by their lengths from a size table (`stab`), in tc's counters and in the counters of classes."""
    load(True, "selftest=0")
    dummy("d0")
    run("tc qdisc add dev d0 root stab overhead 100 linklayer ethernet asymq droptail up 10mbit")
    out = sender("d0")
    for _ in range(10):
        out.send(cost.frame(0))
    time.sleep(0.2)
    qdisc = asymq_of(netlink.Netlink(), "d0")
    sizes = qdisc["bytes"], qdisc["values"]["ack.sent.bytes"]
    expect(sizes == (1540, 1540), f"10 packets of 54 and 100 bytes: {sizes}")
    run("tc qdisc del dev d0 root; tc qdisc add dev d0 root asymq droptail up 10mbit overhead -14")
    for _ in range(10):
        out.send(cost.frame(0))
    time.sleep(0.2)
    less = asymq_of(netlink.Netlink(), "d0")["values"]["ack.sent.bytes"]
    run("ip link del d0")
    expect(less == 260, f"10 IP packets of 40 bytes with an overhead of -14: {less} bytes")
    return "10 packets of 54 bytes are charged 1540, and 260 with a negative overhead"


@check
def marks():
    """A marked packet has CE and the right checksum. A packet with a tag in its data is dropped instead, or leaves unchanged."""
    load(True, "selftest=0")
    messages, texts = netlink.Netlink(), []
    for tag, version in (b"", 4), (b"", 6), (struct.pack("!HH", 0x8100, 7), 4), (struct.pack("!HH", 0x88A8, 7), 4):
        dummy("d0")
        expect(messages.qdisc("d0", netlink.words("droptail aqm step mark-above 2p up 1mbit buffer 40p")) == 0, "not added")
        out, sniffer, sent = sender("d0", 0), links.Sniffer("d0"), []
        for number in range(20):
            data = cost.frame(2 * number + 1)
            head = data[14:15] + b"\2" + data[16:24] + bytes(2) + data[26:34]
            head = data[12:14] + head[:10] + struct.pack("!H", cost.checksum(head)) + head[12:]
            if version == 6:
                head = struct.pack("!HIHBB", 0x86DD, 6 << 28 | 2 << 20, len(data) - 34, 6, 64) + bytes((0xFD, *bytes(30), number))
            sent.append(data[:12] + tag + head + data[34:])
            # A dropped packet is an error.
            with contextlib.suppress(OSError):
                out.send(sent[-1])
        time.sleep(0.5)
        counts = asymq_of(messages, "d0")["values"]
        left, at = sniffer.frames(), 14 + len(tag)
        changed = [data for data in left if data not in sent]
        ce, end = (3, at + 20) if version == 4 else (0x30, at + 2)
        right = all(data[at + 1] == ce and (version == 6 or cost.checksum(data[at:end]) in (0, 0xFFFF)) and
                    data[:at] + data[end:] in [each[:at] + each[end:] for each in sent] for data in changed)
        text = (f"{len(changed)} of {len(left)} packets {f'with a tag {tag[:2].hex()} ' if tag else f'of IPv{version} '}changed, {counts['marked']} marked,"
                f" {counts['dropped']} dropped")
        expect(right and len(changed) == counts["marked"] and len(left) + counts["dropped"] == 20, text)
        expect(counts["dropped"] and not changed if tag else changed and not counts["dropped"], text)
        texts.append(text)
        out.close()
        run("ip link del d0")
    no_allocation_left()
    return "; ".join(texts)


@check
def observers_change():
    """While qdiscs of a device are added and removed, each flow has the right observer, and the last one reads all
    packets. The module is in use until the last qdisc is deleted; then no hook is left."""
    load(True, "selftest=0")
    run("ip link del v0; ip link add v0 numtxqueues 1 numrxqueues 1 type veth peer name v1;"
        "sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1; ip link set v0 up; ip link set v1 up",
        check=False)
    run("tc qdisc add dev v0 root handle 1: htb")
    words = netlink.words("aq up 1mbit down 10mbit unshaped")
    messages = netlink.Netlink()
    for leaf in 1, 2, 3:
        run(f"tc class add dev v0 parent 1: classid 1:{leaf} htb rate 1mbit")
        expect(messages.qdisc("v0", words, parent=0x10000 + leaf, handle=(leaf + 1) << 16) == 0, "not added")
    ups = [cost.frame(2 * flow + 1) for flow in range(3)]
    downs = [data[:26] + data[30:34] + data[26:30] + data[36:38] + data[34:36] + data[38:] for data in ups]
    outs = {}
    for leaf in 1, 2, 3:
        outs[leaf] = sender("v0")
        outs[leaf].setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10000 + leaf)
        outs[leaf].send(ups[leaf - 1])
    back = sender("v1")

    def seen(*flows):
        for flow in flows:
            back.send(downs[flow - 1])
        time.sleep(0.1)
        found = [qdisc for qdisc in messages.qdiscs("v0") if qdisc["kind"] == "asymq"]
        return {qdisc["parent"] & 0xFFFF: qdisc["values"]["queue.reverse.packets"] for qdisc in found}

    first = seen(1, 2, 3, 3)
    expect(first == {1: 1, 2: 1, 3: 2}, f"three leaves: {first}")
    expect(messages.qdisc("v0", None, delete=True, parent=0x10001, handle=2 << 16) == 0, "not deleted")
    second = seen(1, 1, 2, 3)
    expect(second == {2: 2, 3: 3}, f"after the first has gone: {second}")
    expect(messages.qdisc("v0", None, delete=True, parent=0x10002, handle=3 << 16) == 0, "not deleted")
    third = seen(1, 2, 3)
    expect(third == {3: 6}, f"the last one alone: {third}")
    # A discipline that does not read the reverse path has no hook.
    expect(messages.qdisc("v0", netlink.words("droptail unshaped"), parent=0x10003, handle=4 << 16) == 0, "not changed")
    expect(seen(3) == {3: 6}, "a discipline without a reverse path reads it")
    expect(messages.qdisc("v0", words, parent=0x10003, handle=4 << 16) == 0, "not changed back")
    # Two observers again.
    expect(messages.qdisc("v0", words, parent=0x10001, handle=2 << 16) == 0, "not added again")
    for leaf in 1, 3:
        outs[leaf].send(ups[leaf - 1])
    fourth = seen(1, 2, 3)
    expect(fourth == {1: 1, 3: 7}, f"one of two again: {fourth}")
    # The hook is removed in its device's namespace.
    run("ip netns add other; ip -n other link add v2 type dummy; tc -n other qdisc add dev v2 root asymq aq up 1mbit down 10mbit;"
        "tc -n other qdisc del dev v2 root; ip netns del other")
    expect(run("rmmod sch_asymq", check=False).returncode, "the module was removed while in use")
    # A second module with the same qdisc is refused, and leaves nothing behind.
    with open(f"{FOLDER}/sch_asymq_test.ko", "rb") as file:
        twin = file.read().replace(b"sch_asymq\0", b"sch_twin0\0")
    with open("/run/twin.ko", "wb") as file:
        file.write(twin)
    expect(run("insmod /run/twin.ko selftest=0", check=False).returncode, "two modules have the same qdisc")
    run("ip netns add twin; ip netns del twin")
    # Packets that arrive after the module is removed must not call the hook.
    run("tc qdisc del dev v0 root")
    no_allocation_left()
    run("rmmod sch_asymq")
    for data in downs * 20:
        back.send(data)
    time.sleep(0.1)
    # A new namespace must not call the removed module either.
    run("ip netns add after; ip netns del after; ip link del v0")
    return "three leaves, two, one, two; no hook is left without them"


@check
def egress_redirect():
    """An egress redirect to an IFB is not the reverse path; an ingress redirect is."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    run("ip link del v0; ip link del i0; ip link add v0 type veth peer name v1; ip link add i0 type ifb; ip link set i0 up;"
        "sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1 net.ipv6.conf.i0.disable_ipv6=1;"
        "ip link set v0 up; ip link set v1 up; tc qdisc add dev v0 clsact", check=False)
    for way in "ingress", "egress":
        run(f"tc filter add dev v0 {way} matchall action mirred egress redirect dev i0")
    run("tc qdisc add dev v0 root asymq aq up 100mbit down 100mbit; tc qdisc add dev i0 root asymq droptail up 100mbit")
    messages, seen = netlink.Netlink(), []
    for device in "v0", "v1":
        before = asymq_of(messages, "v0")["values"]["queue.reverse.packets"]
        out = sender(device)
        for _ in range(50):
            out.send(cost.frame(1))
        time.sleep(0.1)
        seen.append(asymq_of(messages, "v0")["values"]["queue.reverse.packets"] - before)
    passed = asymq_of(messages, "i0")["packets"]
    run("ip link del v0; ip link del i0")
    expect(seen == [0, 50] and passed >= 100, f"reverse path: {seen} of 50 sent and 50 received; {passed} passed the IFB")
    no_allocation_left()
    return "0 of 50 that leave, 50 of 50 that arrive"


# Growth of a kind of memory, in bytes per round, that counts as a leak. A leak of per-CPU counters is at least 24 bytes, six
# times per round; a leak of memory that is too large for a slab cache is at least a page. The kernel keeps some pages ready.
MEMORY = {"Percpu": 60, "VmallocUsed": 60, "SUnreclaim": 32768}


def objects():
    """Returns the number of objects in use in each slab cache, and the bytes of other kinds of memory."""
    found = {}
    for name in os.listdir("/sys/kernel/slab"):
        # Caches of the kernel's own checks. The kernel frees vmap areas late; VmallocUsed shows their memory.
        if name.startswith((":", "kmemleak", "debug_objects", "vmap_area")) or os.path.islink(f"/sys/kernel/slab/{name}") and not name.startswith(("kmalloc", "skbuff")):
            continue
        with open(f"/sys/kernel/slab/{name}/reclaim_account") as file:
            if file.read().strip() == "1":
                continue
        with open(f"/sys/kernel/slab/{name}/shrink", "w") as file:
            file.write("1")
        with open(f"/sys/kernel/slab/{name}/objects") as file:
            found[name] = int(file.read().split()[0])
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":") for line in file)
    for name in MEMORY:
        found[name] = int(lines[name].split()[0]) * 1024
    return found


@check
def dumps_are_whole():
    """In a dump of many qdiscs in several messages, each qdisc has its options and all statistics."""
    load(True, "selftest=0")
    dummy("d0")
    count, messages = 60, netlink.Netlink()
    run("tc -batch - <<'END'\nqdisc add dev d0 root handle 1: htb\n"
        + "".join(f"class add dev d0 parent 1: classid 1:{leaf:x} htb rate 1mbit\n" for leaf in range(1, count + 1)) + "END")
    for leaf in range(1, count + 1):
        # Options of different lengths, so that messages end at different places of a qdisc.
        words = netlink.words("aq up 1mbit down 10mbit unshaped" if leaf % 3 else "droptail")
        expect(messages.qdisc("d0", words, parent=0x10000 + leaf, handle=0x100 + leaf << 16) == 0, "not added")
    for room in 4096, 8192, 65536:
        shapes = {}
        # A separate socket, because the kernel uses the largest room that a socket has offered so far.
        for found in netlink.Netlink().qdiscs("d0", room):
            if found["kind"] == "asymq":
                shape = len(found["options"]), len(found["values"])
                shapes[shape] = shapes.get(shape, 0) + 1
        expect(sorted(shapes.values()) == [count // 3, count * 2 // 3] and all(map(all, shapes)),
               f"with {room} bytes: {shapes} of {count} qdiscs, as (options, statistics)")
    run("ip link del d0")
    no_allocation_left()
    return f"{count} qdiscs in messages of three sizes"


@check
def nothing_left():
    """Slab caches, per-CPU memory and vmalloc memory do not grow when many qdiscs are added and deleted: with one and with
    several observers on a device, followers, changes and dumps."""
    load(True, "selftest=0")
    rounds = sized(300, 100)
    dummy("d0")
    run("ip link del i0; ip link add i0 type ifb; ip link set i0 up", check=False)
    messages = netlink.Netlink()
    run("tc qdisc add dev d0 root handle 1: prio")
    aq, sad, auto = netlink.words("aq up 1mbit down 10mbit"), netlink.words("sad up 1mbit"), netlink.words("cake up auto")
    alone = VERSION + rate(netlink.UP, 2000000)
    bad = VERSION + rate(netlink.UP, 1)
    # Refused while an instance is being built: the limit is too large.
    large = aq + netlink.attribute(7, struct.pack("=Q", 1 << 40))

    def turn():
        errors = []
        for child in 1, 2:
            errors.append(messages.qdisc("d0", aq, parent=0x10000 + child, handle=(child + 1) << 16))
        errors += [messages.qdisc("d0", alone, parent=0x10001, handle=2 << 16), messages.qdisc("d0", sad, parent=0x10002, handle=3 << 16),
                   messages.qdisc("i0", auto)]
        expect(messages.qdisc("d0", bad, parent=0x10001, handle=2 << 16), "a wrong rate is taken")
        set_parameter("fail_alloc", 5)
        for what, options, refusal in ("a failed allocation", sad, errno.ENOMEM), ("a buffer of 2^40 packets", large, errno.EINVAL):
            answer = messages.qdisc("d0", options, parent=0x10001, handle=2 << 16)
            expect(answer == refusal, f"{what}: {errno.errorcode.get(answer, answer)}")
        messages.show()
        for child in 1, 2:
            errors.append(messages.qdisc("d0", None, delete=True, parent=0x10000 + child, handle=(child + 1) << 16))
        errors.append(messages.qdisc("i0", None, delete=True))
        expect(not any(errors), f"{errors}")

    def observe():
        """Creates and frees a device's hook, list and counters."""
        expect(messages.qdisc("d1", aq) == 0 and messages.qdisc("d1", None, delete=True) == 0, "no hook")

    dummy("d1")
    for _ in range(30):
        turn()
        observe()
    time.sleep(1)
    # The first call allocates attributes of the files that it reads.
    objects()
    before = objects()
    for number in range(6 * rounds):
        observe()
        if number < rounds:
            turn()
    time.sleep(1)
    after = objects()
    run("ip link del d0; ip link del d1; ip link del i0")
    grown = {name: after[name] - before[name] for name in after if name in before
             and after[name] - before[name] > rounds * MEMORY.get(name, 0.5)}
    expect(not grown, f"{rounds} rounds: {grown} more")
    no_allocation_left()
    return f"{rounds} rounds leave nothing in {len(after)} caches"


@check
def drops_are_traced():
    """The kernel's tracepoint for drops, which drop_monitor reads, reports each packet dropped at enqueue, at dequeue, at a
    change, at a reset, and in an aggregate. It also reports filtered packets."""
    load(True, "selftest=0")
    run(f"mount -t tracefs none {TRACING}", check=False)
    dummy("d0")
    messages, out = netlink.Netlink(), sender("d0")
    PACKET_VNET_HDR = 15
    whole = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    whole.setsockopt(263, PACKET_VNET_HDR, 1)
    whole.bind(("d0", 0x0800))

    def words(text):
        expect(messages.qdisc("d0", netlink.words(text), handle=1 << 16) == 0, text)

    def traced(what, operate):
        """Checks that the trace shows as many drops during `operate` as our counters; returns their number."""
        before = asymq_of(messages, "d0")["values"]
        for file, text in (("trace", ""), ("events/skb/kfree_skb/filter", "protocol == 2048"), ("events/skb/kfree_skb/enable", "1")):
            with open(TRACING + file, "w") as control:
                control.write(text)
        operate()
        with open(TRACING + "events/skb/kfree_skb/enable", "w") as control:
            control.write("0")
        after = asymq_of(messages, "d0")["values"]
        with open(TRACING + "trace") as file:
            seen = sum("kfree_skb:" in line for line in file)
        gone = sum(after[f"queue.{fate}.packets"] - before[f"queue.{fate}.packets"] for fate in accounting.FATES)
        expect(gone > 0 and seen == gone, f"{what}: {gone} packets gone, {seen} traced")
        return seen

    def send(count):
        for number in range(count):
            try:
                out.send(cost.frame(2 * number + 1))
            except OSError:
                pass

    def aggregate(protocol=253):
        data = cost.frame(1)
        data = data[:16] + struct.pack("!H", 3040) + data[18:23] + bytes([protocol]) + data[24:54] + bytes(3000)
        try:
            whole.send(struct.pack("=BBHHHH", 1, 1, 54, 1000, 34, 16) + data)
        except OSError as error:
            expect(error.errno == errno.ENOBUFS, f"an aggregate: {error}")

    counts = []
    words("droptail up 8kbit buffer 8p")
    counts.append(traced("at enqueue", lambda: send(20)))
    counts.append(traced("at a change", lambda: words("droptail up 8kbit buffer 2p")))
    counts.append(traced("at a reset", lambda: messages.link("d0", False)))
    messages.link("d0", True)
    # Clears the socket's error, which the device that was down has caused.
    whole.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    # Slow enough that packets still wait when a slow kernel begins to trace.
    words("droptail up 20kbit buffer 50p")
    send(20)

    def at_dequeue():
        set_parameter("inject", "drops")
        time.sleep(0.6)

    counts.append(traced("at dequeue", at_dequeue))
    counts.append(traced("an aggregate that cannot be segmented", aggregate))
    set_parameter("inject", "filters")
    counts.append(traced("filtered", lambda: send(1)))
    run("ip link del d0")
    no_allocation_left()
    return f"{counts} packets, each traced"


def datagrams(say):
    """Sends datagrams to a closed port, so that ICMP errors return through the IFB."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for _ in range(20):
            out.sendto(b"x", ("10.6.1.2", 9))
            time.sleep(0.01)
    say("done")


@check
def connections_are_released():
    """Lookups of connections, at the egress of a router with NAT and at an IFB, hold no reference: the router's namespace
    exits."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a nft_chain_nat nft_masq ifb cls_matchall act_mirred")
    run("ip netns add router; ip link add n1 type veth peer name n0 netns router; ip link set n1 up; ip addr add 10.6.1.2/24 dev n1;"
        "ip -n router link set n0 up; ip -n router addr add 10.6.1.1/24 dev n0;"
        "ip netns exec router nft 'add table ip box; add chain ip box post { type nat hook postrouting priority 100; };"
        " add rule ip box post oifname n0 masquerade'")
    run("ip -n router link add ifb7 type ifb; ip -n router link set ifb7 up; tc -n router qdisc add dev n0 ingress;"
        "tc -n router filter add dev n0 ingress matchall action mirred egress redirect dev ifb7;"
        "tc -n router qdisc add dev ifb7 root asymq cake up 10mbit nat; tc -n router qdisc add dev n0 root asymq cake up 10mbit nat")
    End("router", datagrams).answer()
    time.sleep(0.2)
    counts = []
    for device in "n0", "ifb7":
        shown = run(f"tc -n router -s qdisc show dev {device}").stdout
        counts.append(int(shown.split("Sent ")[1].split()[2]))
    run("ip netns del router")
    # A namespace's devices vanish first. A second namespace exits only after the first has released its connections.
    run("ip netns add after; ip link add n2 type veth peer name n3 netns after; ip netns del after")
    end = time.monotonic() + 30
    while os.path.exists("/sys/class/net/n1") or os.path.exists("/sys/class/net/n2"):
        expect(time.monotonic() < end, "the namespace does not exit: connections are held")
        time.sleep(0.1)
    expect(min(counts) > 2, f"{counts} packets")
    return f"{counts} packets looked up; the namespace exits"
