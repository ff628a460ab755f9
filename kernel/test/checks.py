#!/usr/bin/env python3
"""The checks of sch_asymq inside the guest: `checks.py FOLDER KERNEL-ROOT [CHECK...]`.

FOLDER has sch_asymq.ko, sch_asymq_test.ko and q_asymq.so. Prints a line for each check, `ok` or `FAILED`; the exit
status is 1 if a check failed. A measurement during which the guest's clock was late is repeated; if the clock is late
again, the line contains `late`.
"""

import contextlib
import errno
import functools
import json
import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import accounting  # noqa: E402
import cost  # noqa: E402
import defects  # noqa: E402, F401: registers its checks
import lifetimes  # noqa: E402, F401: registers its checks
import links  # noqa: E402
import netlink  # noqa: E402
import races  # noqa: E402
import traffic  # noqa: E402
from guest import (  # noqa: E402
    CHECKS, FOLDER, KMEMLEAK, QUICK, RESULTS, ROOT, SLOW, Wrong, asymq, check, expect, load, log, module, no_allocation_left,
    parameter, plain, reported, set_parameter, shown, sized, timed,
)
from traffic import HOME, SERVER, flows, run, udp  # noqa: E402

@functools.cache
def selftest():
    """Returns the results of the self-test that runs when the test build is loaded."""
    run("dmesg -C")
    done = load(True)
    expect(done.returncode == 0, done.stderr)
    return [line.split("asymq: golden ")[1] for line in log().splitlines() if "asymq: golden " in line]


def all_ok(lines):
    wrong = [line for line in lines if not line.endswith(": ok")]
    expect(lines and not wrong, f"{len(lines)} disciplines; {wrong}")
    return len(lines)


@check
def goldens():
    count = all_ok([line for line in selftest() if not line.startswith(("frames.", "capture."))])
    run("dmesg -C")
    load(True, "spoil=aq")
    wrong = [line.split()[-2] for line in log().splitlines() if line.endswith(": differs")]
    expect(wrong == ["aq:"], f"one byte changed in aq's trace: {wrong}")
    return f"{count} disciplines; a changed byte fails its own alone"


@check
def same_verdicts():
    """Frames in the kernel's buffers, some in fragments, leave as frames in linear buffers do: with equal order, times,
    verdicts, marks and bytes. The frames are those of crates/laws, and a capture of real TCP. The crates of the gateway and
    the simulator have the same test."""
    made, captured = (all_ok([line for line in selftest() if line.startswith(kind)]) for kind in ("frames.", "capture."))
    return f"{made} disciplines with made frames, {captured} with a capture of real TCP"


def disciplines():
    """Returns the names of all disciplines, from the interface's description for YNL."""
    with open(os.path.dirname(os.path.abspath(__file__)) + "/../module/asymq.yaml") as file:
        entries = file.read().split("name: qdisc-words")[1].split("entries:")[1].split("name:")[0]
    return [line.split("'")[1] for line in entries.splitlines() if line.strip().startswith("- '")]


@check
def accounts():
    """The four invariants of accounting.py hold after every step, for every discipline below every parent."""
    load(True, "selftest=0")
    names, parents = disciplines(), list(accounting.PARENTS)
    if QUICK or SLOW:
        # For mutants and slow kernels, four disciplines suffice: a FIFO, a filter, one that measures, and one that drops at
        # dequeue.
        names, parents = ["droptail", "sad", "asymq", "cake"], ["tbf", "htb", "none"]
    count = accounting.walk_all(names, parents, lambda fault: set_parameter("inject", fault))
    run(f"ip link del {accounting.DEVICE}")
    no_allocation_left()
    return f"{count} trees: what arrived left or waits, ancestors know, no counter decreases, no packet is left"


def observers(leaves):
    """Creates a veth pair. v0 has leaves of HTB, each an asymq without a shaper; packets that v1 sends arrive at v0."""
    run("ip link del v0; ip link add v0 numtxqueues 1 numrxqueues 1 type veth peer name v1;"
        "ip link set v0 up; ip link set v1 up", check=False)
    lines = ["qdisc add dev v0 root handle 1: htb"]
    for leaf in range(1, leaves + 1):
        lines += [f"class add dev v0 parent 1: classid 1:{leaf:x} htb rate 1mbit",
                  f"qdisc add dev v0 parent 1:{leaf:x} handle {leaf + 1:x}: asymq asymq up 1mbit down 10mbit unshaped"]
    with open("/run/batch", "w") as batch:
        batch.write("\n".join(lines) + "\n")
    run("tc -batch /run/batch")


def reversed_frame(data):
    """Returns the frame with both ends of its flow exchanged."""
    return data[:26] + data[30:34] + data[26:30] + data[36:38] + data[34:36] + data[38:]


def send_frames(device, frames, priority=0):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        sender.bind((device, 0x0800))
        for data in frames:
            sender.send(data)


@check
def own_reverse_only():
    """Each of several qdiscs on a device reads the reverse packets of its own flows; a single qdisc reads all."""
    load(True, "selftest=0")
    observers(3)
    # Four flows up. The first leaf has two, the second leaf one; no leaf has the fourth.
    ups = [cost.frame(2 * flow + 1) for flow in range(4)]
    for flow, leaf in ((0, 1), (1, 1), (2, 2)):
        send_frames("v0", [ups[flow]], 0x10000 + leaf)
    send_frames("v1", [reversed_frame(ups[flow]) for flow in (0, 0, 0, 1, 2, 2, 3)])
    time.sleep(0.1)
    qdiscs = [qdisc for qdisc in netlink.Netlink().qdiscs("v0") if qdisc["kind"] == "asymq"]
    seen = {qdisc["parent"] & 0xFFFF: qdisc["values"]["queue.reverse.packets"] for qdisc in qdiscs}
    unknown = qdiscs[0]["values"]["device.unknown"]
    expect(seen == {1: 4, 2: 2, 3: 0}, f"of seven incoming packets the leaves saw {seen}")
    run("tc qdisc del dev v0 root")
    observers(1)
    send_frames("v1", [reversed_frame(data) for data in ups])
    alone = next(qdisc for qdisc in netlink.Netlink().qdiscs("v0") if qdisc["kind"] == "asymq")
    expect(alone["values"]["queue.reverse.packets"] >= 4, "one alone does not see all")
    run("ip link del v0")
    no_allocation_left()
    return f"leaves saw {seen} of 7, {unknown} of no flow that is queued; one alone saw all"


@check
def many_leaves():
    """Measures a device with a thousand leaves (ASYMQ_LEAVES): time to create them, memory, and time to change one leaf. Also
    measures the leaves' cost for an incoming packet, of a flow without a leaf and of a flow that a leaf queues."""
    warm_up()
    load(True, "selftest=0")
    leaves = int(os.environ.get("ASYMQ_LEAVES", "1000"))
    frames = [reversed_frame(cost.frame(2 * number + 1)) for number in range(4)] * 100

    def incoming():
        times = []
        for _ in range(15):
            begin = time.monotonic_ns()
            send_frames("v1", frames)
            times.append((time.monotonic_ns() - begin) / len(frames) / 1e3)
        return min(times)

    observers(0)
    # Discarded, because the first packets cost more.
    incoming()
    none = incoming()
    begin = time.monotonic()
    observers(leaves)
    made = time.monotonic() - begin
    size = parameter("taken") / 1e6
    unknown = incoming() - none
    messages = netlink.Netlink()

    def seen():
        """Returns the numbers of incoming packets of unknown flows, and of those that the last leaf has read."""
        last = next(qdisc for qdisc in messages.qdiscs("v0") if qdisc["parent"] == 0x10000 + leaves)
        return last["values"]["device.unknown"], last["values"]["queue.reverse.packets"]

    # A dump of ten thousand leaves takes longer than the minute after which a flow is forgotten.
    before = seen()
    send_frames("v0", [cost.frame(2 * number + 1) for number in range(4)], 0x10000 + leaves)
    known = incoming() - none
    more = [new - old for old, new in zip(before, seen())]
    # Tolerates some packets of IPv6.
    expect(before[0] >= 15 * len(frames) and before[1] == 0 and more[0] < 50 and more[1] == 15 * len(frames),
           f"of {15 * len(frames)} packets each: {before[0]} of unknown flows, then {more[0]}, and {more[1]} that the leaf has read")
    options = netlink.words("asymq up 2mbit down 20mbit unshaped")
    changes = []
    for leaf in range(1, 21):
        error = messages.qdisc("v0", options, parent=0x10000 + leaf, handle=(leaf + 1) << 16)
        expect(error == 0, f"change of leaf {leaf}: {error}")
        changes.append(messages.took / 1e3)
    change = sorted(changes)[10]
    run("ip link del v0")
    no_allocation_left()
    text = (f"{leaves} leaves in {made:.1f} s, {size:.0f} MB; an incoming packet {none:.1f} us, {unknown:+.1f} us with them, "
            f"{known:+.1f} us of a leaf's flow; a change {change:.0f} us")
    expect(unknown < 2 and change < 100, text)
    return text


