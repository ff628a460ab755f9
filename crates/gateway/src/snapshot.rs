//! What a running gateway shows.

use crate::forwarder::Forwarder;
use crate::io::Losses;
use crate::meter::{Kind, Sojourn, Traffic};
use asymq_core::Stats;
use asymq_core::qdisc::ClassStats;
use asymq_core::units::{Instant, Rate};
use asymq_scenario::Toward;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The state of a gateway at one moment. Bytes are as charged to the link, rates in bit/s over the
/// last interval, counters since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Seconds since 1970.
    pub time: f64,
    /// Seconds since the previous snapshot.
    pub interval: f64,
    /// Towards the WAN.
    pub up: DirectionSnapshot,
    /// Towards the LAN.
    pub down: DirectionSnapshot,
    /// The uplink's queue, by class.
    pub queue: QueueSnapshot,
    /// The uplink discipline's control variables.
    pub control: BTreeMap<&'static str, f64>,
    /// The downlink's queue; empty if frames pass at once there.
    pub queue_down: QueueSnapshot,
    /// The downlink discipline's control variables.
    pub control_down: BTreeMap<&'static str, f64>,
    /// Frames lost at the interfaces.
    pub losses: PortLosses,
}

/// One direction of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionSnapshot {
    /// The capacity that the gateway was told, in bit/s.
    pub capacity: u64,
    /// All traffic.
    pub rate: f64,
    /// Pure ACKs.
    pub ack: TrafficSnapshot,
    /// TCP data.
    pub data: TrafficSnapshot,
    /// All else.
    pub other: TrafficSnapshot,
    /// What happened to pure ACKs.
    pub thinning: ThinningSnapshot,
}

/// Pure ACKs of one direction, since the start unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThinningSnapshot {
    /// Came in.
    pub seen: u64,
    /// Dropped for lack of room or to signal congestion.
    pub dropped: u64,
    /// Given up because a later one carried their news.
    pub filtered: u64,
    /// Made by a regenerator.
    pub made: u64,
    /// Bytes of TCP data that passed in the other direction for every ACK sent in this one, over
    /// the last interval; 0 if none was sent.
    pub data_bytes_per_ack: f64,
}

/// One kind of traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrafficSnapshot {
    /// In bit/s.
    pub rate: f64,
    /// Packets since the start.
    pub packets: u64,
    /// Bytes since the start.
    pub bytes: u64,
}

/// The uplink's queue. A discipline without classes holds all under `data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueSnapshot {
    /// The ACK class.
    pub ack: ClassSnapshot,
    /// The data class.
    pub data: ClassSnapshot,
}

/// One class of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassSnapshot {
    /// Packets that wait.
    pub backlog_packets: u32,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets dropped since the start, for lack of room or to signal congestion.
    pub drops: u64,
    /// ACKs given up since the start because a later one carried their news.
    pub filtered: u64,
    /// Median time in the queue of what left in the last interval, in ms: of pure ACKs under
    /// `ack`, of all else under `data`, whatever the discipline's classes.
    pub sojourn_p50_ms: f64,
    /// 99th percentile of the same.
    pub sojourn_p99_ms: f64,
}

/// Frames lost at either interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PortLosses {
    /// Towards home.
    pub lan: Losses,
    /// Towards the Internet.
    pub wan: Losses,
}

/// Turns a forwarder's counters into snapshots.
#[derive(Debug)]
pub(crate) struct Observer {
    last: Instant,
    /// What had been sent up and down.
    before: [Traffic; 2],
}

