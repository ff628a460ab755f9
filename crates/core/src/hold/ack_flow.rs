//! Memory of a flow for ACK filters: its sender's knowledge, and the places of its ACKs.

use super::slab::Place;
use crate::decide::accecn::{Reader, Taken};
use crate::decide::ack::{AckInfo, before};
use crate::units::Instant;

/// Duplicate ACKs that a sender without SACK must see to retransmit (RFC 5681, sec. 3.2).
pub(crate) const KEPT_DUPLICATES: u8 = 3;

/// Fields that a sender compares to count duplicates (RFC 5681, sec. 2).
#[derive(Clone, Copy, Debug)]
struct Newest {
    seq: u32,
    ack: u32,
    /// Zero without timestamps.
    val: u32,
    window: u16,
    has_val: bool,
}

impl Newest {
    const fn of(info: &AckInfo) -> Self {
        Self {
            seq: info.seq,
            ack: info.ack,
            window: info.window,
            val: match info.timestamps {
                Some((val, _)) => val,
                None => 0,
            },
            has_val: info.timestamps.is_some(),
        }
    }

    /// True if a sender that has seen this passes over `info`: a probe, an ACK that was overtaken, or
    /// one with an old timestamp. It neither counts as a duplicate nor ends a run of them.
    fn outdates(&self, info: &AckInfo) -> bool {
        let old_timestamp = match info.timestamps {
            Some((val, _)) => self.has_val && before(val, self.val),
            None => false,
        };
        before(info.ack, self.ack) || before(info.seq, self.seq) || old_timestamp
    }
}

/// An ACK, as what comes after it is compared with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    pub(crate) info: AckInfo,
    /// True if the sender takes what it says.
    pub(crate) is_taken: bool,
    /// The highest number acknowledged or SACKed up to it.
    pub(crate) top: u32,
    /// State of its sender after it.
    pub(crate) reader: Reader,
}

impl Past {
    /// As a sender knows it that has taken it.
    pub(crate) const fn taken(&self) -> Taken<'_> {
        Taken {
            info: &self.info,
            top: self.top,
            reader: self.reader,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowState {
    /// The flow's last place in the queue.
    pub(crate) tail: Place,
    /// The newest ACK that joined, and how often its number was repeated.
    newest: Option<Newest>,
    duplicates: u8,
    /// An ACK of the flow had the marks of AccECN.
    pub(crate) accecn: bool,
    /// The last ACK that left; the flow's first, of which no sender knows, until one has.
    pub(crate) last_sent: Past,
    /// Time at which that arrived.
    pub(crate) last_arrival: Instant,
    /// Bytes acknowledged by what left, as far as they count.
    pub(crate) acked: u32,
}

impl FlowState {
    /// A flow whose first ACK is `info`: what comes after it counts from there.
    pub(crate) const fn new(info: &AckInfo, arrival: Instant) -> Self {
        Self {
            tail: Place::NONE,
            newest: None,
            duplicates: 0,
            accecn: false,
            last_sent: Past {
                info: *info,
                is_taken: false,
                top: info.ack,
                reader: Reader::Passed,
            },
            last_arrival: arrival,
            acked: 0,
        }
    }

    /// Remembers an ACK that joins, with its answer of [`duplicates`](Self::duplicates); answers
    /// whether the sender takes it. What it may pass over is protected like a duplicate, but does not
    /// advance the count.
    pub(crate) fn note(&mut self, info: &AckInfo, duplicates: Option<u8>) -> bool {
        let is_taken = !self.newest.is_some_and(|newest| newest.outdates(info));
        if is_taken {
            self.newest = Some(Newest::of(info));
            self.duplicates = duplicates.unwrap_or(0);
        }
        is_taken
    }

    /// The place of `info` in a run of duplicates, if it is in one.
    #[inline]
    pub(crate) fn duplicates(&self, info: &AckInfo) -> Option<u8> {
        let newest = self.newest?;
        // What came before a step of the sequence number may have been a probe: it counts as no duplicate, and
        // its window and a lower number say nothing of the sender's.
        let (repeats, place) = match newest.seq == info.seq {
            true => (
                newest.ack == info.ack && newest.window == info.window,
                self.duplicates.saturating_add(1),
            ),
            false => (!before(newest.ack, info.ack), 0),
        };
        repeats.then_some(place)
    }

    /// An ACK leaves.
    pub(crate) fn sends(&mut self, ack: Past, arrival: Instant) {
        let bytes = ack.info.ack.wrapping_sub(self.last_sent.info.ack);
        if (bytes as i32) > 0 {
            self.acked = self.acked.saturating_add(bytes);
        }
        self.last_sent = ack;
        self.last_arrival = arrival;
    }

    /// A flow with ACKs waiting is not forgotten.
    pub(crate) fn last_used(&self) -> Option<u64> {
        (self.tail == Place::NONE).then_some(self.last_arrival.as_nanos())
    }
}
