//! A run's summary and time series, from the counters of its world.

use crate::running::World;
use crate::traffic::{Agent, Delivered, Probe, TcpFlow};
use crate::variant::Variant;
use asymq_core::Duration;
use asymq_core::decide::ack::Unfiltered;
use asymq_core::hold::Meters;
use asymq_core::measure::Histogram;
use asymq_core::packet::TrafficClass;
use asymq_scenario::{
    Direction, DirectionReport, Extent, Fates, FlowResult, Series, SojournByClass, Summary,
};
use std::collections::BTreeMap;

/// Interval of the time series (AQ, sec. 4).
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Counters at one instant.
pub(crate) struct Snapshot {
    at: u64,
    meters: [Meters; 2],
    /// Capacity in bytes up to `at`; see [`World::capacity`].
    capacity: [Option<f64>; 2],
    /// Number of ACKs that were not filtered although a later ACK was queued, if the discipline counts them.
    unfiltered: [Option<[u64; Unfiltered::ALL.len()]>; 2],
    /// Segments received, by conversation. A segment counts when it leaves the bottleneck, a fixed time before it
    /// arrives.
    received: Vec<Received>,
    /// Numbers of packets dropped at access links, and lost on paths, in modems or by tunnels; by direction.
    access_dropped_and_lost: [(u64, u64); 2],
    /// Number of QUIC's PINGs that a queue dropped or filtered, by direction.
    lost_pings: [u64; 2],
    /// Segments delivered by short transfers.
    transfers: [u64; 2],
    /// Number of data packets lost on the way, by conversation.
    lost: Vec<u64>,
}

/// Data segments that a receiver has received.
#[derive(Default)]
struct Received {
    in_order: u64,
    out_of_order: Vec<u64>,
}

impl Received {
    /// Number of segments that arrived after `earlier` and were delivered in order.
    fn since(&self, earlier: &Self) -> u64 {
        let early = earlier.out_of_order.iter();
        let early = early.filter(|number| **number <= self.in_order).count();
        self.in_order - earlier.in_order - early as u64
    }
}

/// Busy time of a link and the time or, if its rate changes, bytes and the capacity.
#[derive(Clone, Copy, Default)]
struct Used {
    by_class: [f64; TrafficClass::COUNT],
    of: f64,
}

impl Used {
    /// Computes the values from `meters` up to `now`. `capacity` is in bytes; present if the link's rate changes.
    fn new(meters: &Meters, now: u64, capacity: Option<f64>) -> Self {
        let amount = |class| match capacity {
            None => meters.busy.of(class).as_nanos() as f64,
            Some(_) => meters.sent.of(class).bytes as f64,
        };
        Self {
            by_class: TrafficClass::ALL.map(amount),
            of: capacity.unwrap_or(now as f64),
        }
    }

    /// Returns the share that a class has used since `earlier`; 0 if the capacity was zero.
    fn share_since(&self, earlier: &Self, class: TrafficClass) -> f64 {
        let span = self.of - earlier.of;
        let amount = self.by_class[class as usize] - earlier.by_class[class as usize];
        share(amount, span)
    }

    fn share_of_all_since(&self, earlier: &Self) -> f64 {
        let all = |used: &Self| used.by_class.iter().sum::<f64>();
        share(all(self) - all(earlier), self.of - earlier.of)
    }
}

impl Snapshot {
    fn used(&self, direction: usize) -> Used {
        Used::new(&self.meters[direction], self.at, self.capacity[direction])
    }

    /// Reads the counters of a world that has run until `at`.
    pub(crate) fn take<V: Variant>(world: &World<'_, V>, at: u64) -> Self {
        let received = |agent: &Agent<V>| match agent {
            Agent::Tcp(flow) => Received {
                in_order: flow.receiver.data_in_order(),
                out_of_order: flow.receiver.out_of_order().collect(),
            },
            Agent::Udp(_) | Agent::Probe(_) | Agent::Web(_) => Received::default(),
        };
        Self {
            at,
            meters: [0, 1].map(|direction| world.links[direction].meters(at)),
            capacity: [0, 1].map(|direction| world.capacity(direction, at)),
            unfiltered: [0, 1].map(|direction| world.links[direction].unfiltered()),
            received: world
                .lasting()
                .iter()
                .map(|conversation| received(&conversation.agent))
                .collect(),
            transfers: world.delivered_by_transfers(),
            access_dropped_and_lost: [0, 1]
                .map(|direction| world.access_dropped_and_lost(direction)),
            lost_pings: [0, 1].map(|direction| world.links[direction].losses.pings()),
            lost: (0..world.lasting().len())
                .map(|index| world.lost_data(index))
                .collect(),
        }
    }
}

