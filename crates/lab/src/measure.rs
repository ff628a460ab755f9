//! Measurements of links and queues.

use crate::clock::{INTERVAL, Window};
use crate::flows::FlowResults;
use asymq_core::hold::{Meters, PerClass};
use asymq_core::measure::Histogram;
use asymq_core::{Counter, Duration, Instant, TrafficClass};
use asymq_gateway::Losses;
use asymq_links::Schedule;
use asymq_scenario::{Fates, Percentiles, SojournByClass};
use std::collections::BTreeMap;

/// Traffic of one link, read from its meters.
pub(crate) struct LinkMeter {
    schedule: Schedule,
    window: Window,
    /// Traffic up to the end of the last interval.
    carried: PerClass<Counter>,
    /// Traffic and meters at the end of the warm-up, and at the end of the run.
    before: (PerClass<Counter>, Meters),
    after: (PerClass<Counter>, Meters),
    sojourns: [Histogram; TrafficClass::COUNT],
    /// Bytes of all traffic and of TCP data in each interval.
    intervals: Vec<[u64; 2]>,
    /// Number of waiting packets at the end of each interval.
    backlog: Vec<u32>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct QueueResults {
    pub(crate) fates: Fates,
    pub(crate) sojourn_ms: Option<Percentiles>,
    pub(crate) sojourn_by_class_ms: Option<SojournByClass>,
    /// ACKs that were not filtered although a later ACK had arrived, as shares of all ACKs, by rule.
    pub(crate) unfiltered: BTreeMap<String, f64>,
    /// Number of waiting packets at the end of each interval.
    pub(crate) backlog: Vec<u32>,
}

pub(crate) struct UplinkResults {
    pub(crate) queue: QueueResults,
    /// The downlink's queue, if it is in the gateway.
    pub(crate) downlink: Option<QueueResults>,
    pub(crate) losses: Losses,
}

impl LinkMeter {
    pub(crate) fn new(schedule: Schedule, window: Window) -> Self {
        Self {
            schedule,
            window,
            carried: PerClass::default(),
            before: Default::default(),
            after: Default::default(),
            sojourns: Default::default(),
            intervals: Vec::new(),
            backlog: Vec::new(),
        }
    }

    pub(crate) fn read(&mut self, at: Instant, meters: &Meters, carried: &PerClass<Counter>) {
        if self.window.ends_interval(at) {
            let bytes = |class| carried.of(class).bytes - self.carried.of(class).bytes;
            let all = TrafficClass::ALL.map(bytes).iter().sum();
            self.intervals.push([all, bytes(TrafficClass::Data)]);
            self.backlog.push(meters.backlog().total().packets);
            self.carried = *carried;
        }
        if at <= self.window.warm {
            self.before = (*carried, *meters);
        }
        self.after = (*carried, *meters);
    }

    /// Records the sojourn time of a packet.
    pub(crate) fn waited(&mut self, at: Instant, class: TrafficClass, sojourn: Duration) {
        if self.window.counts(at) {
            self.sojourns[class as usize].record(sojourn);
        }
    }

    /// Bytes that the link can carry after warm-up.
    fn capacity(&self) -> f64 {
        self.capacity_between(self.window.warm, self.window.end)
    }

    fn capacity_between(&self, from: Instant, to: Instant) -> f64 {
        let [from, to] = [from, to].map(|at| {
            let since = at.saturating_since(self.window.start);
            self.schedule.capacity(since.as_nanos())
        });
        to - from
    }

    fn sent(&self, class: TrafficClass) -> Counter {
        self.after.0.of(class) - self.before.0.of(class)
    }

    pub(crate) fn acks(&self) -> u64 {
        self.sent(TrafficClass::Ack).packets
    }

    /// Share of the capacity that a class used after warm-up.
    pub(crate) fn share(&self, class: TrafficClass) -> f64 {
        self.sent(class).bytes as f64 / self.capacity()
    }

