#!/usr/bin/env python3
"""One tunnel with TCP flows inside, as a program that `asymq lab --quic` starts at both ends.

scripts/quic/flows/src/lib.rs describes arguments and output. The tunnel uses the first flow's port at home, and all
flows share its round-trip time. `run` beside this file sets TUNNEL (wireguard or openvpn) and TUNNEL_DIR, which contains
the keys; each end writes its counters there.
"""

import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

INSIDE = {"home": "10.99.0.1", "servers": "10.99.0.2"}
OTHER = {"home": "servers", "servers": "home"}
FLOWS, ECHO = 6001, 6007
PROBE_INTERVAL = 0.1


class Tunnel:
    """This end of the tunnel. `own` is the port of this end, `peer` the address and port of the other end."""

    def __init__(self, side, own, peer):
        self.side, self.own, self.peer, self.device = side, own, peer, f"tun-{side}"
        self.folder = pathlib.Path(os.environ["TUNNEL_DIR"])
        self.start = {"wireguard": self.wireguard, "openvpn": self.openvpn}[os.environ["TUNNEL"]]

    def wireguard(self):
        words = [os.environ.get("WIREGUARD_GO", "wireguard-go"), "--foreground", self.device]
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(words, stdin=null, stdout=null, stderr=null)
        key = (self.folder / f"{OTHER[self.side]}.pub").read_text().strip()
        words = ["wg", "set", self.device, "listen-port", str(self.own), "private-key", self.folder / f"{self.side}.key",
                 "peer", key, "endpoint", "{}:{}".format(*self.peer), "allowed-ips", "0.0.0.0/0"]
        while subprocess.run(words, stderr=null).returncode != 0:
            time.sleep(0.05)
        for words in (["addr", "add", INSIDE[self.side], "peer", INSIDE[OTHER[self.side]], "dev", self.device],
                      ["link", "set", self.device, "mtu", "1420", "up"]):
            subprocess.run(["ip", *words], check=True)

    def openvpn(self):
        fingerprint = (self.folder / f"{OTHER[self.side]}.fingerprint").read_text().strip()
        file = lambda ending: str(self.folder / f"{self.side}.{ending}")
        role = ["--tls-server", "--dh", "none"] if self.side == "servers" else ["--tls-client"]
        words = ["openvpn", "--dev", self.device, "--dev-type", "tun", "--proto", "udp4", "--lport", str(self.own),
                 "--remote", self.peer[0], str(self.peer[1]), "--ifconfig", INSIDE[self.side], INSIDE[OTHER[self.side]],
                 "--cert", file("pem"), "--key", file("key"), "--peer-fingerprint", fingerprint, "--verb", "3",
                 "--data-ciphers", "AES-256-GCM", "--log", file("log"), *role]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def counters(self):
        """Counts datagrams received, receive-buffer overflows, packets passed on, and replays in the tunnel's log."""
        snmp = pathlib.Path("/proc/net/snmp").read_text().splitlines()
        names, values = [line.split()[1:] for line in snmp if line.startswith("Udp:")]
        udp = dict(zip(names, map(int, values)))
        log = self.folder / f"{self.side}.log"
        lines = pathlib.Path("/proc/net/dev").read_text().splitlines()
        passed = [line.split(":")[1].split()[1] for line in lines if line.strip().startswith(f"{self.device}:")]
        return {"datagrams": udp["InDatagrams"], "overflows": udp["RcvbufErrors"], "passed": int(passed[0]),
                "replays": log.read_text().count("bad packet ID") if log.exists() else None}


class Flow:
    def __init__(self, word):
        direction, port, start = word.split(":")
        self.is_upload, self.port, self.start = direction == "up", int(port), int(start) / 1e9
        self.payload, self.longest_stall = 0, 0.0


