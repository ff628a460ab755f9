//! A run's world with its records, advanced step by step.

use super::Capture;
use super::summary::{INTERVAL, Recorder, Snapshot, clear_measures, probe, summary};
use crate::links::{Link, Watched};
use crate::packets::SimPacket;
use crate::running::{RunOptions, SimError, World};
use crate::traffic::Models;
use crate::variant::Variant;
use asymq_core::catalog::Build;
use asymq_core::hold::Meters;
use asymq_core::packet::Header;
use asymq_scenario::{Run, Scenario, Series};

/// A run between two of its steps. Times are in ns from its start.
pub(crate) trait Stepping {
    /// Advances up to and including `until`, at most to the end.
    fn advance(&mut self, until: u64);

    /// The counters of a direction.
    fn meters(&self, direction: usize) -> Meters;

    /// True if a direction's link transmits.
    fn transmits(&self, direction: usize) -> bool;

    /// Records departures from both queues from now on.
    fn watch(&mut self);

    /// Headers of the packets in a direction's queue, in the order of arrival.
    fn waiting(&self, direction: usize) -> Vec<Header>;

    /// Record of a direction's departures, if the run is watched.
    fn watched(&self, direction: usize) -> Option<&Watched>;

    /// Longest queueing delay of the probe in a direction since the last call, in ns, if there is a probe.
    fn longest_probe(&self, direction: usize) -> Option<u64>;

    /// The time series so far, if it was asked for.
    fn series(&self) -> Option<&Series>;

    /// Completes the run and returns its result.
    fn finish(self: Box<Self>) -> Result<Run, SimError>;
}

/// A world with its records.
struct Stepped<'a, V: Variant> {
    world: World<'a, V>,
    seed: u64,
    now: u64,
    /// End of the warm-up.
    warmup: u64,
    end: u64,
    /// Counters at the end of the warm-up, once it is reached.
    start: Option<Snapshot>,
    recorder: Option<Recorder>,
    pulse: Option<&'a dyn Fn()>,
}

/// A run at its start.
pub(crate) fn stepping<'a, V: Variant + 'a>(
    disciplines: &dyn Build<SimPacket<V::Options>>,
    scenario: &Scenario,
    models: impl Into<Models>,
    seed: u64,
    options: RunOptions<'a>,
) -> Result<Box<dyn Stepping + 'a>, SimError> {
    let captures = [
        options.capture_up.map(|out| Capture::new(out, "uplink")),
        options
            .capture_down
            .map(|out| Capture::new(out, "downlink")),
    ];
    Ok(Box::new(Stepped {
        world: World::<V>::new(disciplines, scenario, models, seed, captures)?,
        seed,
        now: 0,
        warmup: scenario.warmup.as_nanos(),
        end: scenario.duration.as_nanos(),
        start: None,
        recorder: options.series.then(Recorder::new),
        pulse: options.pulse,
    }))
}

impl<V: Variant> Stepped<'_, V> {
    /// Runs the world up to `until`, and records the intervals that end after `now`.
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
}

impl<V: Variant> Stepping for Stepped<'_, V> {
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

    fn meters(&self, direction: usize) -> Meters {
        self.world.links[direction].meters(self.now)
    }

    fn transmits(&self, direction: usize) -> bool {
        self.world.links[direction].transmits(self.now)
    }

    fn watch(&mut self) {
        self.world.links.iter_mut().for_each(Link::watch);
    }

    fn waiting(&self, direction: usize) -> Vec<Header> {
        self.world.links[direction].waiting()
    }

    fn watched(&self, direction: usize) -> Option<&Watched> {
        self.world.links[direction].watched()
    }

    fn longest_probe(&self, direction: usize) -> Option<u64> {
        probe(&self.world).map(|probe| probe.longest[direction].take())
    }

    fn series(&self) -> Option<&Series> {
        self.recorder.as_ref().map(Recorder::series)
    }

    fn finish(mut self: Box<Self>) -> Result<Run, SimError> {
        if let Some(pulse) = self.pulse {
            while self.now < self.end {
                self.advance(self.now + 1_000_000_000);
                pulse();
            }
        }
        self.advance(self.end);
        let end = Snapshot::take(&self.world, self.end);
        // With a warm-up as long as the run, nothing is measured.
        let start = self.start.as_ref().unwrap_or(&end);
        let summary = summary(&self.world, start, &end);
        self.world.finish_captures()?;
        Ok(Run {
            seed: self.seed,
            summary,
            series: self.recorder.map(Recorder::finish),
            lateness_ms: None,
        })
    }
}
