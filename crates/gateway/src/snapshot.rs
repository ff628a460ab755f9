//! Snapshots of a running gateway.

use crate::conntrack::HostsBehindNat;
use crate::flows::FlowSnapshot;
use crate::forwarder::Forwarder;
use crate::io::Losses;
use crate::lock::lock;
use crate::sender::Sending;
use asymq_core::hold::{Meters, PerClass};
use asymq_core::measure::Percentiles;
use asymq_core::{Counter, Direction, Fate, Instant, Rate, Reason, TrafficClass};
use serde::Serializer;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the JSON; incremented when a key changes its meaning.
pub const SNAPSHOT_FORMAT: u32 = 2;

/// State of a gateway at one moment. Bytes are as charged to the link. Rates are in bit/s over the last interval.
/// Counters start at 0. Deserialization skips maps with variable keys: losses, control variables, reasons.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// [`SNAPSHOT_FORMAT`]; 0 before the first snapshot.
    pub format: u32,
    /// Unix time in seconds.
    pub time: f64,
    /// Seconds since the previous snapshot.
    pub interval: f64,
    /// State of the direction towards the WAN.
    pub up: DirectionSnapshot,
    /// State of the direction towards the LAN.
    pub down: DirectionSnapshot,
    /// Frames lost at the interfaces.
    #[serde(skip_deserializing)]
    pub losses: Ports<Losses>,
    /// Method of sending frames; `None` while an interface is down or missing, or no gateway runs.
    #[serde(skip_deserializing)]
    pub sending: Ports<Option<Sending>>,
    /// Number of changes of the settings.
    pub changes: u64,
    /// State of the map of hosts behind NAT, on a router.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub hosts_behind_nat: Option<HostsBehindNat>,
}

/// State of one direction.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DirectionSnapshot {
    /// Rate of the shaper in bit/s, configured or learnt; 0 if there is none.
    pub capacity: u64,
    /// Rate of all sent traffic in bit/s.
    pub rate: f64,
    /// Pure ACKs.
    pub ack: ClassSnapshot,
    /// TCP data.
    pub data: ClassSnapshot,
    /// All other packets.
    pub other: ClassSnapshot,
    /// Bytes of TCP payload sent in this direction that receivers acknowledged, without retransmissions.
    pub acknowledged: u64,
    /// ACKs that a regenerator created; they also count as sent.
    pub regenerated: u64,
    /// TCP data bytes of the other direction per ACK sent in this direction, in the last interval; 0 without ACKs.
    pub data_bytes_per_ack: f64,
    /// Counters in full, for readers in this process.
    #[serde(skip)]
    pub meters: Meters,
    /// Control variables of the discipline and of a learnt rate.
    #[serde(skip_deserializing)]
    pub control: BTreeMap<&'static str, f64>,
}

/// A metric for Prometheus: name, help, value in base units.
pub(crate) type Metric<T> = (&'static str, &'static str, fn(&T) -> f64);

/// Metrics per direction.
pub(crate) const OF_DIRECTIONS: [Metric<DirectionSnapshot>; 4] = [
    (
        "capacity_bytes_per_second",
        "Rate of the shaper, configured or learnt.",
        |of| of.capacity as f64 / 8.0,
    ),
    (
        "acknowledged_bytes_total",
        "Bytes of sent TCP payload that receivers acknowledged.",
        |of| of.acknowledged as f64,
    ),
    (
        "regenerated_acks_total",
        "ACKs that this gateway regenerated as a headend.",
        |of| of.regenerated as f64,
    ),
    (
        "data_bytes_per_ack",
        "Bytes of TCP data sent in the other direction for each ACK sent in this direction, over the last interval.",
        |of| of.data_bytes_per_ack,
    ),
];

impl DirectionSnapshot {
    /// Waiting packets of all classes.
    pub const fn backlog_packets(&self) -> u32 {
        self.ack.backlog_packets + self.data.backlog_packets + self.other.backlog_packets
    }

    /// Learnt rate in bit/s; `None` if the rate is not learnt.
    pub fn learnt_rate(&self) -> Option<f64> {
        self.control.get("auto_rate").copied()
    }

