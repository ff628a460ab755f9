#!/usr/bin/env python3
"""Checks that filtered ACKs do not falsify AccECN's feedback on this kernel: `accecn.py measure ASYMQ FOLDER CELL...`
in a guest, and `accecn.py judge FOLDER CELL...` for the guests' output in FOLDER/guest-*.

Bulk downloads of the kernel's TCP pass servers - path - gw - client, with tcp_ecn=3 at both ends. `path` sets CE on a
share of the data packets and counts them; `gw` is the slow uplink, which delays and filters ACKs. When all data is
acknowledged, each flow's delivered_ce at the sender must equal the CE marks at its receiver (received_ce).

A cell is DISCIPLINE:KEY=VALUE:...; USUAL lists the keys.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from netlink import ACK, CREATE, REPLACE, REQUEST, attribute  # noqa: E402
from traffic import End, ip, run  # noqa: E402

CLIENT, SERVER, PORT = "10.9.0.1", "10.9.1.1", 5000
UP = "400kbit"
FLOWS = 2
# Bytes per second of a flow.
PACE = 4_000_000
# Maximum bytes of a flow that may stay unread until all have arrived.
HELD = 32_000_000
USUAL = {
    # Data packets in 10,000 that `path` marks, and data packets in 10,000 that `path` drops before it marks.
    "marks": 100,
    "loss": 0,
    # The sysctl tcp_ecn_option at both ends: 0 none, 1 if needed, 2 in every ACK with room for it.
    "option": 2,
    # BBR ignores marks, so that ACKs wait with any share of marks.
    "control": "bbr",
    # ACKs of the receiver. 1: an ACK for each packet. 2: Linux delays and merges ACKs. In a recovery, some merged ACKs
    # cover more than seven packets. A sender may count these packets as marked, even without a filter.
    "acks": 1,
    # Unit of timestamps. While a socket is busy, Linux merges ACKs with the same options, for example those of one
    # millisecond. With "us" no two ACKs have the same options.
    "stamps": "ms",
    # Payload of a flow, in MB.
    "size": 16,
}
# Flags of the gateway, and words of the qdisc. `none` has no queue. `blind` is a short queue that drops arriving ACKs, as a filter
# would that ignores AccECN. Without AccECN's option, the sender then counts wrong marks.
GATEWAY = {
    "none": "--qdisc none",
    "asymq": "--qdisc asymq --buffer 2000p",
    "sad": "--qdisc sad --buffer 2000p",
    "af": "--qdisc af --buffer 2000p",
    "blind": "--qdisc droptail --buffer 8p",
}
MODULE = {"tc-none": None, "tc-asymq": "asymq buffer 2000p", "tc-sad": "sad buffer 2000p"}
FILTERS = "asymq", "sad", "af", "tc-asymq", "tc-sad"
FULL = "ip length > 100"
FEATURES, QUICKACK, USEC = 12, 15, 1 << 4
MAX_PACING_RATE = 47


def parse(cell):
    discipline, *given = cell.split(":")
    values = dict(USUAL)
    for pair in given:
        key, value = pair.split("=")
        values[key] = type(USUAL[key])(value)
    return discipline, values


def build():
    names = "servers", "path", "gw", "client"
    ip(None, [f"netns add {name}" for name in names])
    ip("servers", ["link add s0 type veth peer name m1 netns path"])
    ip("path", ["link add m0 type veth peer name wan netns gw"])
    ip("client", ["link add c0 type veth peer name lan netns gw"])
    addresses = {"s0": SERVER, "m1": "10.9.1.2", "m0": "10.9.0.2", "c0": CLIENT}
    for name, devices in (("servers", ["s0"]), ("path", ["m0", "m1"]), ("gw", ["lan", "wan"]), ("client", ["c0"])):
        run(f"ip netns exec {name} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.disable_ipv6=1")
        for device in devices:
            # Every packet is one segment, on all devices.
            run(f"ip netns exec {name} ethtool -K {device} tso off gso off gro off")
        lines = [f"addr add {addresses[device]}/24 dev {device}" for device in devices if device in addresses]
        ip(name, lines + [f"link set {device} up" for device in ["lo", *devices]])
    run("sysctl -qw net.core.rmem_max=200000000 net.core.netdev_max_backlog=20000")
    for name in "servers", "client":
        run(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_ecn=3 net.ipv4.tcp_no_metrics_save=1 "
            "net.ipv4.tcp_wmem='4096 4000000 16000000'")


def set_route(say, gateway, features, quick):
    """Sets the default route by netlink, because this machine's `ip` lacks some of the metrics."""
    metrics = attribute(FEATURES, struct.pack("=I", features)) + attribute(QUICKACK, struct.pack("=I", quick))
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0)
    body += attribute(5, socket.inet_aton(gateway)) + attribute(8, metrics)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
        channel.send(struct.pack("=IHHII", 16 + len(body), 24, REQUEST | ACK | REPLACE | CREATE, 1, 0) + body)
        say(struct.unpack_from("=i", channel.recv(4096), 16)[0])


