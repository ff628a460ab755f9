//! Pool of learnt targets. A flow takes one when its queue first exceeds the initial target or overflows.

use super::target::{Sends, Signal, Target, TargetParams};
use crate::hold::{BuildError, slots};
use crate::{Duration, Instant};
use alloc::boxed::Box;

/// Maximum number of entries checked in a search for a target that was not used recently; bounds the work.
const MAX_PROBES: u32 = 8;

/// Index of a flow's target in the pool, if the flow has a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u16);

impl Default for Slot {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

/// A fixed number of targets. A flow takes one that was not used recently, or the last one checked.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    entries: Box<[Target]>,
    /// Index of the entry that is checked next.
    hand: u16,
    /// The link's idle clock; runs while no packet is queued or sent.
    idle: Instant,
    /// End of the last transmission if no packet is queued; otherwise [`Instant::MAX`].
    idle_since: Instant,
}

impl Targets {
    /// Creates a pool of `count` targets, fewer than 65 535.
    pub(super) fn new(count: u32) -> Result<Self, BuildError> {
        Ok(Self {
            // No flow owns these targets.
            entries: slots(count as usize, |_| Target::of(u16::MAX))?,
            hand: 0,
            idle: Instant::ZERO,
            idle_since: Instant::MAX,
        })
    }

    /// Returns the target of the flow in this queue, if the flow still has one.
    #[inline]
    fn get(&mut self, number: u32, slot: Slot) -> Option<&mut Target> {
        let target = self.entries.get_mut(usize::from(slot.0))?;
        if u32::from(target.owner) != number {
            return None;
        }
        target.used = true;
        Some(target)
    }

    /// Returns the target of the flow in this queue; takes a target from the pool if the flow has none.
    fn get_or_take(&mut self, number: u32, slot: &mut Slot) -> Option<&mut Target> {
        if self.get(number, *slot).is_none() {
            *slot = self.take(number)?;
        }
        self.get(number, *slot)
    }

    #[cold]
    fn take(&mut self, number: u32) -> Option<Slot> {
        let count = self.entries.len() as u16;
        for look in 1..=MAX_PROBES {
            let slot = self.hand;
            self.hand = if slot + 1 < count { slot + 1 } else { 0 };
            let entry = self.entries.get_mut(usize::from(slot))?;
            if !core::mem::take(&mut entry.used) || look == MAX_PROBES {
                *entry = Target::of(number as u16);
                entry.used = true;
                return Some(Slot(slot));
            }
        }
        None
    }

    /// Starts the idle clock at `at`, the end of the last transmission.
    #[inline]
    pub(super) fn start_idle_clock(&mut self, at: Instant) {
        self.idle_since = at;
    }

    /// Stops the idle clock before an arrival.
    #[inline]
    pub(super) fn stop_idle_clock(&mut self, now: Instant) {
        self.idle += now.saturating_since(self.idle_since);
        self.idle_since = Instant::MAX;
    }

    /// Calls [`Target::on_enqueue`] with the sum of the host's idle clock (`of_host`) and the link's idle clock.
    #[inline]
    pub(super) fn on_enqueue(
        &mut self,
        number: u32,
        slot: Slot,
        of_host: impl FnOnce() -> Duration,
    ) {
        let idle = self.idle;
        if let Some(target) = self.get(number, slot) {
            target.on_enqueue(idle + of_host());
        }
    }

    /// See [`Target::on_dequeue`].
    #[inline(always)]
    pub(super) fn on_dequeue(
        &mut self,
        (number, slot): (u32, &mut Slot),
        (now, of_host): (Instant, impl FnOnce() -> Duration),
        sojourn: Duration,
        left: u64,
        sends: Sends,
        params: &TargetParams,
    ) -> Signal {
        if self.get(number, *slot).is_none() {
            if !params.start_is_exceeded(sojourn, left, sends) {
                return Signal::None;
            }
            *slot = self.take(number).unwrap_or_default();
        }
        let idle = self.idle;
        let target = self.get(number, *slot);
        target.map_or(Signal::None, |target| {
            target.on_dequeue((now, idle + of_host()), sojourn, left, sends, params)
        })
    }

    /// See [`Target::on_signal`].
    pub(super) fn on_signal(&mut self, number: u32, slot: &mut Slot, now: Instant, signal: Signal) {
        if let Some(target) = self.get_or_take(number, slot) {
            target.on_signal(now, signal);
        }
    }

    /// See [`Target::on_overflow`].
    pub(super) fn on_overflow(&mut self, number: u32, slot: &mut Slot, now: Instant) {
        if let Some(target) = self.get_or_take(number, slot) {
            target.on_overflow(now);
        }
    }

    /// Returns the learnt target of the flow in this queue, if there is one.
    pub(super) fn learnt(&self, number: u32, slot: Slot) -> Option<Duration> {
        let target = self.entries.get(usize::from(slot.0))?;
        (u32::from(target.owner) == number).then(|| target.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asymq::target::tests::PARAMS;
    use alloc::vec::Vec;

    /// Returns the signals for a random sequence of packets, from a target in the pool or from a separate target.
    fn course(mut leaves: impl FnMut(Instant, Duration, u64) -> Signal) -> Vec<Signal> {
        let mut random = crate::decide::random::SplitMix64::new(5);
        (1..20_000)
            .map(|tick| {
                let busy = tick / 2000 % 2 == 1;
                let sojourn = if busy { 41 } else { 0 } + random.next() % 40;
                let left = 10_000 * u64::from(!random.next().is_multiple_of(200));
                let now = Instant::from_nanos(tick * 3_000_000);
                leaves(now, Duration::from_millis(sojourn), left)
            })
            .collect()
    }

    #[test]
    fn a_target_from_the_pool_learns_like_one_of_its_own() {
        let mut own = Target::of(0);
        let expected = course(|now, sojourn, left| {
            own.on_enqueue(Instant::ZERO);
            let signal = own.on_dequeue((now, Instant::ZERO), sojourn, left, Sends::Data, &PARAMS);
            if signal == Signal::Drop {
                own.on_signal(now, signal);
            }
            signal
        });
        let (mut targets, mut slot) = (Targets::new(4).unwrap(), Slot::default());
        let found = course(|now, sojourn, left| {
            targets.on_enqueue(7, slot, || Duration::ZERO);
            let (flow, clocks) = ((7, &mut slot), (now, || Duration::ZERO));
            let signal = targets.on_dequeue(flow, clocks, sojourn, left, Sends::Data, &PARAMS);
            if signal == Signal::Drop {
                targets.on_signal(7, &mut slot, now, signal);
            }
            signal
        });
        assert!(expected.contains(&Signal::Drop));
        assert_eq!(found, expected);
        assert_eq!(targets.learnt(7, slot), Some(own.target()));
    }

    #[test]
    fn a_further_flow_takes_the_place_of_one_that_is_silent() {
        let mut targets = Targets::new(2).unwrap();
        let mut places = [Slot::default(); 4];
        let now = Instant::from_nanos(1);
        for number in 0..4 {
            targets.on_overflow(number, &mut places[number as usize], now);
        }
        // The third target was used after the second.
        let has = |number: u32| targets.learnt(number, places[number as usize]).is_some();
        assert_eq!([0, 1, 2, 3].map(has), [false, false, true, true]);
    }
}
