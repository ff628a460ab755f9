//! The client: an idle line, three loads, an idle line again.

use crate::error::{Doing as _, MeasureError};
use crate::flows::{CONNECT, Flow, connect};
use crate::iperf3;
use crate::load::{Carried, Count, Counts};
use crate::prober::{Baseline, Prober, Sample, Window};
use crate::report::{Advice, Link, Load, LoadDirection, LoadSeries, Measured};
use crate::wire::{Answer, Counted, MAX_LINE, Opening, PORT, Probe, Token};
use asymq_core::Direction;
use asymq_scenario::{Goodput, Grade, Tool};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// The server: a name or an address, with a port or without.
    pub host: String,
    /// The server is iperf3's.
    pub iperf3: bool,
    /// TCP flows in each direction, 1 to [`MAX_FLOWS`](crate::MAX_FLOWS).
    pub flows: usize,
    /// Start of each load that is left out.
    pub warmup: Duration,
    /// Time that is measured of each load.
    pub duration: Duration,
    /// True ends the measurement.
    pub stop: &'a AtomicBool,
}

/// The present state of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// `idle`, `up`, `down` or `both`.
    pub stage: &'static str,
    /// Part of the whole that is done, 0 to 1.
    pub done: f64,
    /// Goodput of uploads in bit/s.
    pub up: f64,
    /// Goodput of downloads in bit/s.
    pub down: f64,
    /// Round trip of the latest probe in ms.
    pub rtt_ms: Option<f64>,
}

/// Time of the idle line before the loads, and the longest wait for queues to drain after each.
const IDLE: Duration = Duration::from_secs(2);
const DRAIN: Duration = Duration::from_secs(6);
const TICK: Duration = Duration::from_millis(100);
/// Time that flows go on after the window, so that the last count is not beyond it.
const TAIL: Duration = Duration::from_millis(500);

/// Measures a line.
///
/// # Errors
/// The server is not there, refuses, or speaks another protocol; a system call fails; the caller stops.
pub fn measure(
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Measured, MeasureError> {
    let mut client = Client::connect(options)?;
    let idle = client.idle(0.0, progress)?;
    let mut loads = Vec::new();
    for (index, (name, up, down)) in LOADS.into_iter().enumerate() {
        let stage = Stage {
            name,
            index: index as f64,
        };
        loads.push(client.load(stage, up, down, progress)?);
        client.drain()?;
    }
    let after = client.idle(0.95, progress)?;
    // The last probes are on their way.
    client.wait(TAIL)?;
    Ok(client.result(idle, after, &loads))
}

/// Name of each load, and its directions.
const LOADS: [(&str, bool, bool); 3] = [
    ("up", true, false),
    ("down", false, true),
    ("both", true, true),
];

#[derive(Clone, Copy)]
struct Stage {
    name: &'static str,
    index: f64,
}

struct Client<'a> {
    options: &'a Options<'a>,
    server: SocketAddr,
    control: Option<Control>,
    prober: Option<Prober>,
    clock: Instant,
}

/// The control connection of a session, and the counts that it brings.
struct Control {
    token: Token,
    stream: TcpStream,
    counts: Arc<Mutex<Vec<(f64, Counted)>>>,
    reader: Option<JoinHandle<()>>,
}

impl<'a> Client<'a> {
    fn connect(options: &'a Options<'a>) -> Result<Self, MeasureError> {
        let server = resolve(&options.host, options.iperf3)?;
        let mut client = Self {
            options,
            server,
            control: None,
            prober: None,
            clock: Instant::now(),
        };
        if !options.iperf3 {
            let control = Control::open(server, client.clock)?;
            client.prober = Some(Prober::start(server, control.token, client.clock)?);
            client.control = Some(control);
        }
        Ok(client)
    }

