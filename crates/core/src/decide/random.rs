//! Random numbers that are equal on all platforms.

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates the sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        let bits = mix(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        bits
    }
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the output of [`SplitMix64`] in this state. The function is a bijection; each input bit flips each
/// output bit with probability one half.
pub const fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_reference_implementations() {
        // First outputs of SplitMix64 for seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ] {
            assert_eq!(random.next(), expected);
        }
    }
}
