//! TCP flows that a scenario lists separately.

use crate::ack_policy::AckPolicy;
use crate::encapsulation::Encapsulation;
use crate::links::Links;
use crate::quic::QuicStack;
use crate::rtt::RttRange;
use crate::tcp::Tcp;
use crate::text::{part, unknown_key};
use asymq_core::{Bytes, Direction, Duration, Rate};
use std::fmt;
use std::str::FromStr;

/// A TCP flow of a scenario. Absent values are inherited from the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFlow {
    /// Direction of the flow's data.
    pub direction: Direction,
    /// Propagation round-trip time: one value, or a range from which it is drawn.
    pub rtt: Option<RttRange>,
    /// Start of the flow, as time since the start of the run; drawn at random if absent.
    pub start: Option<Duration>,
    /// Time at which the application stops writing; never if absent.
    pub stop: Option<Duration>,
    /// Total bytes that the application writes, rounded up to whole segments; unlimited if absent.
    pub size: Option<Bytes>,
    /// Rate at which the application writes payload; unlimited if absent.
    pub rate: Option<Rate>,
    /// Congestion control of the sender.
    pub tcp: Option<Tcp>,
    /// True if the flow uses SACK. If absent, a flow with the scenario's congestion control uses the scenario's value.
    /// Any other flow uses the default of its congestion control.
    pub sack: Option<bool>,
    /// Payload bytes of a full segment.
    pub mss: Option<Bytes>,
    /// ACK policy of the flow's receiver.
    pub ack_policy: Option<AckPolicy>,
    /// Links of a chain that the flow passes; all if absent.
    pub links: Option<Links>,
    /// Encryption of the flow's packets.
    pub encapsulation: Encapsulation,
    /// Number of ACKs per round-trip time that the receiver sends (QUIC's ACK_FREQUENCY), each for at most 64 packets.
    /// If absent, the ACK policy applies.
    pub acks_per_rtt: Option<u32>,
    /// The QUIC stack at both ends, which decides when the receiver acknowledges. If absent, the receiver acknowledges
    /// every second packet (RFC 9000).
    pub stack: Option<&'static QuicStack>,
    /// True if the flow's QUIC packets change the spin bit (RFC 9000, section 17.4).
    pub spin: bool,
}

const FORM: &str = "write it like down,rtt=40ms,start=2s,size=1mb,tcp=reno (keys: direction, rtt, \
                    start, stop, size, rate, tcp, sack, mss, delayed-ack, ack-every, acks-per-rtt, \
                    links, opaque, quic, spin, tunnel)";

/// Declares the keys of a flow, each with its field.
macro_rules! keys {
    ($($key:literal: $field:ident by $read:ident),* $(,)?) => {
        impl ListedFlow {
            /// Sets the field of a key. Returns false if no field has this key.
            fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
                match key {
                    $($key => self.$field = Some($read(value)?),)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
                let all = [$(($key, self.$field.as_ref().map(ToString::to_string))),*];
                all.into_iter().filter_map(|(key, value)| Some((key, value?)))
            }
        }
    };
}

keys! {
    "rtt": rtt by part,
    "start": start by part,
    "stop": stop by part,
    "size": size by part,
    "rate": rate by part,
    "tcp": tcp by part,
    "sack": sack by truth,
    "mss": mss by part,
    "links": links by part,
}

impl ListedFlow {
    /// True if the flow's size or time is limited, so that the flow has a completion time.
    pub const fn ends(&self) -> bool {
        self.size.is_some() || self.stop.is_some()
    }
}

impl FromStr for ListedFlow {
    type Err = String;

    /// Parses `down,rtt=40ms,size=1mb`; `direction=down` is valid too.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut direction = None;
        let mut seen: Vec<&str> = Vec::new();
        let mut flow = Self::default();
        let (mut every, mut delay, mut hidden) = (None, None, None);
        for item in text.split(',').map(str::trim) {
            let (key, value) = match item {
                "up" | "down" => ("direction", item),
                _ => item
                    .split_once('=')
                    .ok_or_else(|| format!("'{item}' is not KEY=VALUE; {FORM}"))?,
            };
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(format!("{key} is given twice; {FORM}"));
            }
            seen.push(key);
            let read = match key {
                "direction" => part(value).map(|value| direction = Some(value)),
                "opaque" => {
                    truth(value).map(|value| hidden = value.then_some(Encapsulation::Opaque))
                }
                "quic" => {
                    flow.stack = QuicStack::named(value);
                    let is_quic = match flow.stack {
                        Some(_) => Ok(true),
                        None => truth(value)
                            .map_err(|error| format!("{error}, or {}", QuicStack::either())),
                    };
                    is_quic.map(|value| hidden = value.then_some(Encapsulation::Quic))
                }
                "spin" => truth(value).map(|value| flow.spin = value),
                "tunnel" => part(value).map(|tunnel| hidden = Some(Encapsulation::Tunnel(tunnel))),
                "acks-per-rtt" => {
                    let acks = value.parse().ok();
                    flow.acks_per_rtt = acks.filter(|acks| (1..=100).contains(acks));
                    let wrong = || format!("{value}: not a whole number from 1 to 100");
                    flow.acks_per_rtt.map(drop).ok_or_else(wrong)
                }
                "delayed-ack" => part(value).map(|value| delay = Some(value)),
                "ack-every" => {
                    let wrong = |_| format!("{value}: not a whole number; write it like 2");
                    let packets = value.parse::<u32>().map_err(wrong);
                    packets.map(|packets| every = Some(packets))
                }
                key => match flow.set(key, value) {
                    Ok(false) => return Err(unknown_key(key, FORM)),
                    read => read.map(drop),
                },
            };
            read.map_err(|error| format!("{key}={error}"))?;
            if let Some(encapsulation) = hidden.take()
                && std::mem::replace(&mut flow.encapsulation, encapsulation) != Encapsulation::None
            {
                return Err(format!(
                    "{key}: use only one of opaque, quic and tunnel; {FORM}"
                ));
            }
        }
        if every.is_some() || delay.is_some() {
            flow.ack_policy = Some(AckPolicy::of(every, delay));
        }
        if flow.spin && flow.encapsulation != Encapsulation::Quic {
            return Err(format!(
                "spin: only QUIC has this bit; add quic=true; {FORM}"
            ));
        }
        flow.direction = direction.ok_or_else(|| format!("no direction; {FORM}"))?;
        Ok(flow)
    }
}

