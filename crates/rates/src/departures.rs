//! Departures of a flow's packets, stored until TCP timestamps echo them.

use crate::answered::{Answered, Origin};
use crate::base::MS;
use crate::observed::TimedSegment;
use asymq_core::Header;
use asymq_core::decide::ack::before;

/// Maximum number of stored departures.
const DEPARTURES: usize = 64;
/// Minimum time in ns between two stored departures; a full ring thus covers at least half a second.
const SPACING: u64 = 8 * MS;
/// If the next packet follows a packet within this time in ns, no ACK timer delays the first packet's ACK.
const SECOND_WITHIN: u64 = 30 * MS;

/// Departures without an echo so far, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    ring: [Option<Departure>; DEPARTURES],
    first: usize,
    count: usize,
    latest: Option<(u32, u64)>,
    /// Highest sequence number that was sent.
    highest: Option<u32>,
}

/// The first packet with a timestamp, and the next packet with new data.
///
/// A receiver that delays ACKs echoes the timestamp of the first packet when the second packet arrives. Other flows may
/// have delayed the second packet, so its departure is stored too.
#[derive(Clone, Copy, Debug)]
struct Departure {
    stamp: u32,
    at: u64,
    bytes: u64,
    /// Sequence number of the second packet's first byte.
    second: u32,
    /// Time in ns from the first to the second packet's departure; 0 before.
    later: u32,
    /// Bytes sent after the first packet, including the second.
    more: u32,
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Echoed {
    /// Departure, in ns, of the packet that ended the delay of the receiver's ACK.
    pub(crate) left: u64,
    /// Total bytes sent up to `left`.
    pub(crate) bytes: u64,
    pub(crate) by: AckTiming,
    /// The packet whose timestamp was echoed.
    pub(crate) answered: Answered,
}

/// Cause of an ACK's delay at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckTiming {
    /// A second packet ended the delay; times count from its departure.
    Second,
    Prompt,
    /// The receiver's timer may have delayed the ACK.
    MaybeTimer,
}

impl Departure {
    /// Returns the packet that an ACK up to `ack` answers.
    fn answered_by(&self, ack: u32) -> Echoed {
        let by = match self.later {
            0 => AckTiming::MaybeTimer,
            _ if before(self.second, ack) => AckTiming::Second,
            later if u64::from(later) < SECOND_WITHIN => AckTiming::Prompt,
            _ => AckTiming::MaybeTimer,
        };
        let (later, more) = match by {
            AckTiming::Second => (self.later, self.more),
            _ => (0, 0),
        };
        Echoed {
            left: self.at.saturating_add(later.into()),
            bytes: self.bytes.wrapping_add(more.into()),
            by,
            answered: self.origin.answered(self.at),
        }
    }
}

impl Departures {
    pub(crate) const NONE: Self = Self {
        ring: [None; DEPARTURES],
        first: 0,
        count: 0,
        latest: None,
        highest: None,
    };

    pub(crate) fn clear(&mut self) {
        (self.first, self.count) = (0, 0);
        (self.latest, self.highest) = (None, None);
    }

    /// Adds a segment that leaves at `at`; `bytes` in total have then left. Stores it if its timestamp is new,
    /// `SPACING` has passed and there is room. Records the first new data after the latest stored segment.
    pub(crate) fn push(&mut self, segment: &TimedSegment, header: &Header, at: u64, bytes: u64) {
        let &TimedSegment {
            stamp, sequence, ..
        } = segment;
        // The original may have arrived long ago, so the ACK of a retransmission is no measurement.
        let is_new = self.highest.is_none_or(|highest| before(highest, sequence));
        if is_new {
            self.highest = Some(sequence);
        }
        if is_new
            && self.count > 0
            && let Some(Some(last)) = self
                .ring
                .get_mut((self.first + self.count - 1) % DEPARTURES)
            && last.later == 0
        {
            last.second = sequence;
            last.later = at.saturating_sub(last.at).try_into().unwrap_or(u32::MAX);
            last.more = bytes.wrapping_sub(last.bytes) as u32;
        }
        let is_close = |(latest, then)| !before(latest, stamp) || at < then + SPACING;
        if self.latest.is_some_and(is_close) || self.count == DEPARTURES {
            return;
        }
        if let Some(slot) = self.ring.get_mut((self.first + self.count) % DEPARTURES) {
            *slot = Some(Departure {
                stamp,
                at,
                bytes,
                second: 0,
                later: 0,
                more: 0,
                origin: Origin::new(header, at),
            });
            self.count += 1;
            self.latest = Some((stamp, at));
        }
    }

    /// Returns the departure that `segment` echoes for the first time; removes it and earlier ones.
    pub(crate) fn take(&mut self, segment: &TimedSegment) -> Option<Echoed> {
        while self.count > 0 {
            let departure = (*self.ring.get(self.first)?)?;
            if before(segment.echo, departure.stamp) {
                return None;
            }
            self.first = (self.first + 1) % DEPARTURES;
            self.count -= 1;
            if departure.stamp == segment.echo {
                return Some(departure.answered_by(segment.ack));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmission_after_a_first_packet_is_not_its_second() {
        let mut departures = Departures::NONE;
        let mut push = |ms: u64, sequence| {
            let segment = TimedSegment {
                stamp: ms as u32,
                sequence,
                ..TimedSegment::default()
            };
            departures.push(&segment, &Header::default(), ms * MS, 75 * ms);
        };
        push(1, 9000);
        push(20, 3000);
        push(90, 6000);
        let ack = TimedSegment {
            echo: 20,
            ack: 10_000,
            ..TimedSegment::default()
        };
        let echoed = departures.take(&ack).unwrap();
        assert_eq!((echoed.left, echoed.by), (20 * MS, AckTiming::MaybeTimer));
    }
}
