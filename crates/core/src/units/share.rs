//! Shares of a link.

#[cfg(feature = "control")]
use super::UnitError;
#[cfg(feature = "control")]
use core::fmt;

/// A fraction from 0 to 1 in steps of 2^-30. An integer type, so that a scheduler needs no floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// 1/2.
    pub const HALF: Self = Self(Self::SCALE / 2);
    /// 1.
    pub const ONE: Self = Self(Self::SCALE);
    /// Number of steps from 0 to 1.
    pub const SCALE: u32 = 1 << 30;

    /// Creates the share `steps` / [`SCALE`](Self::SCALE), at most 1.
    pub const fn from_steps(steps: u32) -> Self {
        if steps > Self::SCALE {
            Self::ONE
        } else {
            Self(steps)
        }
    }

    /// The number of steps.
    pub const fn steps(self) -> u32 {
        self.0
    }

    /// Returns one minus this share.
    #[must_use]
    pub const fn rest(self) -> Self {
        Self(Self::SCALE - self.0)
    }

    /// Returns this share of `whole`, rounded to nearest.
    pub const fn of(self, whole: u64) -> u64 {
        let part = whole as u128 * self.0 as u128 + (Self::SCALE / 2) as u128;
        (part >> 30) as u64
    }

    /// Returns the share nearest to `fraction`; 0 or 1 for a value out of range, 0 for NaN.
    #[cfg(feature = "control")]
    pub fn from_f64(fraction: f64) -> Self {
        // The cast saturates, and converts NaN to 0.
        Self::from_steps((fraction * f64::from(Self::SCALE) + 0.5) as u32)
    }

    /// The fraction as a float.
    #[cfg(feature = "control")]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::SCALE)
    }
}

#[cfg(feature = "control")]
impl core::str::FromStr for Share {
    type Err = UnitError;

    /// Reads `0.7`: above 0 and below 1.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.parse::<f64>() {
            Ok(fraction) if fraction > 0.0 && fraction < 1.0 => Ok(Self::from_f64(fraction)),
            _ => Err(UnitError::out_of_range(
                "data's share, above 0 and below 1, such as 0.7",
            )),
        }
    }
}

#[cfg(feature = "control")]
impl fmt::Display for Share {
    /// Writes the shortest decimal that parses to this share. Ten digits distinguish all steps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for digits in 1..=10 {
            let scale = 10u64.pow(digits);
            let whole = u128::from(Self::SCALE);
            let rounded = (u128::from(self.0) * u128::from(scale) + whole / 2) / whole;
            if Self::from_f64(rounded as f64 / scale as f64) == *self || digits == 10 {
                return write!(f, "0.{rounded:0width$}", width = digits as usize);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_whole_is_rounded_and_never_more_than_it() {
        assert_eq!(Share::from_f64(0.7339).of(50), 37);
        assert_eq!(Share::HALF.of(3), 2);
        assert_eq!(Share::ONE.of(u64::MAX), u64::MAX);
        assert_eq!(Share::ZERO.of(u64::MAX), 0);
    }

    #[test]
    fn floats_out_of_range_become_the_nearest_share() {
        assert_eq!(Share::from_f64(-1.0), Share::ZERO);
        assert_eq!(Share::from_f64(f64::NAN), Share::ZERO);
        assert_eq!(Share::from_f64(7.0), Share::ONE);
        assert!((Share::from_f64(0.734).as_f64() - 0.734).abs() < 1e-9);
    }

    #[test]
    fn a_typed_share_lies_between_nothing_and_all() {
        assert!("0.7".parse::<Share>().is_ok());
        for wrong in ["0", "1", "-0.1", "1.5", "nan", "half", ""] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
