//! Facts about the path, from passing TCP segments: round-trip times, and bytes that receivers
//! acknowledged. No probe is sent.

use asymq_core::decide::random::mix;
use asymq_core::measure::{Histogram, Percentiles};
use asymq_core::packet::flags;
use asymq_core::units::{Duration, Instant};
use asymq_core::{Direction, Header, TrafficClass};
use asymq_rates::Observed;

/// Segments that are awaited, and flows, at once. Beyond, samples are fewer, not wrong.
const SLOTS: usize = 4096;
/// An echo that comes later is an idle sender's, and is not counted.
const PATIENCE: Duration = Duration::from_secs(4);

/// Round-trip times from the arrival of a segment from home to the departure of its echo towards home,
/// and acknowledged bytes. Both of the gateway's queues are within the round trip.
pub(crate) struct Passive {
    awaited: Box<[Awaited]>,
    flows: Box<[Acknowledged]>,
    /// TCP payload sent up and down that receivers acknowledged.
    bytes: [u64; 2],
    round_trips: [Histogram; TrafficClass::COUNT],
}

/// A segment whose echo is awaited; free where the key is 0.
#[derive(Clone, Copy)]
struct Awaited {
    key: u64,
    since: Instant,
    class: TrafficClass,
}

/// The highest acknowledgement number of a flow.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    flow: u64,
    number: u32,
}

/// Key of the number that the echo of a segment will carry: its timestamp, or the end of its bytes.
#[inline]
fn awaited_key(header: &Header, observed: &Observed) -> Option<u64> {
    match *observed {
        Observed::Stamps(segment) => Some(key(header, segment.stamp, true)),
        Observed::Numbers { end, .. } => end.map(|end| key(header, end, false)),
        _ => None,
    }
}

/// Key of the number that a segment echoes.
#[inline]
fn echoed_key(header: &Header, observed: &Observed) -> Option<u64> {
    match *observed {
        Observed::Stamps(segment) => {
            let acknowledges = header.flags & flags::ACK != 0;
            acknowledges.then(|| key(header, segment.echo, true))
        }
        Observed::Numbers { ack, .. } => ack.map(|ack| key(header, ack, false)),
        _ => None,
    }
}

#[inline]
fn key(header: &Header, number: u32, is_stamp: bool) -> u64 {
    // Both directions of a flow differ in the lowest bit.
    let flow = header.flow.0 | 1;
    mix(flow ^ mix(u64::from(number) << 1 | u64::from(is_stamp))).max(1)
}

impl Default for Passive {
    fn default() -> Self {
        const FREE: Awaited = Awaited {
            key: 0,
            since: Instant::ZERO,
            class: TrafficClass::Other,
        };
        Self {
            awaited: vec![FREE; SLOTS].into(),
            flows: vec![Acknowledged::default(); SLOTS].into(),
            bytes: [0; 2],
            round_trips: Default::default(),
        }
    }
}

impl Passive {
    /// Takes notice of a packet that came.
    #[inline]
    pub(crate) fn came(
        &mut self,
        now: Instant,
        direction: Direction,
        header: &Header,
        observed: &Observed,
    ) {
        if header.flags & (flags::ACK | flags::SYN) == flags::ACK {
            self.acknowledge(direction, header);
        }
        if let (Direction::Up, Some(key)) = (direction, awaited_key(header, observed)) {
            let slot = &mut self.awaited[key as usize % SLOTS];
            // The first of equal stamps counts. Younger ones give way, so that long round trips are not
            // counted less often than short ones.
            if slot.key == 0 || now.saturating_since(slot.since) > PATIENCE {
                *slot = Awaited {
                    key,
                    since: now,
                    class: header.traffic_class(),
                };
            }
        }
    }

    /// Takes notice of a packet that leaves towards home.
    #[inline]
    pub(crate) fn leaves_down(&mut self, now: Instant, header: &Header, observed: &Observed) {
        let Some(key) = echoed_key(header, observed) else {
            return;
        };
        let slot = &mut self.awaited[key as usize % SLOTS];
        if slot.key == key {
            slot.key = 0;
            let round_trip = now.saturating_since(slot.since);
            if round_trip <= PATIENCE {
                self.round_trips[slot.class as usize].record(round_trip);
            }
        }
    }

    #[inline]
    fn acknowledge(&mut self, direction: Direction, header: &Header) {
        /// A larger step is no step, but another connection or an old segment.
        const LARGEST_STEP: u32 = 1 << 30;
        let flow = header.flow.0;
        let slot = &mut self.flows[flow as usize % SLOTS];
        let step = header.ack.wrapping_sub(slot.number);
        if slot.flow == flow && step < LARGEST_STEP {
            self.bytes[1 - direction as usize] += u64::from(step);
        } else if slot.flow == flow && step > u32::MAX - LARGEST_STEP {
            return;
        }
        *slot = Acknowledged {
            flow,
            number: header.ack,
        };
    }

    /// Bytes of TCP payload sent in `direction` that receivers acknowledged.
    pub(crate) const fn acknowledged(&self, direction: Direction) -> u64 {
        self.bytes[direction as usize]
    }

    /// Round-trip times of a class of packets from home since this was last called; zeros if there
    /// were none.
    pub(crate) fn take_round_trips(&mut self, class: TrafficClass) -> Percentiles {
        let histogram = &mut self.round_trips[class as usize];
        let percentiles = histogram.percentiles_ms();
        histogram.clear();
        percentiles
    }
}
