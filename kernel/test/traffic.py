"""Kernel TCP and UDP through namespaces of the guest: home - path - servers, 25 ms each way.

The uplink's queue is at home's `h0`, the downlink's at the servers' `s0`; both stand before the path's
delay. Run with a role, this file is one end of the flows.
"""

import json
import socket
import subprocess
import sys
import threading
import time

HOME = {4: "10.0.1.1", 6: "fd01::1"}
SERVER = {4: "10.0.2.1", 6: "fd02::1"}
PORT = 5000


def run(command, check=True):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    return done


def build():
    for name in ("home", "path", "servers"):
        run(f"ip netns add {name}; ip -n {name} link set lo up")
    for left, end, right, other in (("home", "h0", "path", "m0"), ("servers", "s0", "path", "m1")):
        run(f"ip -n {left} link add {end} type veth peer name {other} netns {right}")
        run(f"ip -n {left} link set {end} up; ip -n {right} link set {other} up")
    for space, device, v4, v6, net in (
        ("home", "h0", HOME[4], HOME[6], 1),
        ("path", "m0", "10.0.1.2", "fd01::2", 1),
        ("servers", "s0", SERVER[4], SERVER[6], 2),
        ("path", "m1", "10.0.2.2", "fd02::2", 2),
    ):
        run(f"ip -n {space} addr add {v4}/24 dev {device}")
        run(f"ip -n {space} addr add {v6}/64 dev {device} nodad")
        if space != "path":
            run(f"ip -n {space} route add default via 10.0.{net}.2")
            run(f"ip -n {space} -6 route add default via fd0{net}::2")
    run("ip netns exec path sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    for device in ("m0", "m1"):
        run(f"tc -n path qdisc add dev {device} root netem delay 25ms limit 20000")
    for space in ("home", "servers"):
        run(f"ip netns exec {space} sysctl -qw net.ipv4.tcp_no_metrics_save=1"
            " net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_congestion_control=cubic")


def space(name, *arguments, **options):
    """This file in a role, in a namespace."""
    command = ["ip", "netns", "exec", name, sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def wait_for(receiver):
    """Until a receiver listens."""
    if receiver and receiver.stdout.readline() != "ready\n":
        raise RuntimeError("a receiver does not start")


class Late:
    """How late a sleeper of 20 ms wakes, in ms at the 99th percentile."""

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
    """Goodput of TCP up and down in kbit/s, without the first `skip` seconds, and the lateness."""
    receivers, senders = [], []
    for count, sink, source, address in (
        (up, "servers", "home", SERVER[family]), (down, "home", "servers", HOME[family])
    ):
        receivers.append(space(sink, "receive", family, count, seconds, skip) if count else None)
    for receiver in receivers:
        wait_for(receiver)
    with Late() as late:
        for count, source, address in (
            (up, "home", SERVER[family]), (down, "servers", HOME[family])
        ):
            if count:
                senders.append(space(source, "send", family, address, count, seconds))
        rates = [json.loads(r.communicate()[0]) if r else [] for r in receivers]
    for sender in senders:
        sender.wait()
    return sum(rates[0]), sum(rates[1]), late.p99()


def udp(source, sink, address, kbit, seconds, background=False):
    """UDP of 1000-byte datagrams at a rate; answers with what arrives, in kbit/s."""
    receiver = space(sink, "receive-udp", seconds)
    wait_for(receiver)
    sender = space(source, "send-udp", address, kbit, seconds)
    if background:
        return receiver, sender
    sender.wait()
    return json.loads(receiver.communicate()[0])


def socket_family(family):
    return socket.AF_INET if int(family) == 4 else socket.AF_INET6


def receive(family, count, seconds, skip):
    listener = socket.socket(socket_family(family), socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", PORT))
    listener.listen(64)
    listener.settimeout(20)
    print("ready", flush=True)
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
    print(json.dumps(rates), flush=True)


def send(family, address, count, seconds):
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


def receive_udp(seconds):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("", PORT + 1))
    receiver.settimeout(0.5)
    print("ready", flush=True)
    got, first, last, end = 0, None, None, time.monotonic() + seconds + 4
    while time.monotonic() < end:
        try:
            data = receiver.recv(2000)
        except TimeoutError:
            continue
        last = time.monotonic()
        first = first or last
        got += len(data) + 42
    span = (last - first) if first and last > first else 1
    print(json.dumps(got * 8 / span / 1e3), flush=True)


def send_udp(address, kbit, seconds):
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


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "receive":
        receive(rest[0], int(rest[1]), float(rest[2]), float(rest[3]))
    elif role == "send":
        send(rest[0], rest[1], int(rest[2]), float(rest[3]))
    elif role == "receive-udp":
        receive_udp(float(rest[0]))
    elif role == "send-udp":
        send_udp(rest[0], float(rest[1]), float(rest[2]))
