//! The Internet checksum (RFC 1071).

/// Folds a sum of 16-bit words with end-around carry.
#[inline]
pub(super) fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// One's complement sum of 16-bit big-endian words, the last padded with a zero byte.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    // RFC 1071, section 2 (B): the sum of words in this machine's order is the sum in this order.
    let mut words = bytes.chunks_exact(4);
    let mut total: u64 = words
        .by_ref()
        .map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]])))
        .sum();
    let mut rest = [0; 4];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    total += u64::from(u32::from_ne_bytes(rest));
    u16::from_be(fold(total))
}

/// Completes a checksum whose field, at `start + offset`, holds the pseudo header's sum, over all
/// from `start` on. `None` if the field lies outside the frame.
#[inline]
pub(crate) fn complete(frame: &mut [u8], start: usize, offset: usize) -> Option<()> {
    const UDP_FIELD: usize = 6;
    let covered = frame.get_mut(start..)?;
    let mut checksum = !sum(covered);
    // In UDP zero means that there is none (RFC 768).
    if checksum == 0 && offset == UDP_FIELD {
        checksum = 0xffff;
    }
    covered
        .get_mut(offset..offset + 2)?
        .copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
