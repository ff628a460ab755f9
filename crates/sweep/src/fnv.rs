//! Hashes that are equal on every platform and in every build.

/// Hash of bytes (FNV-1a, 64 bits).
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Hash of a text: 128 bits, in hexadecimal digits.
pub(crate) fn long(text: &str) -> String {
    format!("{:016x}{:016x}", fnv(text.bytes()), fnv(text.bytes().rev()))
}
