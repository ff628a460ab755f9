//! Checksums that the sender left to the hardware: the Internet checksum (RFC 1071) and SCTP's.

pub(super) use asymq_core::decide::frame::checksum::fold;
use asymq_core::decide::frame::checksum::words;

pub(crate) fn sum(bytes: &[u8]) -> u16 {
    fold(words(bytes))
}

/// Completes the checksum over all bytes from `start` on. The field at `start + offset` contains the pseudo
/// header's sum, except for SCTP. Returns `None` if the field is outside the frame.
pub(crate) fn complete(frame: &mut [u8], start: usize, offset: usize) -> Option<()> {
    const UDP_FIELD: usize = 6;
    const SCTP_FIELD: usize = 8;
    let covered = frame.get_mut(start..)?;
    if offset == SCTP_FIELD {
        covered.get_mut(offset..offset + 4)?.fill(0);
        let checksum = crc32c(covered);
        covered[offset..offset + 4].copy_from_slice(&checksum.to_le_bytes());
        return Some(());
    }
    let mut checksum = !sum(covered);
    // Zero means "no checksum" in UDP (RFC 768).
    if checksum == 0 && offset == UDP_FIELD {
        checksum = 0xffff;
    }
    covered
        .get_mut(offset..offset + 2)?
        .copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// SCTP's checksum (RFC 9260, appendix A), computed bit by bit because SCTP is rare.
fn crc32c(bytes: &[u8]) -> u32 {
    const REVERSED_POLYNOMIAL: u32 = 0x82f6_3b78;
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (REVERSED_POLYNOMIAL & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        // RFC 1071, section 3: these bytes sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes), 0xddf2);
        assert_eq!(sum(&bytes[..7]), fold(0xddf2 + 0xffff - 0xf7));
        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn sctp_has_a_checksum_of_its_own() {
        // Published check value of CRC-32C.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let mut packet = [7; 20];
        complete(&mut packet, 4, 8).unwrap();
        let mut zeroed = packet;
        zeroed[12..16].fill(0);
        assert_eq!(packet[12..16], crc32c(&zeroed[4..]).to_le_bytes());
    }
}
