//! What short transfers have delivered, and how long they took.

use crate::packets::Kind;
use crate::traffic::{Agent, Conversation};
use crate::variant::Variant;
use asymq_core::Duration;
use asymq_core::measure::Histogram;

/// Bytes delivered in order: payload, and with headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) payload: u64,
    pub(crate) wire: u64,
}

impl Delivered {
    /// What a TCP conversation has delivered, at the index of its direction.
    fn of<V: Variant>(conversation: &Conversation<V>) -> [Self; 2] {
        let mut delivered = [Self::default(); 2];
        if let Agent::Tcp(flow) = &conversation.agent {
            let segments = flow.receiver.data_in_order();
            let layout = &conversation.layout;
            delivered[flow.direction as usize] = Self {
                payload: segments * u64::from(layout.payload()),
                wire: segments * u64::from(layout.charged(Kind::Data)),
            };
        }
        delivered
    }

    fn plus(self, other: Self) -> Self {
        Self {
            payload: self.payload + other.payload,
            wire: self.wire + other.wire,
        }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            payload: self.payload - earlier.payload,
            wire: self.wire - earlier.wire,
        }
    }
}

/// Short transfers that are over and whose places others have taken.
#[derive(Default)]
pub(crate) struct Past {
    delivered: [Delivered; 2],
    completions: Histogram,
    /// Only what is over after this counts, in ns.
    from: u64,
}

impl Past {
    /// Forgets completions up to `now`.
    pub(crate) fn clear(&mut self, now: u64) {
        self.completions.clear();
        self.from = now;
    }

    /// Takes a transfer that is over.
    pub(crate) fn add<V: Variant>(&mut self, transfer: &Conversation<V>) {
        let delivered = Delivered::of(transfer);
        self.delivered =
            [0, 1].map(|direction| self.delivered[direction].plus(delivered[direction]));
        record(&mut self.completions, transfer, self.from);
    }

    /// What these and the `present` transfers have delivered.
    pub(crate) fn delivered<V: Variant>(&self, present: &[Conversation<V>]) -> [Delivered; 2] {
        let each = present.iter().map(Delivered::of);
        each.fold(self.delivered, |sum, one| {
            [0, 1].map(|direction| sum[direction].plus(one[direction]))
        })
    }

    /// How long those took that are over, the `present` ones among them.
    pub(crate) fn completions<V: Variant>(&self, present: &[Conversation<V>]) -> Histogram {
        let mut all = self.completions.clone();
        for transfer in present {
            record(&mut all, transfer, self.from);
        }
        all
    }
}

/// Counts the time from a transfer's start until all was acknowledged, if that was after `from`.
fn record<V: Variant>(completions: &mut Histogram, transfer: &Conversation<V>, from: u64) {
    if let Agent::Tcp(flow) = &transfer.agent
        && let Some(at) = flow.sender.done_at().filter(|at| *at > from)
    {
        completions.record(Duration::from_nanos(at.saturating_sub(flow.start)));
    }
}