fn truth(text: &str) -> Result<bool, String> {
    text.parse()
        .map_err(|_| format!("{text}: unknown; use true or false"))
}

impl fmt::Display for ListedFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.direction)?;
        for (key, value) in self.given() {
            write!(f, ",{key}={value}")?;
        }
        match self.encapsulation {
            Encapsulation::None => {}
            Encapsulation::Opaque => write!(f, ",opaque=true")?,
            Encapsulation::Quic => {
                let name = self.stack.map_or("true", |stack| stack.name);
                write!(f, ",quic={name}")?;
            }
            Encapsulation::Tunnel(tunnel) => write!(f, ",tunnel={tunnel}")?,
        }
        if self.spin {
            write!(f, ",spin=true")?;
        }
        if let Some(acks) = self.acks_per_rtt {
            write!(f, ",acks-per-rtt={acks}")?;
        }
        let Some(policy) = self.ack_policy else {
            return Ok(());
        };
        let (packets, timeout) = policy.parts();
        write!(f, ",ack-every={packets}")?;
        match policy {
            AckPolicy::EveryPacket => Ok(()),
            _ => write!(f, ",delayed-ack={timeout}"),
        }
    }
}

crate::text::serde_as_string!(ListedFlow);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_parses_as_printed() {
        for text in [
            "down",
            "up,rtt=20ms..300ms,start=1s,stop=2s,size=1mb,rate=100kbit,tcp=cubic,sack=false,mss=1000b,links=2..3",
            "down,ack-every=2,delayed-ack=40ms",
            "down,ack-every=1",
            "down,rtt=40ms,opaque=true",
            "up,quic=true,spin=true",
            "down,quic=chrome",
            "down,quic=true,acks-per-rtt=4",
            "up,tunnel=wireguard",
            "up,start=0ns,ack-every=4,delayed-ack=100ms",
        ] {
            assert_eq!(text.parse::<ListedFlow>().unwrap().to_string(), text);
        }
        let spaced: ListedFlow = "rtt = 40ms, direction = down".parse().unwrap();
        assert_eq!(spaced.to_string(), "down,rtt=40ms");
        let delayed: ListedFlow = "down,delayed-ack=40ms".parse().unwrap();
        let policy = AckPolicy::Delayed(Duration::from_millis(40));
        assert_eq!(delayed.ack_policy, Some(policy));
    }

    #[test]
    fn a_wrong_part_of_a_flow_is_named() {
        let error = |text: &str| text.parse::<ListedFlow>().unwrap_err();
        assert!(error("rtt=40ms").starts_with("no direction; write it like down"));
        assert!(error("down,size").starts_with("'size' is not KEY=VALUE; write it"));
        assert_eq!(
            error("down,sise=1mb"),
            "unknown key 'sise'; did you mean `size`?"
        );
        assert!(error("down,colour=1").starts_with("unknown key 'colour'; write it like"));
        assert!(error("down,up").starts_with("direction is given twice"));
        assert!(error("direction=left").starts_with("direction=left: unknown; use up or down"));
        assert!(error("down,rtt=40").starts_with("rtt=40: no unit; use s"));
        assert!(error("down,tcp=Cubic").starts_with("tcp=Cubic: unknown; did you mean `cubic`"));
        assert!(error("down,ack-every=x").starts_with("ack-every=x: not a whole number"));
        assert!(error("down,tunnel=ipip").starts_with("tunnel=ipip: unknown; use wireguard"));
        assert!(
            error("down,quic=true,tunnel=esp").starts_with("tunnel: use only one of opaque, quic")
        );
        assert!(error("down,spin=true").starts_with("spin: only QUIC"));
        assert!(error("down,acks-per-rtt=0").starts_with("acks-per-rtt=0: not a whole number"));
    }
}
