//! The kernel forwards while the gateway does not.

use crate::link::Link;
use crate::net::{Hold, Way, bypass, remove_bypass};
use std::io;

/// A gateway's part in forwarding that goes on without it.
#[derive(Debug)]
pub(crate) struct FailOpen {
    wanted: bool,
    hold: Option<Hold>,
}

impl FailOpen {
    pub(crate) const fn new(wanted: bool) -> Self {
        Self { wanted, hold: None }
    }

    /// Takes over from the kernel, which forwards again when this process ends for any reason. True if
    /// the kernel did forward until now.
    ///
    /// # Errors
    /// The kernel cannot forward without a gateway.
    pub(crate) fn take_over(&mut self, [wan, lan]: &[Link; 2]) -> io::Result<bool> {
        self.hold = None;
        let (Some(lan_index), Some(wan_index)) = (lan.index(), wan.index()) else {
            return Ok(false);
        };
        let way = |from, link, to| Way {
            from,
            name: Link::name(link),
            to,
        };
        let ways = [
            way(lan_index, lan, wan_index),
            way(wan_index, wan, lan_index),
        ];
        let taken = match self.wanted {
            true => Hold::take(ways).and_then(|hold| Ok((hold, bypass(ways)?))),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        match taken {
            Ok((hold, was)) => {
                self.hold = Some(hold);
                Ok(was)
            }
            // One alone forwards.
            Err(error) => {
                let mut was = false;
                for way in ways {
                    was |= remove_bypass(way.from)?;
                }
                match self.wanted {
                    true => Err(error),
                    false => Ok(was),
                }
            }
        }
    }

    /// Hands over to the kernel. True if it forwards now.
    pub(crate) fn hand_over(&mut self) -> bool {
        self.hold.take().is_some()
    }
}
