//! Counters of packets.

use crate::{Backlog, Counter, Duration, Fate, Header, Reason, TrafficClass};

/// A value for each traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerClass<T>([T; TrafficClass::COUNT]);

impl<T: Copy> PerClass<T> {
    /// The value of one class.
    pub const fn of(&self, class: TrafficClass) -> T {
        self.0[class as usize]
    }

    /// The value of one class, mutable.
    pub const fn of_mut(&mut self, class: TrafficClass) -> &mut T {
        &mut self.0[class as usize]
    }

    /// The values of all classes.
    pub fn values(&self) -> impl Iterator<Item = T> + use<T> {
        self.0.into_iter()
    }
}

impl<T: Copy + core::ops::Add<Output = T> + Default> PerClass<T> {
    /// Returns the sum over all classes.
    pub fn total(&self) -> T {
        self.values().fold(T::default(), |sum, value| sum + value)
    }
}

/// Counters of an egress since its creation, by traffic class. Bytes are as charged to the link. Invariant:
/// `arrived = sent + left (all reasons) + backlog`. Packets that move to another discipline no longer count as arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Packets given to the discipline.
    pub arrived: PerClass<Counter>,
    /// Packets transmitted.
    pub sent: PerClass<Counter>,
    /// Packets that the discipline marked (CE), including packets that are still queued.
    pub marked: PerClass<Counter>,
    /// Busy time of the link. A packet's whole transmission time counts at the start of the transmission.
    pub busy: PerClass<Duration>,
    left: [PerClass<Counter>; Reason::COUNT],
}

impl Meters {
    /// Packets that left without being sent, for one reason.
    pub fn left(&self, reason: Reason) -> PerClass<Counter> {
        self.left[reason as usize]
    }

    /// Queued packets: arrivals that were neither sent nor removed.
    pub fn backlog(&self) -> PerClass<Backlog> {
        let mut backlog = PerClass::default();
        for class in TrafficClass::ALL {
            let left = self.left.iter().map(|left| left.of(class));
            let gone: Counter = left.chain([self.sent.of(class)]).sum();
            let waits = self.arrived.of(class) - gone;
            *backlog.of_mut(class) = Backlog {
                packets: waits.packets as u32,
                bytes: waits.bytes,
            };
        }
        backlog
    }

    /// Packets with one fate: dropped, filtered or marked.
    pub fn fate(&self, fate: Fate) -> PerClass<Counter> {
        let mut sum = match fate {
            Fate::Marked => self.marked,
            Fate::Dropped | Fate::Filtered => PerClass::default(),
        };
        for reason in Reason::ALL.iter().filter(|reason| reason.fate() == fate) {
            for class in TrafficClass::ALL {
                *sum.of_mut(class) = sum.of(class) + self.left(*reason).of(class);
            }
        }
        sum
    }

    /// Counts an arrival of `len` bytes. An [`Egress`](super::Egress) calls this function and the next three itself.
    pub fn arrives(&mut self, class: TrafficClass, len: u32) {
        self.arrived.of_mut(class).add(len);
    }

    /// Counts the start of a transmission that takes `busy`.
    pub fn sends(&mut self, header: &Header, busy: Duration) {
        let class = header.traffic_class();
        self.sent.of_mut(class).add(header.len);
        *self.busy.of_mut(class) = self.busy.of(class) + busy;
    }

    /// Counts a packet that left without being sent.
    pub fn leaves(&mut self, header: &Header, reason: Reason) {
        let class = header.traffic_class();
        if let Some(left) = self.left.get_mut(reason as usize) {
            left.of_mut(class).add(header.len);
        }
    }

    /// Subtracts a packet from the arrival counters, because it moves to another discipline.
    pub fn hands_over(&mut self, header: &Header) {
        let class = header.traffic_class();
        let arrived = self.arrived.of_mut(class);
        arrived.packets = arrived.packets.wrapping_sub(1);
        arrived.bytes = arrived.bytes.wrapping_sub(u64::from(header.len));
    }

    pub(super) fn marks(&mut self, header: &Header) {
        self.marked.of_mut(header.traffic_class()).add(header.len);
    }
}
