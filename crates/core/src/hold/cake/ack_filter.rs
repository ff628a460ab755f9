//! CAKE's ACK filter, with CAKE's own rules. Some rules are stricter than in [`AckFilter`](crate::hold::AckFilter),
//! some looser (`docs/notes/ack-rules.md`).

use crate::decide::ack::{AckInfo, SackRange, before};
use crate::hold::capacity::{BuildError, slots};
use crate::hold::slab::Place;
use crate::{Flow, flags};
use alloc::boxed::Box;

/// Strength of CAKE's ACK filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeAckFilter {
    /// Drops an ACK if two later ACKs make it redundant.
    Conservative,
    /// Drops an ACK if the next ACK makes it redundant.
    Aggressive,
}

/// Maximum number of queued packets compared with one arrival.
const MAX_LOOKS: u32 = 64;

const ECN: u16 = flags::ECE | flags::CWR;

#[derive(Clone, Debug)]
pub(super) struct WaitingAcks {
    mode: CakeAckFilter,
    acks: Box<[Option<(Flow, AckInfo)>]>,
}

impl WaitingAcks {
    pub(super) fn new(mode: CakeAckFilter, packets: u32) -> Result<Self, BuildError> {
        Ok(Self {
            mode,
            acks: slots(packets as usize, |_| None)?,
        })
    }

    pub(super) fn set(&mut self, place: Place, ack: Option<(Flow, AckInfo)>) {
        if let Some(slot) = self.acks.get_mut(place.index()) {
            *slot = ack;
        }
    }

    fn get(&self, place: Place) -> Option<&(Flow, AckInfo)> {
        self.acks.get(place.index())?.as_ref()
    }

    /// Returns a queued ACK that the queue's newest ACK, at `newest`, makes redundant.
    pub(super) fn redundant(
        &self,
        first: Place,
        newest: Place,
        next: impl Fn(Place) -> Place,
    ) -> Option<Place> {
        let (flow, newer) = self.get(newest)?;
        let mut eligible: Option<(Place, u16)> = None;
        let mut found = 0;
        let mut place = first;
        for _ in 0..MAX_LOOKS {
            if place == newest || place == Place::NONE {
                break;
            }
            let here = place;
            place = next(here);
            let Some((_, older)) = self.get(here).filter(|(other, _)| other == flow) else {
                continue;
            };
            // ACKs that differ in ECE or CWR both stay; dropping one would hide the change.
            if eligible.is_some_and(|(_, echo)| older.flags & ECN != echo) {
                eligible = None;
                found -= 1;
            }
            if !is_redundant(older, newer) {
                continue;
            }
            if eligible.is_none() {
                eligible = Some((here, older.flags & ECN));
            }
            found += 1;
            if found > 1 {
                return eligible.map(|(place, _)| place);
            }
        }
        let (place, echo) = eligible?;
        let follows = next(place) == newest && newer.flags & ECN == echo;
        (self.mode == CakeAckFilter::Aggressive && follows).then_some(place)
    }
}

/// True if the older ACK is redundant by CAKE's rules.
fn is_redundant(older: &AckInfo, newer: &AckInfo) -> bool {
    let bare = older.flags & !ECN & 0x0fff == flags::ACK;
    // A missing timestamp of the newer ACK counts as 0.
    let (value, echo) = newer.timestamps.unwrap_or_default();
    let is_old = match older.timestamps {
        None => true,
        Some((older_value, older_echo)) => !before(value, older_value) && !before(echo, older_echo),
    };
    if !bare || older.keep || older.accecn.is_some() || !is_old || before(newer.ack, older.ack) {
        return false;
    }
    match sacks_more(older, newer) {
        Some(more) => more || older.ack != newer.ack,
        None => false,
    }
}

/// True if the newer ACK SACKs more bytes; `None` if the newer ACK lacks a SACK range of the older one.
fn sacks_more(older: &AckInfo, newer: &AckInfo) -> Option<bool> {
    let (old, new) = (older.ranges(), newer.ranges());
    let kept = old.iter().all(|range| {
        let is_dsack = before(range.start, older.ack);
        let in_new =
            |other: &SackRange| !before(range.start, other.start) && !before(other.end, range.end);
        !is_dsack && new.iter().any(in_new)
    });
    let len = |sum: u32, range: &SackRange| sum.wrapping_add(range.end.wrapping_sub(range.start));
    let bytes = |ranges: &[SackRange]| ranges.iter().fold(0, len);
    kept.then(|| bytes(new) > bytes(old))
}
