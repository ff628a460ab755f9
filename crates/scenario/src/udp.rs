//! Constant-rate UDP with a schedule (paper 000, sections 4.7 and 4.8).

use asymq_core::units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Toward {
    /// From home to the Internet.
    Up,
    /// From the Internet to home.
    Down,
}

/// Constant-rate UDP in one direction for a part of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UdpBurst {
    /// Direction.
    pub toward: Toward,
    /// Rate of IP bytes.
    pub rate: Rate,
    /// First packet at this time from the start of the run.
    #[serde(default)]
    pub start: Duration,
    /// No packet from this time on; the run's end if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// IP packet size, 28 to 1500 bytes.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
}

fn default_packet() -> Bytes {
    Bytes(1000)
}

impl FromStr for UdpBurst {
    type Err = String;

    /// Reads `up:500kbit`, `down:3mbit@60s..80s`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write it like up:500kbit or down:3mbit@60s..80s";
        let (toward, rest) = text.split_once(':').ok_or(FORM)?;
        let toward = match toward {
            "up" => Toward::Up,
            "down" => Toward::Down,
            _ => return Err(format!("unknown direction '{toward}'; {FORM}")),
        };
        let (rate, span) = match rest.split_once('@') {
            Some((rate, span)) => (rate, Some(span)),
            None => (rest, None),
        };
        let in_part = |part: &str, error| format!("{part}: {error}");
        let (start, stop) = match span {
            None => (Duration::ZERO, None),
            Some(span) => {
                let (start, stop) = span.split_once("..").ok_or(FORM)?;
                let start = start.parse().map_err(|e| in_part(start, e))?;
                let stop = stop.parse().map_err(|e| in_part(stop, e))?;
                (start, Some(stop))
            }
        };
        Ok(Self {
            toward,
            rate: rate.parse().map_err(|e| in_part(rate, e))?,
            start,
            stop,
            packet: default_packet(),
        })
    }
}
