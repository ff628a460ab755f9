//! Instants and durations in nanoseconds. Arithmetic saturates at the ends of the range.

use super::error::{UnitError, print_scaled, split};
use core::{fmt, ops, str::FromStr};

/// A point in time, in nanoseconds since an epoch that the caller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds; up to 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

const NANOS: &[(u64, &str)] = &[
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// An instant later than every event.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// One millisecond.
    pub const MILLISECOND: Self = Self::from_millis(1);
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than any real time.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in seconds, for reports.
    #[cfg(feature = "control")]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span in milliseconds, for reports.
    #[cfg(feature = "control")]
    pub const fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference; zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl ops::Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl ops::AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl ops::Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl ops::Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl ops::Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

impl FromStr for Duration {
    type Err = UnitError;

    /// Reads `20ms`, `100us`, `1.5s`, `200ns`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text, "20ms")?;
        let nanos = match unit.as_str() {
            "s" | "sec" | "secs" => 1_000_000_000,
            "ms" | "msec" | "msecs" => 1_000_000,
            "us" | "usec" | "usecs" => 1_000,
            "ns" | "nsec" | "nsecs" => 1,
            "" if number.is_zero() => 0,
            unit => return Err(UnitError::unit(unit, "s, ms, us or ns")),
        };
        let span = number.times(nanos).map(Self);
        span.ok_or_else(|| UnitError::out_of_range("0ns to 584 years"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, NANOS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durations_read_and_print_as_tc_does() {
        for (text, nanos) in [
            ("20ms", 20_000_000),
            ("100us", 100_000),
            ("1.5s", 1_500_000_000),
            ("7ns", 7),
        ] {
            let span: Duration = text.parse().unwrap();
            assert_eq!(span.as_nanos(), nanos);
            assert_eq!(span.to_string(), text);
        }
        assert_eq!(
            "20 MSEC".parse::<Duration>().unwrap(),
            Duration::from_millis(20)
        );
        for zero in ["0", "0.0"] {
            assert_eq!(zero.parse::<Duration>().unwrap(), Duration::ZERO);
        }
    }

    #[test]
    fn a_duration_without_unit_names_the_units() {
        for number in ["20", "0.1", "0.49"] {
            assert_eq!(
                number.parse::<Duration>().unwrap_err().to_string(),
                "no unit; use s, ms, us or ns"
            );
        }
        assert_eq!(
            "20mz".parse::<Duration>().unwrap_err().to_string(),
            "unknown unit 'mz'; use s, ms, us or ns"
        );
    }
}
