//! Superpackets in tunnels. Every segment must equal, byte for byte, the frame of a host without offloads. A separate
//! function builds that frame. A third-party parser then checks all lengths and checksums.

use super::*;
use etherparse::{
    Ipv4HeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice, TcpSlice, UdpHeaderSlice, UdpSlice,
};

/// A header as on the wire, except for lengths, identifications and checksums.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// Constant headers: Ethernet, tags, labels, a tunnel's own header.
    Bytes(&'static [u8]),
    /// IPv4 that carries this protocol.
    V4(u8),
    /// IPv6 that carries this protocol.
    V6(u8),
    /// IPv6 with a tunnel's destination options.
    V6Options(u8),
    /// UDP header of a tunnel; true if it has a checksum.
    Udp(bool),
    /// GRE with a checksum, which carries this EtherType.
    GreChecksum(u16),
    /// Header of a PPPoE session, which carries this PPP protocol.
    Pppoe(u16),
}

use Part::{Bytes, GreChecksum, Pppoe, Udp, V4, V6, V6Options};

const MACS: Part = Bytes(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
const TO_V4: Part = Bytes(&[8, 0]);
const TO_V6: Part = Bytes(&[0x86, 0xdd]);
const TO_PPPOE: Part = Bytes(&[0x88, 0x64]);
const VLAN: Part = Bytes(&[0x81, 0, 0, 5]);
const QINQ: Part = Bytes(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5]);
const MPLS: Part = Bytes(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]);
/// VXLAN header whose last bits look like the start of an IPv4 header.
const VXLAN: Part = Bytes(&[8, 0, 0, 0, 0x45, 0, 0, 0]);
/// Eight bytes of options.
const GENEVE: Part = Bytes(&[2, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 1, 0x60, 0, 0, 0]);
const GUE: Part = Bytes(&[0, 4, 0, 0]);
const GRE: Part = Bytes(&[0, 0, 8, 0]);
const GRETAP_KEY: Part = Bytes(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7]);

/// Link layers and tunnels, with their names.
pub(super) fn cases() -> Vec<(&'static str, Vec<Part>)> {
    let vxlan = |checksum| [MACS, TO_V4, V4(17), Udp(checksum), VXLAN, MACS].to_vec();
    let with = |mut parts: Vec<Part>, rest: &[Part]| {
        parts.extend(rest);
        parts
    };
    vec![
        ("plain", vec![MACS, TO_V4, V4(6)]),
        ("qinq", vec![MACS, QINQ, TO_V6, V6(6)]),
        ("vxlan", with(vxlan(false), &[TO_V4, V4(6)])),
        ("vxlan with a checksum", with(vxlan(true), &[TO_V6, V6(6)])),
        (
            "vxlan over IPv6, a VLAN inside, two outside",
            vec![
                MACS,
                QINQ,
                TO_V6,
                V6(17),
                Udp(true),
                VXLAN,
                MACS,
                VLAN,
                TO_V4,
                V4(6),
            ],
        ),
        (
            "geneve with options",
            vec![MACS, TO_V4, V4(17), Udp(true), GENEVE, MACS, TO_V6, V6(6)],
        ),
        ("gue", vec![MACS, TO_V4, V4(17), Udp(false), GUE, V4(6)]),
        ("fou", vec![MACS, TO_V4, V4(17), Udp(true), V4(6)]),
        ("gre", vec![MACS, TO_V4, V4(47), GRE, V4(6)]),
        (
            "gretap with a key",
            vec![MACS, TO_V6, V6Options(47), GRETAP_KEY, MACS, TO_V4, V4(6)],
        ),
        (
            "gre with a checksum",
            vec![MACS, TO_V4, V4(47), GreChecksum(0x86dd), V6(6)],
        ),
        ("ipip", vec![MACS, TO_V4, V4(4), V4(6)]),
        ("6in4", vec![MACS, TO_V4, V4(41), V6(6)]),
        ("4in6", vec![MACS, VLAN, TO_V6, V6Options(4), V4(6)]),
        ("pppoe", vec![MACS, VLAN, TO_PPPOE, Pppoe(0x57), V6(6)]),
        (
            "ipip in pppoe",
            vec![MACS, TO_PPPOE, Pppoe(0x21), V4(4), V4(6)],
        ),
        (
            "pppoe in vxlan",
            with(vxlan(true), &[TO_PPPOE, Pppoe(0x21), V4(6)]),
        ),
        ("mpls", vec![MACS, MPLS, V4(6)]),
        (
            "gre with a checksum in vxlan with a checksum",
            with(vxlan(true), &[TO_V4, V4(47), GreChecksum(0x0800), V4(6)]),
        ),
    ]
}

