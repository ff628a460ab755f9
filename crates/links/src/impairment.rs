//! Loss, delay and reordering on a path, by netem's model.

use asymq_core::decide::random::SplitMix64;
use asymq_scenario::{
    Delay, Direction, Draw, Loss, Netem, Percent, Reorder, Scenario, Source, fraction, uniform,
};

/// The loss and delay of one path in one run.
#[derive(Clone, Debug)]
pub struct Impairment {
    netem: Netem,
    random: SplitMix64,
    /// True in the bad state of the Gilbert-Elliott model.
    bad: bool,
    /// Number of packets delayed since the last packet without delay.
    delayed: u32,
    /// Arrival of the last delayed packet, in ns.
    last: u64,
}

impl Impairment {
    /// Creates the path after the last link of a direction; `None` if the scenario has no impairment there.
    pub fn behind(scenario: &Scenario, seed: u64, direction: Direction) -> Option<Self> {
        let netem = direction.pick(scenario.netem_up, scenario.netem_down);
        let draw = direction.pick(Draw::PathUp, Draw::PathDown);
        let seed = uniform(seed, Source::Link(direction), draw).to_bits();
        netem.map(|netem| Self::new(netem, seed))
    }

    /// Creates a path before its first packet.
    pub fn new(netem: Netem, seed: u64) -> Self {
        Self {
            netem,
            random: SplitMix64::new(seed),
            bad: false,
            delayed: 0,
            last: 0,
        }
    }

    /// Returns the arrival time in ns of a packet that would arrive at `at` without impairment; `None` if it is lost.
    /// Calls must be in order of `at`. The results are in order unless [`reorders`](Self::reorders) is true.
    pub fn pass(&mut self, at: u64) -> Option<u64> {
        if self.loses() {
            return None;
        }
        let Some(delay) = self.netem.delay else {
            return Some(at);
        };
        if let Some(Reorder { probability, gap }) = self.netem.reorder {
            // As in netem, the counter is checked first, then the random number.
            if self.delayed >= gap - 1 && self.happens(probability) {
                self.delayed = 0;
                return Some(at);
            }
            self.delayed += 1;
        }
        self.last = self.last.max(at.saturating_add(self.draw(delay)));
        Some(self.last)
    }

    /// True if packets may overtake each other.
    pub const fn reorders(&self) -> bool {
        self.netem.reorder.is_some()
    }

    fn loses(&mut self) -> bool {
        match self.netem.loss {
            None => false,
            Some(Loss::Random(probability)) => self.happens(probability),
            Some(Loss::Gemodel { p, r, bad, good }) => {
                // As in netem, the state changes first, but the previous state determines the loss.
                let (change, loss) = match self.bad {
                    true => (r, bad),
                    false => (p, good),
                };
                self.bad ^= self.happens(change);
                self.happens(loss)
            }
        }
    }

    fn draw(&mut self, delay: Delay) -> u64 {
        let (mean, jitter) = (delay.mean.as_nanos(), delay.jitter.as_nanos());
        if jitter == 0 {
            return mean;
        }
        let deviation = match delay.normal {
            false => 2.0 * self.uniform() - 1.0,
            true => {
                // Box and Muller's method (1958).
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
                radius * libm::cos(core::f64::consts::TAU * self.uniform())
            }
        };
        (mean as f64 + deviation * jitter as f64).max(0.0) as u64
    }

    fn happens(&mut self, probability: Percent) -> bool {
        self.uniform() < probability.fraction()
    }

    fn uniform(&mut self) -> f64 {
        fraction(self.random.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impairment(text: &str) -> Impairment {
        Impairment::new(text.parse().unwrap(), 7)
    }

    #[test]
    fn losses_have_the_rate_and_the_bursts_of_their_model() {
        let count = 200_000u64;
        let lost = |text: &str| {
            let mut path = impairment(text);
            let lost: Vec<bool> = (0..count).map(|at| path.pass(at).is_none()).collect();
            let share = lost.iter().filter(|lost| **lost).count() as f64 / count as f64;
            let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            (share, share * count as f64 / bursts as f64)
        };
        let (share, burst) = lost("loss 5%");
        // Mean burst of independent losses: 1 / (1 - 0.05).
        assert!((share - 0.05).abs() < 0.003, "{share}");
        assert!((burst - 1.0 / 0.95).abs() < 0.02, "{burst}");
        // The bad state is active p / (p + r) = 1 / 11 of the time, for 10 packets on average.
        let (share, burst) = lost("loss gemodel 1% 10%");
        assert!((share - 1.0 / 11.0).abs() < 0.005, "{share}");
        assert!((burst - 10.0).abs() < 0.5, "{burst}");
        let (share, _) = lost("loss gemodel 1% 10% 50% 2%");
        assert!(
            (share - (0.5 + 10.0 * 0.02) / 11.0).abs() < 0.005,
            "{share}"
        );
    }

    #[test]
    fn jitter_keeps_the_order_and_has_its_mean_and_deviation() {
        for (text, deviation) in [
            ("delay 10ms 3ms", 3.0 / 3f64.sqrt()),
            ("delay 10ms 2ms distribution normal", 2.0),
        ] {
            let mut path = impairment(text);
            // Packets are a second apart, so none is delayed by the previous one.
            let delays: Vec<f64> = (0..50_000u64)
                .map(|n| n * 1_000_000_000)
                .map(|at| (path.pass(at).unwrap() - at) as f64 / 1e6)
                .collect();
            let mean = delays.iter().sum::<f64>() / delays.len() as f64;
            let squares: f64 = delays.iter().map(|d| (d - mean) * (d - mean)).sum();
            let seen = (squares / delays.len() as f64).sqrt();
            assert!((mean - 10.0).abs() < 0.05, "{text}: {mean}");
            assert!((seen - deviation).abs() < 0.05, "{text}: {seen}");
            let close = (60_000_000..70_000_000u64).map(|n| n * 1_000_000);
            let times: Vec<u64> = close
                .take(10_000)
                .map(|at| path.pass(at).unwrap())
                .collect();
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn at_most_one_packet_overtakes_each_gap_with_its_probability() {
        let early = |text: &str| {
            let mut path = impairment(text);
            let passes = (0..100_000u64).map(|n| n * 1000);
            let early = passes.map(|at| path.pass(at) == Some(at));
            early.collect::<Vec<bool>>()
        };
        let share = |early: &[bool]| early.iter().filter(|early| **early).count() as f64 / 1e5;
        let quarter = early("delay 10ms reorder 25%");
        assert!((share(&quarter) - 0.25).abs() < 0.01);
        let fifth = early("delay 10ms reorder 100% gap 5");
        assert!(
            fifth
                .chunks(5)
                .all(|five| five == [false, false, false, false, true])
        );
        // After four delayed packets, each packet is early with a probability of 50 %: on average one of 4 + 2.
        let sixth = share(&early("delay 10ms reorder 50% gap 5"));
        assert!((sixth - 1.0 / 6.0).abs() < 0.005, "{sixth}");
    }

    #[test]
    fn a_seed_gives_the_same_path_and_another_another() {
        let passes = |seed| {
            let netem = "loss 30% delay 10ms 3ms".parse().unwrap();
            let mut path = Impairment::new(netem, seed);
            (0..100u64).map(|at| path.pass(at)).collect::<Vec<_>>()
        };
        assert_eq!(passes(1), passes(1));
        assert_ne!(passes(1), passes(2));
    }
}
