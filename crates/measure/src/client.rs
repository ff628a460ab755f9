//! The client of a measurement: an idle line, three loads, then the idle line again.

use crate::control::Control;
use crate::error::{Doing as _, MeasureError};
use crate::flows::{CONNECT, Flows};
use crate::iperf3;
use crate::limit::Limit;
use crate::load::{Carried, CarriedDirection, Counts, Range, Record};
use crate::prober::{Baseline, Prober, Sample, Window};
use crate::report::{Advice, Link, Load, LoadDirection, LoadSeries, Measured};
use crate::wire::{MAX_FLOWS, Opening, PORT, Probe};
use asymq_core::Direction;
use asymq_scenario::{Goodput, Grade, Tool, quoted};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Name or address of the server, with or without a port.
    pub host: String,
    /// True if the server is `iperf3 -s`.
    pub iperf3: bool,
    /// Number of TCP flows in each direction, 1 to [`MAX_FLOWS`].
    pub flows: usize,
    /// Warm-up of each load, excluded from results.
    pub warmup: Duration,
    /// Time for which each load is measured.
    pub duration: Duration,
    /// Flag that ends the measurement.
    pub stop: &'a AtomicBool,
}

/// Current state of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// `idle`, `up`, `down` or `both`.
    pub stage: &'static str,
    /// Completed part of the measurement, 0 to 1.
    pub done: f64,
    /// Goodput of uploads in bit/s.
    pub up: f64,
    /// Goodput of downloads in bit/s.
    pub down: f64,
    /// Round trip of the latest probe in ms.
    pub rtt_ms: Option<f64>,
}

/// Idle time before and after the loads; `DRAIN` is the maximum time after a load for queues to drain.
const IDLE: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_secs(6);
const TICK: Duration = Duration::from_millis(100);
/// Time for which flows continue after the measured window, so that counts cover the window's end.
const TAIL: Duration = Duration::from_millis(500);

