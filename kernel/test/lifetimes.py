"""Checks of the ends of lifetimes and lists: partly offered backlogs, repeated changes, flows that expire, refused hooks,
counters of each CPU and beyond 32 bits. observer.c defines observers and followers."""

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
import races
from defects import MEMORY, VERSION, asymq_of, dummy, objects, reordered, sender
from guest import ROOT, check, expect, load, no_allocation_left, parameter, set_parameter, sized
from traffic import End, run


def pair(leaves=0):
    """Makes a veth pair without IPv6. v0 has `leaves` classes of HTB."""
    run("ip link del v0", check=False)
    run("ip link add v0 numtxqueues 1 numrxqueues 1 type veth peer name v1;"
        "sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 net.ipv6.conf.v1.disable_ipv6=1; ip link set v0 up; ip link set v1 up")
    if leaves:
        run("tc qdisc add dev v0 root handle 1: htb")
    for leaf in range(1, leaves + 1):
        run(f"tc class add dev v0 parent 1: classid 1:{leaf} htb rate 1mbit")


def reversed_frame(data):
    return data[:26] + data[30:34] + data[26:30] + data[36:38] + data[34:36] + data[38:]


@check
def half_offered():
    """After a reset or a fault while a change has offered only a part of the backlog, no packet is lost or counted twice."""
    load(True, "selftest=0")
    messages, texts = netlink.Netlink(), []
    slow = [netlink.words(f"droptail up 8kbit buffer {places}p") for places in (6000, 6001)]
    fast = netlink.words("droptail up 1gbit buffer 6001p")
    for end in "reset", "fault", "fault and reset", "small buffer":
        dummy("d0")
        expect(messages.qdisc("d0", slow[0], handle=1 << 16) == 0, "not added")
        out = sender("d0")
        for number in range(3000):
            out.send(cost.frame(2 * number))
        if end == "small buffer":
            # All others are dropped at once, long before the next packet leaves.
            expect(messages.qdisc("d0", netlink.words("droptail up 8kbit buffer 8p"), handle=1 << 16) == 0, "not changed")
            time.sleep(0.2)
            qdisc = asymq_of(messages, "d0")
            expect(qdisc["qlen"] <= 8 and not accounting.sums(qdisc), f"{end}: {qdisc['qlen']} packets wait; {accounting.sums(qdisc)}")
        expect(messages.qdisc("d0", slow[1], handle=1 << 16) == 0, "not changed")
        if "fault" in end:
            set_parameter("inject", "drops-foreign")
            out.send(cost.frame(0))
            # A refused change leaves the FIFO.
            expect(messages.qdisc("d0", slow[1][:-1], handle=1 << 16) != 0, "a wrong message is taken")
            expect("failed" in asymq_of(messages, "d0")["values"], "no fault after a refused change")
        if "reset" in end:
            expect(messages.link("d0", False) == 0 and messages.link("d0", True) == 0, "not reset")
            # Clears the socket's error, which the device that was down has caused.
            out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        for number in range(200):
            out.send(cost.frame(2 * number))
        qdisc = asymq_of(messages, "d0")
        wrong = accounting.sums(qdisc)
        least = 3000 if end == "fault" else 100
        expect(not wrong and qdisc["qlen"] >= least, f"{end}: {qdisc['qlen']} packets wait; {wrong}")
        expect(messages.qdisc("d0", fast, handle=1 << 16) == 0, "not made fast")
        until = time.monotonic() + 20
        while asymq_of(messages, "d0")["qlen"]:
            expect(time.monotonic() < until, f"{end}: stranded")
            time.sleep(0.01)
        wrong = accounting.sums(asymq_of(messages, "d0"))
        expect(not wrong, f"{end}, drained: {wrong}")
        texts.append(f"{end}: {qdisc['qlen']} waited")
        out.close()
        run("ip link del d0")
    no_allocation_left()
    return ", ".join(texts)


