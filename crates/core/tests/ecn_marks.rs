//! CE marks on real frames.

use crate::frames::{ack, ethernet, ipv4, ipv4_with_options, ipv6, packet, pppoe, tagged};
use asymq_core::Ecn;
use asymq_core::decide::frame::{FlowKey, mark_ce, parse};
use etherparse::{IpHeaders, Ipv4Header};

fn ecn(frame: &[u8]) -> Ecn {
    parse(frame, &FlowKey::new([1, 2])).header.ecn
}

fn network(frame: &[u8]) -> u16 {
    parse(frame, &FlowKey::new([1, 2])).network
}

/// An IPv4 header with these ECN bits and a correct checksum.
fn v4_with(bits: u8, ip: IpHeaders) -> Vec<u8> {
    let IpHeaders::Ipv4(mut header, extensions) = ip else {
        panic!("not IPv4")
    };
    header.ecn = etherparse::IpEcn::try_new(bits).unwrap();
    packet(IpHeaders::Ipv4(header, extensions), ack(&[]), &[])
}

fn v6_with(bits: u8) -> Vec<u8> {
    let IpHeaders::Ipv6(mut header, extensions) = ipv6() else {
        panic!("not IPv6")
    };
    header.traffic_class = 0xa8 | bits;
    packet(IpHeaders::Ipv6(header, extensions), ack(&[]), &[])
}

fn checksum_is_right(frame: &[u8], at: u16) -> bool {
    let (header, _) = Ipv4Header::from_slice(&frame[usize::from(at)..]).unwrap();
    header.header_checksum == header.calc_header_checksum()
}

#[test]
fn a_mark_on_ipv4_is_the_frame_that_a_marking_sender_would_have_made() {
    for bits in [1, 2, 3] {
        for ip in [ipv4, ipv4_with_options] {
            type Wrap = fn(&[u8]) -> Vec<u8>;
            let wraps: [Wrap; 3] = [
                ethernet,
                |packet| tagged(&[(0x8100, 7)], 0x0800, packet),
                |packet| tagged(&[], 0x8864, &pppoe(9, packet)),
            ];
            for wrap in wraps {
                let mut frame = wrap(&v4_with(bits, ip()));
                let at = network(&frame);
                assert!(mark_ce(&mut frame, at));
                assert_eq!(frame, wrap(&v4_with(3, ip())));
                assert!(checksum_is_right(&frame, network(&frame)));
            }
        }
    }
}

#[test]
fn a_mark_keeps_a_wrong_checksum_wrong() {
    let mut frame = ethernet(&v4_with(2, ipv4()));
    frame[14 + 10] ^= 0x40;
    assert!(!checksum_is_right(&frame, 14));
    assert!(mark_ce(&mut frame, 14));
    assert!(!checksum_is_right(&frame, 14));
}

#[test]
fn a_mark_on_ipv6_changes_nothing_else() {
    for bits in [1, 2, 3] {
        let mut frame = ethernet(&v6_with(bits));
        assert!(mark_ce(&mut frame, 14));
        assert_eq!(frame, ethernet(&v6_with(3)));
        assert_eq!(ecn(&frame), Ecn::Ce);
    }
}

#[test]
fn a_packet_that_is_not_ecn_capable_stays_unchanged() {
    for packet in [v4_with(0, ipv4()), v6_with(0)] {
        let mut frame = ethernet(&packet);
        assert!(!mark_ce(&mut frame, 14));
        assert_eq!(frame, ethernet(&packet));
    }
}

#[test]
fn a_truncated_frame_or_a_wrong_offset_is_left_alone() {
    for (packet, header) in [(v4_with(2, ipv4()), 20), (v6_with(2), 40)] {
        let whole = ethernet(&packet);
        for len in 0..14 + header {
            let mut frame = whole[..len].to_vec();
            assert!(!mark_ce(&mut frame, 14), "{len} bytes");
            assert_eq!(frame, whole[..len]);
        }
        let mut frame = whole.clone();
        assert!(!mark_ce(&mut frame, u16::MAX));
        assert_eq!(frame, whole);
    }
}