@check
def live_change():
    """A change of only rates builds no new instance: queue, counters and memory stay. tc's plugin reports the place of a
    missing value."""
    load(True, "selftest=0")
    # Without IPv6, whose packets would interfere.
    run("ip link add l0 type dummy; sysctl -qw net.ipv6.conf.l0.disable_ipv6=1; ip link set l0 up; ip link add l1 type dummy")
    run("tc qdisc add dev l0 root handle 1: asymq droptail up 64kbit buffer 50p")
    run("tc qdisc add dev l1 root handle 1: asymq up 64kbit down 10mbit")
    messages = netlink.Netlink()
    # Loads the programs now: if files are read while packets are queued, the guest's clock leaps.
    run("tc -s -j qdisc show dev l0 root; tc qdisc change dev l1 root asymq up 64kbit down 10mbit")
    netlink.words("droptail up 64kbit")
    send_frames("l0", [cost.frame(1)] * 50)

    def state():
        qdisc = messages.qdiscs("l0")[0]
        return [qdisc[name] for name in ("packets", "drops", "qlen")]

    def change(device, *words):
        built = parameter("allocations")
        error = messages.qdisc(device, netlink.words(*words), handle=1 << 16)
        expect(error == 0, f"{words}: {error}")
        return parameter("allocations") - built

    begin = state()
    allocated, size = parameter("alive"), parameter("taken")
    for number in range(200):
        change("l0", f"droptail up {64 + number % 2}kbit buffer 50p")
        change("l1", f"up {64 + number % 2}kbit", f"down {10 + number % 2}mbit")
    end = state()
    sent = end[0] - begin[0]
    expect(begin[2] >= 40 and end[1] == begin[1] and begin[2] - end[2] == sent, f"{begin}, then {end}")
    expect(parameter("alive") == allocated and parameter("taken") <= size + 4096,
           f"{allocated} allocations of {size}, then {parameter('alive')} of {parameter('taken')}")
    rates, words = change("l1", "up 66kbit down 10mbit"), change("l1", "up 66kbit down 10mbit bulk-limit 100ms")
    # This also holds for a message with the same attributes.
    alike = change("l1", "up 66kbit down 10mbit bulk-limit 200ms")
    expect(rates < min(words, alike), f"{rates} allocations where rates change, {words} and {alike} where another value does")
    costs = change_costs(messages)
    for wrong in "up", "up 1mbit down":
        answer = run(f"tc qdisc change dev l1 root asymq {wrong}", check=False)
        expect(answer.returncode and "value required" in answer.stderr, f"{wrong}: {answer.stderr}")
    run("ip link del l0; ip link del l1")
    no_allocation_left()
    return f"400 changes, {sent} of {begin[2]} packets sent meanwhile; {rates} allocations, {words} to build; {costs}"


def change_costs(messages):
    """Measures changes of rates: asymq with all values, asymq with only a rate, fq_codel and CAKE. Also checks that a
    listener gets statistics."""
    run("ip link add l2 type dummy; ip link add l3 type dummy; tc qdisc add dev l2 root handle 1: fq_codel;"
        "tc qdisc add dev l3 root handle 1: cake bandwidth 1mbit")
    words = [netlink.words(f"up {rate}mbit", f"down {10 * rate}mbit", "bulk-limit 100ms") for rate in (2, 3)]
    version = netlink.attribute(netlink.VERSION, struct.pack("=I", 1))
    alone = [version + netlink.attribute(netlink.UP, struct.pack("=Q", rate)) for rate in (4000000, 5000000)]
    target = [netlink.attribute(1, struct.pack("=I", 5000 + number)) for number in range(2)]
    rate = [netlink.attribute(2, struct.pack("=Q", 125000 + number)) for number in range(2)]
    texts = []
    for device, kind, options, name in (("l1", "asymq", words, "asymq"), ("l1", "asymq", alone, "its rate alone"),
                                        ("l2", "fq_codel", target, "fq_codel"), ("l3", "cake", rate, "cake")):
        took = []
        for number in range(20):
            error = messages.qdisc(device, options[number % 2], handle=1 << 16, kind=kind)
            expect(error == 0, f"{name}: {error}")
            took.append(messages.took / 1e3)
        texts.append(f"{name} {sorted(took)[10]:.0f} us")
        expect(kind != "asymq" or sorted(took)[10] < 100, texts[-1])
    shown = json.loads(run("tc -s -j qdisc show dev l1 root").stdout)[0]
    expect((shown["options"]["up"], shown["options"]["down"]) == ("5mbit", "30mbit"), f"a rate alone: {shown['options']}")
    expect("arrived" in str(shown), f"no statistics: {shown}")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as listener:
        listener.bind((0, 1 << 3))
        expect(messages.qdisc("l1", words[0], handle=1 << 16) == 0, "not changed")
        told = listener.recv(65536)
    own = dict(netlink.attributes(dict(netlink.attributes(told[36:]))[netlink.STATISTICS]))
    expect(netlink.OWN in own, "a listener is not told statistics")
    return ", ".join(texts)


@check
def observer_leaves():
    """A qdisc is removed while another CPU is about to pass a packet to it. Three paths lead to it: the ingress hook, an
    IFB of the device, and the device's departures."""
    load(True, "selftest=0")
    # The qdisc is a leaf: if a root is removed, the kernel itself waits for all packets of the device.
    observers(1)
    words = netlink.words("aq up 1mbit down 10mbit unshaped")
    text = [f"hook {removed('v0', words, 0x10001, 0x20000, 'v1')}"]
    run(f"modprobe -d {ROOT} -a ifb cls_matchall act_mirred")
    run("ip link add ifb0 type ifb; ip link set ifb0 up; tc qdisc add dev v0 ingress;"
        "tc filter add dev v0 ingress matchall action mirred egress redirect dev ifb0; tc qdisc add dev ifb0 root asymq droptail")
    text.append(f"IFB {removed('v0', words, 0x10001, 0x20000, 'v1')}")
    # The follower is a leaf for the same reason. It gets its device from its first packet.
    run("tc qdisc del dev ifb0 root; tc qdisc add dev ifb0 root handle 1: prio")
    words = netlink.words("cake up auto")
    with contextlib.closing(traffic.End(None, flood, "v1", 20)):
        # Packets without a priority go to the second band.
        text.append(f"follower {removed('ifb0', words, 0x10002, 0x20000, 'v0')}")
    # One of two observers; it reads a packet because it queues the packet's flow.
    run("ip link del v0; ip link del ifb0")
    observers(2)
    text.append(f"one of two {removed('v0', netlink.words('aq up 1mbit down 10mbit unshaped'), 0x10001, 0x20000, 'v1', True)}")
    run("ip link del v0")
    no_allocation_left()
    return ", ".join(text) + " times"


def removed(device, words, parent, handle, source, queues=False, seconds=6):
    """Removes and adds a qdisc while packets leave `source` on another CPU; returns the number of times. With `queues`, the
    qdisc also queues a packet of the flow."""
    messages, count, end = netlink.Netlink(), 0, time.monotonic() + seconds
    expect(messages.qdisc(device, words, parent=parent, handle=handle) == 0, "not added")
    set_parameter("linger", 3000)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    sender = traffic.End(None, flood, source, seconds + 2)
    os.sched_setaffinity(0, {max(allowed)})
    while time.monotonic() < end:
        if queues:
            send_frames(device, [cost.frame(1)], parent)
        time.sleep(0.02)
        expect(messages.qdisc(device, None, delete=True, parent=parent, handle=handle) == 0, "not deleted")
        expect(messages.qdisc(device, words, parent=parent, handle=handle) == 0, "not added")
        count += 1
    sender.kill()
    os.sched_setaffinity(0, allowed)
    set_parameter("linger", 0)
    return count