/// Resets measured delays and the counters of senders and receivers at `now`.
pub(crate) fn clear_measures<V: Variant>(world: &mut World<'_, V>, now: u64) {
    world.clear_completions(now);
    for link in &mut world.links {
        link.clear_sojourns();
    }
    for conversation in &mut world.conversations {
        if let Some(sojourns) = &mut conversation.sojourns {
            sojourns.clear();
        }
        match &mut conversation.agent {
            Agent::Probe(probe) => probe.clear(),
            Agent::Tcp(flow) => {
                flow.sender.clear_counts();
                flow.receiver.clear_stall(now.max(flow.start));
            }
            Agent::Udp(_) | Agent::Web(_) => {}
        }
    }
}

pub(crate) fn probe<'w, V: Variant>(world: &'w World<'_, V>) -> Option<&'w Probe> {
    let mut conversations = world.lasting().iter();
    conversations.find_map(|conversation| match &conversation.agent {
        Agent::Probe(probe) => Some(&**probe),
        Agent::Tcp(_) | Agent::Udp(_) | Agent::Web(_) => None,
    })
}

/// Returns the summary from `start` to `end`; `world` must have run until `end`.
pub(crate) fn summary<V: Variant>(
    world: &World<'_, V>,
    start: &Snapshot,
    end: &Snapshot,
) -> Summary {
    let window = Window { world, start, end };
    let probe = probe(world);
    let (flows, delivered) = window.flows();
    let directions = Direction::ALL.map(|way| window.direction(way, &flows, &delivered, probe));
    let probe_ms = probe.and_then(|probe| probe.round_trips.percentiles_ms());
    let mut summary = Summary::of(directions, flows, probe_ms);
    summary.probe_lost = probe.map(|probe| probe.at_home.share_lost());
    let late = probe.filter(|_| world.has_modems());
    summary.probe_late = late.map(|probe| probe.round_trips.share_above(Summary::LATE));
    let completions = world.completions().filter(|times| !times.is_empty());
    summary.web_ms = completions.and_then(|times| times.percentiles_ms());
    summary
}

/// Part of a run that a summary covers.
struct Window<'a, 'w, V: Variant> {
    world: &'a World<'w, V>,
    start: &'a Snapshot,
    end: &'a Snapshot,
}

impl<V: Variant> Window<'_, '_, V> {
    fn seconds(&self) -> f64 {
        (self.end.at - self.start.at) as f64 / 1e9
    }

    /// Returns the results of the flows, and the bytes that each direction has delivered, including short transfers.
    fn flows(&self) -> (Vec<FlowResult>, [Delivered; 2]) {
        let Self { world, start, end } = self;
        let mut delivered = [Delivered::default(); 2];
        if let Some(transfers) = &world.transfers {
            for (way, total) in delivered.iter_mut().enumerate() {
                total.add(
                    &transfers.layout(),
                    end.transfers[way] - start.transfers[way],
                );
            }
        }
        let mut flows = Vec::new();
        for (index, conversation) in world.lasting().iter().enumerate() {
            let Agent::Tcp(flow) = &conversation.agent else {
                continue;
            };
            let segments = end.received[index].since(&start.received[index]);
            let layout = &conversation.layout;
            let payload = segments * u64::from(layout.payload());
            delivered[flow.direction as usize].add(layout, segments);
            let sojourns = conversation.sojourns.as_ref();
            flows.push(FlowResult {
                base_rtt_ms: world.base_rtt(index) as f64 / 1e6,
                lost: Some((end.lost[index] - start.lost[index]) as f64),
                sojourn_ms: sojourns.and_then(|all| all.percentiles_ms()),
                ..flow_result(flow, payload as f64 * 8.0 / self.seconds(), end.at)
            });
        }
        (flows, delivered)
    }

    /// Returns the pure ACKs that were not filtered although a later ACK was queued, as shares of all arrived ACKs. The
    /// result is empty if the discipline does not count them.
    fn unfiltered(&self, direction: usize, arrived: u64) -> BTreeMap<String, f64> {
        let counts = |snapshot: &Snapshot| snapshot.unfiltered[direction];
        let (Some(after), Some(before)) = (counts(self.end), counts(self.start)) else {
            return BTreeMap::new();
        };
        let shares = Unfiltered::ALL.map(|rule| {
            let count = after[rule as usize] - before[rule as usize];
            (rule.name().to_owned(), share(count as f64, arrived as f64))
        });
        shares.into()
    }

    /// Returns the bytes that a direction's link could carry during the window.
    fn capacity(&self, direction: usize) -> f64 {
        match (self.end.capacity[direction], self.start.capacity[direction]) {
            (Some(end), Some(start)) => end - start,
            _ => self.world.links[direction].rate().bytes_per_sec_f64() * self.seconds(),
        }
    }