    /// Share of the capacity used by the bytes that `flows` delivered, at most the share that the class sent. Without
    /// this limit, bytes that arrived out of order during warm-up would count when they are delivered.
    pub(crate) fn delivered(&self, flows: &[FlowResults], class: TrafficClass) -> f64 {
        let wire: f64 = flows.iter().map(|flow| flow.wire).sum();
        wire.min(self.sent(class).bytes as f64) / self.capacity()
    }

    pub(crate) fn queue(&self) -> QueueResults {
        QueueResults {
            fates: Fates::between(&self.before.1, &self.after.1),
            sojourn_ms: Histogram::merged(&self.sojourns).percentiles_ms(),
            sojourn_by_class_ms: Some(SojournByClass::of(&self.sojourns)),
            unfiltered: BTreeMap::new(),
            backlog: self.backlog.clone(),
        }
    }

    /// Utilization per interval by all traffic, and by TCP data.
    pub(crate) fn series(&self) -> (Vec<f64>, Vec<f64>) {
        let intervals = (0..).zip(&self.intervals);
        intervals
            .map(|(number, [all, data])| {
                let start = self.window.start + INTERVAL * number;
                // An outage has no capacity.
                let capacity = self.capacity_between(start, start + INTERVAL).max(1.0);
                (*all as f64 / capacity, *data as f64 / capacity)
            })
            .unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::Reason;
    use asymq_core::packet::{Header, Protocol, flags};

    fn second(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn window() -> Window {
        Window {
            start: second(10),
            warm: second(11),
            end: second(12),
        }
    }

    #[test]
    fn meters_are_read_at_the_ends_of_intervals_of_warm_up_and_of_the_run() {
        let start = second(10);
        let window = Window {
            warm: start + Duration::from_millis(250),
            end: start + Duration::from_millis(500),
            start,
        };
        let mut at = start;
        let readings = std::iter::from_fn(|| {
            at = window.reading_after(at)?;
            Some((at.saturating_since(start).as_nanos() / 1_000_000, at))
        });
        let readings: Vec<(u64, bool)> = readings
            .map(|(millis, at)| (millis, window.ends_interval(at)))
            .collect();
        let expected = [(200, true), (250, false), (400, true), (500, true)];
        assert_eq!(readings, expected);
    }

    #[test]
    fn only_departures_after_warm_up_count() {
        let mut meter = LinkMeter::new(Schedule::constant("1mbit".parse().unwrap()), window());
        let data = Header {
            protocol: Protocol::Tcp,
            flags: flags::ACK,
            len: 25_000, // a fifth of what 1 Mbit/s carries in a second
            payload: 1448,
            ..Header::default()
        };
        let ack = Header { payload: 0, ..data };
        let other = Header {
            protocol: Protocol::NonTcp,
            ..ack
        };
        let mut meters = Meters::default();
        let mut at = second(10);
        let count = |meters: &mut Meters, header: &Header| {
            meters.arrives(header.traffic_class(), header.len);
            meters.sends(header, Duration::ZERO);
        };
        let mut read_until = |meters: &Meters, until: Instant| {
            while let Some(next) = window().reading_after(at).filter(|next| *next <= until) {
                meter.read(next, meters, &meters.sent);
                at = next;
            }
        };
        count(&mut meters, &data);
        read_until(&meters, second(11));
        for header in [&data, &ack, &other] {
            count(&mut meters, header);
        }
        meters.arrives(TrafficClass::Ack, ack.len);
        meters.leaves(&ack, Reason::AckFiltered);
        read_until(&meters, second(12));
        for class in TrafficClass::ALL {
            assert!((meter.share(class) - 0.2).abs() < 1e-9, "{class:?}");
        }
        let fates = meter.queue().fates;
        assert_eq!((fates.dropped, fates.filtered), (0.0, 1.0));
        assert_eq!(fates.reasons["ack-filtered"], 1.0);
        let (all, data) = meter.series();
        assert_eq!((all.len(), data.len()), (10, 10));
        assert!((all[0] - 1.0).abs() < 1e-9 && (all[5] - 3.0).abs() < 1e-9);
        assert!((data[0] - 1.0).abs() < 1e-9 && (data[5] - 1.0).abs() < 1e-9);
    }
}
