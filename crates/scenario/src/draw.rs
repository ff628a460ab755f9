//! Random numbers that are the same on every platform and in every order of drawing.

/// The named random quantities of one conversation. Each is a function of (seed, conversation,
/// name), so that adding a quantity, or drawing in another order, changes no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Where in the scenario's range its round-trip time lies.
    Rtt,
    /// When it starts.
    Start,
    /// The phase of a simulated sender's clock.
    ClockPhase,
    /// The seed of its traffic: arrivals, sizes, on and off periods.
    Traffic,
}

/// A number in 0..1, with 53 bits.
pub fn uniform(seed: u64, conversation: usize, draw: Draw) -> f64 {
    let stream = (conversation as u64) << 8 | draw as u64;
    let bits = mix(mix(seed).wrapping_add(mix(!stream)));
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a bijection that flips each output
/// bit with probability one half for each input bit.
const fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_splitmix64s_published_sequence() {
        // The first outputs of the reference implementation for seed 1234567.
        let golden = 0x9e37_79b9_7f4a_7c15u64;
        let sequence = (0..3u64).map(|n| mix(1_234_567u64.wrapping_add(golden.wrapping_mul(n))));
        assert_eq!(
            sequence.collect::<Vec<_>>(),
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423
            ]
        );
    }

    #[test]
    fn draws_spread_evenly_over_seeds_and_conversations() {
        let mut sum = 0.0;
        for seed in 0..100 {
            for conversation in 0..100 {
                sum += uniform(seed, conversation, Draw::Rtt);
            }
        }
        // The mean of 10 000 uniform draws has a standard deviation of 0.0029.
        assert!((sum / 10_000.0 - 0.5).abs() < 0.012, "{sum}");
    }
}
