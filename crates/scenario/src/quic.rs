//! Flows of a QUIC stack in the lab.

use crate::Tcp;
use crate::text::part;
use std::fmt;
use std::str::FromStr;

/// Long-lived flows of a QUIC stack, a program that the lab starts at home and at the servers. Upload and download
/// of a number have the round-trip time and the start of the TCP flow of that number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicFlows {
    /// Name of the stack, like `quinn`, or the path of its program.
    pub stack: String,
    /// Uploads.
    pub up: u32,
    /// Downloads.
    pub down: u32,
    /// Congestion control; the scenario's if absent.
    pub tcp: Option<Tcp>,
    /// Packets for which a sender asks an ACK; the stack's own policy if absent.
    pub ack_every: Option<u32>,
}

impl QuicFlows {
    /// Maximum number of flows a direction.
    const MAX: u32 = 500;
}

impl FromStr for QuicFlows {
    type Err = String;

    /// Reads `quinn,down=10` and `quinn,up=1,down=10,tcp=bbr,ack-every=10`.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "write it like quinn,down=10 (stack or path of its program, up, down, tcp, ack-every)";
        let mut words = text.split(',');
        let stack = words.next().filter(|stack| !stack.is_empty()).ok_or(FORM)?;
        let mut flows = Self {
            stack: stack.into(),
            up: 0,
            down: 0,
            tcp: None,
            ack_every: None,
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or(FORM)?;
            match name {
                "up" => flows.up = part(value)?,
                "down" => flows.down = part(value)?,
                "tcp" => flows.tcp = Some(part(value)?),
                "ack-every" => flows.ack_every = Some(part(value)?),
                _ => return Err(format!("unknown {name}; {FORM}")),
            }
        }
        if flows.up + flows.down == 0 || flows.up.max(flows.down) > Self::MAX {
            return Err(format!(
                "no flows or too many; use 1 to {} a direction; {FORM}",
                Self::MAX
            ));
        }
        if let Some(packets) = flows
            .ack_every
            .filter(|packets| !(1..=64).contains(packets))
        {
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
    fn quic_flows_read_back_what_they_write() {
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
        assert!(error("quinn,down=501").starts_with("no flows or too many"));
        assert!(error(",down=1").starts_with("write it like quinn,down=10"));
        assert!(error("quinn,left=1").starts_with("unknown left"));
        assert!(error("quinn,down=1,ack-every=65").starts_with("ack-every=65"));
        assert!(error("quinn,down=many").starts_with("many: "));
    }
}