    fn now(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    fn samples(&self) -> Vec<Sample> {
        self.prober
            .as_ref()
            .map(Prober::samples)
            .unwrap_or_default()
    }

    fn wait(&self, time: Duration) -> Result<(), MeasureError> {
        thread::sleep(time);
        match self.options.stop.load(Relaxed) {
            true => Err(MeasureError::Interrupted),
            false => Ok(()),
        }
    }

    fn latest_rtt_ms(&self) -> Option<f64> {
        let samples = self.samples();
        let answered = samples.iter().rev().find_map(|sample| sample.took);
        answered.map(|[up, down]| 1e3 * (up + down))
    }

    fn idle(&self, done: f64, progress: &mut dyn FnMut(Progress)) -> Result<Window, MeasureError> {
        let from = self.now();
        // Without an Echo there is nothing to wait for.
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
        Ok(Window {
            from,
            to: self.now(),
        })
    }

    /// Waits until a probe that was sent after the load is as fast as on the idle line.
    fn drain(&self) -> Result<(), MeasureError> {
        const SLOWER: f64 = 0.005;
        let from = self.now();
        loop {
            self.wait(TICK)?;
            let samples = self.samples();
            let trip = |sample: &Sample| sample.took.map(|[up, down]| up + down);
            let fastest = samples.iter().filter_map(trip).reduce(f64::min);
            let later = samples.iter().filter(|sample| sample.sent > from);
            let drained = later.filter_map(trip).next_back() < fastest.map(|trip| trip + SLOWER)
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
        stage: Stage,
        up: bool,
        down: bool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Carried, MeasureError> {
        let (warmup, duration) = (self.options.warmup, self.options.duration);
        let total = (warmup + duration + TAIL).as_secs_f64();
        let started = self.now();
        let mut report = |client: &Self, up: f64, down: f64| {
            let part = ((client.now() - started) / total).min(1.0);
            progress(Progress {
                stage: stage.name,
                done: 0.05 + 0.3 * (stage.index + part),
                up,
                down,
                rtt_ms: client.latest_rtt_ms(),
            });
        };
        let window = Window {
            from: started + warmup.as_secs_f64(),
            to: started + (warmup + duration).as_secs_f64(),
        };
        let Some(control) = &self.control else {
            let test = iperf3::Test {
                flows: self.options.flows,
                up,
                down,
                warmup,
                duration,
            };
            let mut tick = |up: f64, down: f64| {
                report(self, up, down);
                self.wait(TICK)
            };
            let carried = test.run(self.server, self.clock, &mut tick)?;
            return Ok(Carried {
                started,
                window,
                ..carried
            });
        };
        let open = |wanted: bool, direction| {
            let numbers = 0..if wanted { self.options.flows } else { 0 };
            let flow = |number| Flow::open(self.server, direction, control.token, number);
            let flows: std::io::Result<Vec<Flow>> = numbers.map(flow).collect();
            flows.doing(|| format!("opening a flow to {}", self.server))
        };
        let (uploads, downloads) = (open(up, Direction::Up)?, open(down, Direction::Down)?);
        let mut received = Counts::default();
        while self.now() < window.to + TAIL.as_secs_f64() {
            self.wait(TICK)?;
            received.0.push(Count {
                at: self.now(),
                bytes: downloads.iter().map(Flow::moved).collect(),
            });
            report(self, control.counts(started).latest(), received.latest());
            if uploads.iter().chain(&downloads).all(Flow::has_ended) {
                return Err(MeasureError::Protocol {
                    server: self.options.host.clone(),
                    message:
                        "the server ended all flows; its limits may be too low (asymq measure \
                              serve --time, --bytes)"
                            .into(),
                });
            }
        }
        let mut flows = uploads.iter().chain(&downloads);
        let ip_bytes = flows.next().map_or(1.0, Flow::ip_bytes_per_payload);
        drop((uploads, downloads));
        // Counts wait in the queues that the load has left.
        self.drain()?;
        let counted = control.counts(started);
        Ok(Carried {
            started,
            window,
            up: if up {
                counted.rates(window)
            } else {
                Vec::new()
            },
            down: received.rates(window),
            series_up: if up {
                counted.series(started)
            } else {
                Vec::new()
            },
            series_down: if down {
                received.series(started)
            } else {
                Vec::new()
            },
            ip_bytes,
        })
    }

    fn result(&self, idle: Window, after: Window, loads: &[Carried]) -> Measured {
        let samples = self.samples();
        let baseline = Baseline::of(&samples, idle, Some(after));
        let delays = |window| baseline.and_then(|baseline| baseline.delays(&samples, window));
        let goodput = |direction: Direction, load: &Carried| -> f64 {
            let rates = match direction {
                Direction::Up => &load.up,
                Direction::Down => &load.down,
            };
            // Not `sum`, which is -0 where there are none.
            rates.iter().fold(0.0, |total, rate| total + rate)
        };
        // Full segments, and the probes beside them.
        let on_the_link = |direction, load: &Carried| {
            let probes = delays(load.window).map_or(0, |delays| delays.answered);
            let probes = (8 * Probe::IP_LEN * probes) as f64 / (load.window.to - load.window.from);
            goodput(direction, load) * load.ip_bytes + probes
        };
        let [up, down, both] = loads else {
            unreachable!("there are three loads")
        };
        let link = Link {
            up: on_the_link(Direction::Up, up),
            down: on_the_link(Direction::Down, down),
        };
        let measured = |load: &Carried| {
            let delays = delays(load.window);
            let report = |direction: Direction| {
                let probe_ms = delays
                    .as_ref()
                    .map(|seen| seen.by_direction_ms[direction as usize]);
                let capacity = link.direction(direction).max(1.0);
                LoadDirection {
                    delivered: (goodput(direction, load) * load.ip_bytes / capacity).min(1.0),
                    probe_ms,
                    probe_grade: probe_ms.map(Grade::of),
                }
            };
            let (up, down) = (report(Direction::Up), report(Direction::Down));
            let whole = Window {
                from: load.started,
                to: load.window.to,
            };
            let probe = baseline.map(|baseline| baseline.series(&samples, whole));
            let probe_ms = delays.as_ref().map(|seen| seen.added_ms);
            Load {
                duration_s: self.options.duration.as_secs_f64(),
                goodput_utility: up.delivered + down.delivered,
                up,
                down,
                goodput: Goodput::new(load.up.clone(), load.down.clone()),
                probe_ms,
                probe_grade: probe_ms.map(Grade::of),
                rpm: delays.as_ref().map(|seen| seen.rpm),
                probe_lost: delays.as_ref().map(|seen| seen.lost),
                series: LoadSeries {
                    up: load.series_up.clone(),
                    down: load.series_down.clone(),
                    probe: probe.unwrap_or_default(),
                },
            }
        };
        let mut result = Measured {
            format: Measured::FORMAT,
            tool: Tool {
                version: env!("CARGO_PKG_VERSION").into(),
                driver: "measure".into(),
                kernel: None,
            },
            server: self.server.to_string(),
            flows: self.options.flows,
            link,
            idle_ms: delays(idle).map(|idle| idle.rtt_ms),
            up: Some(measured(up)),
            down: Some(measured(down)),
            both: Some(measured(both)),
            advice: Advice::default(),
        };
        result.advice = Advice::of(&result);
        result
    }
}

impl Control {
    fn open(server: SocketAddr, clock: Instant) -> Result<Self, MeasureError> {
        let other = |message: &str| MeasureError::Protocol {
            server: server.to_string(),
            message: message.into(),
        };
        let stream = connect(server, Opening::Start.to_string().as_bytes())
            .doing(|| format!("connecting to {server} (asymq measure serve, there)"))?;
        let waiting = || {
            stream
                .set_read_timeout(Some(CONNECT))
                .and(stream.try_clone())
        };
        let input = waiting().doing(|| format!("reading from {server}"))?;
        let mut input = BufReader::new(input);
        let line = read_line(&mut input).ok_or_else(|| {
            other("no asymq measure server answers there; is it iperf3's? (--iperf3)")
        })?;
        let answer = serde_json::from_str(&line)
            .map_err(|_| other("the answer is not an asymq measure server's"))?;
        let session = match answer {
            Answer::Welcome { session, .. } => session,
            Answer::Refused(message) => {
                return Err(MeasureError::Refused {
                    server: server.to_string(),
                    message: message.chars().filter(|c| !c.is_control()).collect(),
                });
            }
        };
        let token = Token::read(&session).ok_or_else(|| {
            other("the answer names no session; use the same version at both ends")
        })?;
        stream
            .set_read_timeout(None)
            .doing(|| format!("reading from {server}"))?;
        let counts: Arc<Mutex<Vec<(f64, Counted)>>> = Arc::default();
        let shared = Arc::clone(&counts);
        let reader = thread::spawn(move || {
            while let Some(counted) =
                read_line(&mut input).and_then(|line| serde_json::from_str::<Counted>(&line).ok())
            {
                let now = clock.elapsed().as_secs_f64();
                let mut counts = shared.lock().unwrap_or_else(PoisonError::into_inner);
                counts.push((now, counted));
            }
        });
        Ok(Self {
            token,
            stream,
            counts,
            reader: Some(reader),
        })
    }

    /// The server's counts since `start`, at the client's time: the fastest count defines the
    /// difference of the clocks.
    fn counts(&self, start: f64) -> Counts {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let server = |counted: &Counted| counted.us as f64 / 1e6;
        let apart = counts.iter().map(|(at, counted)| at - server(counted));
        let apart = apart.reduce(f64::min).unwrap_or(0.0);
        let at_client = |(_, counted): &(f64, Counted)| Count {
            at: server(counted) + apart,
            bytes: counted.up.clone(),
        };
        let since = |count: &Count| count.at >= start;
        Counts(counts.iter().map(at_client).filter(since).collect())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// A line of bounded length without its end; `None` at the end of the input, or where it is too long.
fn read_line(input: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let mut bounded = input.take(MAX_LINE as u64);
    bounded.read_line(&mut line).ok()?;
    line.pop().is_some_and(|end| end == '\n').then_some(line)
}

fn resolve(host: &str, is_iperf3: bool) -> Result<SocketAddr, MeasureError> {
    let port = if is_iperf3 { iperf3::PORT } else { PORT };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = match host.to_socket_addrs() {
        Ok(found) => Ok(found),
        Err(_) => (bare, port).to_socket_addrs(),
    };
    let address = found.doing(|| format!("{host}: looking it up"))?.next();
    address.ok_or_else(|| MeasureError::Protocol {
        server: host.into(),
        message: "no such host".into(),
    })
}
