//! UDP flows of constant rate that start and stop (AQ, secs. 4.7 and 4.8).

use crate::links::Links;
use crate::text::{is_default, parse_direction, part};
use asymq_core::{Bytes, Direction, Duration, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A UDP flow of constant rate in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UdpBurst {
    /// Direction of the packets.
    pub direction: Direction,
    /// Rate of the IP packets.
    pub rate: Rate,
    /// Time of the first packet, since the start of the run.
    #[serde(default)]
    pub start: Duration,
    /// Time at which the flow stops; the end of the run if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Duration>,
    /// Links of a chain that the flow passes; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// IP bytes of a packet, 28 to 1500.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
    /// Flood by a second host at home; if absent, one flow of the first host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<Flood>,
    /// Addresses of the flood's packets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub aim: Aim,
}

asymq_core::named! {
    /// Addresses of a flood's packets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Aim {
        /// Each flow goes to a different server.
        #[default]
        Servers = "servers",
        /// All flows go to the server of the scenario's first flow.
        Server = "server",
        /// All flows go to the server of the scenario's first flow, each from a different forged address.
        Forged = "forged",
    }
}

asymq_core::read_by_name!(Aim, "unknown addresses; use server or forged");

/// Packets of a flood from a second host at home. No host answers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// UDP packets of this number of flows, in random order.
    Flows(u32),
    /// UDP packets, each of a new flow.
    Udp,
    /// TCP SYNs, each of a new flow.
    Syns,
    /// TCP ACKs without data, each of a new flow.
    Acks,
}

impl FromStr for Flood {
    type Err = String;

    /// Parses `udp`, `syns`, `acks` or a number of flows.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "udp" => Ok(Self::Udp),
            "syns" => Ok(Self::Syns),
            "acks" => Ok(Self::Acks),
            _ => match text.parse() {
                Ok(flows) if (1..=1_000_000).contains(&flows) => Ok(Self::Flows(flows)),
                _ => Err(
                    "unknown flood; use udp, syns or acks, which start a new flow with each packet, \
                     or a number of flows from 1 to 1000000"
                        .into(),
                ),
            },
        }
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flows(flows) => write!(f, "{flows}"),
            Self::Udp => f.write_str("udp"),
            Self::Syns => f.write_str("syns"),
            Self::Acks => f.write_str("acks"),
        }
    }
}

crate::text::serde_as_string!(Flood);

fn default_packet() -> Bytes {
    Bytes(1000)
}

impl FromStr for UdpBurst {
    type Err = String;

    /// Parses `up:500kbit`, `down:3mbit@60s..80s`, `up:64kbit:200b`, `up:1mbit/2..3` or `up:3mbit:60b:syns`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write it like up:500kbit, down:3mbit:200b@60s..80s, up:1mbit/2..3 or up:3mbit:60b:syns";
        let (text, links) = match text.rsplit_once('/') {
            // Excludes the `/s` of a rate.
            Some((text, links)) if !links.starts_with('s') => (text, Some(part(links)?)),
            _ => (text, None),
        };
        let (flow, start, stop) = match text.split_once('@') {
            Some((flow, span)) => {
                let (start, stop) = span.split_once("..").ok_or(FORM)?;
                (flow, part(start)?, Some(part(stop)?))
            }
            None => (text, Duration::ZERO, None),
        };
        let mut parts = flow.split(':');
        let direction = parse_direction(parts.next().unwrap_or_default(), FORM)?;
        let rate = part(parts.next().ok_or(FORM)?)?;
        let packet = parts.next().map_or(Ok(default_packet()), part)?;
        let flood = parts.next().map(part).transpose()?;
        let aim = parts.next().map(part).transpose()?.unwrap_or_default();
        if parts.next().is_some() {
            return Err(FORM.into());
        }
        Ok(Self {
            direction,
            rate,
            start,
            stop,
            links,
            packet,
            flood,
            aim,
        })
    }
}

impl fmt::Display for UdpBurst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.direction, self.rate)?;
        if self.packet != default_packet() || self.flood.is_some() {
            write!(f, ":{}", self.packet)?;
        }
        if let Some(flood) = self.flood {
            write!(f, ":{flood}")?;
            if self.aim != Aim::default() {
                write!(f, ":{}", self.aim)?;
            }
        }
        if let Some(stop) = self.stop {
            write!(f, "@{}..{stop}", self.start)?;
        }
        match self.links {
            Some(links) => write!(f, "/{links}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_reads_rate_packet_size_and_schedule() {
        let burst: UdpBurst = "down:3mbit:200b@60s..80s".parse().unwrap();
        assert_eq!(burst.direction, Direction::Down);
        assert_eq!(
            (burst.rate.bits_per_sec(), burst.packet),
            (3_000_000, Bytes(200))
        );
        assert_eq!(burst.start, Duration::from_secs(60));
        assert_eq!(burst.stop, Some(Duration::from_secs(80)));
        assert_eq!(burst.to_string(), "down:3mbit:200b@60s..80s");
        let cross: UdpBurst = "up:1mbit@1s..2s/2..3".parse().unwrap();
        assert_eq!(cross.to_string(), "up:1mbit@1s..2s/2..3");
        assert!(
            "up:1mbit/0"
                .parse::<UdpBurst>()
                .unwrap_err()
                .starts_with("0: not links")
        );
        let burst: UdpBurst = "up:64kbit/s".parse().unwrap();
        assert_eq!((burst.start, burst.stop), (Duration::ZERO, None));
    }

    #[test]
    fn a_flood_parses_as_printed() {
        for (text, flood) in [
            ("up:3mbit:60b:syns", Flood::Syns),
            ("down:3mbit:1400b:udp@1s..2s", Flood::Udp),
            ("up:3mbit:1000b:acks", Flood::Acks),
            ("up:6mbit:1400b:40/1", Flood::Flows(40)),
            ("up:6mbit:1400b:udp:forged", Flood::Udp),
            ("up:6mbit:1400b:40:server@1s..2s", Flood::Flows(40)),
        ] {
            let burst: UdpBurst = text.parse().unwrap();
            assert_eq!(burst.flood, Some(flood), "{text}");
            assert_eq!(burst.to_string(), text);
        }
        let error = "up:3mbit:60b:0".parse::<UdpBurst>().unwrap_err();
        assert!(error.starts_with("0: unknown flood; use udp"), "{error}");
    }

    #[test]
    fn a_wrong_part_of_a_burst_is_named() {
        let error = |text: &str| text.parse::<UdpBurst>().unwrap_err();
        assert_eq!(
            error("up:5mbot"),
            "5mbot: unknown unit 'mbot'; use bit, kbit, mbit or gbit"
        );
        assert_eq!(
            error("up:5mbit@60"),
            "write it like up:500kbit, down:3mbit:200b@60s..80s, up:1mbit/2..3 or up:3mbit:60b:syns"
        );
        assert!(error("up").starts_with("write it like"));
        assert!(error("up:1mbit:100b:x").starts_with("x: unknown flood"));
        assert!(error("up:1mbit:100b:40:x").starts_with("x: unknown addresses; use server"));
        assert!(error("up:1mbit:100b:40:server:x").starts_with("write it like"));
    }
}
