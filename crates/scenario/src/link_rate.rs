//! Link rates that change over time: steps, and traces of delivery opportunities.

use crate::text::part;
use asymq_core::units::{Duration, Rate};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A change during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<T> {
    /// Time of the change, since the start of the run.
    pub at: Duration,
    /// The new value.
    pub to: T,
}

/// A change of a link's rate.
pub type RateStep = Step<Rate>;

/// A change of the path's additional one-way delay beyond the modems.
pub type DelayStep = Step<Duration>;

impl<T: FromStr<Err: fmt::Display>> FromStr for Step<T> {
    type Err = String;

    /// Parses `10s:2mbit` and `10s:25ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "write it like 10s:2mbit (time, new rate) or 10s:25ms (time, extra one-way delay)";
        let (at, to) = text.split_once(':').ok_or(FORM)?;
        Ok(Self {
            at: part(at)?,
            to: part(to)?,
        })
    }
}

impl<T: fmt::Display> fmt::Display for Step<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.at, self.to)
    }
}

crate::text::serde_as_string!(RateStep);
crate::text::serde_as_string!(DelayStep);

/// Delivery opportunities of a link in Mahimahi's format (Netravali et al. 2015). Each opportunity carries up to 1500
/// bytes of one or several packets; unused bytes are lost. After its last opportunity the trace starts again.
#[derive(Clone, PartialEq, Eq)]
pub struct RateTrace {
    /// Times of the opportunities in ms since the start of the trace. The last time is also the trace's length.
    stamps: Arc<[u32]>,
}

impl RateTrace {
    /// Maximum bytes per opportunity.
    pub const OPPORTUNITY: u32 = 1500;
    const MAX_LEN: usize = 2_000_000;

    /// Creates a trace with opportunities at these times in ms.
    ///
    /// # Errors
    /// The index of the first invalid time, from 0, and the reason.
    fn new(stamps: Vec<u32>) -> Result<Self, (usize, String)> {
        let falls = stamps.windows(2).position(|pair| pair[1] < pair[0]);
        if let Some(before) = falls {
            let (earlier, later) = (stamps[before + 1], stamps[before]);
            return Err((
                before + 1,
                format!("{earlier} after {later}; sort the times"),
            ));
        }
        let last = stamps.len().saturating_sub(1);
        match stamps.last() {
            None => Err((0, "no time; write one in ms on each line".into())),
            Some(0) => Err((
                last,
                "the trace has no length; write a last time above 0".into(),
            )),
            Some(_) if stamps.len() > Self::MAX_LEN => {
                let max = Self::MAX_LEN;
                Err((max, format!("too long; use at most {max} opportunities")))
            }
            Some(_) => Ok(Self {
                stamps: stamps.into(),
            }),
        }
    }

    /// Parses a file in Mahimahi's format: each line is a time in ms.
    ///
    /// # Errors
    /// The number of the invalid line, from 1, and the reason.
    pub fn parse_mahimahi(text: &str) -> Result<Self, (usize, String)> {
        let stamps: Result<Vec<u32>, (usize, String)> = (1..)
            .zip(text.lines())
            .map(|(line, stamp)| {
                let number = stamp.trim().parse::<u32>();
                number.map_err(|_| (line, format!("'{stamp}': not a time; write whole ms")))
            })
            .collect();
        Self::new(stamps?).map_err(|(index, message)| (index + 1, message))
    }

    /// Times of the opportunities in ms since each start of the trace.
    pub fn stamps(&self) -> &[u32] {
        &self.stamps
    }

    /// Time in ms after which the trace starts again.
    pub fn period(&self) -> u32 {
        self.stamps.last().copied().unwrap_or(1)
    }

    /// The mean rate, at least 1 bit/s.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.stamps.len() as u64 * u64::from(Self::OPPORTUNITY) * 8;
        let per_second = bits * 1000 / u64::from(self.period());
        Rate::from_bits_per_sec(per_second.max(1)).expect("a trace is far below the maximum")
    }
}

impl fmt::Debug for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, period) = (self.stamps.len(), self.period());
        write!(f, "RateTrace({count} opportunities in {period} ms)")
    }
}

impl fmt::Display for RateTrace {
    /// Writes the differences between consecutive times, with repetitions: `5 1x3 0` means 5, 6, 7, 8, 8.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differences: Vec<u32> = self
            .stamps
            .iter()
            .scan(0, |before, stamp| {
                let difference = stamp - *before;
                *before = *stamp;
                Some(difference)
            })
            .collect();
        for (index, equal) in differences.chunk_by(|a, b| a == b).enumerate() {
            let space = if index == 0 { "" } else { " " };
            match equal.len() {
                1 => write!(f, "{space}{}", equal[0])?,
                times => write!(f, "{space}{}x{times}", equal[0])?,
            }
        }
        Ok(())
    }
}

impl FromStr for RateTrace {
    type Err = String;

    /// Parses the output of [`Display`](fmt::Display).
    fn from_str(text: &str) -> Result<Self, String> {
        let mut stamps = Vec::new();
        let mut now = 0u32;
        for part in text.split_whitespace() {
            let wrong = || format!("{part}: not a difference of times; write ms like 5 or 5x3");
            let (difference, times) = match part.split_once('x') {
                Some((difference, times)) => (difference, times.parse().map_err(|_| wrong())?),
                None => (part, 1),
            };
            let difference: u32 = difference.parse().map_err(|_| wrong())?;
            if times > Self::MAX_LEN {
                return Err(wrong());
            }
            for _ in 0..times {
                now = now.checked_add(difference).ok_or_else(wrong)?;
                stamps.push(now);
            }
        }
        Self::new(stamps).map_err(|(_, message)| message)
    }
}

crate::text::serde_as_string!(RateTrace);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_traces_read_as_they_are_written() {
        assert_eq!(
            "10s:2mbit".parse::<RateStep>().unwrap().to_string(),
            "10s:2mbit"
        );
        let trace = RateTrace::parse_mahimahi("5\n6\n7\n8\n8\n20\n").unwrap();
        assert_eq!(
            (trace.stamps(), trace.period()),
            (&[5, 6, 7, 8, 8, 20][..], 20)
        );
        assert_eq!(trace.to_string(), "5 1x3 0 12");
        assert_eq!("5 1x3 0 12".parse::<RateTrace>().unwrap(), trace);
        // 6 times 12 000 bits in 20 ms.
        assert_eq!(trace.mean_rate().bits_per_sec(), 3_600_000);
    }

    #[test]
    fn a_wrong_line_of_a_trace_is_named() {
        let error = |text: &str| RateTrace::parse_mahimahi(text).unwrap_err();
        assert_eq!(
            error("1\nx\n3"),
            (2, "'x': not a time; write whole ms".into())
        );
        assert_eq!(error("1\n\n3").0, 2);
        assert_eq!(error("1\n5\n3"), (3, "3 after 5; sort the times".into()));
        assert!(error("").1.starts_with("no time"));
        assert!(error("0\n0").1.starts_with("the trace has no length"));
        assert!("5x99999999999".parse::<RateTrace>().is_err());
        assert!("5x3000000".parse::<RateTrace>().is_err());
        assert!("4000000000x2".parse::<RateTrace>().is_err());
        assert!(
            "10s"
                .parse::<RateStep>()
                .unwrap_err()
                .starts_with("write it like")
        );
        assert!(
            "10:1mbit"
                .parse::<RateStep>()
                .unwrap_err()
                .starts_with("10: no unit")
        );
    }
}