@check
def changes_keep_places():
    """After changes of an observer and of a follower, each is in its list once. Deleting a qdisc removes it from its list."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    pair()
    run("ip link del i0", check=False)
    run("ip link add i0 type ifb; sysctl -qw net.ipv6.conf.i0.disable_ipv6=1; ip link set i0 up")
    messages, back = netlink.Netlink(), sender("v1")
    for places in 100, 101, 102, 103:
        expect(messages.qdisc("v0", netlink.words(f"aq up 1mbit down 10mbit buffer {places}p")) == 0, "not changed")
    for number in range(10):
        back.send(reversed_frame(cost.frame(2 * number + 1)))
    time.sleep(0.1)
    seen = asymq_of(messages, "v0")["values"]["queue.reverse.packets"]
    expect(seen == 10, f"the only observer, changed three times, has read {seen} of 10 packets")
    for interval in "auto", "auto:1mbit..1gbit", "auto:2mbit..1gbit":
        expect(messages.qdisc("i0", netlink.words(f"cake up {interval}")) == 0, f"not changed to {interval}")
    run("tc qdisc add dev v0 ingress; tc filter add dev v0 ingress matchall action mirred egress redirect dev i0")
    out = sender("v0")
    for _ in range(2):
        back.send(reversed_frame(cost.frame(1)))
        out.send(cost.frame(1))
    time.sleep(0.1)
    # A follower reads only the departures of its own line, and each of them once.
    dummy("d0")
    expect(messages.qdisc("d0", netlink.words("aq up 1mbit down 10mbit")) == 0, "not added")
    before, other = parameter("departures"), sender("d0")
    other.send(cost.frame(1))
    time.sleep(0.1)
    between = parameter("departures")
    out.send(cost.frame(1))
    time.sleep(0.1)
    read = between - before, parameter("departures") - between
    expect(read == (0, 1), f"read departures, of another device and of its own: {read}")
    # Only the device at which a packet arrived sees it in its reverse path.
    back.send(reversed_frame(cost.frame(1)))
    time.sleep(0.1)
    strange = asymq_of(messages, "d0")["values"]["queue.reverse.packets"]
    expect(strange == 0, f"{strange} packets that arrived at another device are in the reverse path")
    # After a fault, observer and follower have no instance that could read packets.
    set_parameter("inject", "drops-foreign")
    out.send(cost.frame(1))
    set_parameter("inject", "drops-foreign")
    back.send(reversed_frame(cost.frame(1)))
    out.send(cost.frame(1))
    time.sleep(0.1)
    faults = [asymq_of(messages, device)["values"].get("failed") for device in ("v0", "i0")]
    expect(faults == [1, 1], f"faults of the observer and of the follower: {faults}")
    expect(messages.qdisc("i0", None, delete=True) == 0, "not deleted")
    # If the follower were still in the list, it would read this departure.
    out.send(cost.frame(1))
    run("ip link del v0; ip link del i0; ip link del d0")
    no_allocation_left()
    return "three changes each"


@check
def refusals_change_nothing():
    """After a refused change, and after one of rates by each path, an observer and a follower keep their places."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    pair()
    run("ip link del i0", check=False)
    run("ip link add i0 type ifb; sysctl -qw net.ipv6.conf.i0.disable_ipv6=1; ip link set i0 up")
    messages, back, out = netlink.Netlink(), sender("v1"), sender("v0")
    whole = netlink.words("up 1mbit down 10mbit")

    def change(what, device, options, *answers):
        answer = messages.qdisc(device, options, handle=1 << 16)
        expect(answer in answers, f"{what} at {device}: {errno.errorcode.get(answer, answer)}")

    def state():
        """Returns the counts of read packets, and what else is dumped, except what a learnt rate changes."""
        own, learner = (asymq_of(messages, device) for device in ("v0", "i0"))
        values = own["values"], learner["values"]
        return ([values[0]["queue.reverse.packets"], values[0].get("device.packets"), parameter("departures"), learner["packets"]],
                (own["options"], [one for one in netlink.attributes(learner["options"]) if one[0] != netlink.UP],
                 [sorted(name for name in value if ".auto_" not in name) for value in values]))

    def serves(what):
        """Checks that the observer and the follower read one packet each; returns the rest of the state."""
        before, _ = state()
        back.send(reversed_frame(cost.frame(1)))
        time.sleep(0.02)
        out.send(cost.frame(1))
        time.sleep(0.05)
        after, rest = state()
        read = [new and new - old for new, old in zip(after, before)]
        expect(read == [1, 1, 1, 1], f"{what}: observer, device, follower and IFB have read {read} of 1 packet each")
        return rest

    change("new", "v0", whole, 0)
    change("new", "i0", netlink.words("cake up auto nat"), 0)
    run("tc qdisc add dev v0 ingress; tc filter add dev v0 ingress matchall action mirred egress redirect dev i0")
    serves("at first")
    # A packet that no device has received is not of the follower's line.
    sender("i0").send(cost.frame(1))
    time.sleep(0.02)
    seen = parameter("departures")
    out.send(cost.frame(1))
    time.sleep(0.05)
    expect(parameter("departures") == seen + 1, "the follower does not read its line after a packet of no device")
    before = serves("when both have seen a packet")
    up = VERSION + netlink.attribute(netlink.UP, struct.pack("=Q", 2000000))
    large = netlink.words("sad up 3mbit") + netlink.attribute(7, struct.pack("=Q", 1 << 40))
    refusals = [("a rate out of range", VERSION + netlink.attribute(netlink.UP, struct.pack("=Q", 1)), 0), ("no version", up[8:], 0),
                ("a large buffer", large, 0), ("an unknown discipline", VERSION + netlink.attribute(netlink.QDISC, struct.pack("=I", 999)), 0),
                ("an empty range", VERSION + netlink.attribute(14, struct.pack("=Q", 9)) + netlink.attribute(15, struct.pack("=Q", 8)), 0),
                *((f"failed allocation {number}", netlink.words("sad up 3mbit"), number) for number in (1, 3, 5))]
    for what, options, fails in refusals:
        for device in "v0", "i0":
            set_parameter("fail_alloc", fails)
            change(what, device, options, errno.ERANGE, errno.EINVAL, errno.ENOMEM)
        set_parameter("fail_alloc", 0)
        after = serves(what)
        expect(after == before, f"{what}: {after} is dumped after {before}")
    changes = ("a rate alone", up), ("all", whole), ("reordered", reordered(whole)), ("a rate and `shaped`", up + netlink.attribute(8, b"\1"))
    for what, options in *changes, ("back", whole):
        built = parameter("allocations")
        change(what, "v0", options, 0)
        expect(parameter("allocations") - built < 30, f"{what}: {parameter('allocations') - built} allocations")
        after = serves(what)
    expect(after == before, f"at the end {after} is dumped after {before}")
    run("ip link del v0; ip link del i0")
    no_allocation_left()
    return f"{len(refusals)} refusals of two qdiscs, {len(changes)} changes of rates"


