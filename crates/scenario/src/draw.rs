//! Random numbers that are the same on every platform and in every order of drawing.

use asymq_core::decide::random::mix;

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

#[cfg(test)]
mod tests {
    use super::*;

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