    fn direction(
        &self,
        way: Direction,
        flows: &[FlowResult],
        delivered: &[Delivered; 2],
        probe: Option<&Probe>,
    ) -> DirectionReport {
        let direction = way as usize;
        let (after, before) = (&self.end.meters[direction], &self.start.meters[direction]);
        let (used_after, used_before) = (self.end.used(direction), self.start.used(direction));
        let used = |class| used_after.share_since(&used_before, class);
        let (data, ack) = (used(TrafficClass::Data), used(TrafficClass::Ack));
        let count = |count: fn(&Meters) -> u64| count(after) - count(before);
        let acks = count(|meters| meters.sent.of(TrafficClass::Ack).packets);
        let arrived = count(|meters| meters.arrived.of(TrafficClass::Ack).packets);
        let sojourns = self.world.links[direction].sojourns();
        let (access_dropped, lost) = self.end.access_dropped_and_lost[direction];
        let lost_before = self.start.access_dropped_and_lost[direction];
        let (own, opposite) = (delivered[direction], delivered[1 - direction]);
        DirectionReport {
            utilization: data + ack + used(TrafficClass::Other),
            data,
            ack,
            delivered: share(own.wire as f64, self.capacity(direction)),
            acks_per_s: acks as f64 / self.seconds(),
            bytes_per_ack: DirectionReport::bytes_per_ack(opposite.payload as f64, acks),
            probe_ms: probe.and_then(|probe| probe.delays[direction].percentiles_ms()),
            probe_lost: probe
                .map(|probe| [probe.at_server, probe.way_back][direction].share_lost()),
            access_dropped: Some((access_dropped - lost_before.0) as f64),
            lost_pings: Some(
                (self.end.lost_pings[direction] - self.start.lost_pings[direction]) as f64,
            ),
            lost: (lost - lost_before.1) as f64,
            unfiltered: self.unfiltered(direction, arrived),
            sojourn_ms: Histogram::merged(sojourns).percentiles_ms(),
            sojourn_by_class_ms: Some(SojournByClass::of(sojourns)),
            ..DirectionReport::of(flows, way, Fates::between(before, after))
        }
    }
}

/// Returns `part` divided by `whole`; 0 if `whole` is 0.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns the result of a flow at `now`.
fn flow_result<V: Variant>(flow: &TcpFlow<V>, goodput: f64, now: u64) -> FlowResult {
    let counts = flow.sender.counts();
    let rtt = counts.rtt;
    let ms = |nanos: u64| nanos as f64 / 1e6;
    let ends = flow.application.as_ref().is_some_and(|app| app.is_over());
    let done = flow.sender.done_at().filter(|_| ends);
    let longest_stall = match done {
        Some(_) => flow.receiver.past_stall(),
        None => flow.receiver.longest_stall(now),
    };
    FlowResult {
        direction: flow.direction,
        start_s: flow.start as f64 / 1e9,
        goodput,
        longest_stall_s: longest_stall as f64 / 1e9,
        completion_s: done.map(|at| at.saturating_sub(flow.start) as f64 / 1e9),
        rtt_ms: (rtt.samples > 0).then(|| Extent {
            min: ms(rtt.min),
            mean: ms(rtt.sum) / rtt.samples as f64,
            max: ms(rtt.max),
        }),
        retransmissions: Some(counts.retransmissions as f64),
        timeouts: Some(counts.timeouts as f64),
        ..FlowResult::default()
    }
}

/// Records a time series.
pub(crate) struct Recorder {
    last: [Used; 2],
    pub(crate) series: Series,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            last: Default::default(),
            series: Series {
                interval_s: INTERVAL.as_secs_f64(),
                ..Series::default()
            },
        }
    }

    /// Records the interval that ends at `now`; the world must have run until then.
    pub(crate) fn record<V: Variant>(&mut self, world: &World<'_, V>, now: u64) {
        let meters = [0, 1].map(|direction| world.links[direction].meters(now));
        let [up, down] = [0, 1].map(|direction| {
            let capacity = world.capacity(direction, now);
            let used = Used::new(&meters[direction], now, capacity);
            let last = std::mem::replace(&mut self.last[direction], used);
            let data = used.share_since(&last, TrafficClass::Data);
            (used.share_of_all_since(&last), data)
        });
        let [backlog_up, backlog_down] = meters.map(|meters| meters.backlog().total().packets);
        let series = &mut self.series;
        series.up.push(up.0);
        series.down.push(down.0);
        series.data_up.push(up.1);
        series.data_down.push(down.1);
        series.backlog_up.push(backlog_up);
        series.backlog_down.push(backlog_down);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_out_of_order_before_the_window_are_not_in_it() {
        let at = |in_order, out_of_order: &[u64]| Received {
            in_order,
            out_of_order: out_of_order.to_vec(),
        };
        // Segments 1 to 10 have arrived, and also 12, 13 and 20.
        let before = at(10, &[12, 13, 20]);
        assert_eq!(at(10, &[12, 13, 20]).since(&before), 0);
        assert_eq!(at(13, &[20]).since(&before), 1);
        assert_eq!(at(25, &[27]).since(&before), 12);
    }
}