    /// Returns the state of each class.
    pub const fn classes(&self) -> [(TrafficClass, &ClassSnapshot); TrafficClass::COUNT] {
        [
            (TrafficClass::Ack, &self.ack),
            (TrafficClass::Data, &self.data),
            (TrafficClass::Other, &self.other),
        ]
    }
}

/// State of one class in one direction. Each packet that arrived was sent, dropped or filtered, or is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClassSnapshot {
    /// Rate of sent traffic in bit/s.
    pub rate: f64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets waiting.
    pub backlog_packets: u32,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// Packets dropped. Senders detect the loss, and TCP retransmits.
    pub dropped: u64,
    /// ACKs filtered: a later ACK acknowledges at least as much.
    pub filtered: u64,
    /// Packets that the discipline marked (CE), including queued packets.
    pub marked: u64,
    /// Packets that were not sent, by [`Reason`]; JSON uses the reasons' names.
    #[serde(serialize_with = "by_name", skip_deserializing)]
    pub reasons: [u64; Reason::COUNT],
    /// Median sojourn time in ms in the last interval; 0 without packets.
    pub sojourn_p50_ms: f64,
    /// 95th percentile of the sojourn time in ms.
    pub sojourn_p95_ms: f64,
    /// 99th percentile of the sojourn time in ms.
    pub sojourn_p99_ms: f64,
    /// Median round-trip time in ms of TCP segments from home in the last interval. It ends when the answer departs
    /// towards home. 0 without samples, and in the downlink.
    pub round_trip_p50_ms: f64,
    /// 99th percentile of the round-trip time in ms.
    pub round_trip_p99_ms: f64,
}

/// Metrics per class of traffic in a direction.
pub(crate) const OF_CLASSES: [Metric<ClassSnapshot>; 5] = [
    ("packets_total", "Packets sent.", |of| of.packets as f64),
    ("bytes_total", "Bytes sent, as charged to the link.", |of| {
        of.bytes as f64
    }),
    ("backlog_packets", "Packets in the queue.", |of| {
        of.backlog_packets.into()
    }),
    ("backlog_bytes", "Bytes in the queue.", |of| {
        of.backlog_bytes as f64
    }),
    (
        "marked_packets_total",
        "Packets sent with a congestion mark that the discipline set.",
        |of| of.marked as f64,
    ),
];

impl ClassSnapshot {
    /// Packets arrived, including regenerated ACKs.
    pub const fn arrived(&self) -> u64 {
        self.packets + self.dropped + self.filtered + self.backlog_packets as u64
    }
}

fn by_name<S: Serializer>(reasons: &[u64; Reason::COUNT], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Reason::ALL.iter().map(|reason| reason.name()).zip(reasons))
}

/// One value per interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Ports<T> {
    /// The value for the interface towards home.
    pub lan: T,
    /// The value for the interface towards the Internet.
    pub wan: T,
}

/// Converts a forwarder's counters into snapshots.
#[derive(Debug)]
pub struct Observer {
    last: Instant,
    /// Packets and bytes sent up to the last snapshot, up and down.
    before: [PerClass<Counter>; 2],
}

impl Observer {
    /// Creates an observer for a forwarder that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            last: now,
            before: Default::default(),
        }
    }

    /// Returns the state at `now`, with rates and percentiles since the last call.
    pub fn observe(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        losses: Ports<Losses>,
    ) -> Snapshot {
        let interval = now.saturating_since(self.last).as_secs_f64();
        self.last = now;
        let sent = Direction::ALL.map(|direction| forwarder.meters(direction).sent);
        let recent = Direction::ALL.map(|direction| {
            let (now, before) = (sent[direction as usize], self.before[direction as usize]);
            TrafficClass::ALL.map(|class| now.of(class) - before.of(class))
        });
        self.before = sent;
        let rate = |bytes: u64| match interval > 0.0 {
            true => bytes as f64 * 8.0 / interval,
            false => 0.0,
        };
        let [up, down] = Direction::ALL.map(|direction| {
            let (this, other) = (direction as usize, 1 - direction as usize);
            let acks = recent[this][TrafficClass::Ack as usize].packets;
            let data = recent[other][TrafficClass::Data as usize].bytes;
            let capacity = forwarder.capacity(direction);
            let [ack, data_class, other_class] = TrafficClass::ALL.map(|class| ClassSnapshot {
                rate: rate(recent[this][class as usize].bytes),
                ..class_snapshot(forwarder, direction, class)
            });
            DirectionSnapshot {
                capacity: capacity.map_or(0, Rate::bits_per_sec),
                rate: rate(recent[this].iter().map(|counter| counter.bytes).sum()),
                ack,
                data: data_class,
                other: other_class,
                acknowledged: forwarder.passive.acknowledged(direction),
                regenerated: forwarder.state(direction).regenerated(),
                data_bytes_per_ack: match acks {
                    0 => 0.0,
                    acks => data as f64 / acks as f64,
                },
                meters: *forwarder.meters(direction),
                control: forwarder.probes(direction).into_iter().collect(),
            }
        });
        Snapshot {
            format: SNAPSHOT_FORMAT,
            time: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |time| time.as_secs_f64()),
            interval,
            up,
            down,
            losses,
            sending: Ports::default(),
            changes: forwarder.changes,
            hosts_behind_nat: forwarder.nat.as_ref().map(|nat| nat.state()),
        }
    }
}

