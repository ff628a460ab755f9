#!/usr/bin/env python3
"""Bulk flows of `aioquic`, one HTTP/3 request each: GET for a download, PUT for an upload.

src/lib.rs describes the arguments and the output. aioquic has no BBR, and does not request an ACK frequency.
"""

import asyncio
import json
import os
import socket
import sys
import threading
import time

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ProtocolNegotiated
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from aioquic.quic.rangeset import RangeSet

WINDOW = 64 << 20
UNSENT = 256 << 10


def widen(sock):
    """Enlarges the buffer for packets that arrive while this process is not scheduled."""
    so_rcvbufforce = 33
    sock.setsockopt(socket.SOL_SOCKET, so_rcvbufforce, 4 << 20)


class Seen:
    """Counters of a flow on this side."""

    def __init__(self):
        self.warm = float("inf")
        self.payload = self.sent = self.timeouts = 0
        self.delivered_at = self.longest_stall = 0.0
        self.lost, self.received = [], RangeSet()

    def deliver(self, size):
        now = time.monotonic()
        if now > self.warm:
            self.payload += size
            self.longest_stall = max(self.longest_stall, now - self.delivered_at)
            self.delivered_at = now


class Trace(QuicLoggerTrace):
    """Counts a connection's events without storing them."""

    seen = None

    def log_event(self, *, category, event, data):
        seen = self.seen
        if seen is None:
            return
        if event == "packet_received" and data["header"].get("packet_type") == "1RTT":
            number = data["header"]["packet_number"]
            seen.received.add(number, number + 1)
        elif time.monotonic() > seen.warm:
            if event == "packet_sent" and data["header"]["packet_type"] == "1RTT":
                seen.sent += 1
            elif event == "packet_lost" and data["type"] == "1RTT":
                seen.lost.append(data["packet_number"])


class Logger(QuicLogger):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def start_trace(self, is_client, odcid):
        trace = Trace(is_client=is_client, odcid=odcid)
        trace.seen = self.seen
        return trace

    def end_trace(self, trace):
        pass


class Bulk(QuicConnectionProtocol):
    """A connection with one flow. `plan` contains the flow under home's port."""

    def __init__(self, quic, stream_handler=None, plan=None, flow=None):
        super().__init__(quic)
        self.plan, self.flow = plan, flow
        self.http = self.stream = None
        self.backoff = 0

    def datagram_received(self, data, addr):
        if self.flow is None:
            self.flow = self.plan.flows[addr[1]]
            self._quic._quic_logger.seen = self.flow.seen
        super().datagram_received(data, addr)

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
            if self.plan.is_home:
                self.request()
        if self.http is None:
            return
        for answer in self.http.handle_event(event):
            if isinstance(answer, DataReceived):
                self.flow.seen.deliver(len(answer.data))
            elif isinstance(answer, HeadersReceived) and not self.plan.is_home and self.stream is None:
                self.stream = answer.stream_id
                self.http.send_headers(self.stream, [(b":status", b"200")])
                self.fill()

    def request(self):
        self.stream = self._quic.get_next_available_stream_id()
        method = b"PUT" if self.flow.is_upload else b"GET"
        words = {b":method": method, b":scheme": b"https", b":authority": b"asymq", b":path": b"/bulk"}
        self.http.send_headers(self.stream, list(words.items()), end_stream=not self.flow.is_upload)
        self.fill()

    def fill(self):
        """If this side sends, queues data so that the connection always has data to send."""
        if self.stream is None or self.flow.is_upload != self.plan.is_home:
            return
        sender = self._quic._streams[self.stream].sender
        while sender._buffer_stop - sender.highest_offset < UNSENT:
            self.http.send_data(self.stream, bytes(65536), end_stream=False)

    def transmit(self):
        backoff = self._quic._loss._pto_count
        if backoff > self.backoff and time.monotonic() > self.flow.seen.warm:
            self.flow.seen.timeouts += backoff - self.backoff
        self.backoff = backoff
        self.fill()
        super().transmit()


class Flow:
    def __init__(self, word):
        direction, port, start = word.split(":")
        self.is_upload, self.port, self.start = direction == "up", int(port), int(start) / 1e9
        self.seen = Seen()


class Plan:
    def __init__(self, words):
        self.is_home, self.home = words[0] == "home", words[1]
        address, port = words[2].rsplit(":", 1)
        self.server = (address, int(port))
        values = dict(word.split("=") for word in words if "=" in word)
        self.warm, self.end = int(values["warm"]) / 1e9, int(values["end"]) / 1e9
        if values["congestion"] == "bbr":
            sys.exit("aioquic has no BBR; use cubic")
        if values["ack-every"] != "0":
            sys.exit("aioquic does not ask for an ACK frequency; leave it out")
        flows = (Flow(word) for word in words[3:] if word.startswith(("up:", "down:")))
        self.flows = {flow.port: flow for flow in flows}

    def configuration(self, seen):
        return QuicConfiguration(
            is_client=self.is_home, alpn_protocols=H3_ALPN, congestion_control_algorithm="cubic", max_data=WINDOW,
            max_stream_data=WINDOW, verify_mode=0, server_name="asymq", quic_logger=Logger(seen))

    async def connect(self, flow, sock):
        await asyncio.sleep(flow.start)
        quic = QuicConnection(configuration=self.configuration(flow.seen))
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_datagram_endpoint(lambda: Bulk(quic, plan=self, flow=flow), sock=sock)
        protocol.connect(self.server)

    async def serve(self):
        configuration = self.configuration(None)
        # scripts/quic/stacks creates the certificate.
        folder = sys.prefix
        configuration.load_cert_chain(f"{folder}/nobody.pem", f"{folder}/nobody.key")
        protocol = lambda quic, stream_handler=None: Bulk(quic, plan=self)
        server = lambda: QuicServer(configuration=configuration, create_protocol=protocol)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(server, local_addr=self.server)
        widen(transport.get_extra_info("socket"))

    async def run(self):
        if self.is_home:
            sockets = []
            for flow in self.flows.values():
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                widen(sockets[-1])
                sockets[-1].bind((self.home, flow.port))
                sockets[-1].setblocking(False)
        else:
            await self.serve()
        print("ready", flush=True)
        if not sys.stdin.readline():
            sys.exit(1)
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
        start = time.monotonic()
        for flow in self.flows.values():
            flow.seen.warm = start + self.warm
            flow.seen.delivered_at = start + max(self.warm, flow.start)
        if self.is_home:
            tasks = [asyncio.ensure_future(self.connect(*pair)) for pair in zip(self.flows.values(), sockets)]
        await asyncio.sleep(start + self.end - time.monotonic())
        for flow in self.flows.values():
            seen = flow.seen
            print(json.dumps({
                "port": flow.port, "sends": flow.is_upload == self.is_home, "payload": seen.payload,
                "longest_stall_ns": int(1e9 * max(seen.longest_stall, start + self.end - seen.delivered_at)),
                "timeouts": seen.timeouts, "sent": seen.sent, "lost": seen.lost,
                "received": [[part.start, part.stop - 1] for part in seen.received]}))
        sys.stdout.flush()
        os._exit(0)


asyncio.run(Plan(sys.argv[1:]).run())
