//! The limit of a queue.

use super::error::{UnitError, split};
use core::{fmt, str::FromStr};

/// A size in bytes; `64kb` is 65 536 bytes as in `tc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// The maximum backlog of a queue, in packets or in bytes; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// A number of packets of any size.
    Packets(u32),
    /// A number of bytes, as charged to the link.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `len` bytes may join a backlog of `packets` and `bytes`.
    pub const fn admits(self, packets: u32, bytes: u64, len: u32) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => bytes.saturating_add(len as u64) <= limit,
        }
    }

    /// True if a backlog of `packets` and `bytes` is within the limit.
    pub const fn holds(self, packets: u32, bytes: u64) -> bool {
        match self {
            Self::Packets(limit) => packets <= limit,
            Self::Bytes(limit) => bytes <= limit,
        }
    }

    /// Returns the number of packets or bytes.
    pub const fn value(self) -> u64 {
        match self {
            Self::Packets(packets) => packets as u64,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns a limit with the same unit and another number, at least one.
    pub fn with_value(self, value: u64) -> Self {
        match self {
            Self::Packets(_) => Self::Packets(value.clamp(1, u32::MAX as u64) as u32),
            Self::Bytes(_) => Self::Bytes(value.max(1)),
        }
    }
}

const SIZES: &str = "b, kb, mb or gb";

fn bytes_per_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    })
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// Reads `1514b`, `64kb`, `4mb`; a number without a unit is in bytes.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text, "64kb")?;
        let factor = match unit.as_str() {
            "" => 1,
            unit => bytes_per_unit(unit).ok_or_else(|| UnitError::unit(unit, SIZES))?,
        };
        let bytes = number.times(factor).map(Self);
        bytes.ok_or_else(|| UnitError::out_of_range("0b to 17179869183gb"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            n if n > 0 && n.is_multiple_of(1 << 20) => alloc::format!("{}mb", n >> 20),
            n if n > 0 && n.is_multiple_of(1 << 10) => alloc::format!("{}kb", n >> 10),
            n => alloc::format!("{n}b"),
        };
        f.pad(&text)
    }
}

impl FromStr for Limit {
    type Err = UnitError;

    /// Reads `50p` (packets), or bytes: `64kb`, `30000b`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const UNITS: &str = "p for packets, or b, kb, mb";
        let (number, unit) = split(text, "50p")?;
        let limit = match unit.as_str() {
            "p" | "pkt" | "pkts" => number
                .times(1)
                .filter(|n| (1..=1_000_000).contains(n))
                .map(|n| Self::Packets(n as u32)),
            unit => {
                let factor = bytes_per_unit(unit).ok_or_else(|| UnitError::unit(unit, UNITS))?;
                number
                    .times(factor)
                    .filter(|n| (1..=1 << 32).contains(n))
                    .map(Self::Bytes)
            }
        };
        limit.ok_or_else(|| UnitError::out_of_range("1p to 1000000p, or 1b to 4gb"))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => f.pad(&alloc::format!("{packets}p")),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn limits_read_and_print_as_tc_does() {
        assert_eq!("50p".parse(), Ok(Limit::Packets(50)));
        assert_eq!("64kb".parse(), Ok(Limit::Bytes(65_536)));
        assert_eq!("1514b".parse(), Ok(Limit::Bytes(1514)));
        for text in ["50p", "64kb", "1514b", "3mb"] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_of_limits_give_a_valid_form() {
        let error = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
        assert_eq!(error("50"), "no unit; use p for packets, or b, kb, mb");
        assert_eq!(
            error("50q"),
            "unknown unit 'q'; use p for packets, or b, kb, mb"
        );
        assert_eq!(
            error("0p"),
            "out of range; use 1p to 1000000p, or 1b to 4gb"
        );
        assert_eq!(
            error("1000001p"),
            "out of range; use 1p to 1000000p, or 1b to 4gb"
        );
    }
}
