//! A modem with a buffer size and a rate that the shaper cannot read.

use crate::rtt::RttRange;
use crate::text::part;
use asymq_core::units::{Duration, Limit, Rate, RateRange};
use std::fmt;
use std::str::FromStr;

/// A modem: a FIFO after the uplink's shaper, or before the downlink's shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modem {
    /// The modem's rate at the start of a run; the direction's steps or trace change it.
    pub rate: Rate,
    /// The modem's buffer: bytes, packets, or time at `rate`.
    pub buffer: ModemBuffer,
    /// Time from a request to its grant (DOCSIS, LTE); without it, the modem sends at once.
    pub grant: Option<RttRange>,
}

/// Size of a modem's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModemBuffer {
    /// Time at the modem's rate at the start.
    Time(Duration),
    /// Limit in packets or bytes.
    Limit(Limit),
}

const FORM: &str = "write it like 10mbit,buffer=600ms,grant=2ms..6ms (rate, buffer as time, bytes or packets, time from \
                    request to grant)";

impl Modem {
    const BUFFER: ModemBuffer = ModemBuffer::Time(Duration::from_millis(600));

    /// The limit of the modem's buffer.
    pub fn limit(&self) -> Limit {
        match self.buffer {
            ModemBuffer::Limit(limit) => limit,
            ModemBuffer::Time(time) => {
                let bytes = self.rate.bytes_per_sec_f64() * time.as_secs_f64();
                Limit::Bytes((bytes as u64).max(1514))
            }
        }
    }
}

impl FromStr for Modem {
    type Err = String;

    /// Parses `10mbit` or `10mbit,buffer=600ms,grant=2ms..6ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut items = text.split(',').map(str::trim);
        let mut modem = Self {
            rate: part(items.next().ok_or(FORM)?)?,
            buffer: Self::BUFFER,
            grant: None,
        };
        for item in items {
            match item.split_once('=') {
                Some(("buffer", size)) => modem.buffer = buffer(size)?,
                Some(("grant", times)) => modem.grant = Some(part(times)?),
                _ => return Err(format!("{item}: unknown; {FORM}")),
            }
        }
        Ok(modem)
    }
}

fn buffer(text: &str) -> Result<ModemBuffer, String> {
    match text.ends_with('s') {
        true => part(text).map(ModemBuffer::Time),
        false => part(text).map(ModemBuffer::Limit),
    }
}

impl fmt::Display for Modem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rate)?;
        match self.buffer {
            Self::BUFFER => {}
            ModemBuffer::Time(time) => write!(f, ",buffer={time}")?,
            ModemBuffer::Limit(limit) => write!(f, ",buffer={limit}")?,
        }
        self.grant
            .map_or(Ok(()), |times| write!(f, ",grant={times}"))
    }
}

crate::text::serde_as_string!(Modem);

/// Source of a shaper's rate if there is a modem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSource {
    /// The scenario's rate, for the whole run.
    #[default]
    Fixed,
    /// No shaper: packets go directly to the modem.
    None,
    /// The rate is learnt from passing packets.
    Auto(RateRange),
    /// The modem's true rate, for comparison.
    Oracle,
    /// 97 % of the modem's true rate, for comparison.
    Oracle97,
    /// 97 % of the modem's true rate, or less while the modem's queue must be emptied, for comparison.
    OracleDrain,
    /// 95 % of the modem's mean rate over the run.
    FixedMean,
    /// 95 % of the modem's lowest rate over one second; outages do not count.
    FixedMin,
    /// The estimate of CAKE's `autorate-ingress`, from the arrival times of packets at the downlink.
    AutorateIngress,
    /// cake-autorate's published rule; the delay of each direction is half the round-trip time.
    CakeAutorate,
    /// cake-autorate's published rule, with measured one-way delays.
    CakeAutorateOwd,
}

impl RateSource {
    const NAMED: [(&str, Self); 10] = [
        ("fixed", Self::Fixed),
        ("none", Self::None),
        ("oracle", Self::Oracle),
        ("oracle-97", Self::Oracle97),
        ("oracle-drain", Self::OracleDrain),
        ("fixed-mean", Self::FixedMean),
        ("fixed-min", Self::FixedMin),
        ("autorate-ingress", Self::AutorateIngress),
        ("cake-autorate", Self::CakeAutorate),
        ("cake-autorate-owd", Self::CakeAutorateOwd),
    ];
}

impl FromStr for RateSource {
    type Err = String;

    /// Reads a name, `auto` or `auto:1mbit..20mbit`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, source)) = Self::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*source);
        }
        if let Some(range) = RateRange::of_auto(text) {
            return range.map(Self::Auto).map_err(|error| error.to_string());
        }
        let names: Vec<&str> = Self::NAMED.iter().map(|(name, _)| *name).collect();
        Err(format!(
            "unknown '{text}'; use auto, auto:1mbit..20mbit, {}",
            names.join(", ")
        ))
    }
}

impl fmt::Display for RateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Auto(range) = self {
            return write!(f, "{range}");
        }
        let named = Self::NAMED.iter().find(|(_, source)| source == self);
        f.write_str(named.map_or("fixed", |(name, _)| name))
    }
}

crate::text::serde_as_string!(RateSource);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modems_read_as_they_are_written() {
        for text in [
            "10mbit",
            "10mbit,buffer=250ms",
            "1mbit,buffer=50p",
            "1mbit,buffer=64kb,grant=2ms..6ms",
        ] {
            assert_eq!(text.parse::<Modem>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "10",
            "10mbit,600ms",
            "10mbit,buffer=x",
            "10mbit,grant=6ms..2ms",
        ] {
            assert!(text.parse::<Modem>().is_err(), "{text}");
        }
        let limit = |text: &str| text.parse::<Modem>().unwrap().limit();
        assert_eq!(limit("8mbit,buffer=500ms"), Limit::Bytes(500_000));
        assert_eq!(limit("8mbit,buffer=5p"), Limit::Packets(5));
    }

    #[test]
    fn sources_of_rates_read_as_they_are_written() {
        let names = RateSource::NAMED.iter().map(|(name, _)| *name);
        for text in names.chain(["auto", "auto:1mbit..20mbit"]) {
            assert_eq!(text.parse::<RateSource>().unwrap().to_string(), text);
        }
        for text in ["", "car", "auto:", "auto:5mbit", "auto:2mbit..1mbit"] {
            assert!(text.parse::<RateSource>().is_err(), "{text}");
        }
    }
}
