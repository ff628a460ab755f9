//! Protocol of a measurement: a line of text opens each TCP connection; probes are datagrams of 32 bytes.
//!
//! `asymq-measure 1 start` opens a session. The server answers with a line of JSON, an `Answer`. It then sends a line
//! `Counted` in each interval with uploads. `asymq-measure 1 up SESSION FLOW` and `... down SESSION FLOW` open flows of
//! a session. After the opening line, one side sends endlessly.

use asymq_core::Direction;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Default port of the server, TCP and UDP.
pub const PORT: u16 = 9802;

/// Maximum number of flows of a session in one direction.
pub const MAX_FLOWS: usize = 16;

/// Maximum length of an opening line in bytes, with its line feed.
pub(crate) const MAX_OPENING: usize = 64;

/// Maximum length of a line from the server in bytes.
pub(crate) const MAX_LINE: usize = 1024;

const MAGIC: &str = "asymq-measure 1 ";

/// Token that identifies a session, and proves that the sender of a probe has received the server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Token {
    /// Reads 16 hexadecimal digits.
    pub fn read(text: &str) -> Option<Self> {
        let is_token = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

/// The first line of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Opens a session.
    Start,
    /// Opens a flow of a session.
    Flow {
        /// Direction of the flow's data.
        direction: Direction,
        /// Token of the session.
        session: Token,
        /// Number of the flow, below [`MAX_FLOWS`].
        flow: usize,
    },
}

impl Opening {
    /// Parses a line without its line feed. `None` if the line does not belong to this protocol.
    pub fn read(line: &[u8]) -> Option<Self> {
        let words = std::str::from_utf8(line).ok()?.strip_prefix(MAGIC)?;
        let words: Vec<&str> = words.split(' ').collect();
        match words[..] {
            ["start"] => Some(Self::Start),
            [direction, session, flow] => Some(Self::Flow {
                direction: direction.parse().ok()?,
                session: Token::read(session)?,
                flow: flow.parse().ok().filter(|flow| *flow < MAX_FLOWS)?,
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => writeln!(f, "{MAGIC}start"),
            Self::Flow {
                direction,
                session,
                flow,
            } => writeln!(f, "{MAGIC}{direction} {session} {flow}"),
        }
    }
}

/// The server's answer to [`Opening::Start`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The session is open.
    Welcome {
        /// The session's [`Token`].
        session: String,
        /// Seconds until the server ends the session.
        seconds: u64,
    },
    /// The server refuses, with this reason.
    Refused(String),
}

/// Bytes received by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Microseconds since the session's start, by the server's clock.
    pub(crate) us: u64,
    /// Bytes of each upload so far.
    pub(crate) up: Vec<u64>,
}

/// A probe or its echo. The echo is as long as the probe, so that the server cannot be used for amplification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Token of the session.
    pub session: Token,
    /// Number of the probe.
    pub number: u64,
    /// Arrival time at the server, in microseconds of the server's clock; 0 in a request.
    pub arrived: u64,
    /// Departure time from the server, by the same clock; 0 in a request.
    pub left: u64,
}

impl Probe {
    /// Length of a probe's datagram in bytes.
    pub const LEN: usize = 32;
    /// Length of a probe's IPv4 packet in bytes.
    pub const IP_LEN: usize = Self::LEN + 28;

    /// Returns the probe as a datagram.
    pub fn write(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let fields = [self.session.0, self.number, self.arrived, self.left];
        for (field, value) in bytes.chunks_exact_mut(8).zip(fields) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// Reads a datagram; `None` if its length is wrong.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let (fields, _) = bytes.as_chunks::<8>();
        let field = |index: usize| u64::from_be_bytes(fields[index]);
        Some(Self {
            session: Token(field(0)),
            number: field(1),
            arrived: field(2),
            left: field(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_opening_reads_as_written() {
        let flow = Opening::Flow {
            direction: Direction::Down,
            session: Token(0xfedc),
            flow: 3,
        };
        for opening in [Opening::Start, flow] {
            let line = opening.to_string();
            assert!(line.len() <= MAX_OPENING);
            assert_eq!(Opening::read(line.trim_end().as_bytes()), Some(opening));
        }
    }

    #[test]
    fn other_text_is_not_an_opening() {
        let flow = |rest: &str| format!("asymq-measure 1 {rest}");
        for line in [
            String::new(),
            "GET / HTTP/1.1".into(),
            "asymq-measure 2 start".into(),
            flow("start now"),
            flow("up 000000000000fedc 16"),
            flow("up 000000000000fedc -1"),
            flow("up +00000000000fedc 1"),
            flow("up fedc 1"),
            flow("sideways 000000000000fedc 1"),
        ] {
            assert_eq!(Opening::read(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Opening::read(&bytes);
            let _ = Probe::read(&bytes);
            let _ = serde_json::from_slice::<Counted>(&bytes);
            let mut line = MAGIC.as_bytes().to_vec();
            line.extend(&bytes);
            let _ = Opening::read(&line);
        }

        #[test]
        fn a_probe_reads_as_written(session: u64, number: u64, arrived: u64, left: u64) {
            let probe = Probe { session: Token(session), number, arrived, left };
            prop_assert_eq!(Probe::read(&probe.write()), Some(probe));
            prop_assert_eq!(Probe::read(&probe.write()[1..]), None);
        }
    }
}