/// Measures a line.
///
/// # Errors
/// The server does not answer, refuses, or uses another protocol; a system call fails; or the caller stops the
/// measurement.
pub fn measure(
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Measured, MeasureError> {
    let measured = measure_all(options, progress);
    // After a stop, the interrupted call returns its own error.
    measured.map_err(|error| match options.stop.load(Relaxed) {
        true => MeasureError::Interrupted,
        false => error,
    })
}

fn measure_all(
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Measured, MeasureError> {
    let load = options.warmup + options.duration + TAIL + 2 * CONNECT + 2 * DRAIN + iperf3::RESULTS;
    let limit = Limit::new(options.stop, 2 * CONNECT + 2 * IDLE + 3 * load);
    let mut client = Client::connect(options, limit)?;
    let idle = client.idle(0.0, progress)?;
    let mut loads = <[Carried; LOADS.len()]>::default();
    for (index, load) in LOADS.into_iter().enumerate() {
        loads[index] = client.load(index, load, progress)?;
        client.drain()?;
    }
    let after = client.idle(0.95, progress)?;
    // Waits for the answers to the last probes.
    client.wait(TAIL)?;
    Ok(client.result(idle, after, &loads))
}

/// Name of each load; true if it has uploads; true if it has downloads.
const LOADS: [(&str, bool, bool); 3] = [
    ("up", true, false),
    ("down", false, true),
    ("both", true, true),
];

struct Client<'a> {
    options: &'a Options<'a>,
    limit: Limit<'a>,
    server: SocketAddr,
    control: Option<Control>,
    prober: Option<Prober>,
    clock: Instant,
    /// Number of bytes that each upload sent in earlier loads.
    sent: [u64; MAX_FLOWS],
}

impl<'a> Client<'a> {
    fn connect(options: &'a Options<'a>, limit: Limit<'a>) -> Result<Self, MeasureError> {
        let port = if options.iperf3 { iperf3::PORT } else { PORT };
        let server = limit.part(CONNECT).resolve(&options.host, port);
        let server = server.doing(|| format!("looking up {}", quoted(&options.host)))?;
        let mut client = Self {
            options,
            limit,
            server,
            control: None,
            prober: None,
            clock: Instant::now(),
            sent: [0; MAX_FLOWS],
        };
        if !options.iperf3 {
            let control = Control::open(server, client.clock, limit)?;
            client.prober = Some(Prober::start(server, control.token, client.clock)?);
            client.control = Some(control);
        }
        Ok(client)
    }

    fn now(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    fn samples(&self) -> Vec<Sample> {
        let samples = self.prober.as_ref().map(Prober::samples);
        samples.unwrap_or_default()
    }

    fn wait(&self, time: Duration) -> Result<(), MeasureError> {
        self.control.as_ref().map_or(Ok(()), Control::check)?;
        self.limit
            .wait(time)
            .doing(|| format!("measuring with {}", self.server))
    }

    fn latest_rtt_ms(&self) -> Option<f64> {
        let samples = self.samples();
        let latest = samples.iter().rev().find_map(Sample::round_trip);
        latest.map(|seconds| 1e3 * seconds)
    }

    fn idle(&self, done: f64, progress: &mut dyn FnMut(Progress)) -> Result<Window, MeasureError> {
        let from = self.now();
        // An iperf3 server echoes no probes.
        while self.prober.is_some() && self.now() < from + IDLE.as_secs_f64() {
            self.wait(TICK)?;
            progress(Progress {
                stage: "idle",
                done: done + 0.05 * ((self.now() - from) / IDLE.as_secs_f64()).min(1.0),
                up: 0.0,
                down: 0.0,
                rtt_ms: self.latest_rtt_ms(),
            });
        }
        Ok(Window::new(from, self.now()))
    }

    /// Waits after a load, at most `DRAIN`, until a probe is about as fast as on the idle line.
    fn drain(&self) -> Result<(), MeasureError> {
        const SLOWER: f64 = 0.005;
        let from = self.now();
        loop {
            self.wait(TICK)?;
            let samples = self.samples();
            let trips = samples.iter().filter_map(Sample::round_trip);
            let fastest = trips.reduce(f64::min);
            let later = samples.iter().filter(|sample| sample.sent > from);
            let drained = later.filter_map(Sample::round_trip).next_back()
                < fastest.map(|trip| trip + SLOWER)
                && samples
                    .last()
                    .is_some_and(|sample| sample.sent > from + 1.0);
            let waited = self.now() - from;
            if drained || waited > DRAIN.as_secs_f64() || (fastest.is_none() && waited > 2.0) {
                return Ok(());
            }
        }
    }

    fn load(
        &mut self,
        index: usize,
        (stage, up, down): (&'static str, bool, bool),
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Carried, MeasureError> {
        let began = self.now();
        let total = self.options.warmup + self.options.duration + TAIL;
        let mut report = |client: &Self, up: f64, down: f64| {
            let part = ((client.now() - began) / total.as_secs_f64()).min(1.0);
            progress(Progress {
                stage,
                done: 0.05 + 0.3 * (index as f64 + part),
                up,
                down,
                rtt_ms: client.latest_rtt_ms(),
            });
        };
        let Some(control) = &self.control else {
            let test = iperf3::Test {
                flows: self.options.flows,
                up,
                down,
                warmup: self.options.warmup,
                duration: self.options.duration,
            };
            let mut tick = |up: f64, down: f64| {
                report(self, up, down);
                self.wait(TICK)
            };
            return test.run(self.server, self.clock, self.limit, &mut tick);
        };
        let number = |wanted| if wanted { self.options.flows } else { 0 };
        let limit = self.limit.part(CONNECT);
        let first = |direction, flow| {
            let session = control.token;
            let opening = Opening::Flow {
                direction,
                session,
                flow,
            };
            opening.to_string()
        };
        let flows = limit
            .connect(self.server, number(up) + number(down))
            .and_then(|streams| Flows::start(streams, number(down), first, limit));
        let flows = flows.doing(|| format!("opening flows to {}", self.server))?;
        let mut record = Record::default();
        let mut tick = || {
            self.wait(TICK)?;
            record.take(&flows, self.now());
            let uploads = control.counts(began).latest();
            report(
                self,
                uploads,
                record.moved[Direction::Down as usize].latest(),
            );
            flows.check(&self.options.host)
        };
        let times = [self.options.warmup, self.options.duration, TAIL];
        let (window, silent) = flows.run(self.clock, times, &mut tick)?;
        let ip_bytes = flows.ip_bytes();
        for (total, sent) in self.sent.iter_mut().zip(flows.end()) {
            *total += sent;
        }
        // Drains first, because the queues that the load filled delay the counts.
        self.drain()?;
        let [arrived_up, arrived_down] = &record.arrived;
        let (counted, received) = (self.counts(began)?, &record.moved[Direction::Down as usize]);
        let carried = |wanted: bool, in_order: &Counts, arrived: &Counts| {
            wanted.then(|| CarriedDirection::new(began, window, in_order, arrived))
        };
        Ok(Carried {
            started: began,
            window,
            directions: [
                carried(up, &counted, arrived_up),
                carried(down, received, arrived_down),
            ],
            silent,
            ip_bytes,
        })
    }

    /// Returns the server's counts. Fails if they exceed the number of bytes that the client has sent.
    fn counts(&self, since: f64) -> Result<Counts, MeasureError> {
        let Some(control) = &self.control else {
            return Ok(Counts::default());
        };
        let mut pairs = control.latest().into_iter().zip(self.sent);
        match pairs.all(|(counted, sent)| counted <= sent) {
            true => Ok(control.counts(since)),
            false => Err(MeasureError::protocol(
                &self.options.host,
                "the server counts more bytes than were sent; use the same version at both ends",
            )),
        }
    }

    fn result(
        &self,
        idle: Window,
        after: Window,
        [up, down, both]: &[Carried; LOADS.len()],
    ) -> Measured {
        let samples = self.samples();
        let baseline = Baseline::of(&samples, idle, Some(after));
        let delays = |window| baseline.and_then(|baseline| baseline.delays(&samples, window));
        // The capacity includes the headers of full segments, and the probes.
        let capacity = |direction, load: &Carried| {
            let (rate, range) = load.directions[direction as usize].as_ref()?.arrived?;
            let probes = delays(load.window).map_or(0, |delays| delays.answered);
            let probes = (8 * Probe::IP_LEN * probes) as f64 / (load.window.to - load.window.from);
            let on_the_link = |rate: f64| rate * load.ip_bytes + probes;
            let [low, high] = [range.low, range.high].map(on_the_link);
            Some((on_the_link(rate), Range { low, high }))
        };
        let link = Link::new(capacity(Direction::Up, up), capacity(Direction::Down, down));
        let measured = |load: &Carried| {
            let delays = delays(load.window);
            let report = |direction: Direction| {
                let probe_ms = delays
                    .as_ref()
                    .map(|seen| seen.by_direction_ms[direction as usize]);
                let delivered = match &load.directions[direction as usize] {
                    None => Some(0.0),
                    Some(carried) => carried.goodput.as_ref().and_then(|rates| {
                        let capacity = link.direction(direction).filter(|rate| *rate > 0.0)?;
                        Some((rates.iter().sum::<f64>() * load.ip_bytes / capacity).min(1.0))
                    }),
                };
                LoadDirection {
                    delivered,
                    probe_ms,
                    probe_grade: probe_ms.map(Grade::of),
                }
            };
            let (up, down) = (report(Direction::Up), report(Direction::Down));
            let whole = Window::new(load.started, load.window.to);
            let probe = baseline.map(|baseline| baseline.series(&samples, whole));
            let probe_ms = delays.as_ref().map(|seen| seen.added_ms);
            let [of_up, of_down] = load.directions.clone().map(Option::unwrap_or_default);
            Load {
                duration_s: self.options.duration.as_secs_f64(),
                goodput_utility: up.delivered.zip(down.delivered).map(|(up, down)| up + down),
                up,
                down,
                goodput: Goodput::new(
                    of_up.goodput.unwrap_or_default(),
                    of_down.goodput.unwrap_or_default(),
                ),
                silent_flows: load.silent,
                probe_ms,
                probe_grade: probe_ms.map(Grade::of),
                rpm: delays.as_ref().map(|seen| seen.rpm),
                probe_lost: delays.as_ref().map(|seen| seen.lost),
                series: LoadSeries {
                    up: of_up.series,
                    down: of_down.series,
                    probe: probe.unwrap_or_default(),
                },
            }
        };
        let mut result = Measured {
            format: Measured::FORMAT,
            tool: Tool::new("measure"),
            server: self.server.to_string(),
            flows: self.options.flows,
            link,
            idle_ms: delays(idle).map(|idle| idle.rtt_ms),
            up: measured(up),
            down: measured(down),
            both: measured(both),
            advice: Advice::default(),
        };
        result.advice = Advice::of(&result);
        result
    }
}