@check
def reverse_bytes():
    """Reverse packets are counted with their bytes, and AQ charges their link headers, at the device's hook and at an IFB."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    pair()
    run("ip link del i0", check=False)
    run("ip link add i0 type ifb; sysctl -qw net.ipv6.conf.i0.disable_ipv6=1; ip link set i0 up")
    messages, back, down = netlink.Netlink(), sender("v1"), sized(1000, 200)
    overhead = 24
    expect(messages.qdisc("v0", netlink.words(f"aq up 100kbit down {down}kbit overhead {overhead}")) == 0, "not added")
    # Frames without IP are charged the bytes behind the link header, with the overhead.
    data = flow_frame()[:12] + struct.pack("!H", 0x88B5) + bytes(46)

    def state():
        values = asymq_of(messages, "v0")["values"]
        return time.monotonic(), values["queue.reverse.packets"], values["queue.reverse.bytes"], values["control.data_share"]

    def shares(share):
        """The share of ACKs, computed from the share of data in steps of 2^-30."""
        return 1 - share / 2**30

    alone, texts = shares(state()[3]), []
    for place in "the hook", "an IFB":
        if place == "an IFB":
            expect(messages.qdisc("i0", netlink.words("droptail up 1gbit")) == 0, "not added")
            run("tc qdisc add dev v0 ingress; tc filter add dev v0 ingress matchall action mirred egress redirect dev i0")
        before = state()
        for _ in range(1000):
            back.send(data)
            time.sleep(0.001)
        after = state()
        packets, size = after[1] - before[1], after[2] - before[2]
        expect(packets == 1000 and size == packets * len(data), f"{place}: {packets} packets of {size} bytes")
        # AQ subtracts other traffic from the downlink; its share for ACKs is nearly proportional to the rest.
        rest = 1 - packets * (len(data) - 14 + overhead) * 8 / (after[0] - before[0]) / (1000 * down)
        got = shares(after[3]) / alone
        texts.append(f"{place} {got:.3f} of {rest:.3f}")
        expect(0.2 < rest < 0.8 and abs(got / rest - 1) < sized(0.06, 0.15), f"{texts[-1]}: the share of ACKs, and the rest of the downlink")
        # An interval without packets.
        time.sleep(1)
        back.send(data)
    run("ip link del v0; ip link del i0")
    no_allocation_left()
    return f"share of ACKs beside datagrams, and the rest of the downlink: {', '.join(texts)}"


@check
def flows_expire():
    """With several observers, a flow's entry in the flow table expires after a minute without a packet."""
    load(True, "selftest=0")
    pair(2)
    messages, words = netlink.Netlink(), netlink.words("aq up 1mbit down 10mbit unshaped")
    for leaf in 1, 2:
        expect(messages.qdisc("v0", words, parent=0x10000 + leaf, handle=(leaf + 1) << 16) == 0, "not added")
    out, back = sender("v0"), sender("v1")
    out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10001)
    out.send(cost.frame(1))

    def known():
        before = asymq_of(messages, "v0")["values"]["device.unknown"]
        back.send(reversed_frame(cost.frame(1)))
        time.sleep(0.1)
        return asymq_of(messages, "v0")["values"]["device.unknown"] == before

    expect(known(), "a flow is unknown at once")
    time.sleep(40)
    out.send(cost.frame(1))
    time.sleep(50)
    expect(known(), "a flow is unknown 50 s after its last packet")
    time.sleep(15)
    expect(not known(), "a flow is known more than a minute after its last packet")
    run("ip link del v0")
    no_allocation_left()
    return "known 50 s after the last packet, unknown after 65"


