"""Devices with and without Ethernet headers: each with asymq at the device and at an IFB behind its ingress."""

import ctypes
import fcntl
import os
import socket
import struct
import time

from cost import LIBC, frame
from guest import sized
from netlink import Netlink
from traffic import run

IFB = "ifb8"
ACKS, DATA = 16, 16
# Bytes charged beyond the IP packet.
OVERHEAD = 20
ARPHRD_PPP, ARPHRD_RAWIP = 512, 519
TUNSETIFF, TUNSETLINK = 0x400454CA, 0x400454CD
PPPIOCGCHAN, PPPIOCNEWUNIT, PPPIOCCONNECT, PPPIOCATTCHAN = 0x80047437, 0xC004743E, 0x4004743A, 0x40047438
PACKET_OUTGOING = 4
MACS = "02:00:00:00:07:01", "02:00:00:00:07:02"
DESTINATIONS = [f"10.9.8.{number}" for number in range(1, 5)]


class Link:
    """A device of one kind: how packets leave it and how packets arrive at it."""

    def __init__(self):
        self.files = []

    def sender(self, device):
        """Returns a function that sends IPv4 packets through a device."""
        run(f"ip route replace 10.9.8.0/24 dev {device}")
        out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        return lambda packet: out.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))

    def close(self):
        for file in self.files:
            os.close(file)


class Tun(Link):
    """A tun device: with its default type, or with the type of PPP or raw IP."""

    def __init__(self, kind=None):
        super().__init__()
        self.device = "tun7"
        self.file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        self.files.append(self.file)
        IFF_TUN, IFF_NO_PI = 1, 0x1000
        fcntl.ioctl(self.file, TUNSETIFF, struct.pack("16sH22x", self.device.encode(), IFF_TUN | IFF_NO_PI))
        if kind:
            fcntl.ioctl(self.file, TUNSETLINK, kind)
        run(f"ip addr add 10.9.10.1/24 dev {self.device}; ip link set {self.device} up")
        self.send = self.sender(self.device)

    def receive(self, packet):
        os.write(self.file, packet)


class Veth(Link):
    """A veth pair, with VLAN devices on top."""

    def __init__(self, *vlans, below=True):
        super().__init__()
        run(f"ip link add w0 address {MACS[0]} type veth peer name w1 address {MACS[1]};"
            "sysctl -qw net.ipv6.conf.w0.disable_ipv6=1 net.ipv6.conf.w1.disable_ipv6=1; ip link set w0 up; ip link set w1 up")
        tops = []
        for end in "w0", "w1":
            top = end
            for number, vlan in enumerate(vlans):
                name = f"{top}.{number}"
                run(f"ip link add link {top} name {name} type vlan {vlan}; sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1;"
                    f"ip link set {name} up")
                top = name
            tops.append(top)
        # asymq is at the veth device, whose packets have tags (`below`), or at the top VLAN device.
        self.device = "w0" if below else tops[0]
        for top, other in zip(tops, reversed(MACS)):
            for address in DESTINATIONS:
                run(f"ip neigh replace {address} lladdr {other} dev {top} nud permanent")
        self.tops = tops

    def send(self, packet):
        self.through(self.tops[0])(packet)

    def receive(self, packet):
        self.through(self.tops[1])(packet)

    def through(self, top):
        """Returns a sender for a device. Creates a new one if the route leads to another device."""
        if getattr(self, "last", None) != top:
            self.last, self.out = top, self.sender(top)
        return self.out

    def close(self):
        run("ip link del w0")


class Ppp(Veth):
    """PPPoE between both ends of a veth pair, without a daemon. asymq is at the PPP or the Ethernet device."""

    def __init__(self, below=False):
        super().__init__()
        self.tops = []
        for end, other in ("w0", MACS[1]), ("w1", MACS[0]):
            AF_PPPOX, PX_PROTO_OE = 24, 0
            session = socket.socket(AF_PPPOX, socket.SOCK_STREAM, PX_PROTO_OE)
            address = struct.pack("=HIH6s16s", AF_PPPOX, PX_PROTO_OE, socket.htons(7), bytes.fromhex(other.replace(":", "")),
                                  end.encode())
            if LIBC.connect(session.fileno(), address, len(address)):
                raise OSError(ctypes.get_errno(), "connect of PPPoE")
            channel = fcntl.ioctl(session, PPPIOCGCHAN, bytes(4))
            unit = os.open("/dev/ppp", os.O_RDWR)
            number = struct.unpack("=i", fcntl.ioctl(unit, PPPIOCNEWUNIT, struct.pack("=i", -1)))[0]
            attached = os.open("/dev/ppp", os.O_RDWR)
            fcntl.ioctl(attached, PPPIOCATTCHAN, channel)
            fcntl.ioctl(attached, PPPIOCCONNECT, struct.pack("=i", number))
            self.files += [unit, attached, os.dup(session.fileno())]
            name = f"ppp{number}"
            run(f"ip addr add 10.9.{10 + number}.1 peer 10.9.{10 + number}.2 dev {name}; ip link set {name} up")
            self.tops.append(name)
        self.device = "w0" if below else self.tops[0]

    def close(self):
        Link.close(self)
        super().close()


