//! The gateway as the uplink's queue.

use crate::clock::{INTERVAL, Window};
use crate::error::{Context as _, LabError};
use crate::halt::{Halt, joined};
use crate::measure::{QueueResults, UplinkResults};
use crate::topology::{LAN, WAN};
use crate::{clock, sys};
use asymq_core::catalog::{Build, Config};
use asymq_core::decide::ack::Unfiltered;
use asymq_core::measure::Histogram;
use asymq_core::{Instant, Rate, TrafficClass};
use asymq_gateway::net::Netns;
use asymq_gateway::{
    DirectionSnapshot, Frame, Gateway, GatewayConfig, GatewayError, HostOptions, LinkConfig,
    Snapshot, Stage, Stop, lock,
};
use asymq_links::ModemQueue;
use asymq_scenario::{Direction, Fates, RateSource, Scenario, SojournByClass};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::{io, thread};

/// The gateway, opened in its namespace.
pub(crate) struct GatewayUplink<'a> {
    gateway: Gateway,
    /// True if the downlink's queue is in the gateway.
    has_downlink: bool,
    namespace: &'a Netns,
}

impl<'a> GatewayUplink<'a> {
    /// Opens a gateway with the scenario's uplink discipline, which charges IP bytes. If the downlink has a modem, the
    /// gateway also has the downlink's discipline.
    pub(crate) fn open(
        catalog: &'static dyn Build<Frame>,
        scenario: &Scenario,
        namespace: &'a Netns,
    ) -> Result<Self, LabError> {
        let sources = [scenario.shaper_up, scenario.shaper_down];
        let [up, down] = Direction::ALL.map(|direction| fixed_rate(scenario, direction));
        let has_downlink = scenario.modem_down.is_some();
        let stage = |source, config: &Config| match source {
            RateSource::None => Stage::Direct,
            _ => Stage::Queue(config.clone()),
        };
        let config = GatewayConfig {
            lan: LAN.into(),
            wan: WAN.into(),
            link: LinkConfig {
                up,
                down: match has_downlink {
                    true => Some(down),
                    false => scenario.uplink.reverse,
                },
                auto: sources.map(|source| match source {
                    RateSource::Auto(range) => Some(range),
                    _ => None,
                }),
                rate_probe: None,
                overhead: "overhead 0".parse().expect("a keyword with its number"),
                uplink: stage(scenario.shaper_up, &scenario.uplink),
                downlink: match has_downlink {
                    true => stage(scenario.shaper_down, &scenario.downlink),
                    false => Stage::Direct,
                },
            },
        };
        let opened = namespace
            .run(|| Ok(Gateway::open(catalog, &config, &HostOptions::default())))
            .during("opening the gateway")?;
        let gateway = opened.map_err(|error| match error {
            GatewayError::Link(error) => LabError::Link(error),
            error => LabError::system("opening the gateway", io::Error::other(error)),
        })?;
        Ok(Self {
            gateway,
            has_downlink,
            namespace,
        })
    }

    /// Runs the gateway until the window ends or the run is halted.
    pub(crate) fn run(mut self, window: Window, halt: &Halt) -> Result<UplinkResults, LabError> {
        let (gateway, has_downlink) = (&mut self.gateway, self.has_downlink);
        let waits = Arc::new(Mutex::new(Waits::default()));
        let watched = Arc::clone(&waits);
        gateway.set_watch(move |direction, header, sojourn| {
            let is_here = has_downlink || direction == Direction::Up;
            if is_here && window.counts(clock::now()) {
                let class = header.traffic_class();
                lock(&watched)[direction as usize][class as usize].record(sojourn);
            }
        });
        gateway.set_report_interval(INTERVAL);
        gateway.set_log(|_| ());
        let stop = Stop::new().during("making a pipe")?;
        let stats = gateway.stats();
        let mut snapshots = Vec::new();
        thread::scope(|scope| {
            let forwarding = scope.spawn(|| {
                sys::set_realtime();
                self.namespace.enter()?;
                gateway.run(&stop).map_err(io::Error::other)
            });
            let mut count = 0;
            while let Some(snapshot) = stats.next(&mut count) {
                snapshots.push((clock::now(), snapshot));
                if clock::now() >= window.end || halt.is_set() {
                    // The second request skips the draining of the queue.
                    stop.request();
                    stop.request();
                    break;
                }
            }
            joined(forwarding)
        })
        .during("forwarding")?;
        let [up, down] = &*lock(&waits);
        let last = snapshots.last();
        let losses = last
            .map(|(_, snapshot)| snapshot.losses)
            .unwrap_or_default();
        let downlink = || queue_results(&snapshots, |snapshot| &snapshot.down, window, down);
        Ok(UplinkResults {
            queue: queue_results(&snapshots, |snapshot| &snapshot.up, window, up),
            downlink: has_downlink.then(downlink),
            losses: losses.lan + losses.wan,
        })
    }
}

