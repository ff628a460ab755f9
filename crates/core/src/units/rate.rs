//! Rates in bit/s.

use super::error::{UnitError, print_scaled, split};
use super::time::Duration;
use core::{fmt, num::NonZeroU64, str::FromStr};

/// A positive rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

const BITS: &[(u64, &str)] = &[
    (1_000_000_000, "gbit"),
    (1_000_000, "mbit"),
    (1_000, "kbit"),
    (1, "bit"),
];

/// Prefixes of units: symbol, name and factor.
const PREFIXES: &[(&str, &str, u64)] = &[
    ("ki", "kibi", 1 << 10),
    ("mi", "mebi", 1 << 20),
    ("gi", "gibi", 1 << 30),
    ("k", "kilo", 1_000),
    ("m", "mega", 1_000_000),
    ("g", "giga", 1_000_000_000),
    ("", "", 1),
];

/// Suffixes of units that mean "per second".
const PER_SECOND: &[&str] = &["/sec", "/s", "ps"];

impl Rate {
    /// 1 Tbit/s.
    pub const MAX: Self = Self(NonZeroU64::new(1_000_000_000_000).unwrap());

    /// Creates a rate of `bits` per second; `None` for zero and above 1 Tbit/s.
    pub const fn from_bits_per_sec(bits: u64) -> Option<Self> {
        if bits > Self::MAX.bits_per_sec() {
            return None;
        }
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.get()
    }

    /// Bytes per second, for the model and reports.
    #[cfg(feature = "control")]
    pub const fn bytes_per_sec_f64(self) -> f64 {
        self.0.get() as f64 / 8.0
    }

    /// Time for which `bytes` occupy a link of this rate. Rounded up, so that the rate is never exceeded.
    pub const fn tx_time(self, bytes: u32) -> Duration {
        const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;
        let rate = self.0.get();
        Duration::from_nanos(match (bytes as u64).checked_mul(BIT_NANOS_PER_BYTE) {
            Some(bit_nanos) => bit_nanos.div_ceil(rate),
            // The product exceeds 64 bits from 2.3 GB on.
            None => {
                let nanos = (bytes as u128 * BIT_NANOS_PER_BYTE as u128).div_ceil(rate as u128);
                if nanos > u64::MAX as u128 {
                    u64::MAX
                } else {
                    nanos as u64
                }
            }
        })
    }
}

impl Rate {
    /// Error for a number of bits outside of the range of rates.
    pub(crate) fn out_of_range() -> UnitError {
        UnitError::out_of_range("1bit to 1000gbit")
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    /// Reads `1mbit`, `256kbit`, `2.5gbit` or `1Mbit/s`; rejects `2Mbps` and `1M`, because they may mean bits or bytes.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text, "1mbit")?;
        let rate = |factor| {
            let bits = number.times(factor).and_then(Self::from_bits_per_sec);
            bits.ok_or_else(Self::out_of_range)
        };
        let word = PER_SECOND
            .iter()
            .find_map(|suffix| unit.strip_suffix(suffix))
            .unwrap_or(&unit);
        for &(symbol, prefix, factor) in PREFIXES {
            match word.strip_prefix(symbol) {
                Some("bit" | "bits") => return rate(factor),
                Some("" | "b") if !word.is_empty() => {
                    let (bits, bytes) = (rate(factor)?, rate(8 * factor)?);
                    return Err(UnitError::new(alloc::format!(
                        "{prefix}bits are {bits}, as speed tests print; {prefix}bytes are {bytes}"
                    )));
                }
                _ => {}
            }
        }
        Err(UnitError::unit(&unit, "bit, kbit, mbit or gbit"))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0.get(), BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn rates_read_and_print_as_tc_does() {
        for (text, bits) in [
            ("1mbit", 1_000_000),
            ("256kbit", 256_000),
            ("2.5gbit", 2_500_000_000),
            ("7bit", 7),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.bits_per_sec(), bits);
            assert_eq!(rate.to_string(), text);
        }
        for text in ["0.256Mbit", "256 Kbit/s", "256kbits/sec", "250kibit"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), "256kbit");
        }
    }

    #[test]
    fn errors_of_rates_give_a_valid_form() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(
            error("1mbitt"),
            "unknown unit 'mbitt'; use bit, kbit, mbit or gbit"
        );
        assert_eq!(error("fast"), "no number; write it like 1mbit");
        assert_eq!(error("10"), "no unit; use bit, kbit, mbit or gbit");
        assert_eq!(error("0mbit"), "out of range; use 1bit to 1000gbit");
        assert_eq!(error("1001gbit"), "out of range; use 1bit to 1000gbit");
    }

    #[test]
    fn a_rate_that_may_be_bits_or_bytes_is_refused_with_both() {
        let error = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        let mega = "megabits are 2mbit, as speed tests print; megabytes are 16mbit";
        for text in [
            "2Mbps", "2mbps", "2 MBPS", "2MBps", "2Mb/s", "2MB/s", "2M", "2Mb", "2m/s",
        ] {
            assert_eq!(error(text), mega, "{text}");
        }
        for (text, said) in [
            (
                "125kbps",
                "kilobits are 125kbit, as speed tests print; kilobytes are 1mbit",
            ),
            (
                "1bps",
                "bits are 1bit, as speed tests print; bytes are 8bit",
            ),
            (
                "1gibps",
                "gibibits are 1073741.824kbit, as speed tests print; gibibytes are 8589934.592kbit",
            ),
            ("0mbps", "out of range; use 1bit to 1000gbit"),
        ] {
            assert_eq!(error(text), said, "{text}");
        }
        assert!(error("1/s").starts_with("unknown unit '/s'"));
        assert!(error("1ps").starts_with("unknown unit 'ps'"));
    }

    #[test]
    fn transmission_time_is_never_shorter_than_the_rate_allows() {
        let rate: Rate = "1mbit".parse().unwrap();
        assert_eq!(rate.tx_time(1500), Duration::from_millis(12));
        let third: Rate = "3bit".parse().unwrap();
        assert_eq!(third.tx_time(1).as_nanos(), 2_666_666_667);
        assert_eq!(
            Rate::from_bits_per_sec(1)
                .unwrap()
                .tx_time(1 << 31)
                .as_nanos(),
            (1u64 << 34) * 1_000_000_000
        );
        let most = |bits| Rate::from_bits_per_sec(bits).unwrap().tx_time(u32::MAX);
        assert_eq!(most(8).as_nanos(), u64::from(u32::MAX) * 1_000_000_000);
        assert_eq!(most(1).as_nanos(), u64::MAX);
    }
}
