//! Axes: the position of a value, and the ticks.

/// An axis from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The value at the start.
    pub from: f64,
    /// The value at the end, different from `from`.
    pub to: f64,
    /// True if the axis is logarithmic.
    pub log: bool,
}

impl Axis {
    /// Creates a linear axis.
    pub const fn linear(from: f64, to: f64) -> Self {
        Self {
            from,
            to,
            log: false,
        }
    }

    /// Returns the position of a value: 0 at the start of the axis, 1 at its end.
    pub fn fraction(&self, value: f64) -> f64 {
        let position = |v: f64| if self.log { v.max(1e-300).ln() } else { v };
        (position(value) - position(self.from)) / (position(self.to) - position(self.from))
    }

    /// Returns round numbers along the axis, at most about `maximum`.
    pub fn ticks(&self, maximum: usize) -> Vec<f64> {
        if !self.log {
            return ticks(self.from, self.to, maximum);
        }
        let first = self.from.log10().floor() as i32;
        let last = self.to.log10().ceil() as i32;
        let dense = ((last - first) as usize) * 3 <= maximum;
        let within = |v: &f64| *v >= self.from * 0.999 && *v <= self.to * 1.001;
        (first..=last)
            .flat_map(|power| {
                let steps: &[f64] = if dense { &[1.0, 2.0, 5.0] } else { &[1.0] };
                steps.iter().map(move |step| step * 10f64.powi(power))
            })
            .filter(within)
            .collect()
    }
}

/// Returns multiples of 1, 2 or 5 times a power of ten from `from` to `to`, at most `maximum` + 1.
pub fn ticks(from: f64, to: f64, maximum: usize) -> Vec<f64> {
    let minimum_step = (to - from) / maximum.max(1) as f64;
    if !(minimum_step > 0.0 && minimum_step.is_finite()) {
        return vec![from];
    }
    let power = 10f64.powf(minimum_step.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= minimum_step * 0.999)
        .unwrap_or(10.0 * power);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(0.0, 1.0, 5),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(
            ticks(0.0, 10_000.0, 5),
            [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10_000.0]
        );
        assert_eq!(ticks(1.0, 1.0, 5), [1.0]);
    }

    #[test]
    fn a_logarithmic_axis_spreads_ratios_evenly() {
        let axis = Axis {
            from: 1.0,
            to: 100.0,
            log: true,
        };
        assert!((axis.fraction(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(axis.ticks(6), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }
}
