//! A run in steps: the world with its records, and a view of the run for callers that inspect it between steps.

use super::summary::{INTERVAL, Recorder, Snapshot, clear_measures, probe, summary};
use crate::links::Link;
use crate::packets::SimPacket;
use crate::running::{Capture, RunOptions, STANDARD, SimError, World};
use crate::traffic::Models;
use crate::variant::{Full, Variant};
use asymq_core::Duration;
use asymq_core::catalog::Build;
use asymq_core::hold::{Meters, PerClass};
use asymq_core::packet::Header;
use asymq_scenario::{Direction, Run, Scenario, Series};

/// A run that its caller advances in steps, with access to the packets queued at the first link. The size of the steps
/// does not matter: the result equals that of [`Simulator::run`](crate::Simulator::run) byte for byte.
///
/// [`Simulator::run`](crate::Simulator::run) is faster per packet.
pub struct Steps<'a>(Stepped<'a, Full>);

impl<'a> Steps<'a> {
    /// Creates a run of `scenario` with `seed`, at its start.
    ///
    /// # Errors
    /// See [`Simulator::run`](crate::Simulator::run).
    pub fn new(scenario: &Scenario, seed: u64, options: RunOptions<'a>) -> Result<Self, SimError> {
        let drawn = asymq_links::drawn(scenario, seed);
        let scenario = drawn.as_ref().unwrap_or(scenario);
        let models = STANDARD.models(scenario)?;
        let mut run = Stepped::new(STANDARD.full, scenario, models, seed, options)?;
        run.world.links.iter_mut().for_each(Link::watch);
        Ok(Self(run))
    }

    /// Advances to the time `until` after the start (inclusive), at most to the end of the run.
    pub fn advance(&mut self, until: Duration) {
        self.0.advance(until.as_nanos());
    }

    /// Current time of the run.
    pub const fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now)
    }

    /// True if the run has ended.
    pub fn is_over(&self) -> bool {
        self.0.now >= self.0.end
    }

    fn link(&self, direction: Direction) -> &Link<<Full as Variant>::Options> {
        &self.0.world.links[direction as usize]
    }

    /// Counters of a direction's queue up to now.
    pub fn meters(&self, direction: Direction) -> Meters {
        self.link(direction).meters(self.0.now)
    }

    /// Calls `see` with the header of each packet in a direction's queue, in order of arrival. A discipline may send
    /// them in another order.
    pub fn waiting(&self, direction: Direction, see: impl FnMut(&Header)) {
        self.link(direction).waiting().iter().for_each(see);
    }

    /// The packet that a direction's link is transmitting now; `None` if the link is idle.
    pub fn transmitted(&self, direction: Direction) -> Option<Header> {
        let link = self.link(direction);
        link.watched()?.sent.filter(|_| link.transmits(self.0.now))
    }

    /// Longest sojourn time of each class at a direction's queue since the last call.
    pub fn longest_sojourns(&self, direction: Direction) -> PerClass<Duration> {
        let watched = self.link(direction).watched();
        watched.map_or_else(PerClass::default, |watched| watched.longest.take())
    }

    /// Longest queueing delay of the probe in a direction since the last call, modems included; `None` without a probe.
    pub fn longest_probe(&self, direction: Direction) -> Option<Duration> {
        let longest = &probe(&self.0.world)?.longest[direction as usize];
        Some(Duration::from_nanos(longest.take()))
    }

    /// Time series up to now; `None` unless the options request one.
    pub fn series(&self) -> Option<&Series> {
        self.0.recorder.as_ref().map(|recorder| &recorder.series)
    }

    /// Completes the run and returns its result.
    ///
    /// # Errors
    /// A requested trace could not be written.
    pub fn finish(self) -> Result<Run, SimError> {
        self.0.finish()
    }
}

/// A world with its records.
pub(crate) struct Stepped<'a, V: Variant> {
    world: World<'a, V>,
    seed: u64,
    now: u64,
    warmup: u64,
    end: u64,
    /// Counters at the end of the warm-up; `None` before.
    start: Option<Snapshot>,
    recorder: Option<Recorder>,
    pulse: Option<&'a dyn Fn()>,
}

impl<'a, V: Variant> Stepped<'a, V> {
    pub(crate) fn new(
        disciplines: &dyn Build<SimPacket<V::Options>>,
        scenario: &Scenario,
        models: Models,
        seed: u64,
        options: RunOptions<'a>,
    ) -> Result<Self, SimError> {
        let captures = [
            options.capture_up.map(|out| Capture::new(out, "uplink")),
            options
                .capture_down
                .map(|out| Capture::new(out, "downlink")),
        ];
        Ok(Self {
            world: World::new(disciplines, scenario, models, seed, captures)?,
            seed,
            now: 0,
            warmup: scenario.warmup.as_nanos(),
            end: scenario.duration.as_nanos(),
            start: None,
            recorder: options.series.then(Recorder::new),
            pulse: options.pulse,
        })
    }

    /// Runs the world until `until`, and records the intervals that end in that time.
    fn run(&mut self, until: u64) {
        if let Some(recorder) = &mut self.recorder {
            let interval = INTERVAL.as_nanos();
            let mut tick = (self.now / interval + 1) * interval;
            while tick <= until {
                self.world.run_until(tick);
                recorder.record(&self.world, tick);
                tick += interval;
            }
        }
        self.world.run_until(until);
        self.now = until;
    }

