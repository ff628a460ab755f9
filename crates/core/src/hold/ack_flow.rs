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
    /// Its newest ACK tells of a loss.
    pub(crate) loses: bool,
    /// The last ACK that left; the flow's first, of which no sender knows, until one has.
    pub(crate) last_sent: Past,
    /// Time at which that arrived.
    pub(crate) last_arrival: Instant,
    /// Its places.
    pub(crate) waiting: u32,
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
            loses: false,
            last_sent: Past {
                info: *info,
                is_taken: false,
                top: info.ack,
                reader: Reader::Passed,
            },
            last_arrival: arrival,
            waiting: 0,
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

    /// True if an arrival, with its place in a run of duplicates, is the first to tell of a loss.
    #[inline]
    pub(crate) fn begins_loss(&mut self, info: &AckInfo, duplicates: Option<u8>) -> bool {
        let sacks = info.sack_ranges > 0 && !info.is_dsack();
        let loses = match duplicates {
            Some(place) => sacks || self.loses || place >= KEPT_DUPLICATES,
            None => sacks,
        };
        let lost = core::mem::replace(&mut self.loses, loses);
        loses && !lost
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::ack::SackRange;

    fn ack(ack: u32, range: Option<(u32, u32)>) -> AckInfo {
        let mut info = AckInfo {
            ack,
            sack_ranges: range.is_some().into(),
            ..AckInfo::default()
        };
        if let (Some(first), Some((start, end))) = (info.sack.first_mut(), range) {
            *first = SackRange { start, end };
        }
        info
    }

    /// Losses that a flow's ACKs tell of.
    fn losses(acks: &[AckInfo]) -> usize {
        let mut state = FlowState::new(&ack(0, None), Instant::ZERO);
        let tells = |info: &&AckInfo| {
            let duplicates = state.duplicates(info);
            let begins = state.begins_loss(info, duplicates);
            state.note(info, duplicates);
            begins
        };
        acks.iter().filter(tells).count()
    }

    #[test]
    fn ranges_until_the_number_goes_on_are_one_loss() {
        let holes = [
            ack(10, None),
            ack(10, Some((20, 30))),
            ack(10, Some((20, 40))),
            ack(15, Some((20, 50))),
            ack(50, None),
        ];
        assert_eq!(losses(&holes), 1);
        assert_eq!(
            losses(&[&holes[..], &[ack(50, Some((60, 70)))]].concat()),
            2
        );
    }

    #[test]
    fn three_duplicates_are_a_loss_and_two_are_none() {
        assert_eq!(losses(&[ack(10, None); 3]), 0);
        assert_eq!(losses(&[ack(10, None); 4]), 1);
        assert_eq!(losses(&[ack(10, None); 9]), 1);
    }

    #[test]
    fn a_duplicate_segment_is_no_loss() {
        assert_eq!(losses(&[ack(10, None), ack(30, Some((10, 20)))]), 0);
    }
}
