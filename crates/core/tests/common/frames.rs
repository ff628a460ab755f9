//! Frames built with etherparse, and the outer layers that etherparse lacks.

use etherparse::TcpOptionElement::{
    self, MaximumSegmentSize, Noop, SelectiveAcknowledgement, Timestamp,
};
use etherparse::{
    IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv6Extensions, Ipv6Header, Ipv6RawExtHeader,
    Ipv6RoutingExtensions, PacketBuilder, TcpHeader,
};

pub(crate) const SACK: &[TcpOptionElement] = &[
    Noop,
    Noop,
    Timestamp(7, 8),
    Noop,
    Noop,
    SelectiveAcknowledgement((100, 200), [Some((300, 400)), None, None]),
];
pub(crate) const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
pub(crate) const HOME: [u8; 4] = [192, 168, 1, 20];
pub(crate) const SERVER: [u8; 4] = [203, 0, 113, 5];
pub(crate) const HOME6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20];
pub(crate) const SERVER6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];

/// A TCP header that acknowledges 4711, from port 5000 to port 443.
pub(crate) fn ack(options: &[TcpOptionElement]) -> TcpHeader {
    let mut header = TcpHeader::new(5000, 443, 1, 500);
    header.ack = true;
    header.acknowledgment_number = 4711;
    header.set_options(options).unwrap();
    header
}

pub(crate) fn ipv4() -> IpHeaders {
    let header = Ipv4Header::new(0, 64, IpNumber::TCP, HOME, SERVER).unwrap();
    IpHeaders::Ipv4(header, Ipv4Extensions::default())
}

pub(crate) fn ipv4_with_options() -> IpHeaders {
    let mut header = Ipv4Header::new(0, 64, IpNumber::TCP, HOME, SERVER).unwrap();
    header.options = [1u8; 40].into();
    IpHeaders::Ipv4(header, Ipv4Extensions::default())
}

pub(crate) fn ipv6() -> IpHeaders {
    let header = Ipv6Header {
        source: HOME6,
        destination: SERVER6,
        hop_limit: 64,
        ..Ipv6Header::default()
    };
    IpHeaders::Ipv6(header, Ipv6Extensions::default())
}

/// Hop-by-hop options, destination options, a routing header and destination options again: 8, 16, 8
/// and 8 bytes.
pub(crate) fn ipv6_with_extensions() -> IpHeaders {
    let IpHeaders::Ipv6(header, mut extensions) = ipv6() else {
        unreachable!()
    };
    let extension = |len| Ipv6RawExtHeader::new_raw(IpNumber::TCP, &vec![0; len]).unwrap();
    extensions.hop_by_hop_options = Some(extension(6));
    extensions.destination_options = Some(extension(14));
    extensions.routing = Some(Ipv6RoutingExtensions {
        routing: extension(6),
        final_destination_options: Some(extension(6)),
    });
    IpHeaders::Ipv6(header, extensions)
}

/// An IP packet without a link header.
pub(crate) fn packet(ip: IpHeaders, tcp: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ip(ip)
        .tcp_header(tcp)
        .write(&mut bytes, payload)
        .unwrap();
    bytes
}

pub(crate) fn udp(ip: IpHeaders, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ip(ip)
        .udp(5000, 443)
        .write(&mut bytes, payload)
        .unwrap();
    bytes
}

/// An IPv4 packet of any protocol.
pub(crate) fn ipv4_of(protocol: IpNumber, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap();
    let mut header = Ipv4Header::new(len, 64, protocol, HOME, SERVER).unwrap();
    header.header_checksum = header.calc_header_checksum();
    [&header.to_bytes(), payload].concat()
}

/// An IPv6 packet of any next header.
pub(crate) fn ipv6_of(next_header: IpNumber, payload: &[u8]) -> Vec<u8> {
    let header = Ipv6Header {
        payload_length: u16::try_from(payload.len()).unwrap(),
        next_header,
        source: HOME6,
        destination: SERVER6,
        ..Ipv6Header::default()
    };
    [&header.to_bytes()[..], payload].concat()
}

/// An unpadded Ethernet frame with tags (type and identifier) before a packet.
pub(crate) fn tagged(tags: &[(u16, u16)], ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = MACS.to_vec();
    for (tag_type, id) in tags {
        frame.extend(tag_type.to_be_bytes());
        frame.extend((0x6000 | id).to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    frame
}

/// An untagged frame around an IP packet.
pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    tagged(&[], ether_type, packet)
}

/// A PPPoE session packet (RFC 2516) around an IP packet; EtherType 0x8864.
pub(crate) fn pppoe(session: u16, packet: &[u8]) -> Vec<u8> {
    let protocol: u16 = if packet[0] >> 4 == 4 { 0x0021 } else { 0x0057 };
    let length = u16::try_from(packet.len() + 2).unwrap();
    let mut bytes = vec![0x11, 0];
    bytes.extend(session.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(protocol.to_be_bytes());
    bytes.extend(packet);
    bytes
}

/// One valid frame of every kind.
pub(crate) fn every_kind() -> Vec<Vec<u8>> {
    let syn = {
        let mut header = TcpHeader::new(5000, 443, 1, 500);
        header.syn = true;
        header.set_options(&[MaximumSegmentSize(1460)]).unwrap();
        header
    };
    let packets = [
        packet(ipv4(), ack(&[]), &[]),
        packet(ipv4(), ack(SACK), &[]),
        packet(ipv4_with_options(), ack(SACK), &[]),
        packet(ipv4(), ack(&[]), &[7; 1400]),
        packet(ipv4(), syn, &[]),
        packet(ipv6(), ack(SACK), &[]),
        packet(ipv6_with_extensions(), ack(&[]), &[7; 100]),
        udp(ipv4(), &[7; 160]),
        udp(ipv6(), &[]),
        ipv4_of(IpNumber::ICMP, &[8, 0, 0, 0, 0, 0, 0, 0]),
        ipv4_of(IpNumber(41), &packet(ipv6(), ack(SACK), &[])),
        ipv6_of(IpNumber(4), &packet(ipv4(), ack(SACK), &[])),
        ipv6_of(
            IpNumber(44),
            &[6, 0, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8],
        ),
    ];
    let mut frames = vec![tagged(&[], 0x0806, &[0; 46]), tagged(&[], 60, &[0x42; 60])];
    for packet in &packets {
        let plain = ethernet(packet);
        let ether_type = u16::from_be_bytes([plain[12], plain[13]]);
        frames.push(tagged(&[(0x8100, 5)], ether_type, packet));
        frames.push(tagged(&[(0x88a8, 100), (0x8100, 5)], ether_type, packet));
        frames.push(tagged(&[], 0x8864, &pppoe(9, packet)));
        frames.push(tagged(&[(0x8100, 7)], 0x8864, &pppoe(9, packet)));
        frames.push(plain);
    }
    for frame in &mut frames {
        frame.resize(frame.len().max(60), 0);
    }
    frames
}