def flow_frame(vlans=(), version=4, protocol=socket.IPPROTO_TCP, ends=(1, 2), ports=(1000, 443), fragment=0, pppoe=False,
               options=b""):
    """Returns a frame of a flow, with VLAN tags or PPPoE in the frame's data. `fragment` and `options` are fields
    of IPv4's header."""
    tags = b"".join(struct.pack("!HH", tag, 7) for tag in vlans)
    transport = struct.pack("!HH", *ports) + bytes(16)
    if version == 4:
        network = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options + transport), 0, fragment, 64, protocol, 0)
        network += b"".join(bytes((10, 9, 9, end)) for end in ends) + options
    else:
        network = struct.pack("!IHBB", 6 << 28, len(transport), protocol, 64)
        network += b"".join(bytes((0xfd, *bytes(14), end)) for end in ends)
    kind = struct.pack("!H", 0x0800 if version == 4 else 0x86DD)
    if pppoe:
        kind = struct.pack("!HBBHHH", 0x8864, 0x11, 0, 7, 2 + len(network) + len(transport), 0x21)
    return bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2)) + tags + kind + network + transport


# They have separate ports, so that packets without options do not belong to a known flow.
OPTIONS = {"options": bytes((1, 1, 1, 0)), "ports": (1002, 443), "back": {"options": b""}}
# For each field of a flow: two flows that differ only in this field. `back` is only for packets of the reverse path.
UDP, TWO_TAGS = {"protocol": socket.IPPROTO_UDP}, {"vlans": [0x88A8, 0x8100]}
PAIRS = {
    "addresses": ({}, {"ends": (1, 3)}), "ports of TCP": ({}, {"ports": (1001, 443)}), "protocols": ({}, UDP),
    "addresses of fragments": ({"fragment": 9, "back": {"ports": (7, 8)}}, {"fragment": 9, "ends": (1, 3), "back": {"ports": (5, 9)}}),
    "ports of UDP": (UDP, UDP | {"ports": (1001, 443)}),
    "addresses of IPv6": ({"version": 6}, {"version": 6, "ends": (1, 3)}),
    "ports of IPv6": ({"version": 6}, {"version": 6, "ports": (1001, 443)}),
    "ports behind 802.1Q": ({"vlans": [0x8100]}, {"vlans": [0x8100], "ports": (1001, 443)}),
    "ports of IPv6 behind 802.1Q": ({"vlans": [0x8100], "version": 6}, {"vlans": [0x8100], "version": 6, "ports": (1001, 443)}),
    "ports behind options of IPv4": (OPTIONS, OPTIONS | {"ports": (1003, 443)}),
    "ports behind PPPoE": ({"pppoe": True}, {"pppoe": True, "ports": (1001, 443)}),
    "ports behind two tags": (TWO_TAGS, TWO_TAGS | {"ports": (1001, 443)}),
    "ports of IPv6 behind two tags": (TWO_TAGS | {"version": 6}, TWO_TAGS | {"version": 6, "ports": (1001, 443)}),
}


