//! Checksums of frames that tests build. An ACK with a wrong checksum is neither filtered nor regenerated.

/// Fills in the checksums of an Ethernet frame with IPv4 (no options) and TCP.
pub(crate) fn fill(frame: &mut [u8]) {
    const IP: usize = 14;
    const TCP: usize = IP + 20;
    frame[IP + 10..IP + 12].fill(0);
    let header = checksum(&frame[IP..TCP], 0);
    frame[IP + 10..IP + 12].copy_from_slice(&header.to_be_bytes());
    frame[TCP + 16..TCP + 18].fill(0);
    let end = IP + usize::from(u16::from_be_bytes([frame[IP + 2], frame[IP + 3]]));
    let pseudo = sum(&frame[IP + 12..IP + 20]) + 6 + (end - TCP) as u32;
    let segment = checksum(&frame[TCP..end], pseudo);
    frame[TCP + 16..TCP + 18].copy_from_slice(&segment.to_be_bytes());
}

fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

fn checksum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start + sum(bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
