//! State of a flow for ACK filters: the sender's estimated state, and the flow's queued ACKs.

use super::Place;
use crate::Instant;
use crate::decide::accecn::{Reader, Taken};
use crate::decide::ack::{AckInfo, before};

/// Number of duplicate ACKs that make a sender without SACK retransmit (RFC 5681, sec. 3.2).
pub(crate) const KEPT_DUPLICATES: u8 = 3;

/// Fields that a sender compares to count duplicates (RFC 5681, sec. 2).
#[derive(Clone, Copy, Debug)]
struct Newest {
    seq: u32,
    ack: u32,
    /// TSval; zero without timestamps.
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

    /// True if a sender that has received this ACK ignores `info`, because `info` is a probe or a reordered ACK, or has
    /// an old timestamp. An ignored ACK does not count as a duplicate, and does not end a run of duplicates.
    fn outdates(&self, info: &AckInfo) -> bool {
        let old_timestamp = match info.timestamps {
            Some((val, _)) => self.has_val && before(val, self.val),
            None => false,
        };
        before(info.ack, self.ack) || before(info.seq, self.seq) || old_timestamp
    }
}

/// An earlier ACK, with which later ACKs are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    pub(crate) info: AckInfo,
    /// True if the sender processes this ACK.
    pub(crate) is_taken: bool,
    /// Highest sequence number acknowledged or SACKed up to this ACK.
    pub(crate) top: u32,
    /// State of the sender after this ACK.
    pub(crate) reader: Reader,
}

impl Past {
    /// State of the sender after it has processed this ACK.
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
    /// Last queued packet of the flow.
    pub(crate) tail: Place,
    /// Newest recorded ACK that the sender processes.
    newest: Option<Newest>,
    /// Number of duplicates of `newest`.
    duplicates: u8,
    /// True once an ACK of the flow has carried AccECN counters.
    pub(crate) accecn: bool,
    /// Last ACK sent, or the first ACK of the flow if none has been sent.
    pub(crate) last_sent: Past,
    pub(crate) last_arrival: Instant,
    /// Bytes acknowledged by the ACKs that were sent; stops at 2^32 - 1.
    pub(crate) acked: u32,
}

impl FlowState {
    /// Creates the state of a flow whose first ACK is `info`.
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

    /// Records a queued ACK; `duplicates` is the result of [`duplicates`](Self::duplicates). Returns true if the sender
    /// processes the ACK. An ACK that the sender may ignore is protected, but does not count as a duplicate.
    pub(crate) fn note(&mut self, info: &AckInfo, duplicates: Option<u8>) -> bool {
        let is_taken = !self.newest.is_some_and(|newest| newest.outdates(info));
        if is_taken {
            self.newest = Some(Newest::of(info));
            self.duplicates = duplicates.unwrap_or(0);
        }
        is_taken
    }

    /// Returns the position of `info` in a run of duplicates, if it is part of a run.
    pub(crate) fn duplicates(&self, info: &AckInfo) -> Option<u8> {
        let newest = self.newest?;
        // If the next ACK has another sequence number, this ACK may be a probe. A probe is no duplicate, and the sender
        // ignores its window and number.
        let (repeats, place) = match newest.seq == info.seq {
            true => (
                newest.ack == info.ack && newest.window == info.window,
                self.duplicates.saturating_add(1),
            ),
            false => (!before(newest.ack, info.ack), 0),
        };
        repeats.then_some(place)
    }

    pub(crate) fn sends(&mut self, ack: Past, arrival: Instant) {
        let bytes = ack.info.ack.wrapping_sub(self.last_sent.info.ack);
        if (bytes as i32) > 0 {
            self.acked = self.acked.saturating_add(bytes);
        }
        self.last_sent = ack;
        self.last_arrival = arrival;
    }

    /// Returns the arrival time in ns of the last ACK sent, which determines the order of eviction. `None` for a flow
    /// with queued ACKs, which must not be evicted.
    pub(crate) fn last_used(&self) -> Option<u64> {
        (self.tail == Place::NONE).then_some(self.last_arrival.as_nanos())
    }
}
