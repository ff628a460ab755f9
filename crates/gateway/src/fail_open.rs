//! Bridging by the kernel while no gateway runs.

use crate::link::Link;
use crate::net::{BypassBlock, BypassRule, add_bypass, remove_bypass};
use std::io;

pub(crate) struct FailOpen {
    wanted: bool,
    hold: Option<BypassBlock>,
}

impl FailOpen {
    pub(crate) const fn new(wanted: bool) -> Self {
        Self { wanted, hold: None }
    }

    /// Sets up the kernel's bridge and blocks it; if unwanted, removes it. Returns true if it existed before.
    pub(crate) fn take_over(&mut self, [wan, lan]: &[Link; 2]) -> io::Result<bool> {
        self.hold = None;
        let (Some(lan_index), Some(wan_index)) = (lan.index(), wan.index()) else {
            return Ok(false);
        };
        let rule = |from, link, to| BypassRule {
            from,
            name: Link::name(link),
            to,
        };
        let rules = [
            rule(lan_index, lan, wan_index),
            rule(wan_index, wan, lan_index),
        ];
        let taken = match self.wanted {
            true => BypassBlock::take(rules).and_then(|hold| Ok((hold, add_bypass(rules)?))),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        match taken {
            Ok((hold, was)) => {
                self.hold = Some(hold);
                Ok(was)
            }
            // Perhaps only one direction is bridged; its bridge must be removed.
            Err(error) => {
                let mut was = false;
                for rule in rules {
                    was |= remove_bypass(rule.from)?;
                }
                match self.wanted {
                    true => Err(error),
                    false => Ok(was),
                }
            }
        }
    }

    /// Unblocks the kernel's bridge. Returns true if the kernel now bridges.
    pub(crate) fn hand_over(&mut self) -> bool {
        self.hold.take().is_some()
    }
}
