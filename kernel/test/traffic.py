"""Kernel TCP and UDP through namespaces of the guest: hosts - home - path - servers, 25 ms each way.

`home` is a router whose `h0` has the uplink's queue; the senders' TCP small queues cannot see it. The downlink's queue
is at the path's `m0`, behind the delay. The ends of flows are forks, because loading a file would take time.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
import traceback

HOME = {4: "10.0.0.1", 6: "fd00::1"}
SERVER = {4: "10.0.2.1", 6: "fd02::1"}
PORT = 5000


def run(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done


SPACES = {"hosts", "home", "path", "servers"}
# Namespace and interface, namespace and interface of the peer, number of their network. The first interface has address 1,
# its peer address 2.
WIRES = [
    ("hosts", "a0", "home", "r0", 0),
    ("home", "h0", "path", "m0", 1),
    ("servers", "s0", "path", "m1", 2),
]
ROUTES = [("hosts", "default", 0, 2), ("home", "default", 1, 2), ("servers", "default", 2, 2), ("path", 0, 1, 1)]


def ip(namespace, lines):
    """Runs several commands in one process, because a debugging kernel needs seconds for each process."""
    where = f"-n {namespace} " if namespace else ""
    run(f"ip {where}-batch - <<'END'\n" + "\n".join(lines) + "\nEND")


def routes(*only):
    for name, to, net, host in ROUTES:
        if only and name not in only:
            continue
        v4, v6 = ("default", "default") if to == "default" else (f"10.0.{to}.0/24", f"fd0{to}::/64")
        ip(name, (f"route replace {v4} via 10.0.{net}.{host}", f"route replace {v6} via fd0{net}::{host}"))


def build():
    ip(None, [f"netns add {name}" for name in SPACES])
    for name in SPACES:
        settings = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]
        for place in ("all", "default"):
            settings += [f"net.ipv6.conf.{place}.accept_dad=0", f"net.ipv6.conf.{place}.keep_addr_on_down=1"]
        if name in ("hosts", "servers"):
            settings += ["net.ipv4.tcp_no_metrics_save=1", "net.ipv4.tcp_slow_start_after_idle=0",
                         "net.ipv4.tcp_congestion_control=cubic"]
        run(f"ip netns exec {name} sysctl -qw {' '.join(settings)}")
    links = {name: ["link set lo up"] for name in SPACES}
    for left, end, right, other, net in WIRES:
        ip(left, [f"link add {end} type veth peer name {other} netns {right}"])
        for name, device, host in ((left, end, 1), (right, other, 2)):
            links[name] += [f"link set {device} up", f"addr add 10.0.{net}.{host}/24 dev {device}",
                            f"addr add fd0{net}::{host}/64 dev {device} nodad"]
    for name, lines in links.items():
        ip(name, lines)
    routes()
    run("tc -n path qdisc add dev m1 root netem delay 25ms limit 20000")
    run("tc -n servers qdisc add dev s0 root netem delay 25ms limit 20000")


LIBC = ctypes.CDLL(None, use_errno=True)


class End:
    """A process that runs a function, in a namespace or in the present one."""

    alive = set()

    def __init__(self, namespace, function, *arguments):
        self.output, output = os.pipe()
        self.process = os.fork()
        if self.process:
            os.close(output)
            self.lines = os.fdopen(self.output)
            self.alive.add(self)
            return
        try:
            if namespace:
                with open(f"/run/netns/{namespace}") as file:
                    if LIBC.setns(file.fileno(), 0):
                        raise OSError(ctypes.get_errno(), "setns")
            function(lambda value: os.write(output, (json.dumps(value) + "\n").encode()), *arguments)
        except BaseException:
            traceback.print_exc()
        os._exit(0)

    def ready(self):
        """Waits until the process reports that it listens."""
        if self.lines.readline() != "\"ready\"\n":
            raise RuntimeError("a receiver does not start")

    def answer(self):
        line = self.lines.readline()
        self.wait()
        if not line:
            raise RuntimeError("an end of a flow ended early")
        return json.loads(line)

    def wait(self):
        os.waitpid(self.process, 0)
        self.alive.discard(self)

    def close(self):
        self.kill()

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        self.wait()


class Late:
    """Measures the clock's lateness: the 99th percentile, in ms, over repeated sleeps of 20 ms."""

    def __enter__(self):
        self.times, self.stop = [], False

        def sleep():
            while not self.stop:
                before = time.monotonic()
                time.sleep(0.020)
                self.times.append((time.monotonic() - before - 0.020) * 1e3)

        self.thread = threading.Thread(target=sleep)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.thread.join()

    def p99(self):
        return sorted(self.times)[int(len(self.times) * 0.99)]


