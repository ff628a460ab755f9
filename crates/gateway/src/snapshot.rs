//! Snapshots of a running gateway.

use crate::flows::FlowSnapshot;
use crate::forwarder::Forwarder;
use crate::io::Losses;
use crate::sender::Sending;
use asymq_core::Direction;
use asymq_core::hold::PerClass;
use asymq_core::measure::Percentiles;
use asymq_core::qdisc::Counter;
use asymq_core::units::{Instant, Rate};
use asymq_core::{Fate, Reason, TrafficClass};
use serde::Serializer;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Incremented when a key of the JSON changes its meaning.
pub const SNAPSHOT_FORMAT: u32 = 2;

/// The state of a gateway at one moment. Bytes are as charged to the link, rates in bit/s over the
/// last interval, counters since the start.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Snapshot {
    /// [`SNAPSHOT_FORMAT`]; 0 before the first.
    pub format: u32,
    /// Seconds since 1970.
    pub time: f64,
    /// Seconds since the previous snapshot.
    pub interval: f64,
    /// Towards the WAN.
    pub up: DirectionSnapshot,
    /// Towards the LAN.
    pub down: DirectionSnapshot,
    /// Frames lost at the interfaces.
    pub losses: PortLosses,
    /// The way by which frames leave the interfaces.
    pub sending: PortSending,
    /// Changes of the settings since the start.
    pub changes: u64,
}

/// One direction of the link.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct DirectionSnapshot {
    /// The configured capacity in bit/s; 0 if there is none.
    pub capacity: u64,
    /// All traffic sent, in bit/s.
    pub rate: f64,
    /// Pure ACKs.
    pub ack: ClassSnapshot,
    /// TCP data.
    pub data: ClassSnapshot,
    /// All else.
    pub other: ClassSnapshot,
    /// Bytes of TCP payload sent in this direction that receivers acknowledged, whatever was sent again.
    pub acknowledged: u64,
    /// ACKs that a regenerator made; they are among the packets sent.
    pub regenerated: u64,
    /// Bytes of TCP data sent in the other direction for every ACK sent in this one, over the last
    /// interval; 0 if none was sent.
    pub data_bytes_per_ack: f64,
    /// The discipline's control variables.
    pub control: BTreeMap<&'static str, f64>,
}

impl DirectionSnapshot {
    /// Packets that wait.
    pub const fn backlog_packets(&self) -> u32 {
        self.ack.backlog_packets + self.data.backlog_packets + self.other.backlog_packets
    }

    /// All classes.
    pub const fn classes(&self) -> [(TrafficClass, &ClassSnapshot); TrafficClass::COUNT] {
        [
            (TrafficClass::Ack, &self.ack),
            (TrafficClass::Data, &self.data),
            (TrafficClass::Other, &self.other),
        ]
    }
}

/// One class of traffic in one direction. What came is what was sent, dropped or filtered, or
/// waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ClassSnapshot {
    /// Sent, in bit/s.
    pub rate: f64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets that wait.
    pub backlog_packets: u32,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets dropped: a sender has to send them again, or feels their loss.
    pub dropped: u64,
    /// Packets filtered: a later ACK says all that they say.
    pub filtered: u64,
    /// Packets sent with a congestion mark that the discipline set.
    pub marked: u64,
    /// Packets that were not sent, by [`Reason`]; in JSON by its name.
    #[serde(serialize_with = "by_name")]
    pub reasons: [u64; Reason::COUNT],
    /// Median sojourn time in ms of what left the queue in the last interval; 0 if nothing did.
    pub sojourn_p50_ms: f64,
    /// 95th percentile of those sojourn times.
    pub sojourn_p95_ms: f64,
    /// 99th percentile of those sojourn times.
    pub sojourn_p99_ms: f64,
    /// Median round-trip time in ms of TCP segments of this class from home over the last interval, from
    /// their arrival here to the departure of the echo towards home; 0 if there was none, and for the
    /// other direction.
    pub round_trip_p50_ms: f64,
    /// 99th percentile of those round-trip times.
    pub round_trip_p99_ms: f64,
}

