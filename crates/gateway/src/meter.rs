//! Counting what passes.

use asymq_core::qdisc::Counter;
use asymq_core::units::Duration;
use asymq_core::{Header, Protocol};
use hdrhistogram::Histogram;

/// What a packet is to a person: an acknowledgement, TCP data, or anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pure ACK.
    Ack,
    /// A TCP segment with payload.
    Data,
    /// All else, TCP's SYN and FIN among it.
    Other,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Ack, Self::Data, Self::Other];

    /// What `header` says.
    #[inline]
    pub const fn of(header: &Header) -> Self {
        if header.is_pure_ack() {
            Self::Ack
        } else if matches!(header.protocol, Protocol::Tcp) && header.is_tcp_data() {
            Self::Data
        } else {
            Self::Other
        }
    }

    /// Its name in tables, JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Data => "data",
            Self::Other => "other",
        }
    }
}

/// Packets and bytes by [`Kind`], in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic([Counter; 3]);

impl Traffic {
    #[inline]
    pub(crate) fn count(&mut self, header: &Header) {
        self.0[Kind::of(header) as usize].add(header.len);
    }

    /// What was counted of one kind.
    pub const fn of(&self, kind: Kind) -> Counter {
        self.0[kind as usize]
    }

    /// What was counted in all.
    pub fn total(&self) -> Counter {
        self.0.iter().fold(Counter::default(), |sum, kind| Counter {
            packets: sum.packets + kind.packets,
            bytes: sum.bytes + kind.bytes,
        })
    }
}

/// Pure ACKs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckCount {
    /// Came in.
    pub(crate) seen: u64,
    /// Dropped for lack of room or to signal congestion.
    pub(crate) dropped: u64,
    /// Given up because a later one carried their news.
    pub(crate) filtered: u64,
}

/// One direction, and how long packets waited there since last asked.
#[derive(Clone, Debug)]
pub(crate) struct Meters {
    pub(crate) sent: Traffic,
    pub(crate) acks: AckCount,
    /// In microseconds, of pure ACKs and of the rest.
    ack_sojourn: Histogram<u32>,
    other_sojourn: Histogram<u32>,
}

impl Default for Meters {
    fn default() -> Self {
        // Up to a minute, to 1 %: a few KiB each.
        const MOST: u64 = 60_000_000;
        let histogram = Histogram::new_with_max(MOST, 2).expect("the bounds are valid");
        Self {
            sent: Traffic::default(),
            acks: AckCount::default(),
            ack_sojourn: histogram.clone(),
            other_sojourn: histogram,
        }
    }
}

impl Meters {
    #[inline]
    pub(crate) fn sojourn(&mut self, header: &Header, sojourn: Duration) {
        let histogram = match header.is_pure_ack() {
            true => &mut self.ack_sojourn,
            false => &mut self.other_sojourn,
        };
        histogram.saturating_record(sojourn.as_nanos() / 1_000);
    }

    /// How long pure ACKs and the rest waited since last asked.
    pub(crate) fn take_sojourns(&mut self) -> (Sojourn, Sojourn) {
        let take = |histogram: &mut Histogram<u32>| {
            let sojourn = (!histogram.is_empty()).then(|| Sojourn {
                p50: Duration::from_micros(histogram.value_at_quantile(0.5)),
                p99: Duration::from_micros(histogram.value_at_quantile(0.99)),
            });
            histogram.reset();
            sojourn.unwrap_or_default()
        };
        (take(&mut self.ack_sojourn), take(&mut self.other_sojourn))
    }
}

/// Percentiles of the time in the queue; zero if nothing left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sojourn {
    /// Median.
    pub(crate) p50: Duration,
    /// 99th percentile.
    pub(crate) p99: Duration,
}