def flows(seconds, up=1, down=1, family=4, skip=3):
    """Runs TCP flows. Returns the goodput up and down in kbit/s, without the first `skip` seconds, and the lateness in ms."""
    ways = [(up, "hosts", "servers", SERVER[family]), (down, "servers", "hosts", HOME[family])]
    ways = [way for way in ways if way[0]]
    receivers = [End(sink, receive, family, count, seconds, skip) for count, _, sink, _ in ways]
    for receiver in receivers:
        receiver.ready()
    senders = [End(source, send, family, address, count, seconds) for count, source, _, address in ways]
    with Late() as late:
        rates = [sum(receiver.answer()) for receiver in receivers]
    for sender in senders:
        sender.wait()
    return *rates, late.p99()


def udp(source, sink, address, kbit, seconds, meanwhile=lambda: None):
    """Sends UDP datagrams of 1000 bytes at a rate. Returns the rate in kbit/s at which they arrive."""
    receiver = End(sink, receive_udp, seconds)
    receiver.ready()
    sender = End(source, send_udp, address, kbit, seconds)
    meanwhile()
    sender.wait()
    return receiver.answer()


def shares(groups, seconds):
    """Sends groups of UDP flows up, at 600 kbit/s per flow; a group is (address, flows, TOS of IPv4). Returns the rate in kbit/s at
    which each group arrives."""
    receiver = End("servers", receive_groups, [PORT + 10 + number for number in range(len(groups))], seconds)
    receiver.ready()
    senders = [End("hosts", send_group, *group, PORT + 10 + number, seconds + 1) for number, group in enumerate(groups)]
    for sender in senders:
        sender.wait()
    return receiver.answer()


def fetched(groups, seconds):
    """Sends groups of UDP flows down, at 600 kbit/s per flow; a group is (address, flows). Each flow is requested from home,
    so that it passes any address translation. Returns the rate in kbit/s at which each group arrives."""
    server = End("servers", answer_all, sum(count for _, count in groups), seconds + 3)
    server.ready()
    clients = [End("hosts", fetch, *group, seconds) for group in groups]
    got = [client.answer() for client in clients]
    server.wait()
    return got


def socket_family(family):
    return socket.AF_INET if int(family) == 4 else socket.AF_INET6


