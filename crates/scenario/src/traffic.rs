//! Simulated traffic that is not constant: web transfers, and applications with pauses.

use crate::text::{parse_direction, part};
use asymq_core::{Bytes, Direction, Duration, Rate};
use std::fmt;
use std::str::FromStr;

/// Short TCP transfers with Poisson arrivals and Pareto sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct WebLoad {
    /// Direction of the data.
    pub direction: Direction,
    /// Mean number of new transfers per second.
    pub per_second: f64,
    /// Mean size of a transfer; each size is rounded up to whole segments.
    pub mean_size: Bytes,
    /// Shape of the Pareto distribution, above 1; a shape near 1 gives a few very large transfers.
    pub shape: f64,
}

const WEB_FORM: &str =
    "write it like down:1:30kb:1.3 (direction, transfers per second, mean size, Pareto shape)";

impl FromStr for WebLoad {
    type Err = String;

    /// Parses `down:1:30kb:1.3`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let &[direction, per_second, mean_size, shape] = &parts[..] else {
            return Err(WEB_FORM.into());
        };
        let number = |text: &str, from: f64, to: f64| match text.parse::<f64>() {
            Ok(value) if value > from && value <= to => Ok(value),
            _ => Err(format!(
                "{text}: not a number above {from} and up to {to}; {WEB_FORM}"
            )),
        };
        let size: Bytes = part(mean_size)?;
        if !(1..=1 << 30).contains(&size.0) {
            return Err(format!("{mean_size}: out of range; use 1b to 1gb"));
        }
        Ok(Self {
            direction: parse_direction(direction, WEB_FORM)?,
            per_second: number(per_second, 0.0, 10_000.0)?,
            mean_size: size,
            shape: number(shape, 1.0, 100.0)?,
        })
    }
}

impl fmt::Display for WebLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.direction, self.per_second)?;
        write!(f, ":{}:{}", self.mean_size, self.shape)
    }
}

/// An application that writes at a fixed rate during on periods and nothing during off periods. The lengths of the
/// periods are exponentially distributed.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    /// Rate of payload during an on period.
    pub rate: Rate,
    /// Mean length of an on period.
    pub on: Duration,
    /// Mean length of an off period.
    pub off: Duration,
}

const ON_OFF_FORM: &str = "write it like 200kbit:500ms:500ms (rate, mean time on, mean time off)";

impl FromStr for OnOff {
    type Err = String;

    /// Parses `200kbit:500ms:500ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let &[rate, on, off] = &parts[..] else {
            return Err(ON_OFF_FORM.into());
        };
        let span = |text: &str| -> Result<Duration, String> {
            let span: Duration = part(text)?;
            let fits = (Duration::from_millis(1)..=Duration::from_secs(36_000)).contains(&span);
            fits.then_some(span)
                .ok_or_else(|| format!("{text}: out of range; use 1ms to 36000s"))
        };
        Ok(Self {
            rate: part(rate)?,
            on: span(on)?,
            off: span(off)?,
        })
    }
}

impl fmt::Display for OnOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.rate, self.on, self.off)
    }
}

crate::text::serde_as_string!(WebLoad);
crate::text::serde_as_string!(OnOff);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_parses_as_printed() {
        for text in ["down:1:30kb:1.3", "up:0.25:1mb:2"] {
            assert_eq!(text.parse::<WebLoad>().unwrap().to_string(), text);
        }
        let text = "200kbit:500ms:500ms";
        assert_eq!(text.parse::<OnOff>().unwrap().to_string(), text);
    }

    #[test]
    fn a_wrong_part_of_traffic_is_named() {
        let web = |text: &str| text.parse::<WebLoad>().unwrap_err();
        assert!(web("down:1:30kb").starts_with("write it like"));
        assert!(web("left:1:30kb:1.3").starts_with("unknown direction 'left'"));
        assert!(web("down:0:30kb:1.3").starts_with("0: not a number above 0"));
        assert!(web("down:1:30kb:1").starts_with("1: not a number above 1"));
        assert!(web("down:1:30q:1.3").starts_with("30q: unknown unit"));
        assert!(web("down:NaN:30kb:1.3").starts_with("NaN: not a number"));
        let on_off = |text: &str| text.parse::<OnOff>().unwrap_err();
        assert!(on_off("200kbit:0s:1s").starts_with("0s: out of range"));
        assert!(on_off("200kbit").starts_with("write it like"));
    }
}
