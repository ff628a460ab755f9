//! AFVQ: the ACK queue's limit follows the backlog of the data queue (AFVQ, abstract; `docs/notes/afvq.md` derives the
//! rule).

use crate::decide::control::{Controller, Levels, Needs, Settings, Signals, Step};
use crate::{Instant, Limit};

/// Sets the ACK queue's limit in proportion to the free room in the data queue; at least one ACK.
#[derive(Clone, Copy, Debug)]
pub struct AckLimit {
    /// Limit of the ACK queue while the data queue is empty.
    max_acks: u32,
}

impl AckLimit {
    /// Creates a controller. While the data queue is empty, the limit is `max_acks` ACKs, at least one.
    pub fn new(max_acks: u32) -> Self {
        Self {
            max_acks: max_acks.max(1),
        }
    }
}

impl Controller for AckLimit {
    fn step(&mut self, _now: Instant, _signals: &Signals) -> Step {
        Step {
            settings: Settings::default(),
            next: Instant::MAX,
        }
    }

    fn follow(&mut self, levels: &Levels) -> Settings {
        let data = levels.data;
        let (used, limit) = match data.limit {
            Limit::Packets(limit) => (u64::from(data.backlog.packets), u64::from(limit)),
            Limit::Bytes(limit) => (data.backlog.bytes, limit),
        };
        let room = limit.saturating_sub(used);
        let acks = u64::from(self.max_acks)
            .saturating_mul(room)
            .div_ceil(limit.max(1))
            .max(1);
        Settings {
            ack_limit: Some(Limit::Packets(acks.min(u64::from(u32::MAX)) as u32)),
            ..Settings::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            levels: true,
            ..Needs::default()
        }
    }
}