def flood(_say, device, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # At v0, the priority selects the class whose leaf is asymq.
        send_frames(device, [cost.frame(1)] * 16, 0x10001 if device == "v0" else 0)


@check
def every_discipline():
    """Each discipline is set, shown and replaced by the next one, with a backlog."""
    load(True, "selftest=0")
    plain()
    names = disciplines()
    sender = traffic.End("hosts", traffic.send_udp, SERVER[4], 3000, 600)
    for name in names:
        asymq(f"{name} up 1mbit down 10mbit")
        json.dumps(shown())
        time.sleep(0.3)
    waiting = shown()
    expect(waiting["backlog"] > 0, "no backlog was handed over")
    # A dump contains the same bytes as tc's message.
    messages = netlink.Netlink()
    run("ip link add l0 type dummy")
    for name in names:
        for more in "", "overhead -4 mpu 64", "unshaped nat":
            sent = netlink.words(f"{name} up 1mbit down 10mbit {more}")
            expect(messages.qdisc("l0", sent, handle=1 << 16) == 0, f"{name} {more}: {messages.text}")
            expect(messages.qdiscs("l0")[0]["options"] == sent, f"{name} {more}: other options are dumped")
    run("ip link del l0")
    sender.kill()
    for words in ("docsis", "pppoe-vcmux ether-vlan", "overhead 44 mpu 64 atm", "ethernet"):
        asymq(f"sad up 1mbit {words}")
    asymq("aq up 1mbit down 10mbit data-share default overhead default")
    expect(shown()["options"]["overhead"] == "noatm", "default takes back")
    return f"{len(names)} disciplines, each took over the backlog of the one before"


# Commands of sqm-scripts' simple.qos with QDISC asymq, EQDISC_OPTS as options, and defaults for the rest. Then commands of
# LibreQoS for a circuit whose `sqm` contains the same words.
SQM = """qdisc add dev s0 root handle 1: htb default 12
class add dev s0 parent 1: classid 1:1 htb quantum 1500 rate 2302kbit ceil 2302kbit
class add dev s0 parent 1:1 classid 1:11 htb quantum 1500 rate 128kbit ceil 767kbit prio 1
class add dev s0 parent 1:1 classid 1:12 htb quantum 1500 rate 383kbit ceil 2286kbit prio 2
qdisc add dev s0 parent 1:11 handle 110: asymq {}
qdisc add dev s0 parent 1:12 handle 120: asymq {}
"""
LIBREQOS = """qdisc replace dev s0 root handle 7FFF: htb
class add dev s0 parent 7FFF: classid 7FFF:1 htb rate 1000mbit ceil 1000mbit
class add dev s0 parent 0x7fff:1 classid 0x7fff:0x3 htb rate 2mbit ceil 20mbit prio 3
qdisc add dev s0 parent 0x7fff:0x3 asymq {}
"""


@check
def configurations():
    """The commands of sqm-scripts and LibreQoS with asymq as the leaf."""
    load(True, "selftest=0")
    run("ip link del s0", check=False)
    run("ip link add s0 type dummy; ip link set s0 up")
    # sqm-scripts tests with this command, without words, whether a qdisc is usable.
    run("tc qdisc replace dev s0 root asymq; tc qdisc del dev s0 root")
    options = "", "sad", "limit 1001p qdisc sad", "asymq up 2302kbit down 14698kbit unshaped", "aq up 2mbit down 20mbit unshaped"
    leaves = 0
    for commands in SQM, LIBREQOS:
        for words in options:
            run(f"tc -batch - <<'END'\n{commands.format(words, words)}END")
            found = [qdisc for qdisc in netlink.Netlink().qdiscs("s0") if qdisc["kind"] == "asymq"]
            expect(len(found) == commands.count("asymq"), f"{words}: {len(found)} leaves")
            leaves += len(found)
            run("tc qdisc del dev s0 root")
    run("ip link del s0")
    no_allocation_left()
    return f"{leaves} leaves, of {len(options)} wordings"


@check
def tc_testing():
    """The kernel tree's tdc passes the cases of kernel/test/tc-testing."""
    load(True, "selftest=0")
    run("mkdir -p /run/tdc")
    with open("/run/tdc/tdc_config_local.py", "w") as file:
        file.write(f"ENVIR = {{'TC_LIB_DIR': {FOLDER!r}, 'PATH': {os.environ['PATH']!r}}}\n")
    cases = os.path.dirname(os.path.abspath(__file__)) + "/tc-testing/asymq.json"
    with open(cases) as file:
        expected = len(json.load(file))
    # tdc waits two seconds for a namespace. While `ip` is loaded, a clock that counts instructions advances by more.
    run("ip netns add warm; ip netns exec warm tc qdisc add dev lo root asymq cake nat; ip netns del warm")
    # At its end, tdc deletes every namespace that it can see. The mount hides the namespaces of the other checks.
    done = run(f"unshare -m sh -ec 'mount -t tmpfs none /run/netns; cd {os.environ['ASYMQ_TDC']}; PYTHONPATH=/run/tdc"
               f" {sys.executable} -B tdc.py -p $(command -v tc) -f {cases} --outfile /run/tdc/results'", check=False)
    expect(os.path.exists("/run/tdc/results"), done.stdout + done.stderr)
    with open("/run/tdc/results") as file:
        said = file.read()
    answers = [line for line in said.splitlines() if line.startswith(("ok ", "not ok "))]
    good = [line for line in answers if line.startswith("ok ") and "# skip" not in line.lower()]
    if len(good) != expected:
        print(said, flush=True)
    expect(len(good) == expected, f"{len(good)} of {expected} cases, not {[line for line in answers if line not in good]}")
    no_allocation_left()
    return f"{expected} cases"


def default_qdisc(expected):
    """Sets up a device while asymq is the default qdisc. If the kernel gets no qdisc, the device has none."""
    with open("/proc/sys/net/core/default_qdisc") as file:
        before = file.read().strip()
    run("sysctl -qw net.core.default_qdisc=asymq; ip link add t1 type ifb; ip link set t1 up")
    counted = netlink.OWN in netlink.Netlink().get("t1")
    found = [qdisc["kind"] for qdisc in json.loads(run("tc -j qdisc show dev t1").stdout)]
    run(f"ip link del t1; sysctl -qw net.core.default_qdisc={before}")
    expect(found == [expected] and counted == (expected == "asymq"), f"a device with the default qdisc has {found}, statistics: {counted}")


@check
def without_the_plugin():
    load(True, "selftest=0")
    run("tc -n home qdisc del dev h0 root", check=False)
    done = run("TC_LIB_DIR=/nowhere tc -n home qdisc add dev h0 root asymq", check=False)
    expect(done.returncode == 0, done.stderr)
    expect(shown()["options"]["qdisc"] == "sad", "the usual discipline")
    run("ip link add t0 txqueuelen 77 type dummy; TC_LIB_DIR=/nowhere tc qdisc add dev t0 root asymq")
    messages = netlink.Netlink()
    usual = dict(netlink.attributes(messages.qdiscs("t0")[0]["options"]))
    messages.qdisc("t0", None, delete=True)
    empty = messages.qdisc("t0", b"")
    run("ip link del t0")
    expect(empty == 0, f"an empty list of options: {errno.errorcode.get(empty, empty)}")
    limits = {struct.unpack("=Q", usual[kind])[0] for kind in (7, netlink.FIRST + 2, netlink.FIRST + 3)}
    expect(limits == {77}, f"limits of a device's queue of 77 packets: {limits}")
    default_qdisc("asymq")
    run("tc -n home qdisc del dev h0 root; tc -n path qdisc del dev m0 root", check=False)
    # The module's parameter names a discipline without its parts.
    load(True, "selftest=0", "defaults=99999999,1,4,26")
    default_qdisc("noqueue")
    numbers = run("tc qdisc add dev lo root asymq aq up 1mbit down 10mbit numbers", check=False).stdout.strip()
    load(True, "selftest=0", numbers)
    run("TC_LIB_DIR=/nowhere tc -n home qdisc add dev h0 root asymq")
    expect(shown()["options"]["qdisc"] == "aq", "the module's defaults")
    run("tc -n home qdisc change dev h0 root asymq buffer 51p")
    options = shown()["options"]
    expect((options["qdisc"], options["buffer"]) == ("aq", "51p"), f"a change by tc of the module's defaults: {options}")
    messages = netlink.Netlink()
    right = netlink.words("sad up 1mbit")
    for what, options in (
        ("another version", right.replace(netlink.attribute(netlink.VERSION, b"\1\0\0\0"),
                                          netlink.attribute(netlink.VERSION, b"\2\0\0\0"))),
        ("no version", right[8:]),
        ("words", netlink.attribute(netlink.WORDS, b"up 1mbit\0")),
    ):
        answer = messages.qdisc("lo", options)
        expect(answer == errno.EINVAL, f"{what} is answered with {answer}")
        expect(("older than" if what == "words" else "different versions") in messages.text, f"{what}, text: {messages.text}")
    expect(messages.qdisc("lo", right) == 0, "the module's own version is refused")
    messages.qdisc("lo", None, delete=True)
    return "sad, or what the module's parameter says; a plugin of another version is refused"


@check
def hostile_netlink():
    load(True, "selftest=0")
    begin = time.monotonic()
    done = run(f"unshare -Urn {sys.executable} {os.path.dirname(__file__)}/netlink.py {sized(10000, 1000)} 1", check=False)
    expect(done.returncode == 0, done.stdout + done.stderr)
    seconds = time.monotonic() - begin
    begin = time.monotonic()
    run("ip link show")
    expect(time.monotonic() - begin < 2, "RTNL is held")
    return f"{done.stdout.strip()} in {seconds:.0f} s"


@check
def memory():
    """The memory of an instance depends on the line's rate."""
    load(True, "selftest=0")
    run("ip link add e1 type dummy", check=False)
    messages, texts = netlink.Netlink(), []
    for rate, *most in ("1mbit", 123, 13), ("20mbit", 123, 17), ("1gbit", 349, 290):
        for name, most_of_it in zip(("asymq", "aq"), most):
            words = f"qdisc {name}", f"up {rate}", f"down {rate}"
            expect(messages.qdisc("e1", netlink.words(*words)) == 0, f"{words}")
            size = parameter("taken") / 1000
            messages.qdisc("e1", None, delete=True)
            texts.append(f"{name} {rate} {size:.0f} kB")
            expect(size <= most_of_it, f"{texts[-1]}, at most {most_of_it}")
    expect(parameter("taken") == 0, "not all is given back")
    # Any user can create instances in a user namespace.
    refused = 0
    for name in "aq", "cake", "fq_codel flow-queues 65536", "asymq flow-queues 65536":
        answer = messages.qdisc("e1", netlink.words(f"{name} up 1gbit down 1gbit buffer 1000000p"))
        texts.append(f"{name} of a million packets {errno.errorcode.get(answer, parameter('taken') // 1000)}")
        expect(answer in (0, errno.ENOMEM) and parameter("taken") < 65 << 20, texts[-1])
        refused += answer == errno.ENOMEM
        messages.qdisc("e1", None, delete=True)
    expect(refused, texts[-4:])
    texts.append(charged())
    return ", ".join(texts)


def charged():
    """The memory of an instance is charged to the cgroup of the task that makes it."""
    group = "/run/groups/made"
    run("mkdir -p /run/groups; mount -t cgroup2 none /run/groups; echo +memory >/run/groups/cgroup.subtree_control;"
        f"mkdir -p {group}", check=False)
    if not os.path.exists(f"{group}/memory.current"):
        return "no control group of memory"

    def make(say):
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
        messages, words = netlink.Netlink(), netlink.words("aq up 1gbit down 1gbit")
        for device in devices:
            for child in range(1, 5):
                expect(messages.qdisc(device, words, parent=0x10000 + child, handle=child + 1 << 16) == 0, "not added")
        say(parameter("taken"))

    # Each device with several observers also has a flow table.
    devices, table = [f"e{number}" for number in range(2, 6)], 512 << 10
    for device in devices:
        run(f"ip link add {device} type dummy; tc qdisc add dev {device} root handle 1: prio bands 4")
    before = parameter("taken")
    taken = traffic.End(None, make).answer() - before + table * len(devices)
    with open(f"{group}/memory.current") as file:
        current = int(file.read())
    for device in devices:
        run(f"ip link del {device}")
    expect(current > 0.95 * taken > 1e6, f"{current / 1e6:.1f} of {taken / 1e6:.1f} MB are accounted")
    return f"{current / 1e6:.1f} MB charged for {taken / 1e6:.1f}"


@check
def failed_allocations():
    load(True, "selftest=0")
    run("ip link add e0 type dummy", check=False)
    messages = netlink.Netlink()
    total = 0
    for words in (("qdisc aq", "up 1mbit", "down 10mbit"), ("qdisc sad", "up 1mbit"), ("qdisc fq", "up 1mbit")):
        options = netlink.words(*words)
        for number in range(1, 5000):
            set_parameter("fail_alloc", number)
            answer = messages.qdisc("e0", options)
            if parameter("fail_alloc"):
                break
            expect(answer == errno.ENOMEM, f"allocation {number} of {words}: {answer}")
            expect("not enough memory" in messages.text, f"text of a refusal: '{messages.text}'")
            total += 1
        set_parameter("fail_alloc", 0)
        expect(answer == 0, f"{words}: {answer}")
        messages.qdisc("e0", None, delete=True)
    # An attribute of another discipline.
    answer = messages.qdisc("e0", netlink.words("droptail up 1mbit") + netlink.attribute(netlink.FIRST + 14, bytes(7) + b"\1"))
    expect(answer == errno.EINVAL and "attribute of" in messages.text, f"text of a refusal: {answer}, '{messages.text}'")
    no_allocation_left()
    return f"{total} allocations, each failed once: ENOMEM, nothing left behind"


@functools.cache
def warm_up():
    """Loads every file that a timed part of a check reads. A clock that counts instructions leaps while the guest waits for
    this machine's files."""
    load(True, "selftest=0")
    leaf()
    for _ in range(2):
        run("tc -n home -s -j qdisc show dev h0; tc -n home -s qdisc show dev h0; ip link show; dmesg | tail -n 1")
        plain()
        asymq("sad up 1mbit")
        shown()
    flows(2, skip=0, family=6)
    udp("hosts", "servers", SERVER[4], 500, 1)
    run("tc -n home qdisc del dev h0 root; tc -n path qdisc del dev m0 root")


@check
def fault_and_recovery():
    warm_up()
    load(True, "selftest=0")
    plain()
    asymq("aq up 1mbit down 10mbit")
    before = udp("hosts", "servers", SERVER[4], 3000, 4)
    set_parameter("inject", "drops-foreign")
    after = udp("hosts", "servers", SERVER[4], 3000, 4)
    expect(shown().get("failed") == 1, "tc -s says nothing of the fault")
    expect("FAILED" in run("tc -n home -s qdisc show dev h0").stdout, "nor its table")
    expect(850 < after < 1080, f"{after:.0f} kbit/s as a FIFO")
    run("tc -n home qdisc change dev h0 root asymq up 1mbit")
    expect("failed" not in shown(), "change does not recover")
    recovered = udp("hosts", "servers", SERVER[4], 3000, 4)
    expect(850 < recovered < 1080, f"{recovered:.0f} kbit/s after the change")
    return f"{before:.0f} kbit/s before, {after:.0f} as a FIFO, {recovered:.0f} after a change"


def case(name, setup, good, family=4, seconds=15):
    """Checks the delivered module: `setup` adds a qdisc, and `good` judges the goodput up and down."""
    warm_up()
    load(False)

    def run_case():
        plain()
        setup()
        return flows(seconds, family=family)

    (up, down), late = timed(run_case)
    text = f"{name}: {up:.0f} / {down:.0f} kbit/s up / down, {late:.1f} ms late"
    control = shown().get("control", {})
    text += "".join(f", {control[name]:.3f} {name}" for name in ("data_share", "data_per_ack") if name in control)
    expect(good(up, down), text)
    return text


def leaf():
    run("tc -n home qdisc add dev h0 root handle 1: htb default 10")
    run("tc -n home class add dev h0 parent 1: classid 1:10 htb rate 1mbit burst 1600 cburst 1600")
    run("tc -n home qdisc add dev h0 parent 1:10 asymq aq up 1mbit down 10mbit unshaped")


def aq_is_good(up, down):
    return down > 9300 and up > 700


@check
def traffic_droptail():
    return case("droptail", lambda: asymq("droptail up 1mbit buffer 50p"), lambda _, down: down < 8500)


@check
def traffic_aq():
    return case("aq", lambda: asymq("aq up 1mbit down 10mbit"), aq_is_good)


@check
def traffic_asymq():
    """The default discipline with both rates: goodput, and counts of the ACKs that the filter kept."""
    text = case("asymq", lambda: asymq("up 1mbit down 10mbit"), aq_is_good)
    asymq_shown = shown()
    expect(asymq_shown["options"]["qdisc"] == "asymq", "not the gateway's default")
    # ACKs that the filter kept, by group of rules.
    kept = {name: count for name, count in asymq_shown["control"].items() if name.startswith("unfiltered_")}
    rules = {f"unfiltered_{rule}" for rule in ["losses", "marks", "stretch", "options", "other"]}
    expect(set(kept) == rules, f"tc -s shows {sorted(kept)}")
    expect(sum(kept.values()) > 0 and kept["unfiltered_options"] == 0, f"{kept}")
    return f"{text}; {kept}"


@check
def hosts():
    """CAKE divides the uplink between hosts: one flow of a host gets as much as six flows of another host. Bulk packets
    (CS1) get less than best effort."""
    warm_up()
    run("ip -n hosts addr add 10.0.0.9/24 dev a0", check=False)
    plain()
    asymq("cake up 1mbit isolation dual-srchost")
    got = traffic.shares([("10.0.0.1", 1, 0), ("10.0.0.9", 6, 0)], 6)
    text = f"{got[0]:.0f} kbit/s for one flow of a host, {got[1]:.0f} for six of another"
    expect(0.85 < got[0] / got[1] < 1.18, text)
    # CS1 is bulk: it gets a sixteenth of the link while others use the rest.
    got = traffic.shares([("10.0.0.1", 3, 0), ("10.0.0.1", 3, 0x20)], 6)
    text += f"; {got[0]:.0f} best effort, {got[1]:.0f} bulk"
    expect(got[1] < got[0] / 3, text)
    asymq("cake up 1mbit isolation flows")
    flows_alone = traffic.shares([("10.0.0.1", 1, 0), ("10.0.0.9", 6, 0)], 6)
    text += f"; {flows_alone[0]:.0f} and {flows_alone[1]:.0f} between flows"
    expect(flows_alone[0] < flows_alone[1] / 3, text)
    # Replaces the queue, because its thousand packets would take nine seconds to leave.
    plain()
    return text


@check
def hosts_behind_nat():
    """With `nat`, hosts behind an address translation have their own shares: at the device towards the line, and at an IFB
    for the downlink. Without `nat`, all of them are one host."""
    warm_up()
    run("ip -n hosts addr add 10.0.0.9/24 dev a0", check=False)
    plain()
    for name in ("nft_chain_nat", "nft_masq", "ifb"):
        module(name)
    run("ip netns exec home nft 'add table ip box; add chain ip box post { type nat hook postrouting priority 100; }; "
        "add rule ip box post oifname h0 masquerade'")
    groups = [("10.0.0.1", 1, 0), ("10.0.0.9", 6, 0)]
    text, asked = [], {"default": "one host", "nat": "two", "nonat": "one host again"}
    try:
        for word, meaning in asked.items():
            # The second and the third call change the qdisc. A FIFO set in between sends the backlog.
            if text:
                asymq("droptail up 1gbit")
                time.sleep(0.2)
            asymq(f"cake up 1mbit isolation dual-srchost {'' if word == 'default' else word}")
            got = traffic.shares(groups, 6)
            text.append(f"{word}: {got[0]:.0f} and {got[1]:.0f} kbit/s")
            if word == "nat":
                expect(0.85 < got[0] / got[1] < 1.18, "; ".join(text))
            else:
                expect(got[0] < got[1] / 3, "; ".join(text))
            if word == "nat":
                text += nat_of_ipv6(), nat_of_tagged(groups)
                for protocol in "TCP", "a tunnel":
                    got = traffic.protocol_shares(protocol, 4)
                    text.append(f"{protocol}: {got[0]} and {got[1]} packets")
                    expect(0.8 < got[0] / got[1] < 1.25, "; ".join(text))
        words = run("tc -n home qdisc show dev h0").stdout
        expect(" nonat " in words, words)
        run("tc -n home qdisc change dev h0 root asymq nat")
        expect(" nat " in run("tc -n home qdisc show dev h0").stdout, "nat is not shown")
        text.append(traffic_behind_nat_downwards())
    finally:
        run("ip netns exec home nft delete table ip box")
        run("tc -n home qdisc del dev h0 root; tc -n home qdisc del dev h0 ingress; ip -n home link del ifb7", check=False)
    return "; ".join(text)


def nat_of_ipv6():
    """IPv6 hosts of one prefix, whose connections are tracked, have their own shares with `nat`."""
    run("ip -n hosts addr add fd00::9/64 dev a0 nodad", check=False)
    run("ip netns exec home nft 'add table ip6 track; add chain ip6 track all6 { type filter hook forward priority 0; }; "
        "add rule ip6 track all6 ct state new accept'")
    try:
        got = traffic.shares([("fd00::1", 1, 0), ("fd00::9", 6, 0)], 6)
    finally:
        run("ip netns exec home nft delete table ip6 track")
    text = f"IPv6: {got[0]:.0f} and {got[1]:.0f} kbit/s"
    expect(0.85 < got[0] / got[1] < 1.18, text)
    return text


def nat_of_tagged(groups):
    """Hosts whose packets have a VLAN tag beside the data have their own shares with `nat`."""
    module("act_vlan")
    run("tc -n home qdisc add dev h0 clsact; tc -n home filter add dev h0 egress matchall action vlan push id 5;"
        "tc -n path qdisc add dev m0 clsact; tc -n path filter add dev m0 ingress protocol 802.1Q matchall action vlan pop")
    try:
        got = traffic.shares(groups, 6)
    finally:
        run("tc -n home qdisc del dev h0 clsact; tc -n path qdisc del dev m0 clsact")
    text = f"with a tag: {got[0]:.0f} and {got[1]:.0f} kbit/s"
    expect(0.85 < got[0] / got[1] < 1.18, text)
    return text


def traffic_behind_nat_downwards():
    """Like hosts_behind_nat, for downloads at an IFB, where the kernel has not looked up the connections yet."""
    run("ip -n home link add ifb7 type ifb; ip -n home link set ifb7 up; tc -n home qdisc add dev h0 ingress; "
        "tc -n home filter add dev h0 ingress matchall action mirred egress redirect dev ifb7")
    text = []
    for word in ("nonat", "nat"):
        asymq(f"cake up 1mbit isolation dual-dsthost {word}", "home", "ifb7")
        got = traffic.fetched([("10.0.0.1", 1), ("10.0.0.9", 6)], 6)
        text.append(f"down, {word}: {got[0]:.0f} and {got[1]:.0f} kbit/s")
        if word == "nat":
            expect(0.7 < got[0] / got[1] < 1.4, "; ".join(text))
        else:
            expect(got[0] < got[1] / 3, "; ".join(text))
    return "; ".join(text)


@check
def traffic_aq_ipv6():
    return case("aq, IPv6", lambda: asymq("aq up 1mbit down 10mbit"), aq_is_good, family=6)


@check
def traffic_aq_leaf():
    return case("aq as leaf of HTB", leaf, aq_is_good)


@check
def traffic_sad():
    text = case("sad", lambda: asymq("sad up 1mbit"), lambda up, _: up > 850)
    acks = shown()["ack"]
    filtered = acks["ack-filtered"] / max(1, acks["ack-filtered"] + acks["sent"]["packets"])
    expect(filtered > 0.5, f"{text}; {filtered:.2f} of the ACKs filtered")
    return f"{text}; {filtered:.2f} of the ACKs filtered"


@check
def reverse_path():
    """UDP that fills half of the downlink halves AQ's share for ACKs, relative to the measured data per ACK. Afterwards the
    share returns. An aggregated download counts as TCP."""
    warm_up()
    plain()
    # HTB does not segment aggregates, so aggregates of many segments come to the uplink's hook.
    run("tc -n path qdisc del dev m0 root")
    run("tc -n path qdisc add dev m0 root handle 1: htb default 10")
    run("tc -n path class add dev m0 parent 1: classid 1:10 htb rate 10mbit")
    asymq("aq up 1mbit down 10mbit")

    def for_acks():
        control = shown()["control"]
        return (1 - control["data_share"]) * control["data_per_ack"]

    flows(5, skip=1)
    alone = for_acks()
    crossed = []

    def look():
        time.sleep(6)
        crossed.append(for_acks())

    udp("servers", "hosts", HOME[4], 5000, 9, look)
    crossed = crossed[0]
    flows(4, skip=1)
    after = for_acks()
    text = f"share of ACKs times data per ACK {alone:.3f} alone, {crossed:.3f} beside 5 Mbit/s of UDP, {after:.3f} after"
    expect(0.35 < crossed / alone < 0.65 and 0.8 < after / alone < 1.25, text)
    return text


@check
def learnt_rates():
    """The uplink's qdisc is before a modem of 4 Mbit/s; the downlink's qdisc, at an IFB, is behind a modem of 12 Mbit/s. Both
    learn the modems' rates and follow a step. The modems' queues stay short."""
    warm_up()
    plain()

    def modems(up, down):
        run(f"tc -n path qdisc change dev m1 root netem delay 25ms limit 1000 rate {up}mbit")
        asymq(f"droptail up {down}mbit buffer 1000p", "path", "m0")

    def sample(seconds, rates, waits):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
            rates.append([shown("home", device)["control"]["auto_rate"] / 1e6 for device in ("h0", "ifb0")])
            bytes_up = json.loads(run("tc -n path -s -j qdisc show dev m1").stdout)[0]["backlog"]
            bytes_down = json.loads(run("tc -n path -s -j qdisc show dev m0").stdout)[0]["backlog"]
            # Subtracts 25 ms, because netem's backlog includes packets on the path of 25 ms.
            waits.append([max(bytes_up * 8 / 4e3 - 25, 0), bytes_down * 8 / 12e3])

    def half(values, index):
        return sorted(value[index] for value in values)[len(values) // 2]

    run("ip -n home link add ifb0 type ifb; ip -n home link set ifb0 up")
    try:
        run("tc -n home qdisc add dev h0 handle ffff: ingress")
        run("tc -n home filter add dev h0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0")
        modems(4, 12)
        asymq("up auto")
        asymq("cake up auto:500kbit..1gbit", "home", "ifb0")
        expect(shown()["options"]["up"] == "auto", f"tc shows {shown()['options']}")
        first, waits, second = [], [], []

        def watch():
            time.sleep(8)
            sample(6, first, waits)
            modems(2, 6)
            time.sleep(3)
            sample(4, second, [])

        watcher = threading.Thread(target=watch)
        watcher.start()
        up, down, late = flows(22, up=2, down=4, skip=8)
        watcher.join()
        control = shown()["control"]
        learnt_stays()
    finally:
        run("tc -n home qdisc del dev h0 ingress; ip -n home link del ifb0", check=False)
        run("tc -n path qdisc replace dev m1 root pfifo; tc -n path qdisc del dev m1 root", check=False)
        run("tc -n path qdisc add dev m1 root netem delay 25ms limit 20000")
    rates = [[half(values, way) for way in (0, 1)] for values in (first, second)]
    waiting = [half(waits, way) for way in (0, 1)]
    text = (f"learnt {rates[0][0]:.2f} of 4 and {rates[0][1]:.1f} of 12 Mbit/s, {rates[1][0]:.2f} of 2 and {rates[1][1]:.1f} of 6;"
            f" {waiting[0]:.0f} and {waiting[1]:.0f} ms wait in the modems; goodput {up:.0f} and {down:.0f} kbit/s;"
            f" lateness {late:.1f} ms")
    expect(3.2 < rates[0][0] < 4.6 and 9.6 < rates[0][1] < 13.8, text)
    expect(1.2 < rates[1][0] < 2.5 and 4.2 < rates[1][1] < 7.5, text)
    expect(waiting[0] < 50 and waiting[1] < 50, text)
    expect(up > 1800 and down > 5500, text)
    expect(any(name.startswith("auto_") for name in control), f"no variables: {control}")
    return text


def learnt_stays():
    """A change and a fault continue with the learnt rate, which netlink shows."""

    def rate_in(say, change):
        messages = netlink.Netlink()
        if change:
            expect(messages.qdisc("h0", change) == 0, "not changed")
        qdisc = next(qdisc for qdisc in messages.qdiscs("h0") if qdisc["kind"] == "asymq")
        up = dict(netlink.attributes(qdisc["options"]))[netlink.UP]
        say([qdisc["values"]["control.auto_rate"] / 1e6, struct.unpack("=Q", up)[0] / 1e6])

    version = netlink.attribute(netlink.VERSION, struct.pack("=I", 1))
    before, dumped = traffic.End("home", rate_in, b"").answer()
    expect(before < 50 and dumped == before, f"learnt {before} Mbit/s, shown {dumped}")
    after, _ = traffic.End("home", rate_in, version + netlink.attribute(8 + 1, b"\1")).answer()
    run("tc -n home qdisc change dev h0 root asymq nonat")
    by_tc, _ = traffic.End("home", rate_in, b"").answer()
    expect(max(after, by_tc) < 50, f"learnt {before:.2f} Mbit/s; after a change {after:.2f}, and by tc {by_tc:.2f}")
    # The modem becomes faster, so that the FIFO has the lowest rate.
    run("tc -n home qdisc del dev h0 ingress; tc -n path qdisc change dev m1 root netem delay 25ms limit 1000 rate 20mbit")
    set_parameter("inject", "drops-foreign")
    got = udp("hosts", "servers", SERVER[4], 12000, 3) / 1e3
    expect(shown().get("failed") == 1 and got < 2 * before, f"{got:.2f} Mbit/s after a fault, {before:.2f} learnt")


@check
def mq_child():
    """A device has an asymq below each transmit queue. Each asymq gets the packets of its transmit queue."""
    load(True, "selftest=0")
    run("ip link add q0 numtxqueues 2 numrxqueues 2 type dummy; ip link set q0 up; ip addr add 10.7.7.1/24 dev q0")
    run("tc qdisc add dev q0 root handle 1: mq")
    run("tc qdisc replace dev q0 parent 1:1 handle 11: asymq aq up 10mbit down 10mbit")
    run("tc qdisc replace dev q0 parent 1:2 handle 12: asymq sad up 10mbit")
    for port in range(64):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind(("10.7.7.1", 20000 + port))
            sender.sendto(bytes(500), ("10.7.7.2", 9))
    run("tc qdisc change dev q0 parent 1:2 handle 12: asymq up 20mbit")
    time.sleep(0.2)
    qdiscs = json.loads(run("tc -s -j qdisc show dev q0").stdout)
    sent = [qdisc["packets"] for qdisc in qdiscs if qdisc["kind"] == "asymq"]
    run("tc qdisc del dev q0 root; ip link del q0")
    expect(len(sent) == 2 and all(sent) and sum(sent) >= 64, f"{sent} packets")
    no_allocation_left()
    return f"{sent[0]} and {sent[1]} packets of {sum(sent)}"


SIBLINGS = {
    "htb": ["qdisc add dev s0 root handle 1: htb", "class add dev s0 parent 1: classid 1:1 htb rate 1mbit burst 1600 cburst 1600",
            "class add dev s0 parent 1:1 classid 1:10 htb rate 500kbit ceil 1mbit burst 1600 cburst 1600",
            "class add dev s0 parent 1:1 classid 1:20 htb rate 500kbit ceil 1mbit burst 1600 cburst 1600"],
    "hfsc": ["qdisc add dev s0 root handle 1: hfsc", "class add dev s0 parent 1: classid 1:1 hfsc ls m2 1mbit ul m2 1mbit",
             "class add dev s0 parent 1:1 classid 1:10 hfsc ls m2 500kbit",
             "class add dev s0 parent 1:1 classid 1:20 hfsc ls m2 500kbit"],
    "drr": ["qdisc add dev s0 root handle 9: tbf rate 1mbit burst 1600 limit 1mb", "qdisc add dev s0 parent 9:1 handle 1: drr",
            "class add dev s0 parent 1: classid 1:10 drr quantum 600", "class add dev s0 parent 1: classid 1:20 drr quantum 600"],
    "qfq": ["qdisc add dev s0 root handle 9: tbf rate 1mbit burst 1600 limit 1mb", "qdisc add dev s0 parent 9:1 handle 1: qfq",
            "class add dev s0 parent 1: classid 1:10 qfq weight 1 maxpkt 2048",
            "class add dev s0 parent 1: classid 1:20 qfq weight 1 maxpkt 2048"],
}


@check
def siblings():
    """A parent of two classes continues to serve a class whose queue becomes empty in one of two ways: a dequeue drops all other
    packets of the queue, or a newer packet replaces the only one."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a sch_htb sch_hfsc sch_drr sch_qfq sch_tbf sch_prio; "
        "ip link add s0 numtxqueues 1 numrxqueues 1 type dummy; sysctl -qw net.ipv6.conf.s0.disable_ipv6=1; ip link set s0 up")
    messages = netlink.Netlink()

    def send(frames, priority):
        """Sends frames. Ignores refused frames."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
            sender.bind(("s0", 0x0800))
            for data in frames:
                with contextlib.suppress(OSError):
                    sender.send(data)

    def leaf(parent, handle, words):
        error = messages.qdisc("s0", netlink.words(words), parent=parent, handle=handle)
        expect(not error, f"{words}: {os.strerror(error)}")

    def drained(tree):
        end = time.monotonic() + 20
        while left := [(qdisc["kind"], qdisc["qlen"], qdisc["backlog"]) for qdisc in messages.qdiscs("s0")
                       if qdisc["qlen"] or qdisc["backlog"]]:
            expect(time.monotonic() < end, f"{tree}: stranded: {left}")
            time.sleep(0.1)
        gone = [sum(qdisc["values"][f"queue.{fate}.packets"] for fate in ("dropped", "filtered"))
                for qdisc in messages.qdiscs("s0") if qdisc["kind"] == "asymq"]
        run("tc qdisc del dev s0 root")
        return gone

    dropped, short = {}, cost.frame(2) + bytes(540)
    for tree, lines in SIBLINGS.items():
        run("tc -batch - <<'END'\n" + "\n".join(lines + ["qdisc add dev s0 parent 1:20 pfifo limit 200"]) + "\nEND")
        leaf(0x10010, 0xA0000, "droptail up 1mbit down 10mbit buffer 200p unshaped")
        # First beside a class with a backlog, then alone. A parent that peeks is then inside its own dequeue.
        # QFQ lists a class again if its next packet exceeds the deficit, which a short packet does not.
        # The delay determines the packet at whose dequeue or peek the others are dropped.
        for number, (beside, data) in enumerate(((20, cost.frame(1)), (0, cost.frame(1)), (20, short), (0, short)) * 4):
            send([cost.frame(1)] * beside, 0x10020)
            send([data] * 8, 0x10010)
            time.sleep(number // 4 * 0.004)
            set_parameter("inject", "drops-others")
            time.sleep(0.35)
        dropped[tree] = sum(drained(tree))
    expect(min(dropped.values()) > sized(8, 2), f"too few were dropped beside the last: {dropped}")
    # With a qdisc between the parent and asymq; its counters must equal asymq's counters.
    run("tc -batch - <<'END'\n" + "\n".join(SIBLINGS["hfsc"] + ["qdisc add dev s0 parent 1:10 handle 2: prio"]) + "\nEND")
    leaf(0x20002, 0xA0000, "sad up 1mbit unshaped")
    send([cost.frame(1)] * 20, 0x10020)
    # Every second packet is padded, so that the queued bytes change too.
    send([cost.frame(8 * number) + bytes(6 * (number % 2)) for number in range(8)], 0x10010)
    expect(any(drained("prio below hfsc")), "no ACK gave way to a newer one")
    run("ip link del s0")
    no_allocation_left()
    return f"drops: {dropped}; and a qdisc between"


@check
def bypass():
    """Packets bypass an idle DropTail without a shaper, which still counts them. No packet bypasses a shaper, a leaf, a qdisc
    at an IFB, a discipline with state, or a qdisc whose device's departures another qdisc reads."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} ifb; ip link add b0 numtxqueues 1 numrxqueues 1 type dummy; ip link add b1 type ifb;"
        "sysctl -qw net.ipv6.conf.b0.disable_ipv6=1 net.ipv6.conf.b1.disable_ipv6=1; ip link set b0 up; ip link set b1 up; ip addr add 10.7.8.1/24 dev b0; ip addr add 10.7.9.1/24 dev b1")
    messages = netlink.Netlink()

    def passed(device="b0", count=32):
        """Sends `count` packets. Returns the number of packets that bypassed the qdisc since its creation."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(count):
                sender.sendto(bytes(500), ("10.7.8.2" if device == "b0" else "10.7.9.2", 9))
        time.sleep(0.2)
        ours = [qdisc for qdisc in messages.qdiscs(device) if qdisc["kind"] == "asymq"]
        wrong = [text for qdisc in ours for text in accounting.sums(qdisc)]
        expect(len(ours) == 1 and not wrong, f"{len(ours)} qdiscs: {wrong}")
        values = ours[0]["values"]
        expect(values["queue.arrived.packets"] >= count, f"{values['queue.arrived.packets']} packets arrived")
        return values["queue.bypassed.packets"]

    run("tc qdisc add dev b0 root asymq droptail")
    first = passed()
    expect(first >= 32, f"{first} of 32 packets passed")
    run("tc qdisc change dev b0 root asymq droptail shaped up 10mbit")
    expect(passed() == first, "packets pass a shaper")
    run("tc qdisc change dev b0 root asymq droptail unshaped")
    expect(passed() >= first + 32, "no packet passes once the shaper is gone")
    run("tc qdisc add dev b1 root asymq cake up auto")
    before = passed(count=0)
    expect(passed() == before, "packets pass that a downlink's rate is learnt from")
    run("tc qdisc del dev b1 root")
    expect(passed() >= before + 32, "no packet passes once nobody learns")
    run("ip netns add other; ip -n other link add b2 type ifb; ip -n other link set b2 up;"
        "tc -n other qdisc add dev b2 root asymq cake up auto")
    before = passed(count=0)
    expect(passed() >= before + 32, "a qdisc of another namespace stops the bypass here")
    run("ip netns del other")
    run("tc qdisc change dev b0 root asymq sad")
    before = passed(count=0)
    expect(passed() == before, "packets pass SAD")
    run("tc qdisc del dev b0 root; tc qdisc add dev b0 root handle 1: htb default 1;"
        "tc class add dev b0 parent 1: classid 1:1 htb rate 1gbit; tc qdisc add dev b0 parent 1:1 asymq droptail unshaped")
    expect(passed() == 0, "packets pass a leaf")
    run("tc qdisc add dev b1 root asymq droptail")
    expect(passed("b1") == 0, "packets pass at an IFB")
    run("ip link del b0; ip link del b1")
    no_allocation_left()
    return "DropTail without a shaper, also beside another namespace; none in six other cases"


@check
def link_headers():
    """Packets have the right classes and flows at devices with Ethernet, VLAN tags, PPPoE or PPP, at devices without a link
    header, and at an IFB behind each of these devices."""
    load(True, "selftest=0")
    run(f"modprobe -d {ROOT} -a tun 8021q ifb cls_matchall act_mirred; modprobe -d {ROOT} pppoe")
    wrong = [text for name in links.KINDS for text in links.walk(name)]
    expect(not wrong, "; ".join(wrong))
    no_allocation_left()
    return f"{len(links.KINDS)} kinds of links, at the device and at an IFB"


@check
def beside_traffic():
    """Each operation works during traffic in both directions, below each parent: dumps by any user, changes, deletes, resets,
    an unregistered device, an exiting namespace and `rmmod`."""
    load(True, "selftest=0")
    seconds = float(os.environ.get("ASYMQ_RACE", "4"))
    parents = os.environ.get("ASYMQ_PARENTS", " ".join(races.PARENTS)).split()
    count = sum(races.beside_traffic(parent, seconds) for parent in parents)
    end = time.monotonic() + 10
    while run("rmmod sch_asymq", check=False).returncode:
        expect(time.monotonic() < end, "the module stays in use")
        time.sleep(0.1)
    return f"{count} rounds of changes below {len(parents)} parents"


@check
def dumps_below_tbf():
    """A sequence that caused a panic in a former version: on two CPUs, any user dumps while tbf peeks at asymq's packets."""
    load(True, "selftest=0")
    seconds = 5 * float(os.environ.get("ASYMQ_RACE", "4"))
    packets = races.dumps_below_tbf(seconds, 1000)
    no_allocation_left()
    return f"{packets} packets in at least {seconds:.0f} s beside dumps of two processes"


def churn(say, seconds):
    """Changes a qdisc by netlink, because a process for each change would take most of the time."""
    messages, number = netlink.Netlink(), 0
    names = "aq sad droptail vaq afvq fq red cbq asymq cake".split()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        words = f"qdisc {names[number % len(names)]}", "up 1mbit", "down 10mbit"
        answer = messages.qdisc("h0", netlink.words(*words))
        shown = messages.show()
        if number % 5 == 0:
            answer |= messages.qdisc("h0", None, delete=True)
        if number % 50 == 0:
            answer |= messages.link("h0", False) | messages.link("h0", True)
            traffic.routes("home")
        if answer or b"asymq" not in shown:
            return say(f"change {number} to {words}: {answer}, {len(shown)} bytes shown")
        time.sleep(0.03)
    say(number)


@check
def soak():
    """Four flows in each direction run while the qdisc is changed, shown, deleted and added."""
    load(True, "selftest=0")
    plain()
    seconds = int(os.environ.get("ASYMQ_SOAK", "60"))
    asymq("aq up 1mbit down 10mbit")
    ends = [traffic.End(sink, traffic.receive, 4, 4, seconds, 1) for sink in ("servers", "hosts")]
    for receiver in ends:
        receiver.ready()
    for source, address in (("hosts", SERVER[4]), ("servers", HOME[4])):
        ends.append(traffic.End(source, traffic.send, 4, address, 4, seconds))
    changes = traffic.End("home", churn, seconds).answer()
    rates = [sum(receiver.answer()) for receiver in ends[:2]]
    for end in ends[2:]:
        end.kill()
    run("tc -n home qdisc del dev h0 root", check=False)
    run("tc -n path qdisc del dev m0 root", check=False)
    expect(isinstance(changes, int), changes)
    expect(all(rates), f"{rates} kbit/s")
    no_allocation_left()
    run("rmmod sch_asymq")
    rates = " and ".join(f"{rate:.0f}" for rate in rates)
    return f"{changes} changes in {seconds} s beside {rates} kbit/s up and down, nothing alive at rmmod"


def scan():
    """Returns the unreferenced objects that kmemleak finds. kmemleak ignores objects younger than five seconds."""
    for _ in range(2):
        time.sleep(6)
        with open(KMEMLEAK, "w") as file:
            file.write("scan")
    with open(KMEMLEAK) as file:
        return file.read()


@check
def leaks():
    """kmemleak finds no leak after the checks of this guest."""
    found = scan()
    expect("unreferenced" not in found, found)
    return "nothing that nobody refers to"


@check
def provoked():
    """A debugging kernel reports each kind of error that is provoked here. This is the last check, because some of the
    kernel's own checks stop after their first report."""
    load(True, "selftest=0")
    for kind, sign in (
        ("order", "possible circular locking"),
        ("sleep", "sleeping function called from invalid context"),
        ("freed", "KASAN: slab-use-after-free"),
        ("rust", "KASAN: slab-out-of-bounds"),
    ):
        run("dmesg -C")
        set_parameter("provoke", kind)
        expect(any(sign in line for line in reported()), f"nothing is reported of '{kind}'")
    set_parameter("provoke", "leak")
    expect("asymq_provoke" in scan(), "nothing is reported of 'leak'")
    run("dmesg -C")
    return "a lock's order, a sleep under one, use after free, Rust beyond its memory, a leak: each is reported"


def hold_ingress():
    """Adds a permanent ingress hook, so that the kernel does not rewrite its jump to such hooks. With qemu 7.2, both CPUs
    hung when the jump was rewritten while they ran through it: qemu kept the temporary breakpoint."""
    commands = "add table netdev hold; add chain netdev hold first { type filter hook ingress device lo priority 0; }"
    if os.cpu_count() > 1 and run(f"nft '{commands}'", check=False).returncode:
        print("checks: no nft, or no table of it for ingress: on several CPUs of qemu 7.2 the guest may hang", flush=True)


def interfaces(space):
    return {link["ifname"] for link in json.loads(run(f"ip {'-n ' + space if space else ''} -j link").stdout)}


def clean_up(devices):
    """Ends the processes of a failed check, and removes its devices, namespaces and qdiscs, so that later checks do not fail
    because of them."""
    for end in list(traffic.End.alive):
        end.kill()
    for name in set(os.listdir("/run/netns")) - traffic.SPACES:
        run(f"ip netns del {name}", check=False)
    for space, before in devices.items():
        where = f"-n {space}" if space else ""
        for device in interfaces(space) - before:
            run(f"ip {where} link del {device}", check=False)
    run("tc -n home qdisc del dev h0 root; tc -n home qdisc del dev h0 ingress; tc -n path qdisc del dev m0 root", check=False)


def main():
    os.environ["TC_LIB_DIR"] = FOLDER
    for name in ("dummy", "veth", "ifb", "sch_ingress", "cls_matchall", "act_mirred", "sch_netem", "sch_htb", "sch_cake", "sch_fq_codel", "sch_tbf", "sch_hfsc", "sch_qfq",
                 "sch_drr", "sch_prio", "nf_tables"):
        run(f"modprobe -d {ROOT} {name}", check=False)
    if not os.path.exists("/run/netns/home"):
        run("mount -t tmpfs none /run; mkdir -p /run/netns")
        run("mount -t debugfs none /sys/kernel/debug", check=False)
        traffic.build()
    hold_ingress()
    run("echo 1 >/sys/kernel/debug/clear_warn_once", check=False)
    wanted = sys.argv[3:]
    devices = {space: interfaces(space) for space in (None, "home")}
    # Maximum number of packets that the CPUs keep ready for their next polls (the kernel's NAPI_SKB_CACHE_SIZE).
    ready = 64 * os.cpu_count()
    for function in CHECKS:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        run("dmesg -C")
        begin, packets = time.monotonic(), accounting.packets_in_slab()
        try:
            verdict, text = "ok", function()
        except Wrong as wrong:
            verdict, text = "FAILED", str(wrong)
        except Exception as error:  # any error, so that the other checks still run
            verdict, text = "FAILED", f"{type(error).__name__}: {error}"
        # Only after a passed check: packets of a failed check may still be queued.
        end = time.monotonic() + 5
        while verdict == "ok" and (more := accounting.packets_in_slab() - packets) > ready:
            if time.monotonic() > end:
                verdict, text = "FAILED", f"{text}; slab: {more} packets more than before"
            time.sleep(0.2)
        found = reported()
        if found:
            verdict, text = "FAILED", f"{text}; the kernel reports: {found[:3]}"
            print(log(), flush=True)
        RESULTS.append(verdict)
        print(f"check: {verdict} {name} ({time.monotonic() - begin:.0f} s): {text}", flush=True)
        if verdict == "FAILED":
            clean_up(devices)
    failed = RESULTS.count("FAILED")
    print(f"checks: {len(RESULTS) - failed} ok, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)


main()