impl Observer {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last: now,
            before: [Traffic::default(); 2],
        }
    }

    pub(crate) fn observe(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        losses: PortLosses,
    ) -> Snapshot {
        let interval = now.saturating_since(self.last).as_secs_f64();
        self.last = now;
        let capacities = [forwarder.config().up, forwarder.config().down];
        let both = [Toward::Up, Toward::Down];
        let sent = both.map(|toward| forwarder.lane(toward).meters.sent);
        let [queue, queue_down] = both.map(|toward| {
            let lane = forwarder.lane(toward);
            let (ack, data) = lane.meters.take_sojourns();
            queue(&lane.stats(), ack, data)
        });
        let [control, control_down] =
            both.map(|toward| forwarder.probes(toward).into_iter().collect());
        let [up, down] = both.map(|toward| {
            let (this, other) = (toward as usize, 1 - toward as usize);
            let lane = forwarder.lane(toward);
            let mut seen = direction(capacities[this], &sent[this], &self.before[this], interval);
            let acks = sent[this].of(Kind::Ack).packets - self.before[this].of(Kind::Ack).packets;
            let data = sent[other].of(Kind::Data).bytes - self.before[other].of(Kind::Data).bytes;
            seen.thinning = ThinningSnapshot {
                seen: lane.meters.acks.seen,
                dropped: lane.meters.acks.dropped,
                filtered: lane.meters.acks.filtered,
                made: lane.made(),
                data_bytes_per_ack: match acks {
                    0 => 0.0,
                    acks => data as f64 / acks as f64,
                },
            };
            seen
        });
        self.before = sent;
        Snapshot {
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |time| time.as_secs_f64()),
            interval,
            up,
            down,
            queue,
            control,
            queue_down,
            control_down,
            losses,
        }
    }
}

fn direction(capacity: Rate, now: &Traffic, before: &Traffic, interval: f64) -> DirectionSnapshot {
    let rate = |bytes: u64| match interval > 0.0 {
        true => bytes as f64 * 8.0 / interval,
        false => 0.0,
    };
    let kind = |kind| TrafficSnapshot {
        rate: rate(now.of(kind).bytes - before.of(kind).bytes),
        packets: now.of(kind).packets,
        bytes: now.of(kind).bytes,
    };
    DirectionSnapshot {
        capacity: capacity.bits_per_sec(),
        rate: rate(now.total().bytes - before.total().bytes),
        ack: kind(Kind::Ack),
        data: kind(Kind::Data),
        other: kind(Kind::Other),
        thinning: ThinningSnapshot::default(),
    }
}

fn queue(stats: &Stats, ack: Sojourn, data: Sojourn) -> QueueSnapshot {
    let class = |stats: &ClassStats, sojourn: Sojourn| ClassSnapshot {
        backlog_packets: stats.backlog.packets,
        backlog_bytes: stats.backlog.bytes,
        drops: stats.over_limit.packets + stats.early.packets,
        filtered: stats.ack_filtered.packets,
        sojourn_p50_ms: sojourn.p50.as_millis_f64(),
        sojourn_p99_ms: sojourn.p99.as_millis_f64(),
    };
    QueueSnapshot {
        ack: class(&stats.ack, ack),
        data: class(&stats.data, data),
    }
}

/// Where a gateway leaves its snapshots, once a second, for any number of readers.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    latest: Snapshot,
    count: u64,
    ended: bool,
}

impl Shared {
    /// The latest snapshot; all zero before the first.
    pub fn latest(&self) -> Snapshot {
        self.lock().latest.clone()
    }

    /// Waits for a snapshot after the `seen`-th and counts it there; `None` when the gateway has
    /// stopped and all were seen.
    pub fn next(&self, seen: &mut u64) -> Option<Snapshot> {
        let mut state = self.lock();
        while state.count == *seen && !state.ended {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.count != *seen).then(|| {
            *seen = state.count;
            state.latest.clone()
        })
    }

    pub(crate) fn publish(&self, snapshot: Snapshot) {
        let mut state = self.lock();
        state.latest = snapshot;
        state.count += 1;
        self.0.1.notify_all();
    }

    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.0.1.notify_all();
    }

    /// A reader that panicked leaves the state whole: it is only ever replaced.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