def receive(say, family, count, seconds, skip):
    listener = socket.socket(socket_family(family), socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", PORT))
    listener.listen(64)
    listener.settimeout(20)
    say("ready")
    rates = []

    def read(connection):
        start, got = time.monotonic(), 0
        connection.settimeout(1)
        while time.monotonic() < start + seconds:
            try:
                data = connection.recv(1 << 16)
            except TimeoutError:
                continue
            if not data:
                break
            if time.monotonic() > start + skip:
                got += len(data)
        rates.append(got * 8 / (seconds - skip) / 1e3)

    threads = []
    for _ in range(count):
        connection, _ = listener.accept()
        threads.append(threading.Thread(target=read, args=(connection,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    say(rates)


def send(_say, family, address, count, seconds):
    end = time.monotonic() + seconds + 0.5
    block = bytes(1 << 16)

    def write():
        connection = socket.create_connection((address, PORT), timeout=20)
        connection.settimeout(0.5)
        while time.monotonic() < end:
            try:
                connection.send(block)
            except TimeoutError:
                continue
            except OSError:
                break

    threads = [threading.Thread(target=write, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def receive_udp(say, seconds):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("", PORT + 1))
    receiver.settimeout(0.5)
    say("ready")
    got, first, last, end = 0, None, None, time.monotonic() + seconds + 4
    while time.monotonic() < end and not (last and time.monotonic() > last + 1.5):
        try:
            data = receiver.recv(2000)
        except TimeoutError:
            continue
        last = time.monotonic()
        first = first or last
        got += len(data) + 42
    span = (last - first) if first and last > first else 1
    say(got * 8 / span / 1e3)


def send_udp(_say, address, kbit, seconds):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start, sent = time.monotonic(), 0
    gap = 1042 * 8 / (kbit * 1e3)
    while time.monotonic() < start + seconds:
        if time.monotonic() - start < sent * gap:
            time.sleep(0.002)
            continue
        try:
            sender.sendto(bytes(1000), (address, PORT + 1))
        except OSError:
            time.sleep(0.001)
        sent += 1


def send_group(_say, source, count, tos, port, seconds):
    """Sends a group of flows of 600 kbit/s each."""
    sockets = []
    for _ in range(count):
        family = 6 if ":" in source else 4
        sender = socket.socket(socket_family(family), socket.SOCK_DGRAM)
        sender.bind((source, 0))
        if tos:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        sender.connect((SERVER[family], port))
        sockets.append(sender)
    start, sent, gap = time.monotonic(), 0, 1042 * 8 / 600e3
    while time.monotonic() < start + seconds:
        if time.monotonic() - start < sent * gap:
            time.sleep(0.002)
            continue
        for sender in sockets:
            try:
                sender.send(bytes(1000))
            except OSError:
                pass
        sent += 1


def answer_all(say, count, seconds):
    """Waits for all requests, then sends a flow of 600 kbit/s to each requester."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("", PORT + 9))
    server.settimeout(10)
    say("ready")
    peers = set()
    while len(peers) < count:
        peers.add(server.recvfrom(100)[1])
    start, sent, gap = time.monotonic(), 0, 1042 * 8 / 600e3
    while time.monotonic() < start + seconds:
        if time.monotonic() - start < sent * gap:
            time.sleep(0.002)
            continue
        for peer in peers:
            server.sendto(bytes(1000), peer)
        sent += 1


def fetch(say, source, count, seconds):
    """Requests flows, and reports the rate in kbit/s that arrives after the first second."""
    sockets = []
    for _ in range(count):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.bind((source, 0))
        client.connect((SERVER[4], PORT + 9))
        client.setblocking(False)
        client.send(b"?")
        sockets.append(client)
    got, start = 0, time.monotonic()
    while time.monotonic() < start + seconds + 1:
        for client in select.select(sockets, [], [], 0.1)[0]:
            size = len(client.recv(2000)) + 42
            if time.monotonic() > start + 1:
                got += size
    say(got * 8 / seconds / 1e3)


def protocol_shares(protocol, seconds):
    """Sends one flow of one host and six of another, all of one protocol, to an address that never answers. Returns
    the packets of each host that leave home."""
    receiver = End("path", count_hosts, seconds)
    receiver.ready()
    sender = End("hosts", send_protocol, protocol, seconds + 1)
    sender.wait()
    return receiver.answer()


def count_hosts(say, seconds):
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    sniffer.bind(("m0", 0x0800))
    sniffer.settimeout(0.5)
    say("ready")
    got, start = {b"host1": 0, b"host9": 0}, time.monotonic()
    while time.monotonic() < start + seconds + 1:
        with contextlib.suppress(TimeoutError):
            data = sniffer.recv(2000)
            for host in got:
                got[host] += host in data and time.monotonic() > start + 1
    say(list(got.values()))


def send_protocol(_say, protocol, seconds):
    """Sends raw IP packets of two hosts: TCP, or UDP in an IP-in-IP tunnel whose outer addresses both hosts share."""
    from cost import checksum
    out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def packet(host, number):
        ends, payload = bytes((10, 0, 0, host, 10, 0, 2, 77)), b"host%d" % host + bytes(960)
        kind = 6 if protocol == "TCP" else 4
        if protocol == "TCP":
            data = struct.pack("!HHIIBBHHH", 2000 + number, 80, 1, 1, 0x50, 0x10, 1000, 0, 0) + payload
            data = data[:16] + struct.pack("!H", checksum(ends + struct.pack("!HH", kind, len(data)) + data)) + data[18:]
        else:
            inner = struct.pack("!HHHH", 2000 + number, 9, 8 + len(payload), 0) + payload
            data = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, 17, 0) + bytes((10, 77, 0, host, 10, 78, 0, 1))
            data = data[:10] + struct.pack("!H", checksum(data)) + data[12:] + inner
            ends = bytes((10, 0, 0, 1, 10, 0, 2, 77))
        return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, kind, 0) + ends + data

    packets = [packet(1, 0), *(packet(9, number) for number in range(1, 7))]
    start, sent = time.monotonic(), 0
    while time.monotonic() < start + seconds:
        if time.monotonic() - start < sent * 0.014:
            time.sleep(0.002)
            continue
        for data in packets:
            with contextlib.suppress(OSError):
                out.sendto(data, ("10.0.2.77", 0))
        sent += 1


def receive_groups(say, ports, seconds):
    """Reports the rate in kbit/s that arrives at each port after the first second."""
    sockets = []
    for port in ports:
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)  # also for IPv4
        receiver.bind(("", port))
        receiver.setblocking(False)
        sockets.append(receiver)
    say("ready")
    got, start = [0] * len(ports), time.monotonic()
    while time.monotonic() < start + seconds + 1:
        for receiver in select.select(sockets, [], [], 0.1)[0]:
            size = len(receiver.recv(2000)) + 42
            if time.monotonic() > start + 1:
                got[sockets.index(receiver)] += size
    say([bytes * 8 / seconds / 1e3 for bytes in got])