/// Form of a packet, which selects its lengths and checksums.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A superpacket. The fields of checksums over its payload contain only the pseudo header's sum.
    Superpacket,
    Frame,
}

const FIRST_ID: u16 = 0xfffe;
const FIRST_NUMBER: u32 = 0xffff_f000;

/// Builds a frame of `parts`; it is frame `number` of its flow.
fn build(parts: &[Part], transport: &[u8], number: usize, form: Form) -> Vec<u8> {
    let mut content = transport.to_vec();
    // Protocol that the next IP header carries, and offset of its checksum field.
    let mut seals = match parts.last() {
        Some(V4(17) | V6(17)) => Some((17, 6)),
        _ => Some((6, 16)),
    };
    for part in parts.iter().rev() {
        let len = content.len() as u16;
        let header = match *part {
            Bytes(bytes) => bytes.to_vec(),
            Pppoe(protocol) => {
                let [len, protocol] = [len + 2, protocol].map(u16::to_be_bytes);
                [&[0x11, 0, 0, 7], &len[..], &protocol].concat()
            }
            V4(_) | V6(_) | V6Options(_) => {
                let header = ip(*part, len, FIRST_ID.wrapping_add(number as u16));
                if let Some(field) = seals.take() {
                    seal(&header, &mut content, field, form);
                }
                header
            }
            Udp(checksum) => {
                seals = checksum.then_some((17, 6));
                [
                    &[0xc0, 1, 0x12, 0xb5],
                    &(len + 8).to_be_bytes()[..],
                    &[0, 0],
                ]
                .concat()
            }
            GreChecksum(kind) => {
                let mut header = [&[0x80, 0], &kind.to_be_bytes()[..], &[0; 4]].concat();
                if form == Form::Frame {
                    let sum = !slow_sum(&[&header[..], &content].concat(), 0);
                    header[4..6].copy_from_slice(&sum.to_be_bytes());
                }
                header
            }
        };
        content = [header, content].concat();
    }
    content
}

fn ip(part: Part, len: u16, id: u16) -> Vec<u8> {
    match part {
        V4(protocol) => {
            let [len, id] = [len + 20, id].map(u16::to_be_bytes);
            let addresses = [10, 1, 2, 3, 172, 16, 5, 6];
            let rest = [0x40, 0, 64, protocol, 0, 0];
            let mut header = [&[0x45, 0], &len[..], &id, &rest, &addresses].concat();
            let sum = !slow_sum(&header, 0);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        V6(next) => {
            let addresses: Vec<u8> = (0..32).map(|i| i * 7).collect();
            let len = len.to_be_bytes();
            [&[0x60, 0, 0, 0], &len[..], &[next, 64], &addresses].concat()
        }
        V6Options(protocol) => {
            let options = [protocol, 0, 4, 1, 4, 1, 1, 0];
            [ip(V6(60), len + 8, id), options.to_vec()].concat()
        }
        _ => panic!("{part:?} is not IP"),
    }
}

/// Computes the checksum at `field` of an IP packet's payload.
fn seal(ip: &[u8], content: &mut [u8], (protocol, field): (u8, usize), form: Form) {
    let addresses = if ip[0] >> 4 == 4 {
        &ip[12..20]
    } else {
        &ip[8..40]
    };
    let pseudo = slow_sum(addresses, u32::from(protocol) + content.len() as u32);
    content[field..field + 2].fill(0);
    let sum = match form {
        Form::Superpacket => pseudo,
        Form::Frame => match !slow_sum(content, pseudo.into()) {
            0 if protocol == 17 => 0xffff,
            sum => sum,
        },
    };
    content[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * i) >> 3) as u8).collect()
}

fn tcp(offset: usize, flags: u8, payload: &[u8]) -> Vec<u8> {
    let sequence = FIRST_NUMBER.wrapping_add(offset as u32).to_be_bytes();
    let rest = [1, 2, 3, 4, 0x80, flags, 0xff, 0xff, 0, 0, 0, 0];
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8];
    [
        &[0x14, 0x51, 0xc3, 0x50],
        &sequence[..],
        &rest,
        &timestamps,
        payload,
    ]
    .concat()
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16 + 8).to_be_bytes();
    [&[0x30, 0x39, 1, 0xbb], &len[..], &[0, 0], payload].concat()
}

