//! Random numbers that are equal on every platform and in every order of drawing.

use asymq_core::Direction;
use asymq_core::decide::random::mix;

/// The part of a scenario that uses a random number: its kind, and its index from 0.
///
/// The random numbers of a source do not depend on other sources. For example, if the number of uploads changes, the
/// round-trip time and start time of each download stay equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A long-lived upload.
    Upload(u32),
    /// A long-lived download.
    Download(u32),
    /// A flow that is listed separately.
    Listed(u32),
    /// The probe, a small UDP echo.
    Probe,
    /// A source of short transfers.
    Web(u32),
    /// A UDP flow of constant rate.
    Udp(u32),
    /// The path behind the link of a direction.
    Link(Direction),
    /// A number in a random sequence, by its index.
    Sequence(u32),
}

/// The random quantities of a source. Each depends only on seed, source and quantity, so that a new quantity or another
/// order of drawing changes no other quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// The flow's round-trip time, within the scenario's range.
    Rtt,
    /// The flow's start time.
    Start,
    /// The phase of a simulated sender's clock.
    ClockPhase,
    /// The seed of the source's traffic: arrivals, sizes, on and off periods.
    Traffic,
    /// The seed of loss and delay on the source's path before or after the uplink.
    PathUp,
    /// The seed of loss and delay on the source's path before or after the downlink.
    PathDown,
    /// The offset of the server's clock.
    ClockOffset,
    /// The drift of the server's clock.
    ClockDrift,
    /// The seed of a modem's grants.
    Grants,
    /// The seed of the rate profile of a line.
    RateProfile,
}

impl Source {
    const fn number(self) -> u64 {
        let (role, index) = match self {
            Self::Upload(index) => (0, index),
            Self::Download(index) => (1, index),
            Self::Probe => (2, 0),
            Self::Web(index) => (3, index),
            Self::Sequence(index) => (4, index),
            Self::Listed(index) => (5, index),
            Self::Udp(index) => (6, index),
            Self::Link(direction) => (7, direction as u32),
        };
        role << 32 | index as u64
    }
}

/// Converts the upper 53 of these bits to a number of at least 0 and below 1.
pub const fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws a number of at least 0 and below 1.
pub fn uniform(seed: u64, source: Source, draw: Draw) -> f64 {
    let stream = source.number() << 8 | draw as u64;
    fraction(mix(mix(seed).wrapping_add(mix(!stream))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_spread_evenly_over_seeds_and_flows_of_either_direction() {
        let mut sums = [0.0; 2];
        for seed in 0..100 {
            for index in 0..100 {
                sums[0] += uniform(seed, Source::Upload(index), Draw::Rtt);
                sums[1] += uniform(seed, Source::Download(index), Draw::Rtt);
            }
        }
        // The mean of 10 000 uniform draws has a standard deviation of 0.0029.
        for sum in sums {
            assert!((sum / 10_000.0 - 0.5).abs() < 0.012, "{sum}");
        }
    }

    #[test]
    fn every_source_and_quantity_has_a_stream_of_its_own() {
        let sources = (0..50).flat_map(|index| {
            let numbered = [
                Source::Upload,
                Source::Download,
                Source::Listed,
                Source::Web,
                Source::Udp,
            ];
            numbered.map(|source| source(index))
        });
        let draws = [
            Draw::Rtt,
            Draw::Start,
            Draw::ClockPhase,
            Draw::Traffic,
            Draw::PathUp,
            Draw::PathDown,
        ];
        let mut seen: Vec<u64> = sources
            .chain([
                Source::Probe,
                Source::Link(Direction::Up),
                Source::Link(Direction::Down),
            ])
            .flat_map(|source| draws.map(|draw| uniform(7, source, draw).to_bits()))
            .collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
