//! The parser, tested with frames that a library builds.

use crate::frames::*;
use asymq_core::decide::frame::{
    FlowKey, Parsed, ack_info, ack_info_of_trusted, parse, parse_prefix,
};
use asymq_core::packet::{Protocol, flags};
use etherparse::{IpHeaders, IpNumber, Ipv6FragmentHeader, TcpHeader};

const KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

fn facts(frame: &[u8]) -> Parsed {
    parse(frame, &FlowKey::new(KEY))
}

/// Checks that a frame contains the acknowledgement of [`ack`], with headers at these offsets.
fn assert_pure_ack(frame: &[u8], ip_len: usize, network: usize, transport: usize) {
    let parsed = facts(frame);
    let header = parsed.header;
    assert!(header.is_pure_ack(), "{parsed:?}");
    assert_eq!((header.ack, header.flags), (4711, flags::ACK));
    assert_eq!(header.ip_len as usize, ip_len);
    assert_eq!(usize::from(parsed.network), network);
    assert_eq!(usize::from(parsed.transport), transport);
    assert_eq!(header.len as usize, frame.len());
}

fn assert_opaque(frame: &[u8], ip_len: u32) {
    let parsed = facts(frame);
    assert_eq!(parsed.header.protocol, Protocol::Opaque, "{parsed:?}");
    assert_eq!((parsed.header.ip_len, parsed.transport), (ip_len, 0));
    assert_eq!((parsed.header.payload, parsed.header.flags), (0, 0));
}

#[test]
fn an_ack_is_recognised_in_every_encapsulation() {
    for (ip, header_len, options) in [
        (ipv4(), 20, &[][..]),
        (ipv4(), 20, SACK),
        (ipv4_with_options(), 60, SACK),
        (ipv6(), 40, &[]),
        (ipv6(), 40, SACK),
        (ipv6_with_extensions(), 80, SACK),
    ] {
        let tcp = ack(options);
        let ip_len = header_len + tcp.header_len();
        let packet = packet(ip, tcp, &[]);
        let plain = ethernet(&packet);
        let ether_type = u16::from_be_bytes([plain[12], plain[13]]);
        assert_pure_ack(&plain, ip_len, 14, 14 + header_len);
        for (tags, inner) in [
            (&[(0x8100, 5)][..], 18),
            (&[(0x88a8, 100), (0x8100, 5)], 22),
            (&[(0x9100, 100), (0x8100, 5)], 22),
            (&[(0x88a8, 1), (0x88a8, 2), (0x8100, 3)], 26),
        ] {
            assert_pure_ack(
                &tagged(tags, ether_type, &packet),
                ip_len,
                inner,
                inner + header_len,
            );
            let frame = tagged(tags, 0x8864, &pppoe(9, &packet));
            assert_pure_ack(&frame, ip_len, inner + 8, inner + 8 + header_len);
        }
        let frame = tagged(&[], 0x8864, &pppoe(9, &packet));
        assert_pure_ack(&frame, ip_len, 22, 22 + header_len);
        // 6in4, 4in4, DS-Lite and 6in6.
        let inner = IpNumber(if packet[0] >> 4 == 4 { 4 } else { 41 });
        let frame = ethernet(&ipv4_of(inner, &packet));
        assert_pure_ack(&frame, 20 + ip_len, 14, 34 + header_len);
        let frame = ethernet(&ipv6_of(inner, &packet));
        assert_pure_ack(&frame, 40 + ip_len, 14, 54 + header_len);
    }
}

#[test]
fn the_padding_of_a_60_byte_frame_is_not_payload() {
    let mut frame = ethernet(&packet(ipv4(), ack(&[]), &[]));
    assert_eq!(frame.len(), 54);
    frame.resize(60, 0);
    assert_pure_ack(&frame, 40, 14, 34);
    let mut frame = tagged(&[], 0x8864, &pppoe(9, &packet(ipv4(), ack(&[]), &[])));
    frame.resize(64, 0xff);
    assert_pure_ack(&frame, 40, 22, 42);
}

#[test]
fn payload_is_the_ip_length_less_both_headers() {
    for ip in [ipv4(), ipv4_with_options(), ipv6(), ipv6_with_extensions()] {
        for payload in [1, 3, 1200] {
            let mut frame = ethernet(&packet(ip.clone(), ack(SACK), &vec![1; payload]));
            frame.extend([0; 9]);
            let header = facts(&frame).header;
            assert_eq!(header.payload as usize, payload);
            assert!(header.is_tcp_data());
        }
    }
}

