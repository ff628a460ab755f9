#!/usr/bin/env python3
"""Records crates/laws/src/home.pcap in a guest: `record.py FOLDER KERNEL-ROOT OUT`, started by

    OUT=$PWD/target/recorded crates/lab/guest/boot "$(scripts/kernel-fetch)" 300 \\
        "python3 $PWD/kernel/test/record.py $PWD/target/kernel-test/* $(scripts/kernel-fetch) /run/out/home.pcap"

The file contains the first frames, in both directions, of TCP uploads and downloads with ECN over IPv4 and IPv6, and of a
call. A router captures them on the home side. The uplink has 1 Mbit/s.
"""

import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traffic  # noqa: E402
from traffic import HOME, SERVER, run  # noqa: E402

FRAMES, BYTES = 1500, 118
SECONDS = 5


def sniff(say, path):
    """Captures IP frames on r0: the first bytes, with all TCP options that Linux sends."""
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    SO_TIMESTAMPNS_OLD, SO_RCVBUFFORCE = 35, 33
    sniffer.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS_OLD, 1)
    sniffer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
    sniffer.bind(("r0", 3))
    say("ready")
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, BYTES, 1))
        count = 0
        while count < FRAMES:
            data, ancillary, _, _ = sniffer.recvmsg(2000, 100)
            if data[12:14] not in (b"\x08\x00", b"\x86\xdd") or (data[12:14] == b"\x86\xdd" and data[20] == 58):
                continue
            seconds, nanos = struct.unpack("@qq", ancillary[0][2])
            kept = data[:BYTES]
            file.write(struct.pack("<IIII", seconds, nanos, len(kept), len(data)) + kept)
            count += 1
    say("done")


def main():
    folder, root, path = sys.argv[1:4]
    os.environ["TC_LIB_DIR"] = folder
    for name in ("veth", "sch_netem"):
        run(f"modprobe -d {root} {name}", check=False)
    run("mkdir -p /run/netns")
    traffic.build()
    run(f"insmod {folder}/sch_asymq.ko")
    # Disables offloads, so that frames are as on a link: one segment each, with checksums.
    for space, device in (("hosts", "a0"), ("home", "r0"), ("home", "h0"), ("servers", "s0"), ("path", "m0"), ("path", "m1")):
        run(f"ip netns exec {space} ethtool -K {device} tx off rx off tso off gso off gro off")
    for space in ("hosts", "servers"):
        run(f"ip netns exec {space} sysctl -qw net.ipv4.tcp_ecn=1 net.ipv6.bindv6only=1")
    run("tc -n home qdisc add dev h0 root asymq fq up 1mbit")
    run("tc -n path qdisc add dev m0 root asymq fq up 4mbit")
    sniffer = traffic.End("home", sniff, path)
    sniffer.ready()
    ends = [traffic.End("hosts", traffic.send_udp, SERVER[4], 64, SECONDS)]
    for family in (4, 6):
        receivers = [traffic.End(sink, traffic.receive, family, 1, SECONDS, 0) for sink in ("servers", "hosts")]
        for receiver in receivers:
            receiver.ready()
        ends.append(traffic.End("hosts", traffic.send, family, SERVER[family], 1, SECONDS))
        ends.append(traffic.End("servers", traffic.send, family, HOME[family], 1, SECONDS))
        time.sleep(0.3)
    print("recorded:", sniffer.answer(), os.path.getsize(path), flush=True)
    for end in ends:
        end.kill()


main()