impl ClassSnapshot {
    /// Packets that came; regenerated ACKs are among them.
    pub const fn arrived(&self) -> u64 {
        self.packets + self.dropped + self.filtered + self.backlog_packets as u64
    }
}

fn by_name<S: Serializer>(reasons: &[u64; Reason::COUNT], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Reason::ALL.iter().map(|reason| reason.name()).zip(reasons))
}

/// Frames lost at either interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct PortLosses {
    /// Towards home.
    pub lan: Losses,
    /// Towards the Internet.
    pub wan: Losses,
}

/// The way by which frames leave either interface; none while it is away, or where no gateway runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct PortSending {
    /// Towards home.
    pub lan: Option<Sending>,
    /// Towards the Internet.
    pub wan: Option<Sending>,
}

/// Turns a forwarder's counters into snapshots, for those who drive one themselves.
#[derive(Debug)]
pub struct Observer {
    last: Instant,
    /// Sent so far, up and down.
    before: [PerClass<Counter>; 2],
}

impl Observer {
    /// An observer of a forwarder that starts now.
    pub fn new(now: Instant) -> Self {
        Self {
            last: now,
            before: Default::default(),
        }
    }

    /// The state at `now`, with rates and percentiles since the call before.
    pub fn observe(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        losses: PortLosses,
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
            let capacity = forwarder.config().capacity(direction);
            let [ack, data_class, other_class] = TrafficClass::ALL.map(|class| ClassSnapshot {
                rate: rate(recent[this][class as usize].bytes),
                ..of_class(forwarder, direction, class)
            });
            DirectionSnapshot {
                capacity: capacity.map_or(0, Rate::bits_per_sec),
                rate: rate(recent[this].iter().map(|counter| counter.bytes).sum()),
                ack,
                data: data_class,
                other: other_class,
                acknowledged: forwarder.passive().acknowledged(direction),
                regenerated: forwarder.state(direction).regenerated(),
                data_bytes_per_ack: match acks {
                    0 => 0.0,
                    acks => data as f64 / acks as f64,
                },
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
            sending: PortSending::default(),
            changes: forwarder.changes(),
        }
    }
}

/// The counters of a class, and its sojourn times since they were last taken.
fn of_class(forwarder: &mut Forwarder, direction: Direction, class: TrafficClass) -> ClassSnapshot {
    let sojourn = forwarder.state(direction).take_sojourns(class);
    let round_trip = match direction {
        Direction::Up => forwarder.passive().take_round_trips(class),
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

/// The latest snapshot of a gateway, once a second, for any number of readers.
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
    /// The latest snapshot; all zero before the first.
    pub fn latest(&self) -> Snapshot {
        // A pointer, so that the lock is not held for a copy.
        let latest = self.lock().latest.clone();
        Snapshot::clone(&latest)
    }

    /// Traffic by flow in the latest interval; empty unless it was requested.
    pub(crate) fn flows(&self) -> Arc<FlowSnapshot> {
        self.lock().flows.clone()
    }

    /// Number of snapshots so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Waits for a snapshot after the `seen`-th and counts it there; `None` when the gateway has
    /// stopped and all were seen.
    pub fn next(&self, seen: &mut u64) -> Option<Arc<Snapshot>> {
        let mut state = self.lock();
        while state.count == *seen && !state.ended {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.count != *seen).then(|| {
            *seen = state.count;
            state.latest.clone()
        })
    }

    /// The lock is held by all only while a pointer is copied: the forwarding loop waits for no reader.
    pub(crate) fn publish(&self, snapshot: Snapshot, flows: Option<FlowSnapshot>) {
        let mut latest = Arc::new(snapshot);
        let mut flows = Arc::new(flows.unwrap_or_default());
        let mut state = self.lock();
        std::mem::swap(&mut state.latest, &mut latest);
        std::mem::swap(&mut state.flows, &mut flows);
        state.count += 1;
        drop(state);
        self.0.1.notify_all();
    }

    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.0.1.notify_all();
    }

    /// A reader that panicked leaves the state whole: it is only replaced.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