#[test]
fn every_flag_and_reserved_bit_of_tcp_is_reported() {
    for bit in 0..12 {
        let mut frame = ethernet(&packet(ipv4(), TcpHeader::new(1, 2, 3, 4), &[]));
        let flags = 1u16 << bit;
        frame[34 + 12] |= (flags >> 8) as u8;
        frame[34 + 13] = flags as u8;
        assert_eq!(facts(&frame).header.flags, flags);
    }
}

#[test]
fn other_protocols_are_whole_but_not_tcp() {
    for packet in [
        udp(ipv4(), &[1; 100]),
        udp(ipv6_with_extensions(), &[]),
        ipv4_of(IpNumber::ICMP, &[8, 0, 0, 0]),
        ipv4_of(IpNumber::ENCAPSULATING_SECURITY_PAYLOAD, &[0; 40]),
        ipv6_of(IpNumber::AUTHENTICATION_HEADER, &[6; 40]),
        ipv6_of(IpNumber::IPV6_NO_NEXT_HEADER, &[]),
        // A tunnel in a tunnel.
        ipv4_of(
            IpNumber(4),
            &ipv4_of(IpNumber(41), &ipv6_of(IpNumber::TCP, &[0; 20])),
        ),
    ] {
        let parsed = facts(&ethernet(&packet));
        assert_eq!(parsed.header.protocol, Protocol::NonTcp, "{packet:?}");
        assert_eq!(parsed.header.ip_len as usize, packet.len());
        assert_eq!((parsed.transport, parsed.header.payload), (0, 0));
    }
}

#[test]
fn udp_with_the_first_bits_of_a_short_quic_header_is_quic() {
    for (first, expected) in [
        (0x40, Protocol::Quic),
        (0x7f, Protocol::Quic),
        (0x47, Protocol::Quic),
        (0x50, Protocol::Quic),
        // STUN, WireGuard, DTLS, OpenVPN, RTP, and a long QUIC header.
        (0x48, Protocol::NonTcp),
        (0x4f, Protocol::NonTcp),
        (0x00, Protocol::NonTcp),
        (0x04, Protocol::NonTcp),
        (0x16, Protocol::NonTcp),
        (0x80, Protocol::NonTcp),
        (0xc3, Protocol::NonTcp),
    ] {
        for ip in [ipv4(), ipv6()] {
            let packet = udp(ip, &[first, 1, 2]);
            let parsed = facts(&ethernet(&packet));
            assert_eq!(parsed.header.protocol, expected, "{first:#x}");
        }
    }
    let (v1, v2) = ([0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]);
    for (first, version, expected) in [
        (0xc3, v1, Protocol::QuicLong),
        (0xff, v2, Protocol::QuicLong),
        // A greased bit, version negotiation, a draft version, and RTP with the same bytes.
        (0x83, v1, Protocol::NonTcp),
        (0xc3, [0; 4], Protocol::NonTcp),
        (0xc3, [0xff, 0, 0, 29], Protocol::NonTcp),
        (0x80, v2, Protocol::NonTcp),
    ] {
        for ip in [ipv4(), ipv6()] {
            let packet = udp(ip, &[&[first], &version[..], &[8; 20]].concat());
            let parsed = facts(&ethernet(&packet));
            assert_eq!(parsed.header.protocol, expected, "{first:#x} {version:?}");
        }
    }
    let other = ipv4_of(IpNumber::DCCP, &[0x40; 20]);
    assert_eq!(facts(&ethernet(&other)).header.protocol, Protocol::NonTcp);
    // A datagram without payload.
    let empty = udp(ipv4(), &[]);
    assert_eq!(facts(&ethernet(&empty)).header.protocol, Protocol::NonTcp);
}

#[test]
fn fragments_are_opaque_but_have_a_length() {
    for (high, low) in [(0x20, 0), (0, 1), (0x20, 185), (0x1f, 0xff)] {
        let mut packet = packet(ipv4(), ack(&[]), &[]);
        (packet[6], packet[7]) = (high, low);
        assert_opaque(&ethernet(&packet), 40);
    }
    for (offset, more) in [(0, true), (8, false), (8, true)] {
        assert_opaque(&ipv6_fragment(offset, more), 68);
    }
}

