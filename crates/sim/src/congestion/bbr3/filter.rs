//! Maxima over a window of round trips.

/// Maximum of a value over the last [`ROUNDS`](Self::ROUNDS) round trips, and over the latest one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundMax {
    rounds: [f64; Self::ROUNDS],
    latest: u64,
}

impl RoundMax {
    /// Length of the window in round trips (`BBR.ExtraAckedFilterLen`).
    const ROUNDS: usize = 10;

    pub(super) fn update(&mut self, round: u64, value: f64) {
        let missed = (round - self.latest).min(Self::ROUNDS as u64);
        for past in 0..missed {
            self.rounds[((round - past) % Self::ROUNDS as u64) as usize] = 0.0;
        }
        self.latest = round;
        let place = &mut self.rounds[(round % Self::ROUNDS as u64) as usize];
        *place = place.max(value);
    }

    pub(super) fn of_latest(&self) -> f64 {
        self.rounds[(self.latest % Self::ROUNDS as u64) as usize]
    }

    pub(super) fn of_all(&self) -> f64 {
        self.rounds.iter().fold(0.0, |max, value| max.max(*value))
    }
}

/// Maximum over the current and the previous ProbeBW cycle (`BBR.max_bw_filter`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CycleMax {
    last: f64,
    current: f64,
}

impl CycleMax {
    pub(super) fn update(&mut self, value: f64) {
        self.current = self.current.max(value);
    }

    pub(super) fn get(&self) -> f64 {
        self.last.max(self.current)
    }

    /// Starts the next cycle. A cycle without samples keeps the earlier maximum, as in Linux.
    pub(super) fn advance(&mut self) {
        if self.current > 0.0 {
            self.last = self.current;
            self.current = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_ten_rounds() {
        let mut max = RoundMax::default();
        max.update(3, 9.0);
        for round in 4..13 {
            max.update(round, 1.0);
            assert_eq!((max.of_all(), max.of_latest()), (9.0, 1.0), "{round}");
        }
        max.update(13, 2.0);
        assert_eq!(max.of_all(), 2.0);
        max.update(90, 1.0);
        assert_eq!(max.of_all(), 1.0);
    }

    #[test]
    fn a_bandwidth_is_forgotten_after_the_next_cycle() {
        let mut max = CycleMax::default();
        max.update(9.0);
        max.advance();
        max.update(5.0);
        assert_eq!(max.get(), 9.0);
        max.advance();
        assert_eq!(max.get(), 5.0);
        max.advance();
        assert_eq!(max.get(), 5.0, "no samples");
    }
}
