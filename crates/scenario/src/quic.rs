//! Flows of a QUIC stack: the stack's program in the lab, and its ACK rule in the simulator.

use crate::ack_policy::AckPolicy;
use crate::tcp::Tcp;
use crate::text::{part, unknown_key};
use asymq_core::units::{Duration, nearest};
use std::fmt;
use std::str::FromStr;

/// Rule by which a QUIC stack's receiver sends ACKs. Both ends run this stack, so the sender's requests are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicStack {
    /// The stack's name in flags, files and results.
    pub name: &'static str,
    /// The number of packets at the start of a connection that are acknowledged in pairs.
    pub paired: u64,
    /// The number of packets per ACK after the `paired` packets.
    pub every: u32,
    /// An ACK's maximum delay is the round-trip time divided by this number, within 1 to 25 ms. 0 means always 25 ms.
    pub rtt_part: u32,
    /// Number of ACKs per PING; an ACK that carries a PING is acknowledged by the sender. 0 for no PINGs.
    pub pings: u32,
    /// The source of this rule, such as a file of the stack.
    pub source: &'static str,
}

/// Lists stacks, one a line: name, numbers by field, source.
macro_rules! stacks {
    ($($name:literal: $($field:ident $number:literal,)+ $source:literal;)+) => {
        &[$(Self { name: $name, $($field: $number,)+ source: $source }),+]
    };
}

impl QuicStack {
    /// All stacks of the simulator.
    pub const ALL: &[Self] = stacks! {
        "chrome": paired 100, every 10, rtt_part 4, pings 20, "quiche, QuicReceivedPacketManager";
        "mvfst": paired 0, every 10, rtt_part 4, pings 0, "mvfst, QuicConstants.h";
        "neqo": paired 0, every 64, rtt_part 4, pings 0, "neqo-transport, ackrate.rs";
        "picoquic": paired 0, every 64, rtt_part 4, pings 0, "picoquic, frames.c";
        "quinn": paired 0, every 2, rtt_part 0, pings 0, "RFC 9000, section 13.2.2; quinn-proto";
        "quic-go": paired 0, every 2, rtt_part 0, pings 20, "quic-go, received_packet_tracker.go";
        "ngtcp2": paired 0, every 2, rtt_part 0, pings 11, "ngtcp2, ngtcp2_settings.c";
        "msquic": paired 0, every 2, rtt_part 0, pings 0, "msquic, quicdef.h";
    };

    /// Returns the stack with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|stack| stack.name == name)
    }

    /// Returns the ACK policy at the start of a connection.
    pub(crate) fn policy(&self) -> AckPolicy {
        let every = if self.paired > 0 { 2 } else { self.every };
        AckPolicy::Every(every, Duration::from_millis(25))
    }

    /// Returns the packets per ACK and the maximum delay of an ACK in ns. `packets` packets have arrived before; `rtt`
    /// is the round-trip time in ns.
    pub fn rule(&self, packets: u64, rtt: u64) -> (u32, u64) {
        const MAX_ACK_DELAY: u64 = 25_000_000;
        let every = if packets < self.paired { 2 } else { self.every };
        let part = rtt.checked_div(self.rtt_part.into());
        let wait = part.map_or(MAX_ACK_DELAY, |part| part.clamp(1_000_000, MAX_ACK_DELAY));
        (every, wait)
    }

    /// Suggests a stack of the simulator or the lab for a name that is neither known nor a path.
    pub fn near(name: &str) -> Option<String> {
        let known = Self::ALL.iter().map(|stack| stack.name);
        let mut known = known.chain(["aioquic"]);
        let is_unknown = !name.contains('/') && !known.clone().any(|known| known == name);
        let near = is_unknown.then(|| nearest(name, &mut known)).flatten()?;
        Some(format!("{name}: unknown stack; did you mean {near}?"))
    }

    /// Lists the names for an error message.
    pub(crate) fn either() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|stack| stack.name).collect();
        names.join(", ")
    }
}

/// Long-lived flows of a QUIC stack, whose program the lab starts at home and at the servers. Upload N and download N
/// have the round-trip time and the start time of TCP flow N.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuicFlows {
    /// Name of the stack, like `quinn`, or the path of its program.
    pub stack: String,
    /// Number of uploads.
    pub up: u32,
    /// Number of downloads.
    pub down: u32,
    /// Congestion control; if absent, the scenario's congestion control.
    pub tcp: Option<Tcp>,
    /// Number of packets per ACK that the sender requests; the stack's own rule applies if absent.
    pub ack_every: Option<u32>,
}