fn ipv6_fragment(offset: u16, more: bool) -> Vec<u8> {
    let IpHeaders::Ipv6(header, mut extensions) = ipv6() else {
        unreachable!()
    };
    let offset = offset.try_into().unwrap();
    extensions.fragment = Some(Ipv6FragmentHeader::new(IpNumber::TCP, offset, more, 9));
    ethernet(&packet(IpHeaders::Ipv6(header, extensions), ack(&[]), &[]))
}

#[test]
fn an_atomic_fragment_is_whole() {
    assert_pure_ack(&ipv6_fragment(0, false), 68, 14, 62);
}

#[test]
fn do_not_fragment_does_not_make_a_fragment() {
    let mut packet = packet(ipv4(), ack(&[]), &[]);
    packet[6] = 0x40;
    assert_pure_ack(&ethernet(&packet), 40, 14, 34);
}

#[test]
fn a_frame_that_is_not_ip_is_opaque_and_counts_without_its_link_layer() {
    for (frame, network) in [
        (tagged(&[], 0x0806, &[0; 46]), 14),
        (tagged(&[(0x8100, 5)], 0x0806, &[0; 46]), 18),
        (tagged(&[], 60, &[0x42; 60]), 14), // 802.3 length: spanning tree
        (tagged(&[], 0x8863, &[0x11; 46]), 14), // PPPoE discovery
        (
            tagged(&[(0x8100, 1); 4], 0x0800, &packet(ipv4(), ack(&[]), &[])),
            26,
        ),
    ] {
        assert_opaque(&frame, 0);
        assert_eq!(facts(&frame).network, network);
    }
}

#[test]
fn every_truncation_of_every_kind_of_frame_is_opaque() {
    for frame in every_kind() {
        let parsed = facts(&frame);
        if parsed.header.ip_len == 0 {
            continue;
        }
        let end = usize::from(parsed.network) + parsed.header.ip_len as usize;
        for len in 0..end {
            assert_opaque(&frame[..len], 0);
        }
        assert_eq!(facts(&frame[..end]).header.protocol, parsed.header.protocol);
    }
}

#[test]
fn lengths_that_contradict_each_other_are_opaque() {
    let whole = ethernet(&packet(ipv4(), ack(SACK), &[1; 4]));
    let with = |at: usize, value: u8| {
        let mut frame = whole.clone();
        frame[at] = value;
        frame
    };
    assert_opaque(&with(14, 0x44), 0); // header shorter than 20
    assert_opaque(&with(14, 0x65), 0); // version 6 under IPv4's EtherType
    assert_opaque(&with(17, 19), 0); // packet shorter than its header
    assert_opaque(&with(16, 1), 0); // packet longer than the frame
    let ip_len = whole.len() as u32 - 14;
    assert_opaque(&with(34 + 12, 0x40), ip_len); // TCP header shorter than 20
    assert_opaque(&with(34 + 12, 0xf0), ip_len); // and longer than the packet
    assert_opaque(&ethernet(&ipv4_of(IpNumber::TCP, &[0x50; 19])), 39);
    // PPPoE that announces more bytes than the frame has, or is not a session packet.
    let session = tagged(&[], 0x8864, &pppoe(9, &whole[14..]));
    for (at, value) in [(14, 0x21), (15, 0x09), (18, 0xff), (21, 0x23)] {
        let mut frame = session.clone();
        frame[at] = value;
        assert_opaque(&frame, 0);
    }
    // A jumbogram has length 0 in the IPv6 header.
    let mut frame = ethernet(&packet(ipv6(), ack(&[]), &[]));
    (frame[18], frame[19]) = (0, 0);
    assert_opaque(&frame, 40);
    // A tunnel with another protocol inside.
    assert_opaque(&ethernet(&ipv4_of(IpNumber(41), &whole[14..])), 20 + ip_len);
}

