//! Statistics of passing TCP segments, without probes: round-trip times and acknowledged bytes.

use asymq_core::measure::{Histogram, Percentiles};
use asymq_core::{Direction, Duration, Header, Instant, Protocol, TrafficClass, flags};
use asymq_rates::Answered;

/// Number of flow slots. If two flows share a slot, some of their acknowledged bytes are not counted.
const FLOWS: usize = 4096;
/// Maximum round-trip time. A later answer is ignored, because the sender must have been idle.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(4);
/// Number of bits for the class in a packet's note. The other bits contain a time in units of 4 ns.
const CLASS_BITS: u32 = 2;
const UNIT_NS: u64 = 4;

/// Round-trip times and acknowledged bytes. A round trip lasts from the arrival of a segment from home to the
/// departure of its answer towards home. It includes the gateway's queues up and down.
pub(crate) struct Passive {
    flows: Box<[Acknowledged]>,
    /// Acknowledged TCP payload in bytes, up and down.
    bytes: [u64; 2],
    round_trips: [Histogram; TrafficClass::COUNT],
}

/// Highest acknowledgement number of a flow.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    flow: u64,
    number: u32,
}

/// Returns the note for a segment that just arrived from the line. If it answers a segment from home, the note contains
/// that segment's class and the time since its arrival; otherwise 0.
pub(crate) fn note(header: &Header, answered: Option<Answered>) -> u32 {
    let Some(answered) = answered.filter(|_| header.protocol == Protocol::Tcp) else {
        return 0;
    };
    let passed = header.arrival.saturating_since(answered.arrival);
    match passed <= MAX_ROUND_TRIP {
        true => {
            let units = (passed.as_nanos() / UNIT_NS) as u32;
            units << CLASS_BITS | (answered.class as u32 + 1)
        }
        false => 0,
    }
}

impl Default for Passive {
    fn default() -> Self {
        Self {
            flows: vec![Acknowledged::default(); FLOWS].into(),
            bytes: [0; 2],
            round_trips: Default::default(),
        }
    }
}

impl Passive {
    /// Records the round trip if a segment that leaves towards home has a note.
    pub(crate) fn record(&mut self, now: Instant, header: &Header) {
        let class = header.note & ((1 << CLASS_BITS) - 1);
        let before = u64::from(header.note >> CLASS_BITS) * UNIT_NS;
        let round_trip = Duration::from_nanos(before) + now.saturating_since(header.arrival);
        if class > 0 && round_trip <= MAX_ROUND_TRIP {
            self.round_trips[class as usize - 1].record(round_trip);
        }
    }

    pub(crate) fn acknowledge(&mut self, direction: Direction, header: &Header) {
        /// Limit of the step between two ACKs. A larger step means another connection or an old segment.
        const LARGEST_STEP: u32 = 1 << 30;
        if header.flags & (flags::ACK | flags::SYN | flags::RST) != flags::ACK {
            return;
        }
        let flow = header.flow.0;
        let slot = &mut self.flows[flow as usize % FLOWS];
        let step = header.ack.wrapping_sub(slot.number);
        if slot.flow == flow && step < LARGEST_STEP {
            self.bytes[direction.reverse() as usize] += u64::from(step);
        } else if slot.flow == flow && step > u32::MAX - LARGEST_STEP {
            return;
        }
        *slot = Acknowledged {
            flow,
            number: header.ack,
        };
    }

    /// Bytes of TCP payload that were sent in `direction` and acknowledged by receivers.
    pub(crate) const fn acknowledged(&self, direction: Direction) -> u64 {
        self.bytes[direction as usize]
    }

    /// Percentiles in ms of a class's round-trip times since the last call; zeros without samples.
    pub(crate) fn take_round_trips(&mut self, class: TrafficClass) -> Percentiles {
        let round_trips = std::mem::take(&mut self.round_trips[class as usize]);
        round_trips.percentiles_ms().unwrap_or_default()
    }
}
