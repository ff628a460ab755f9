//! Checksums of Internet headers (RFC 1071).

use super::ip::{Addresses, Ip};

/// True if the IPv4 header at the start of `packet` has a correct checksum. Always true for IPv6, which has none.
#[inline]
pub(super) fn ip_header_is_right(ip: &Ip<'_>, packet: &[u8]) -> bool {
    match ip.addresses {
        Addresses::V4(..) => packet
            .get(..ip.header_len)
            .is_some_and(|header| fold(words(header)) == 0xffff),
        Addresses::V6(..) => true,
    }
}

/// True if the TCP segment in `ip` has a correct checksum, including the pseudo header (RFC 9293, sec. 3.1).
#[inline]
pub(super) fn segment_is_right(ip: &Ip<'_>) -> bool {
    const TCP: u64 = 6;
    let wide = |address: u128| {
        let quarter = |shift: u32| u64::from((address >> shift) as u32);
        quarter(96) + quarter(64) + quarter(32) + quarter(0)
    };
    let addresses = match ip.addresses {
        Addresses::V4(from, to) => u64::from(from) + u64::from(to),
        Addresses::V6(from, to) => wide(from) + wide(to),
    };
    let sum = addresses + TCP + ip.payload.len() as u64 + words(ip.payload);
    fold(sum) == 0xffff
}

/// Returns the Internet checksum of `bytes` and of earlier bytes, whose sum is `before`.
pub fn checksum(before: u64, bytes: &[u8]) -> u16 {
    !fold(before + words(bytes))
}

/// Returns the sum of big-endian 32-bit words, the last one padded with zeros. [`fold`] reduces it to 16 bits.
#[inline]
pub fn words(bytes: &[u8]) -> u64 {
    let (quads, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    for (slot, byte) in last.iter_mut().zip(rest) {
        *slot = *byte;
    }
    let sum = |total: u64, quad: &[u8; 4]| total + u64::from(u32::from_be_bytes(*quad));
    quads.iter().chain([&last]).fold(0, sum)
}

/// Reduces a sum to the one's complement sum of 16 bits.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