#[test]
fn the_length_of_an_extension_header_chain_is_limited() {
    let chain = |headers: usize| {
        let mut payload = [60, 0, 0, 0, 0, 0, 0, 0].repeat(headers - 1);
        payload.extend([6, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend(ack(&[]).to_bytes());
        ethernet(&ipv6_of(IpNumber(60), &payload))
    };
    assert_pure_ack(&chain(8), 124, 14, 118);
    assert_opaque(&chain(9), 0);
    assert_opaque(&chain(180), 0);
}

#[test]
fn a_flow_is_addresses_ports_protocol_and_link() {
    let base = packet(ipv4(), ack(&[]), &[]);
    let flow = |frame: &[u8]| facts(frame).header.flow;
    let one = flow(&ethernet(&base));
    // IP identification, options, length, padding and priority tags are not part of the hash.
    assert_eq!(
        flow(&ethernet(&packet(ipv4_with_options(), ack(SACK), &[1; 50]))),
        one
    );
    assert_eq!(flow(&tagged(&[(0x8100, 0)], 0x0800, &base)), one);
    let mut others = vec![
        flow(&tagged(&[(0x8100, 5)], 0x0800, &base)),
        flow(&tagged(&[(0x8100, 6)], 0x0800, &base)),
        flow(&tagged(&[(0x88a8, 6), (0x8100, 5)], 0x0800, &base)),
        flow(&tagged(&[], 0x8864, &pppoe(9, &base))),
        flow(&ethernet(&udp(ipv4(), &[]))),
        flow(&ethernet(&packet(ipv6(), ack(&[]), &[]))),
        one,
    ];
    for at in 12..24 {
        let mut changed = base.clone();
        changed[at] ^= 1;
        others.push(flow(&ethernet(&changed)));
    }
    let count = others.len();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), count, "two conversations share a flow");
    // Another key gives another hash.
    let key = FlowKey::new([1, 2]);
    assert_ne!(parse(&ethernet(&base), &key).header.flow, one);
}

#[test]
fn both_directions_of_a_conversation_know_each_other() {
    for (ip, at, len) in [(ipv4(), 12, 4), (ipv6(), 8, 16)] {
        let packet = packet(ip, ack(&[]), &[]);
        let mut answer = packet.clone();
        answer[at..at + len].copy_from_slice(&packet[at + len..at + 2 * len]);
        answer[at + len..at + 2 * len].copy_from_slice(&packet[at..at + len]);
        let tcp = at + 2 * len;
        answer[tcp..tcp + 2].copy_from_slice(&packet[tcp + 2..tcp + 4]);
        answer[tcp + 2..tcp + 4].copy_from_slice(&packet[tcp..tcp + 2]);
        let (there, back) = (
            facts(&ethernet(&packet)).header.flow,
            facts(&ethernet(&answer)).header.flow,
        );
        assert_ne!(there, back);
        assert_eq!(there.reverse(), back);
        assert_eq!(back.reverse(), there);
    }
}

#[test]
fn a_prefix_with_all_headers_has_the_facts_of_the_whole_frame() {
    let key = FlowKey::new(KEY);
    for ip in [ipv4(), ipv4_with_options(), ipv6(), ipv6_with_extensions()] {
        let packet = packet(ip, ack(SACK), &[7; 900]);
        let inner = IpNumber(if packet[0] >> 4 == 4 { 4 } else { 41 });
        for frame in [
            ethernet(&packet),
            tagged(&[], 0x8864, &pppoe(9, &packet)),
            tagged(&[(0x8100, 5)], 0x8864, &pppoe(9, &packet)),
            ethernet(&ipv4_of(inner, &packet)),
            ethernet(&ipv6_of(inner, &packet)),
        ] {
            let whole = facts(&frame);
            assert_eq!(whole.header.payload, 900);
            for captured in 0..=frame.len() {
                let prefix = &frame[..captured];
                let parsed = parse_prefix(prefix, frame.len(), &key);
                // The parser reads only the fixed part of the TCP header.
                if captured >= usize::from(whole.transport) + 20 {
                    assert_eq!(parsed, whole, "{captured}");
                } else {
                    assert_eq!(parsed.header.protocol, Protocol::Opaque, "{captured}");
                }
            }
            // A frame that ends before its IP packet is opaque, with any captured length.
            let cut = parse_prefix(&frame[..200], frame.len() - 1, &key);
            assert_eq!(cut.header.protocol, Protocol::Opaque);
        }
    }
}

#[test]
fn a_checksum_that_the_hardware_completes_is_not_verified() {
    let mut frame = ethernet(&packet(ipv4(), ack(SACK), &[]));
    let transport = facts(&frame).transport;
    let right = ack_info(&frame, transport).unwrap();
    frame[usize::from(transport) + 16] ^= 1;
    assert_eq!(ack_info(&frame, transport), None);
    assert_eq!(ack_info_of_trusted(&frame, transport), Some(right));
}
