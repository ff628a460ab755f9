//! Rate at which a line has delivered data recently.

/// Number of stored seconds. A share of the best one is the lower bound of the rate.
const SECONDS: usize = 10;
/// Averaging times in ms.
const RECENT: f64 = 100.0;
const SUSTAINED: f64 = 700.0;

/// Deliveries of one direction, in bit/ms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivered {
    counted: u64,
    /// Mean rates over the averaging times `RECENT` and `SUSTAINED`.
    pub(crate) recent: f64,
    pub(crate) sustained: f64,
    /// Bits per ms in each of the last seconds, the current second first.
    seconds: [f64; SECONDS],
    /// Time since the start of the current second in ms.
    age: f64,
}

impl Delivered {
    /// Counts the bytes delivered in the `elapsed` ms since the last call. `bytes` is the new total.
    pub(crate) fn count(&mut self, bytes: u64, elapsed: f64) {
        let new = bytes.saturating_sub(self.counted) as f64;
        self.counted = bytes;
        if elapsed > 0.0 {
            for (mean, memory) in [(&mut self.recent, RECENT), (&mut self.sustained, SUSTAINED)] {
                let share = (elapsed / memory).min(1.0);
                *mean += share * (8.0 * new / elapsed - *mean);
            }
        }
        self.age += elapsed;
        if self.age >= 1000.0 {
            self.age = 0.0;
            self.seconds.rotate_right(1);
            self.seconds[0] = 0.0;
        }
        self.seconds[0] += 8.0 * new / 1000.0;
    }

    pub(crate) fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }
}