class End:
    def __init__(self, words):
        self.side, home, server = words[0], words[1], words[2].rsplit(":", 1)
        values = dict(word.split("=") for word in words if "=" in word)
        self.warm, self.end = (int(values[name]) / 1e9 for name in ("warm", "end"))
        self.congestion = values["congestion"].encode()
        self.flows = [Flow(word) for word in words if word.startswith(("up:", "down:"))]
        ports = self.flows[0].port, int(server[1])
        own, peer = (ports[0], (server[0], ports[1])) if self.is_home else (ports[1], (home, ports[0]))
        self.tunnel = Tunnel(self.side, own, peer)
        self.delays, self.echoes = [], 0

    @property
    def is_home(self):
        return self.side == "home"

    def carry(self, sock, flow):
        """Sends or reads until the end."""
        if flow.is_upload == self.is_home:
            data = bytes(65536)
            while True:
                sock.sendall(data)
        last = max(self.start + self.warm, self.start + flow.start)
        while data := sock.recv(1 << 20):
            now = time.monotonic()
            if now > self.start + self.warm:
                flow.payload += len(data)
                flow.longest_stall, last = max(flow.longest_stall, now - last), now

    def connect(self, flow):
        time.sleep(max(0.0, self.start + flow.start - time.monotonic()))
        while True:
            sock = socket.socket()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion)
            try:
                sock.bind((INSIDE["home"], flow.port))
                sock.connect((INSIDE["servers"], FLOWS))
                return self.carry(sock, flow)
            except OSError:  # no tunnel yet
                sock.close()
                time.sleep(0.1)

    def accept(self):
        listener = socket.socket()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self.congestion)
        listener.bind(("0.0.0.0", FLOWS))
        listener.listen()
        flows = {flow.port: flow for flow in self.flows}
        while True:
            sock, (_, port) = listener.accept()
            thread(self.carry, sock, flows[port])

    def echo(self):
        """Echoes the probe inside the tunnel. At home, sends the probe and measures its round trips."""
        sock = socket.socket(type=socket.SOCK_DGRAM)
        if self.is_home:
            thread(self.probe, sock)
        else:
            sock.bind(("0.0.0.0", ECHO))
        while True:
            data, peer = sock.recvfrom(64)
            self.echoes += 1
            if not self.is_home:
                sock.sendto(data, peer)
            elif time.monotonic() > self.start + self.warm:
                self.delays.append(time.monotonic() - float(data))

    def probe(self, sock):
        while True:
            try:
                sock.sendto(f"{time.monotonic():.9f}".encode(), (INSIDE["servers"], ECHO))
            except OSError:  # no tunnel yet
                pass
            time.sleep(PROBE_INTERVAL)

    def run(self):
        print("ready", flush=True)
        if not sys.stdin.readline():
            return
        self.start = time.monotonic()
        # Starts the tunnel only now, when frames can pass, so that its handshake needs no retransmission.
        self.tunnel.start()
        # The lab ends its programs by closing their standard input.
        thread(lambda: (sys.stdin.read(), self.stop(1)))
        thread(self.echo)
        if self.is_home:
            for flow in self.flows:
                thread(self.connect, flow)
        else:
            thread(self.accept)
        time.sleep(self.start + self.end - time.monotonic())
        for flow in self.flows:
            print(json.dumps({
                "port": flow.port, "sends": flow.is_upload == self.is_home, "payload": flow.payload,
                "longest_stall_ns": int(1e9 * flow.longest_stall), "timeouts": None, "lost": [], "received": []}))
        counters = self.tunnel.counters() | {"echoes": self.echoes}
        if len(self.delays) > 1:
            shares = statistics.quantiles(self.delays, n=100)
            counters |= {"p50_ms": 1e3 * shares[49], "p99_ms": 1e3 * shares[98]}
        (self.tunnel.folder / f"{self.side}.json").write_text(json.dumps(counters))
        sys.stdout.flush()
        self.stop(0)

    def stop(self, code):
        self.tunnel.process.kill()
        os._exit(code)


def thread(work, *arguments):
    def guarded():
        try:
            work(*arguments)
        except OSError as error:
            print(f"tunnel: {error}", file=sys.stderr)

    threading.Thread(target=guarded, daemon=True).start()


End(sys.argv[1:]).run()