    /// Advances to `until` (inclusive), at most to the end of the run.
    fn advance(&mut self, until: u64) {
        let until = until.min(self.end);
        if self.start.is_none() && until >= self.warmup {
            self.run(self.warmup);
            clear_measures(&mut self.world, self.warmup);
            self.start = Some(Snapshot::take(&self.world, self.warmup));
        }
        if until > self.now {
            self.run(until);
        }
    }

    pub(crate) fn finish(mut self) -> Result<Run, SimError> {
        if let Some(pulse) = self.pulse {
            while self.now < self.end {
                self.advance(self.now + 1_000_000_000);
                pulse();
            }
        }
        self.advance(self.end);
        let end = Snapshot::take(&self.world, self.end);
        // If the warm-up lasts for the whole run, nothing is measured.
        let start = self.start.as_ref().unwrap_or(&end);
        let summary = summary(&self.world, start, &end);
        self.world.finish_captures()?;
        Ok(Run {
            seed: self.seed,
            summary,
            series: self.recorder.map(|recorder| recorder.series),
            lateness_ms: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs};
    use asymq_core::Instant;
    use asymq_core::packet::TrafficClass;

    fn scenario(words: &str) -> Scenario {
        let words = words.split_whitespace().map(str::to_owned);
        let args = ScenarioArgs::from_words(words).unwrap();
        args.resolve(&Defaults::paper()).unwrap()
    }

    const SERIES: RunOptions<'static> = RunOptions {
        series: true,
        capture_up: None,
        capture_down: None,
        pulse: None,
    };

    #[test]
    fn a_watched_run_in_steps_is_the_run_made_at_once() {
        for words in [
            "--qdisc=droptail --probe=50ms",
            "--qdisc=asymq --tcp=cubic --warmup=0s",
            "--qdisc=cake --qdisc-down=fq_codel --udp=up:50kbit --links=2",
            "--qdisc=sad --regenerate=2 --web=down:5:30kb:1.3",
        ] {
            let scenario = scenario(&format!("{words} --duration=12s"));
            let mut steps = Steps::new(&scenario, 3, SERIES).unwrap();
            while !steps.is_over() {
                steps.advance(steps.now() + Duration::from_millis(77));
            }
            let (whole, series) = (
                STANDARD.run(&scenario, 3, SERIES).unwrap(),
                steps.series().cloned(),
            );
            assert_eq!(series, whole.series, "{words}");
            assert_eq!(steps.finish().unwrap(), whole, "{words}");
        }
    }

    #[test]
    fn shown_packets_equal_the_counted_backlog_at_every_discipline() {
        use asymq_core::catalog::{Catalog, Role, Standard};
        for entry in Standard.of_role(Role::Qdisc) {
            let name = entry.name;
            let words = format!("--qdisc={name} --qdisc-down={name} --probe=50ms --duration=6s");
            let mut steps = Steps::new(&scenario(&words), 1, RunOptions::default()).unwrap();
            let mut most = 0;
            while !steps.is_over() {
                steps.advance(steps.now() + Duration::from_millis(90));
                for direction in [Direction::Up, Direction::Down] {
                    let counted = steps.meters(direction).backlog();
                    let mut shown = [(0, 0); TrafficClass::COUNT];
                    let mut last = Instant::ZERO;
                    steps.waiting(direction, |header| {
                        assert!(header.arrival >= last, "{name}");
                        last = header.arrival;
                        let class = &mut shown[header.traffic_class() as usize];
                        *class = (class.0 + 1, class.1 + u64::from(header.len));
                        most = most.max(class.0);
                    });
                    for class in TrafficClass::ALL {
                        let waits = counted.of(class);
                        assert_eq!(
                            shown[class as usize],
                            (waits.packets, waits.bytes),
                            "{name}"
                        );
                    }
                }
            }
            assert!(most > 2, "{name} never had a queue");
        }
    }

    #[test]
    fn the_longest_wait_of_a_probe_includes_a_modem() {
        let words = "--qdisc=asymq --probe=50ms --duration=8s --modem-up=500kbit,buffer=500ms";
        let mut steps = Steps::new(&scenario(words), 1, SERIES).unwrap();
        steps.advance(Duration::from_secs(8));
        let probe = steps.longest_probe(Direction::Up).unwrap();
        let at_queue = steps.longest_sojourns(Direction::Up);
        let at_queue = at_queue.of(TrafficClass::Other);
        let modem = Duration::from_millis(15);
        assert!(probe > at_queue + modem, "{probe} {at_queue}");
        assert_eq!(steps.longest_probe(Direction::Up), Some(Duration::ZERO));
    }

    #[test]
    fn the_link_transmits_while_packets_wait_and_sojourns_are_told_once() {
        let mut steps = Steps::new(&scenario("--qdisc=droptail"), 1, SERIES).unwrap();
        assert!(steps.transmitted(Direction::Up).is_none());
        steps.advance(Duration::from_secs(10));
        assert!(steps.transmitted(Direction::Up).is_some());
        // 49 packets are queued; most of them take 12 ms each.
        let ack = steps.longest_sojourns(Direction::Up).of(TrafficClass::Ack);
        assert!(ack > Duration::from_millis(200), "{ack}");
        let none = steps.longest_sojourns(Direction::Up).of(TrafficClass::Ack);
        assert_eq!(none, Duration::ZERO);
    }
}