/// Rate of a direction's shaper: fixed, or the rate at which learning starts.
fn fixed_rate(scenario: &Scenario, direction: Direction) -> Rate {
    let rate = direction.pick(scenario.up, scenario.down);
    let source = direction.pick(scenario.shaper_up, scenario.shaper_down);
    let modem = ModemQueue::new(scenario, scenario.seed, direction);
    let end = scenario.duration.as_nanos();
    let bits = modem.and_then(|modem| modem.fixed_rate(source, end));
    bits.and_then(|bits| Rate::from_bits_per_sec(bits as u64))
        .unwrap_or(rate)
}

/// Sojourn times by direction and class.
type Waits = [[Histogram; TrafficClass::COUNT]; 2];

/// ACKs that were not filtered between two snapshots although a later ACK had arrived: share of all ACKs by rule.
fn unfiltered(before: &DirectionSnapshot, after: &DirectionSnapshot) -> BTreeMap<String, f64> {
    let all = after.ack.arrived().saturating_sub(before.ack.arrived());
    let all = all.max(1) as f64;
    let share = |(variable, count): (&&'static str, &f64)| {
        // Before the first snapshot all counters are zero.
        let earlier = before.control.get(variable).copied().unwrap_or(0.0);
        Unfiltered::counted_by(variable)
            .map(|unfiltered| (unfiltered.name().to_owned(), (count - earlier) / all))
    };
    after.control.iter().filter_map(share).collect()
}

/// Results of one direction from all snapshots and their times.
fn queue_results(
    snapshots: &[(Instant, Arc<Snapshot>)],
    direction: fn(&Snapshot) -> &DirectionSnapshot,
    window: Window,
    waits: &[Histogram; TrafficClass::COUNT],
) -> QueueResults {
    let none = Snapshot::default();
    let warm = snapshots.iter().rfind(|(at, _)| *at <= window.warm);
    let [before, after] = [warm, snapshots.last()]
        .map(|found| direction(found.map_or(&none, |(_, snapshot)| snapshot)));
    let running = snapshots.iter().filter(|(at, _)| *at > window.start);
    let backlog = running.map(|(_, snapshot)| direction(snapshot).backlog_packets());
    QueueResults {
        fates: Fates::between(&before.meters, &after.meters),
        sojourn_ms: Histogram::merged(waits).percentiles_ms(),
        sojourn_by_class_ms: Some(SojournByClass::of(waits)),
        unfiltered: unfiltered(before, after),
        backlog: backlog.take(window.intervals()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_acks_are_shares_of_those_that_came_in_the_window() {
        let snapshot = |packets, filtered, dropped, marks| {
            let mut snapshot = DirectionSnapshot::default();
            let ack = &mut snapshot.ack;
            (ack.packets, ack.filtered, ack.dropped) = (packets, filtered, dropped);
            snapshot.control.insert("ack_wait", 3.0);
            snapshot.control.insert(Unfiltered::Marks.variable(), marks);
            snapshot
        };
        let shares = unfiltered(&snapshot(10, 20, 0, 5.0), &snapshot(20, 60, 30, 21.0));
        assert_eq!(shares, BTreeMap::from([("marks".to_owned(), 0.2)]));
        let none = DirectionSnapshot::default();
        assert_eq!(unfiltered(&none, &none), BTreeMap::new());
    }
}
