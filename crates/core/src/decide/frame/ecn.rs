//! The ECN field of a real frame.

use super::checksum::fold;
use crate::Ecn;

/// Sets CE in the outermost IP header of `frame`, which begins at `network`, if the packet is ECN-capable. Updates
/// IPv4's checksum incrementally (RFC 1624); a wrong checksum stays wrong. Returns true if the packet now has CE.
pub fn mark_ce(frame: &mut [u8], network: u16) -> bool {
    let Some(ip) = frame.get_mut(usize::from(network)..) else {
        return false;
    };
    match ip.first().map(|first| first >> 4) {
        Some(4) => mark_v4(ip),
        Some(6) => mark_v6(ip),
        _ => None,
    }
    .is_some()
}

fn mark_v4(ip: &mut [u8]) -> Option<()> {
    let [version, tos, _, _, _, _, _, _, _, _, sum_high, sum_low, ..] =
        ip.first_chunk_mut::<20>()?;
    if !Ecn::from_bits(*tos).is_capable() {
        return None;
    }
    let before = u16::from_be_bytes([*version, *tos]);
    *tos |= Ecn::Ce as u8;
    let after = u16::from_be_bytes([*version, *tos]);
    let sum = !u16::from_be_bytes([*sum_high, *sum_low]);
    let sum = u64::from(sum) + u64::from(!before) + u64::from(after);
    [*sum_high, *sum_low] = (!fold(sum)).to_be_bytes();
    Some(())
}

fn mark_v6(ip: &mut [u8]) -> Option<()> {
    let [_, class, ..] = ip.first_chunk_mut::<40>()?;
    if !Ecn::from_bits(*class >> 4).is_capable() {
        return None;
    }
    *class |= (Ecn::Ce as u8) << 4;
    Some(())
}