impl FromStr for QuicFlows {
    type Err = String;

    /// Parses `quinn,down=10` and `quinn,up=1,down=10,tcp=bbr,ack-every=10`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "write it like quinn,down=10 (stack or path of its program, up, down, tcp, ack-every)";
        const MAX: u32 = 500;
        let mut words = text.split(',');
        let stack = words.next().filter(|stack| !stack.is_empty()).ok_or(FORM)?;
        let mut flows = Self {
            stack: stack.into(),
            ..Self::default()
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or(FORM)?;
            match name {
                "up" => flows.up = part(value)?,
                "down" => flows.down = part(value)?,
                "tcp" => flows.tcp = Some(part(value)?),
                "ack-every" => flows.ack_every = Some(part(value)?),
                _ => return Err(unknown_key(name, FORM)),
            }
        }
        if flows.up + flows.down == 0 || flows.up.max(flows.down) > MAX {
            let many =
                format!("no flows, or too many; use 1 to {MAX} flows in a direction; {FORM}");
            return Err(QuicStack::near(stack).unwrap_or(many));
        }
        if let Some(packets @ (0 | 65..)) = flows.ack_every {
            return Err(format!("ack-every={packets}: use 1 to 64"));
        }
        Ok(flows)
    }
}

impl fmt::Display for QuicFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},up={},down={}", self.stack, self.up, self.down)?;
        if let Some(tcp) = self.tcp {
            write!(f, ",tcp={tcp}")?;
        }
        if let Some(packets) = self.ack_every {
            write!(f, ",ack-every={packets}")?;
        }
        Ok(())
    }
}

crate::text::serde_as_string!(QuicFlows);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chromes_receiver_answers_pairs_then_tens_within_a_quarter_of_a_round_trip() {
        let chrome = QuicStack::named("chrome").unwrap();
        let ms = 1_000_000;
        assert_eq!(chrome.rule(99, 40 * ms), (2, 10 * ms));
        assert_eq!(chrome.rule(100, 40 * ms), (10, 10 * ms));
        assert_eq!(chrome.rule(100, 400 * ms), (10, 25 * ms));
        assert_eq!(chrome.pings, 20);
        let quinn = QuicStack::named("quinn").unwrap();
        assert_eq!(quinn.rule(1000, 40 * ms), (2, 25 * ms));
    }

    #[test]
    fn the_simulator_lists_the_flows_of_the_stacks_that_it_has() {
        let listed = |text: &str| text.parse::<QuicFlows>().unwrap().listed();
        let flows: Vec<String> = listed("chrome,up=1,down=2,tcp=bbr3")
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            flows,
            [
                "up,tcp=bbr3,quic=chrome",
                "down,tcp=bbr3,quic=chrome",
                "down,tcp=bbr3,quic=chrome"
            ]
        );
        let error = listed("s2n,down=1").unwrap_err();
        assert!(
            error.starts_with("s2n: not simulated; use chrome, mvfst"),
            "{error}"
        );
    }

    #[test]
    fn quic_flows_parse_as_printed() {
        for text in [
            "quinn,up=0,down=10",
            "./stack,up=1,down=2,tcp=bbr,ack-every=10",
        ] {
            let flows: QuicFlows = text.parse().unwrap();
            assert_eq!(flows.to_string(), text);
        }
    }

    #[test]
    fn quic_flows_without_a_flow_a_stack_or_a_known_word_are_refused() {
        let error = |text: &str| text.parse::<QuicFlows>().unwrap_err();
        assert!(error("quinn").starts_with("no flows"), "{}", error("quinn"));
        let near = "chrom: unknown stack; did you mean `chrome`?";
        assert_eq!(error("chrom"), near);
        assert!(error("./chrom").starts_with("no flows"));
        assert!(error("quinn,down=501").starts_with("no flows, or too many"));
        assert!(error(",down=1").starts_with("write it like quinn,down=10"));
        assert!(error("quinn,left=1").starts_with("unknown key 'left'; write it like"));
        assert!(error("quinn,down=1,ack-every=65").starts_with("ack-every=65"));
        assert_eq!(
            error("quinn,down=many"),
            "many: not a whole number; write it like 5"
        );
    }
}