/// Counters of a class, and its sojourn times since the last call.
fn class_snapshot(
    forwarder: &mut Forwarder,
    direction: Direction,
    class: TrafficClass,
) -> ClassSnapshot {
    let sojourn = forwarder.state(direction).take_sojourns(class);
    let round_trip = match direction {
        Direction::Up => forwarder.passive.take_round_trips(class),
        Direction::Down => Percentiles::default(),
    };
    let meters = forwarder.meters(direction);
    let (sent, backlog) = (meters.sent.of(class), meters.backlog().of(class));
    let fate = |fate| meters.fate(fate).of(class).packets;
    let mut reasons = [0; Reason::COUNT];
    for &reason in Reason::ALL {
        reasons[reason as usize] = meters.left(reason).of(class).packets;
    }
    ClassSnapshot {
        rate: 0.0,
        packets: sent.packets,
        bytes: sent.bytes,
        backlog_packets: backlog.packets,
        backlog_bytes: backlog.bytes,
        dropped: fate(Fate::Dropped),
        filtered: fate(Fate::Filtered),
        marked: fate(Fate::Marked),
        reasons,
        sojourn_p50_ms: sojourn.p50,
        sojourn_p95_ms: sojourn.p95,
        sojourn_p99_ms: sojourn.p99,
        round_trip_p50_ms: round_trip.p50,
        round_trip_p99_ms: round_trip.p99,
    }
}

/// The latest snapshot of a gateway, for any number of readers.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    latest: Arc<Snapshot>,
    flows: Arc<FlowSnapshot>,
    count: u64,
    ended: bool,
}

impl Shared {
    /// Returns the latest snapshot; all values are zero before the first one.
    pub fn latest(&self) -> Snapshot {
        // Releases the lock before the snapshot is copied.
        let latest = lock(&self.0.0).latest.clone();
        Snapshot::clone(&latest)
    }

    /// Traffic by flow in the latest interval; empty unless requested.
    pub(crate) fn flows(&self) -> Arc<FlowSnapshot> {
        lock(&self.0.0).flows.clone()
    }

    /// Number of snapshots so far.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.0.0).count
    }

    /// Waits for a snapshot later than number `seen`, and updates `seen`. Returns `None` after the last snapshot.
    pub fn next(&self, seen: &mut u64) -> Option<Arc<Snapshot>> {
        let mut state = lock(&self.0.0);
        while state.count == *seen && !state.ended {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.count != *seen).then(|| {
            *seen = state.count;
            state.latest.clone()
        })
    }

    /// Publishes a snapshot. Never blocks for long, because all users of the lock only copy pointers.
    pub(crate) fn publish(&self, snapshot: Snapshot, flows: Option<FlowSnapshot>) {
        let mut latest = Arc::new(snapshot);
        let mut flows = Arc::new(flows.unwrap_or_default());
        let mut state = lock(&self.0.0);
        std::mem::swap(&mut state.latest, &mut latest);
        std::mem::swap(&mut state.flows, &mut flows);
        state.count += 1;
        drop(state);
        self.0.1.notify_all();
    }

    pub(crate) fn end(&self) {
        lock(&self.0.0).ended = true;
        self.0.1.notify_all();
    }
}