@check
def flows_of_leaves():
    """Each of several observers reads only the reverse packets of its own flows, even if flows differ in a single field."""
    load(True, "selftest=0")
    pair(2)
    messages, words, outs = netlink.Netlink(), netlink.words("aq up 1mbit down 10mbit unshaped"), []
    back = sender("v1", 0)
    for leaf in 1, 2:
        expect(messages.qdisc("v0", words, parent=0x10000 + leaf, handle=(leaf + 1) << 16) == 0, "not added")
        outs.append(sender("v0", 0))
        outs[-1].setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10000 + leaf)

    def read():
        found = [qdisc for qdisc in messages.qdiscs("v0") if qdisc["kind"] == "asymq"]
        return [qdisc["values"]["queue.reverse.packets"] for qdisc in sorted(found, key=lambda qdisc: qdisc["parent"])]

    wrong = []
    for name, flows in PAIRS.items():
        before = read()
        backs = [flow.get("back", {}) for flow in flows]
        flows = [{key: value for key, value in flow.items() if key != "back"} for flow in flows]
        for out, flow in zip(outs, flows):
            out.send(flow_frame(**flow))
        for count, flow in enumerate(flows, 1):
            reverse = {key: flow.get(key, usual)[::-1] for key, usual in (("ends", (1, 2)), ("ports", (1000, 443)))}
            for _ in range(count):
                back.send(flow_frame(**flow | reverse | backs[count - 1]))
        time.sleep(0.1)
        new = [after - then for after, then in zip(read(), before)]
        if new != [1, 2]:
            wrong.append(f"{name}: {new}")
    # Only the first bytes of these headers are in the packet's first piece.
    run("ip link set v0 mtu 9000; ip link set v1 mtu 9000")
    before, whole = read(), whole_sender("v0", 0x10001)
    for number in range(20):
        data = flow_frame(ports=(number, 80)) + bytes(5000)
        whole(data[:16] + struct.pack("!H", len(data) - 14) + data[18:], 0, 0, 20, 0, 0, 0)
        back.send(flow_frame(ends=(2, 1), ports=(80, number)))
    time.sleep(0.1)
    new = [after - then for after, then in zip(read(), before)]
    if new != [20, 0]:
        wrong.append(f"packets in pieces: {new}")
    # The flow table has 8192 sets of four places. About nine of 6000 flows find their set full, and stay unknown.
    def counts():
        values = asymq_of(messages, "v0")["values"]
        return values["device.packets"], values["device.unknown"]

    before, all_before, flows = read()[0], counts(), 6000
    for number in range(flows):
        # A dropped packet is an error.
        with contextlib.suppress(OSError):
            outs[0].send(flow_frame(ports=(2000 + number, 443)))
    for number in range(flows):
        back.send(flow_frame(ends=(2, 1), ports=(443, 2000 + number)))
    time.sleep(0.1)
    unknown = flows - (read()[0] - before)
    more = tuple(after - then for after, then in zip(counts(), all_before))
    # The first and the last set of the table.
    places = []
    for number in 8191, 8192, 16383, (1 << 32) - 1:
        set_parameter("flow_hash", number)
        first = read()[0]
        outs[0].send(flow_frame())
        back.send(flow_frame(ends=(2, 1), ports=(443, 1000)))
        time.sleep(0.05)
        places.append(read()[0] - first)
    # Five flows of one set: the fifth replaces the flow that is silent for the longest time.
    hashes = [5 + 8192 * number for number in range(1, 6)]

    def one(number, send, data):
        set_parameter("flow_hash", hashes[number])
        send(data)
        time.sleep(0.05)

    for number in 0, 1, 2, 3, 0, 4:
        one(number, outs[0].send, flow_frame())
    kept = []
    for number in range(5):
        first = read()[0]
        one(number, back.send, flow_frame(ends=(2, 1), ports=(443, 1000)))
        kept.append(read()[0] - first)
    set_parameter("flow_hash", 0)
    expect(places == [1, 1, 1, 1], f"flows of the first and last sets: {places}")
    expect(kept == [1, 0, 1, 1, 1], f"known of five flows in one set, of which the second is the oldest: {kept}")
    run("ip link del v0")
    expect(not wrong, f"two leaves must read 1 and 2 packets; wrong for flows of different {'; '.join(wrong)}")
    expect(unknown <= 30 and more == (flows, unknown),
           f"{unknown} of {flows} flows are unknown, and {more[1]} of {more[0]} by the counters")
    no_allocation_left()
    return f"flows of different {', '.join(PAIRS)}; {unknown} of {flows} are unknown"