fn marked(frame: Vec<u8>, transport_len: usize, kind: u8, field: u16, segment: u16) -> Superpacket {
    let start = (frame.len() - transport_len) as u16;
    let mut header = [NEEDS_CSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
    header[4..6].copy_from_slice(&segment.to_ne_bytes());
    header[6..8].copy_from_slice(&start.to_ne_bytes());
    header[8..10].copy_from_slice(&field.to_ne_bytes());
    Superpacket { frame, header }
}

/// A TCP superpacket, and the frames that it replaces.
pub(super) fn tcp_case(parts: &[Part], len: usize, segment: usize) -> (Superpacket, Vec<Vec<u8>>) {
    const FIN_PSH_ACK: u8 = 0x19;
    let kind = match parts.last() {
        Some(V6(_)) => GSO_TCPV6,
        _ => GSO_TCPV4,
    };
    let all = payload(len);
    let whole = tcp(0, FIN_PSH_ACK, &all);
    let frame = build(parts, &whole, 0, Form::Superpacket);
    let packet = marked(frame, whole.len(), kind, 16, segment as u16);
    let count = len.div_ceil(segment);
    let frames = all.chunks(segment).enumerate().map(|(i, part)| {
        let flags = if i + 1 == count { FIN_PSH_ACK } else { 0x10 };
        build(parts, &tcp(i * segment, flags, part), i, Form::Frame)
    });
    (packet, frames.collect())
}

/// Builds a whole frame with `len` bytes of TCP payload.
pub(super) fn segment_of(parts: &[Part], len: usize) -> Vec<u8> {
    build(parts, &tcp(0, 0x10, &payload(len)), 0, Form::Frame)
}

#[test]
fn every_segment_in_a_tunnel_is_the_frame_of_a_host_without_offloads() {
    const SIZES: [(usize, usize); 5] = [
        (62_000, 1388),
        (1, 1388),
        (9000, 8900),
        (2777, 1388),
        (5, 1),
    ];
    for (name, parts) in cases() {
        for (len, segment) in SIZES {
            let (packet, expected) = tcp_case(&parts, len, segment);
            let frames = undo(&packet).unwrap_or_else(|why| panic!("{name}: {why:?}"));
            assert_eq!(frames.len(), expected.len(), "{name}");
            for (i, (frame, expected)) in frames.iter().zip(&expected).enumerate() {
                assert_eq!(frame, expected, "{name}: segment {i} of {len} bytes");
            }
        }
    }
}

#[test]
fn datagrams_in_a_tunnel_are_those_of_a_host_without_offloads() {
    for (name, mut parts) in cases() {
        let last = parts.last_mut().unwrap();
        *last = match last {
            V6(_) => V6(17),
            _ => V4(17),
        };
        let all = payload(20_000);
        let whole = udp(&all);
        let frame = build(&parts, &whole, 0, Form::Superpacket);
        let frames = undo(&marked(frame, whole.len(), GSO_UDP_L4, 6, 1200)).unwrap();
        let parts_of = all.chunks(1200).enumerate();
        let expected = parts_of.map(|(i, part)| build(&parts, &udp(part), i, Form::Frame));
        assert!(frames.into_iter().eq(expected), "{name}");
    }
}

#[test]
fn a_partial_checksum_in_a_tunnel_is_completed_and_the_rest_left_alone() {
    for (name, parts) in cases() {
        let whole = tcp(0, 0x10, &payload(999));
        let expected = build(&parts, &whole, 0, Form::Frame);
        // A host computes the outer checksum after the inner one.
        let mut packet = marked(expected.clone(), whole.len(), GSO_NONE, 16, 0);
        let inner = build(&parts[parts.len() - 1..], &whole, 0, Form::Superpacket);
        let at = expected.len() - whole.len() + 16;
        let field = inner.len() - whole.len() + 16;
        packet.frame[at..at + 2].copy_from_slice(&inner[field..field + 2]);
        assert_ne!(packet.frame, expected, "{name}");
        assert_eq!(undo(&packet).unwrap(), [expected], "{name}");
    }
}

#[test]
fn superpackets_beyond_64_kib_are_split_and_their_jumbo_option_taken_out() {
    let v6 = [MACS, TO_V6, V6(6)];
    let all = payload(200_000);
    let whole = tcp(0, 0x10, &all);
    let mut frame = build(&v6, &whole[..32], 0, Form::Superpacket);
    frame.truncate(54);
    frame[18..21].fill(0);
    frame.extend([6, 0, 0xc2, 4]);
    frame.extend((whole.len() as u32 + 8).to_be_bytes());
    let at = frame.len();
    frame.extend(&whole);
    let pseudo = slow_sum(&frame[22..54], 6 + whole.len() as u32);
    frame[at + 16..at + 18].copy_from_slice(&pseudo.to_be_bytes());
    let frames = undo(&marked(frame, whole.len(), GSO_TCPV6, 16, 1428)).unwrap();
    let parts_of = all.chunks(1428).enumerate();
    let expected = parts_of.map(|(i, part)| build(&v6, &tcp(i * 1428, 0x10, part), i, Form::Frame));
    assert!(frames.into_iter().eq(expected));
}

/// Checks an IP packet's lengths and checksums. Returns the innermost TCP payload.
fn verified(bytes: &[u8]) -> Vec<u8> {
    let (protocol, content, v4, v6) = if bytes[0] >> 4 == 4 {
        let header = Ipv4HeaderSlice::from_slice(bytes).unwrap().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        assert_eq!(usize::from(header.total_len), bytes.len());
        (header.protocol.0, &bytes[20..], Some(header), None)
    } else {
        let header = Ipv6HeaderSlice::from_slice(bytes).unwrap().to_header();
        assert_eq!(usize::from(header.payload_length), bytes.len() - 40);
        (header.next_header.0, &bytes[40..], None, Some(header))
    };
    match protocol {
        4 | 41 => verified(content),
        6 => {
            let tcp = TcpHeaderSlice::from_slice(content).unwrap().to_header();
            let payload = TcpSlice::from_slice(content).unwrap().payload();
            let sum = match (v4, v6) {
                (Some(ip), _) => tcp.calc_checksum_ipv4(&ip, payload),
                (_, ip) => tcp.calc_checksum_ipv6(&ip.unwrap(), payload),
            };
            assert_eq!(tcp.checksum, sum.unwrap());
            payload.to_vec()
        }
        17 => {
            let udp = UdpHeaderSlice::from_slice(content).unwrap().to_header();
            let payload = UdpSlice::from_slice(content).unwrap().payload();
            assert_eq!(usize::from(udp.length), content.len());
            let sum = match (v4, v6) {
                (Some(ip), _) => udp.calc_checksum_ipv4(&ip, payload),
                (_, ip) => udp.calc_checksum_ipv6(&ip.unwrap(), payload),
            };
            assert!([0, sum.unwrap()].contains(&udp.checksum));
            // Skips the headers of VXLAN and Ethernet.
            verified(&payload[8 + 14..])
        }
        other => panic!("protocol {other}"),
    }
}

#[test]
fn a_parser_of_others_finds_all_lengths_and_checksums_right_and_the_data_whole() {
    let names = ["plain", "vxlan", "vxlan with a checksum", "ipip", "6in4"];
    for (name, parts) in cases() {
        if !names.contains(&name) {
            continue;
        }
        let (packet, _) = tcp_case(&parts, 50_000, 1388);
        let frames = undo(&packet).unwrap();
        let arrived: Vec<u8> = frames
            .iter()
            .flat_map(|frame| verified(&frame[ETHERNET..]))
            .collect();
        assert!(arrived == payload(50_000), "{name}");
    }
}

#[test]
fn unsupported_headers_are_refused_and_not_corrupted() {
    const NUMBERED: Part = Bytes(&[0x10, 0, 8, 0, 0, 0, 0, 1]);
    let refused: [(&str, &[Part]); 4] = [
        ("numbered GRE", &[MACS, TO_V4, V4(47), NUMBERED, V4(6)]),
        ("protocol 99", &[MACS, TO_V4, V4(99), V4(6)]),
        ("NSH", &[MACS, Bytes(&[0x89, 0x4f, 1, 1]), V4(6)]),
        ("AH", &[MACS, TO_V4, V4(51), Bytes(&[4; 24]), V4(6)]),
    ];
    for (name, parts) in refused {
        let (packet, _) = tcp_case(parts, 5000, 1000);
        assert_eq!(undo(&packet), Err(Refused::Unsegmentable), "{name}");
    }
}

#[test]
fn without_its_mark_cwr_is_a_bit_of_a_counter_and_on_every_segment() {
    let parts = [MACS, TO_V4, V4(6)];
    let whole = tcp(0, 0xd0, &payload(4000));
    let flags = |kind| -> Vec<u8> {
        let frame = build(&parts, &whole, 0, Form::Superpacket);
        let frames = undo(&marked(frame, whole.len(), kind, 16, 1000)).unwrap();
        frames.iter().map(|frame| frame[47]).collect()
    };
    assert_eq!(flags(GSO_TCPV4), [0xd0; 4]);
    assert_eq!(flags(GSO_TCPV4 | GSO_ECN), [0xd0, 0x50, 0x50, 0x50]);
}