def settle(values):
    merged = "net.ipv4.tcp_comp_sack_nr=44 net.ipv4.tcp_backlog_ack_defer=1"
    each_packet = "net.ipv4.tcp_comp_sack_nr=0 net.ipv4.tcp_backlog_ack_defer=0"
    run(f"ip netns exec client sysctl -qw {each_packet if values['acks'] == 1 else merged}")
    for name, gateway in (("servers", "10.9.1.2"), ("client", "10.9.0.2")):
        features = USEC if values["stamps"] == "us" else 0
        error = End(name, set_route, gateway, features, int(values["acks"] == 1 and name == "client")).answer()
        if error:
            raise RuntimeError(f"route of {name}: error {error}")
        run(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_ecn_option={values['option']}")


def share(of, then):
    """Returns a rule that applies `then` to `of` in 10 000 data packets."""
    if of == 0:
        return ""
    return f"{FULL} ip daddr {CLIENT} {f'numgen random mod 10000 < {of} ' if of < 10000 else ''}{then}\n"


def count(values):
    """Sets the rules of the marking hop. Its counters are independent of TCP and asymq."""
    options = "tcp option 172 exists", "tcp option 174 exists"
    run(f"""ip netns exec path nft -f - <<'END'
flush ruleset
table ip hop {{
    counter lost {{ }}
    counter marks {{ }}
    counter acks {{ }}
    counter options {{ }}
    chain forward {{
        type filter hook forward priority 0
        {share(values["loss"], "counter name lost drop")}
        {share(values["marks"], "ip ecn != not-ect ip ecn set ce counter name marks")}
        ip saddr {CLIENT} counter name acks
        ip saddr {CLIENT} {options[0]} counter name options
        ip saddr {CLIENT} {options[1]} counter name options
    }}
}}
END""")
    run(f"""ip netns exec client nft -f - <<'END'
flush ruleset
table ip end {{
    counter ce {{ }}
    counter data {{ }}
    counter acks {{ }}
    chain prerouting {{
        type filter hook prerouting priority -300
        {FULL} counter name data
        ip ecn ce counter name ce
    }}
    chain output {{
        type filter hook output priority 0
        counter name acks
    }}
}}
END""")


def counted(name):
    found = json.loads(run(f"ip netns exec {name} nft -j list counters").stdout)["nftables"]
    return {entry["counter"]["name"]: entry["counter"]["packets"] for entry in found if "counter" in entry}


def coalesced():
    """Returns the number of ACKs and segments that the sender's kernel merged."""
    name = "TcpExtTCPBacklogCoalesce"
    return int(run(f"ip netns exec servers nstat -asz {name}").stdout.split(name)[1].split()[0])


def tcp_info(connection):
    """Returns fields of struct tcp_info (linux/tcp.h). Two bits of the last word are ecn_mode; 2 means AccECN."""
    data = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    places = {"unacked": 24, "retransmitted": 100, "notsent": 144, "delivered_ce": 196, "duplicates": 216,
              "received_ce": 248, "mode": 276}
    info = {name: struct.unpack_from("=I", data, place)[0] for name, place in places.items()}
    info["mode"] &= 3
    return info


def waits(connection):
    """Returns the number of bytes that have arrived and are unread."""
    return struct.unpack("=i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]


def each(connections, end):
    """Returns the results of `end` for each connection, by the sender's port."""
    answers = {}

    def one(connection, port):
        answers[port] = end(connection)

    threads = [threading.Thread(target=one, args=pair) for pair in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def receive(say, size, each_packet):
    listener = socket.create_server(("", PORT))
    listener.settimeout(60)
    # The window stays constant although data is unread: a filter keeps ACKs with a smaller window.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 3 * min(size, HELD))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 1_000_000)
    say("ready")
    connections = [listener.accept() for _ in range(FLOWS)]

    def read(connection):
        connection.settimeout(60)
        left = size
        # A reader that runs while packets arrive causes merged segments. It starts late if the buffer can hold all data.
        while each_packet and size <= HELD and waits(connection) < size:
            time.sleep(0.2)
        while left:
            got = len(connection.recv(1 << 18))
            if not got:
                raise RuntimeError("a flow ends early")
            left -= got
        # The last retransmissions arrive in this time.
        time.sleep(2)
        return tcp_info(connection)

    say(each([(connection, peer[1]) for connection, peer in connections], read))
    # The sender reads its own counters before either end closes.
    time.sleep(2)


def send(say, size, control):
    connections = []
    for _ in range(FLOWS):
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        connection.setsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, PACE)
        connection.settimeout(60)
        connection.connect((CLIENT, PORT))
        connections.append((connection, connection.getsockname()[1]))
    block = bytes(1 << 16)

    def write(connection):
        left = size
        while left:
            left -= connection.send(block[:left])
        while (info := tcp_info(connection))["unacked"] or info["notsent"]:
            time.sleep(0.05)
        time.sleep(1)
        return tcp_info(connection)

    say(each(connections, write))
    for connection, _ in connections:
        connection.recv(1)


class Uplink:
    """The uplink in `gw` between `lan` and `wan`: the gateway, or a bridge with the qdisc."""

    def __init__(self, discipline, command, folder):
        self.gateway = None
        if discipline in MODULE:
            ip("gw", ["link add both type bridge", "link set lan master both", "link set wan master both",
                      "link set both up"])
            if MODULE[discipline]:
                run(f"insmod {folder}/sch_asymq.ko", check=False)
                run(f"TC_LIB_DIR={folder} tc -n gw qdisc replace dev wan root asymq {MODULE[discipline]} up {UP}")
            self.folder = folder
            return
        self.log = f"/tmp/accecn-{os.getpid()}"
        with open(self.log, "w") as out, open(self.log + ".errors", "w") as errors:
            self.gateway = subprocess.Popen(
                ["ip", "netns", "exec", "gw", command, "gateway", "--lan", "lan", "--wan", "wan", "--up", UP, "--json",
                 "--state", self.log + ".state", *GATEWAY[discipline].split()], stdout=out, stderr=errors)
        for _ in range(200):
            time.sleep(0.1)
            if os.path.getsize(self.log):
                return
        with open(self.log + ".errors") as errors:
            raise RuntimeError("the gateway does not start: " + errors.read())

    def counts(self):
        """Returns the numbers of filtered and of dropped ACKs, from asymq's counters."""
        time.sleep(2)
        if self.gateway:
            with open(self.log) as lines:
                acks = json.loads([line for line in lines if line.endswith("}\n")][-1])["up"]["ack"]
            return acks["filtered"], acks["dropped"]
        shown = run(f"TC_LIB_DIR={self.folder} tc -n gw -s -j qdisc show dev wan").stdout
        acks = json.loads(shown)[0].get("ack", {})
        return acks.get("ack-filtered", 0), acks.get("over-limit", 0) + acks.get("aqm", 0)

    def close(self):
        if self.gateway:
            self.gateway.send_signal(signal.SIGINT)
            self.gateway.wait(30)
        else:
            run("tc -n gw qdisc del dev wan root", check=False)
            ip("gw", ["link del both"])


def measure(cell, command, folder):
    discipline, values = parse(cell)
    settle(values)
    count(values)
    before = coalesced()
    uplink = Uplink(discipline, command, folder)
    try:
        size = values["size"] * 1_000_000
        receiver = End("client", receive, size, values["acks"] == 1)
        receiver.ready()
        sender = End("servers", send, size, values["control"])
        sent, got = json.loads(sender.lines.readline()), receiver.answer()
        sender.wait()
        filtered, dropped = uplink.counts()
    finally:
        uplink.close()
    path, end = counted("path"), counted("client")
    flows = [(sent[port], got[port]) for port in sent]
    return {
        "cell": cell, "data": end["data"], "lost": path["lost"], "marks": path["marks"], "arrived": end["ce"],
        "received_ce": [flow["received_ce"] for _, flow in flows], "delivered_ce": [flow["delivered_ce"] for flow, _ in flows],
        "duplicates": sum(flow["duplicates"] for flow, _ in flows), "coalesced": coalesced() - before,
        "acks": end["acks"], "acks_arrived": path["acks"], "with_option": path["options"],
        "filtered": filtered, "dropped": dropped, "accecn": all(flow["mode"] == 2 for pair in flows for flow in pair),
    }


def wrong(result):
    """Returns descriptions of all errors."""
    discipline, values = parse(result["cell"])
    exact = result["delivered_ce"] == result["received_ce"]
    if not result["accecn"]:
        yield "AccECN was not negotiated"
    if result["arrived"] != result["marks"]:
        yield "a mark was lost behind the hop"
    # TCP does not count duplicates.
    if not 0 <= result["arrived"] - sum(result["received_ce"]) <= result["duplicates"]:
        yield "the receiver counted other marks than arrived"
    if result["acks"] != result["acks_arrived"] + result["filtered"] + result["dropped"]:
        yield "ACKs sent are not those that arrived, were filtered or dropped"
    if (result["with_option"] == 0) != (values["option"] == 0):
        yield "the option is not as it was set"
    if discipline == "blind":
        if exact:
            yield "lost ACKs change nothing: this check sees nothing"
        return
    # Without AccECN's option, ACKs of one millisecond have the same options. The kernel merges them, and marks are lost.
    if values["option"] == 0 and values["stamps"] == "ms":
        return
    if not exact:
        yield "delivered_ce is not received_ce" + (", but ACKs were dropped, of which no rule speaks" if result["dropped"] else "")
    # If every packet is marked and the option is off, no ACK may be filtered, because each one is a step of ACE.
    if discipline in FILTERS and not result["filtered"] and (values["option"], values["marks"]) != (0, 10000):
        yield "nothing was filtered"


def judge(cells, paths):
    """Prints a row for each cell in the given order, with its errors."""
    results, failures = {}, []
    for path in paths:
        with open(path) as lines:
            results.update((result["cell"], result) for result in map(json.loads, filter(lambda line: line[0] == "{", lines)))
    print("| discipline | marks | option | else | packets | CE arrived | `received_ce` | `delivered_ce` | ACKs sent | filtered |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for cell in cells:
        if cell not in results:
            failures.append(f"{cell}: was not measured")
            continue
        result = results[cell]
        discipline, values = parse(cell)
        told = [f"{key}={values[key]}" for key in values if key not in ("marks", "option", "size") and values[key] != USUAL[key]]
        if result["coalesced"]:
            told.append(f"{result['coalesced']} ACKs merged by the sender's kernel")
        if result["dropped"]:
            told.append(f"{result['dropped']} ACKs dropped")
        row = (discipline, f"{values['marks'] / 100:g} %", values["option"], ", ".join(told), result["data"], result["arrived"],
               sum(result["received_ce"]), sum(result["delivered_ce"]), result["acks"], result["filtered"])
        print("| " + " | ".join(map(str, row)) + " |")
        failures += [f"{cell}: {text}: {json.dumps(result)}" for text in wrong(result)]
    for failure in failures:
        print("FAILED:", failure)
    filtered = sum(result["filtered"] for result in results.values())
    print(f"accecn: {len(results)} cells, {filtered} ACKs filtered, {len(failures)} failed")
    sys.exit(len(failures) > 0)


def main():
    if sys.argv[1] == "judge":
        folder, *cells = sys.argv[2:]
        judge(cells, [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("guest-")])
    command, folder, *cells = sys.argv[2:]
    build()
    for cell in cells:
        print(json.dumps(measure(cell, command, folder)), flush=True)


main()