def whole_sender(device, priority=0):
    """Returns a function that sends a frame with a header of virtio: flags, kind of aggregate, length of headers, length of a
    segment, and place of the checksum."""
    PACKET_VNET_HDR = 15
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    out.setsockopt(263, PACKET_VNET_HDR, 1)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
    out.bind((device, 0x0800))
    return lambda data, *header: out.send(struct.pack("=BBHHHH", *header) + data)


@check
def fields_of_frames():
    """The discipline gets a packet's number of segments, the validity of its checksum, and headers that are not in
    its first piece. Each instance hashes flows with its own secret."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    messages, texts = netlink.Netlink(), []
    # AQ counts the segments of a download's aggregates.
    pair()
    run("ip link del i0", check=False)
    run("ip link add i0 type ifb; sysctl -qw net.ipv6.conf.i0.disable_ipv6=1; ip link set i0 up")
    out, back = sender("v0"), whole_sender("v1")
    data = reversed_frame(cost.frame(1))
    data = data[:16] + struct.pack("!H", 40 + 4000) + data[18:54] + bytes(4000)
    for place in "the hook", "an IFB":
        expect(messages.qdisc("v0", netlink.words("aq up 1mbit down 10mbit")) == 0, "not added")
        for number in range(400):
            out.send(cost.frame(2 * number))
            back(data, 1, 1, 54, 1000, 34, 16)
            # AQ skips intervals with fewer than eight ACKs, which a slow guest has if each packet waits.
            time.sleep(0.1 if number % 20 == 19 else 0)
        bits = asymq_of(messages, "v0")["values"]["control.data_per_ack"]
        texts.append(f"{struct.unpack('=d', struct.pack('=Q', bits))[0]:.1f} data packets per ACK at {place}")
        expect(struct.unpack("=d", struct.pack("=Q", bits))[0] > 3, f"aggregates of four: {texts[-1]}")
        messages.qdisc("v0", None, delete=True)
        expect(messages.qdisc("i0", netlink.words("droptail up 1gbit")) == 0, "not added")
        run("tc qdisc add dev v0 ingress; tc filter add dev v0 ingress matchall action mirred egress redirect dev i0", check=False)
        texts.append(f"secret {parameter('flow_key'):x}")
    expect(texts[1] != texts[3], f"two flow tables have the same secret: {texts}")
    run("ip link del v0; ip link del i0")
    # An ACK with a wrong checksum replaces no ACK, and is replaced by none.
    dummy("d0")
    run("ip link set d0 mtu 9000")
    whole = whole_sender("d0")
    for first, second, filtered in (0, 0, 1), (1, 0, 0), (0, 1, 0), (2, 2, 1), (1, 2, 0), (2, 1, 0):
        expect(messages.qdisc("d0", netlink.words("sad up 8kbit")) == 0, "not added")
        for number in range(2):
            whole(cost.frame(1), 0, 0, 0, 0, 0, 0)
        for number, kind in (0, first), (8, second):
            ack = cost.frame(number)
            # A device can complete a checksum (2). Otherwise it must be right (0).
            ack = ack if kind == 0 else ack[:50] + bytes((ack[50] ^ 1, ack[51])) + ack[52:]
            whole(ack, *((1, 0, 0, 0, 34, 16) if kind == 2 else (0, 0, 0, 0, 0, 0)))
        found = asymq_of(messages, "d0")["values"]["queue.filtered.packets"]
        expect(found == filtered, f"two ACKs, checksum right (0), wrong (1) or incomplete (2): {first}, {second}: {found} filtered")
        messages.qdisc("d0", None, delete=True)
    # Likewise without Ethernet headers.
    run(f"modprobe -d {ROOT} tun")
    link = links.Tun()
    for wrong in 0, 1:
        run(f"tc qdisc add dev {link.device} root asymq sad up 8kbit")
        for number in 1, 1, 0, 8:
            data = cost.frame(number)[14:]
            link.send(data[:36] + bytes((data[36] ^ (wrong and number == 8), data[37])) + data[38:])
        found = asymq_of(messages, link.device)["values"]["queue.filtered.packets"]
        expect(found == 1 - wrong, f"two ACKs at tun, checksum right (0) or wrong (1): {wrong}: {found} filtered")
        run(f"tc qdisc del dev {link.device} root")
    link.close()
    # A packet whose headers are not in its first piece.
    expect(messages.qdisc("d0", netlink.words("droptail up 1gbit")) == 0, "not added")
    data = cost.frame(1)
    data = data[:16] + struct.pack("!H", 5040) + data[18:] + bytes(4000)
    whole(data, 0, 0, 20, 0, 0, 0)
    time.sleep(0.1)
    counts = asymq_of(messages, "d0")["values"]
    sent = {name: counts[f"{name}.sent.packets"] for name in ("ack", "data", "other")}
    expect(sent == {"ack": 0, "data": 1, "other": 0}, f"class of a packet in pieces: {sent}")
    messages.qdisc("d0", None, delete=True)
    # Two flows share one of three queues in about a third of all instances.
    shared = []
    for _ in range(24):
        expect(messages.qdisc("d0", netlink.words("fq_codel flow-queues 3 up 8kbit")) == 0, "not added")
        for number in 1, 1, 1, 3, 3, 3:
            whole(cost.frame(number), 0, 0, 0, 0, 0, 0)
        values = asymq_of(messages, "d0")["values"]
        shared.append(values["control.new_flows"] + values["control.old_flows"])
        messages.qdisc("d0", None, delete=True)
    expect(len(set(shared)) == 2, f"with a secret for each instance, two flows share a queue in some: {shared}")
    run("ip link del d0")
    no_allocation_left()
    return f"{'; '.join(texts)}; checksums, pieces; {shared.count(min(shared))} of {len(shared)} instances have both flows in one queue"


def read_before_other_hooks():
    """The observer reads packets that another ingress hook drops."""
    pair()
    messages = netlink.Netlink()
    run("nft 'add table netdev drops; add chain netdev drops every { type filter hook ingress device v0 priority -500; policy drop; }'")
    expect(messages.qdisc("v0", netlink.words("aq up 1mbit down 10mbit")) == 0, "not added")
    sender("v1").send(reversed_frame(cost.frame(1)))
    time.sleep(0.1)
    seen = asymq_of(messages, "v0")["values"]["queue.reverse.packets"]
    run("nft delete table netdev drops; ip link del v0")
    expect(seen == 1, f"{seen} of 1 packets read before other hooks")


@check
def refused_hook():
    """If a device accepts no further ingress hook, a discipline that needs a hook is refused, and no memory is left."""
    load(True, "selftest=0")
    dummy("d0")
    chains = "\n".join(f"add chain netdev full c{number} {{ type filter hook ingress device d0 priority 0; }}" for number in range(1024))
    with open("/run/full", "w") as file:
        file.write(f"add table netdev full\n{chains}\n")
    run("nft -f /run/full")
    messages, aq, rounds = netlink.Netlink(), netlink.words("aq up 1mbit down 10mbit"), sized(2000, 600)
    read_before_other_hooks()
    # A refused change keeps the discipline.
    old = netlink.words("droptail up 1mbit")
    expect(messages.qdisc("d0", old) == 0, "a discipline without a hook is refused")
    answer = messages.qdisc("d0", aq)
    expect(answer == errno.E2BIG and "no ingress hook" in messages.text, f"a change: {errno.errorcode.get(answer, answer)}, {messages.text}")
    expect(asymq_of(messages, "d0")["options"] == old, "a refused change has changed the options")
    sender("d0").send(cost.frame(1))
    expect(asymq_of(messages, "d0")["packets"] == 1, "no packet leaves after a refused change")
    expect(messages.qdisc("d0", None, delete=True) == 0, "not deleted")

    def refused():
        answer = messages.qdisc("d0", aq)
        expect(answer == errno.E2BIG, f"answered with {errno.errorcode.get(answer, answer)}")

    for _ in range(20):
        refused()
    time.sleep(7)
    objects()
    before = objects()
    for _ in range(rounds):
        refused()
    time.sleep(7)
    after = objects()
    limits = MEMORY | {"Percpu": 12}
    grown = {name: after[name] - before[name] for name in after if name in before
             and after[name] - before[name] > rounds * limits.get(name, 0.5)}
    expect(messages.qdisc("d0", netlink.words("droptail")) == 0, "a discipline without a hook is refused")
    run("nft delete table netdev full; ip link del d0")
    expect(not grown, f"{rounds} refusals: {grown} more")
    no_allocation_left()
    return f"{rounds} refusals leave nothing"


@check
def counters_of_all_cpus():
    """Statistics add the counters of all CPUs."""
    load(True, "selftest=0")
    pair()
    run("tc qdisc add dev v0 root asymq aq up 1mbit down 10mbit")
    messages, back = netlink.Netlink(), sender("v1")
    allowed = os.sched_getaffinity(0)
    for cpu in allowed:
        os.sched_setaffinity(0, {cpu})
        for number in range(50):
            back.send(reversed_frame(cost.frame(2 * number + 1)))
    os.sched_setaffinity(0, allowed)
    time.sleep(0.2)
    seen = asymq_of(messages, "v0")["values"]["device.packets"]
    # The counters of a CPU that is offline also count.
    online = f"/sys/devices/system/cpu/cpu{max(allowed)}/online"
    if len(allowed) > 1 and os.path.exists(online):
        run(f"echo 0 >{online}")
        remaining = asymq_of(messages, "v0")["values"]["device.packets"]
        run(f"echo 1 >{online}")
        expect(remaining == seen, f"{remaining} of {seen} packets are counted while a CPU is offline")
    run("ip link del v0")
    expect(seen == 50 * len(allowed), f"{seen} of {50 * len(allowed)} packets on {len(allowed)} CPUs are counted")
    no_allocation_left()
    return f"{seen} packets on {len(allowed)} CPUs"


@check
def several_queues():
    """At the root of a device with several transmit queues, the kernel sets a packet for another queue aside. The packet is
    counted, while other CPUs send and dump."""
    load(True, "selftest=0")
    run("ip link del d0", check=False)
    run("ip link add d0 numtxqueues 4 numrxqueues 4 type dummy; sysctl -qw net.ipv6.conf.d0.disable_ipv6=1; ip link set d0 up")
    messages = netlink.Netlink()
    expect(messages.qdisc("d0", netlink.words("droptail up 100mbit buffer 50p")) == 0, "not added")
    # Many readers of packets make a transmission slow, so that the packet is set aside for longer.
    taps = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in range(sized(100, 20))]
    for tap in taps:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        tap.bind(("d0", 3))
    ends = [End(None, races.flood, "d0", 0) for _ in range(2)]
    aside, until = 0, time.monotonic() + sized(4, 10)
    while time.monotonic() < until:
        aside += asymq_of(messages, "d0")["values"]["queue.peeked.packets"] > 0
    for end in ends:
        end.kill()
    for tap in taps:
        tap.close()
    time.sleep(sized(0.5, 2))
    qdisc = asymq_of(messages, "d0")
    wrong = accounting.sums(qdisc)
    run("ip link del d0")
    expect(not wrong and qdisc["packets"] > 100, f"{qdisc['packets']} packets sent; {wrong}")
    no_allocation_left()
    return f"{qdisc['packets']} packets; {aside} dumps saw a packet that is set aside"


@check
def wide_counters():
    """Counters of bytes have more than 32 bits, and a change keeps their values."""
    load(True, "selftest=0")
    dummy("d0")
    # Charges 1 MB per packet. Kernels limit the charged length to 1 MiB.
    run("tc qdisc add dev d0 root handle 1: stab overhead 1000000 linklayer ethernet asymq droptail shaped up 100gbit")
    messages, out, count = netlink.Netlink(), sender("d0"), 4400
    for number in range(count):
        out.send(cost.frame(0))
        until = time.monotonic() + 5
        while number % 100 == 99 and asymq_of(messages, "d0")["qlen"]:
            expect(time.monotonic() < until, "stranded")
            time.sleep(0.01)
    expect(messages.qdisc("d0", netlink.words("sad shaped up 100gbit"), handle=1 << 16) == 0, "not changed")
    qdisc = asymq_of(messages, "d0")
    counts = {name: qdisc["values"][name] for name in ("queue.arrived.bytes", "ack.sent.bytes")}
    wrong = accounting.sums(qdisc)
    run("ip link del d0")
    expect(not wrong and set(counts.values()) == {count * 1000054}, f"{count} packets of 1 MB: {counts}; {wrong}")
    no_allocation_left()
    return f"{count} packets of 1 MB each"