KINDS = {
    "Ethernet": Veth, "tun": Tun, "tun as PPP": lambda: Tun(ARPHRD_PPP), "tun as raw IP": lambda: Tun(ARPHRD_RAWIP),
    "802.1Q": lambda: Veth("id 7"), "VLAN device": lambda: Veth("id 7", below=False),
    "802.1ad": lambda: Veth("proto 802.1ad id 7"), "802.1Q in 802.1ad": lambda: Veth("proto 802.1ad id 7", "id 8"),
    "ppp": Ppp, "PPPoE on Ethernet": lambda: Ppp(below=True),
}


class Sniffer:
    """Packets that leave a device, behind its qdisc."""

    def __init__(self, device):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        SO_RCVBUFFORCE = 33
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        self.socket.bind((device, 3))
        self.socket.setblocking(False)

    def frames(self, size=2048):
        """Returns the packets so far, in order."""
        found = []
        while True:
            try:
                data, (_, _, kind, *_) = self.socket.recvfrom(size)
            except BlockingIOError:
                return found
            if kind == PACKET_OUTGOING:
                found.append(data)

    def identifications(self):
        """The identification of each packet's IP header, in order."""
        return [struct.unpack_from("!H", data, 18)[0] for data in self.frames(64)]

    def flows(self):
        """Returns the last byte of each packet's destination address, in order."""
        places = [(data, data.find(bytes((10, 9, 9, 1, 10, 9, 8)))) for data in self.frames()]
        return [data[at + 7] for data, at in places if at >= 0]


def classes(device, send):
    """Sends ACKs and full segments; returns the number of each class that the qdisc of the device sent, and the bytes of
    ACKs and of data."""
    for number in range(ACKS + DATA):
        send(frame(number)[14:])
    time.sleep(0.3)
    ours = [qdisc for qdisc in Netlink().qdiscs(device) if qdisc["kind"] == "asymq"]
    values = ours[0]["values"]
    return (*(values[f"{name}.sent.packets"] for name in ("ack", "data", "other")),
            *(values[f"{name}.sent.bytes"] for name in ("ack", "data")))


def shares(device, send):
    """Sends two flows in the ratio 9 to 1, faster than the qdisc's rate. Returns the packets of each flow among the first 40
    that leave."""
    sniffer = Sniffer(device)
    for number in range(sized(200, 400)):
        send(frame(3 if number % 10 == 0 else 1)[14:])
    first, end = sniffer.flows(), time.monotonic() + 30
    while len(first) < 40 and time.monotonic() < end:
        time.sleep(0.1)
        first += sniffer.flows()
    return first[:40].count(1), first[:40].count(2)


def at(place, send, space):
    """Measures classes and shares of an asymq at a device. Returns the errors."""
    run(f"tc qdisc replace dev {place} root asymq droptail up 100mbit down 100mbit overhead {OVERHEAD}")
    found = classes(place, send)
    run(f"tc qdisc del dev {place} root; tc qdisc add dev {place} root asymq up {sized(1000, 200)}kbit down 10mbit")
    many, few = shares(place, send)
    run(f"tc qdisc del dev {place} root")
    wrong = []
    # Tolerates some other packets, such as IGMP.
    if found[:2] != (ACKS, DATA) or found[2] > 8:
        wrong.append(f"{space}: {found[0]} ACKs, {found[1]} data, {found[2]} other, of {ACKS} and {DATA}")
    if found[3:] != (ACKS * (40 + OVERHEAD), DATA * (1040 + OVERHEAD)):
        wrong.append(f"{space}: {found[3]} bytes of ACKs and {found[4]} of data are charged")
    if few < 12 or many + few < 30:
        wrong.append(f"{space}: two flows offered 9:1 got {many}:{few} of the first 40")
    return wrong


def reverse(link, name):
    """Receives packets at a device with an observer. Returns an error if their bytes do not include the link header."""
    header = {"Ethernet": 14, "tun": 0, "tun as PPP": 0, "tun as raw IP": 0}.get(name)
    if header is None:
        return []
    run(f"tc qdisc add dev {link.device} root asymq aq up 1mbit down 10mbit")
    for _ in range(5):
        link.receive(frame(1)[14:])
    time.sleep(0.1)
    values = next(qdisc["values"] for qdisc in Netlink().qdiscs(link.device) if qdisc["kind"] == "asymq")
    run(f"tc qdisc del dev {link.device} root")
    found = values["queue.reverse.packets"], values["queue.reverse.bytes"]
    return [] if found == (5, 5 * (1040 + header)) else [f"{name}, reverse path: {found[0]} packets of {found[1]} bytes"]


def walk(name):
    """Tests one kind of link, with asymq at the device and at the IFB behind its ingress. Returns the errors."""
    link = KINDS[name]()
    try:
        wrong = at(link.device, link.send, f"{name}, egress") + reverse(link, name)
        run(f"ip link add {IFB} type ifb; sysctl -qw net.ipv6.conf.{IFB}.disable_ipv6=1; ip link set {IFB} up;"
            f"tc qdisc add dev {link.device} ingress;"
            f"tc filter add dev {link.device} ingress matchall action mirred egress redirect dev {IFB}")
        return wrong + at(IFB, link.receive, f"{name}, at an IFB")
    finally:
        link.close()
        run(f"ip link del {IFB}", check=False)
