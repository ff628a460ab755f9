//! Minimum of a delay over time.

pub(crate) const MS: u64 = 1_000_000;

/// Rise of a minimum, in ns per tick of 2^26 ns (67 ms): about 100 ppm, the drift between two clocks of 50 ppm each.
const RISE_PER_TICK: i64 = 1_000_000 / 10 / 15;
const TICK_BITS: u32 = 26;

/// Slowly rising minimum of a delay, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    value: i64,
    at: u64,
}

impl Base {
    pub(crate) const fn new(value: i64, at: u64) -> Self {
        Self { value, at }
    }

    pub(crate) const fn least(&self) -> i64 {
        self.value
    }

    /// Raises the minimum by `delay`, because the path became longer.
    pub(crate) const fn lengthen(&mut self, delay: i64) {
        self.value = self.value.saturating_add(delay);
    }

    /// Returns the excess of `value`, measured at `at`, over the minimum.
    pub(crate) fn excess(&mut self, value: i64, at: u64) -> i64 {
        // Avoids a division.
        let passed = at.saturating_sub(self.at) >> TICK_BITS;
        if passed > 0 {
            let risen = (passed as i64).saturating_mul(RISE_PER_TICK);
            self.value = self.value.saturating_add(risen);
            self.at = at;
        }
        self.value = self.value.min(value);
        value.saturating_sub(self.value)
    }
}
