//! The length in a link header bounds the packet after it.

use crate::frames::{ack, ipv4, ipv6, packet, pppoe, tagged};
use asymq_core::decide::frame::{FlowKey, Parsed, parse};
use asymq_core::packet::Protocol;

fn facts(frame: &[u8]) -> Parsed {
    parse(frame, &FlowKey::new([1, 2]))
}

#[test]
fn a_pppoe_length_shorter_than_its_packet_is_malformed() {
    for packet in [
        packet(ipv4(), ack(&[]), &[]),
        packet(ipv6(), ack(&[]), &[1; 9]),
    ] {
        for tags in [&[][..], &[(0x8100, 5)], &[(0x88a8, 100), (0x8100, 5)]] {
            let whole = tagged(tags, 0x8864, &pppoe(9, &packet));
            let length_at = 12 + 4 * tags.len() + 6;
            // The length includes the two bytes of PPP's protocol number.
            for length in 0..packet.len() + 6 {
                let mut frame = whole.clone();
                frame.resize(frame.len() + 4, 0);
                let bytes = u16::try_from(length).unwrap().to_be_bytes();
                frame[length_at..length_at + 2].copy_from_slice(&bytes);
                let parsed = facts(&frame);
                if length < packet.len() + 2 {
                    assert_eq!(parsed.header.protocol, Protocol::Opaque, "{length}");
                    assert_eq!((parsed.header.ip_len, parsed.transport), (0, 0));
                } else {
                    assert_eq!(parsed.header.protocol, Protocol::Tcp, "{length}");
                    assert_eq!(parsed.header.ip_len as usize, packet.len());
                }
            }
        }
    }
}

/// A frame with an 802.3 length carries LLC, so it is never parsed as IP.
#[test]
fn a_length_in_place_of_an_ethertype_is_never_ip() {
    let packet = packet(ipv4(), ack(&[]), &[]);
    for length in [0, 39, 40, 46, 1500, 0x05ff] {
        for tags in [&[][..], &[(0x8100, 5)]] {
            let parsed = facts(&tagged(tags, length, &packet));
            assert_eq!(parsed.header.protocol, Protocol::Opaque);
        }
    }
}
