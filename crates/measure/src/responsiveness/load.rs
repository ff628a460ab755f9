//! A load that grows until its rate is stable, with probes on its connections and on new ones.

use super::calculation::{AVERAGED, Confidence, Foreign, Goodput, Probes, Stage, pairs_per_second};
use super::connection::{Connection, Task, get_body, read_body, request, send_load};
use super::report::{Rates, Rating, TestedLoad, TestedSeries};
use super::site::{Site, TICK, TestOptions};
use crate::error::MeasureError;
use crate::flows::Count;
use crate::load::{Counts, Range};
use crate::lock::lock;
use crate::prober::Window;
use crate::tcp_info::Counter;
use asymq_core::Direction;
use asymq_core::decide::random::SplitMix64;
use asymq_scenario::quoted;
use bytes::Bytes;
use h2::client::SendRequest;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum number of simultaneous probes.
const UNDER_WAY: usize = 64;
/// Minimum half width of a rate's range, as a share of the rate: segments vary in size, and some arrive twice.
const LEAST_RANGE: f64 = 0.015;
/// Interval between checks for the next probe.
const STEP: Duration = Duration::from_millis(5);

/// A connection that carries load; its state is shared between tasks.
#[derive(Default)]
struct Carrier {
    direction: Direction,
    /// The connection, set once it carries load.
    open: OnceLock<Connection>,
    received: AtomicU64,
    failure: OnceLock<String>,
}

impl Carrier {
    /// Opens a connection, and loads it until the task ends.
    fn start(site: &Arc<Site>, direction: Direction) -> (Arc<Self>, Task) {
        let carrier = Arc::new(Self {
            direction,
            ..Self::default()
        });
        let (for_task, site) = (Arc::clone(&carrier), Arc::clone(site));
        let task = tokio::spawn(async move {
            let ended = match direction {
                Direction::Up => for_task.upload(&site).await,
                Direction::Down => for_task.download(&site).await,
            };
            if let Err(error) = ended {
                let _ = for_task.failure.set(error.to_string());
            }
        });
        (carrier, Task(task))
    }

    async fn upload(&self, site: &Site) -> io::Result<()> {
        let connection = site.connect().await?;
        let uri = &site.endpoints.upload;
        let (mut response, mut stream) = request(&connection.requests, uri, true).await?;
        let moved = Arc::clone(&connection.moved);
        let _ = self.open.set(connection);
        // An early answer gives a better reason than the reset that follows it.
        let answered = tokio::select! {
            biased;
            answer = &mut response => answer,
            ended = send_load(&mut stream, &moved) => {
                match timeout(TICK, response).await {
                    Ok(answer) => answer,
                    Err(_) => return Err(ended.err().unwrap_or(ErrorKind::BrokenPipe.into())),
                }
            }
        };
        let status = answered.map_err(io::Error::other)?.status();
        Err(io::Error::other(format!(
            "the server ended an upload with {status}"
        )))
    }

    async fn download(&self, site: &Site) -> io::Result<()> {
        let connection = site.connect().await?;
        let (requests, uri) = (connection.requests.clone(), &site.endpoints.large);
        let mut body = get_body(&requests, uri).await?;
        let _ = self.open.set(connection);
        // Repeats, because an object of 8 GB may be too small for a fast line.
        loop {
            let count = |data: &[u8]| {
                self.received.fetch_add(data.len() as u64, Relaxed);
                Ok(())
            };
            read_body(&mut body, count).await?;
            body = get_body(&requests, uri).await?;
        }
    }

    /// Bytes of bodies that have arrived. If the kernel does not count them: bytes that the socket accepted or
    /// returned.
    fn bytes(&self) -> u64 {
        let received = self.received.load(Relaxed);
        let Some(open) = self.open.get() else {
            return 0;
        };
        match (self.direction, self.arrived()) {
            (Direction::Down, Some(arrived)) => arrived.body_bytes(received),
            (Direction::Down, None) => received,
            (Direction::Up, Some(acknowledged)) => open.moved.body_of(acknowledged.bytes()),
            (Direction::Up, None) => open.moved.sent(),
        }
    }

    fn arrived(&self) -> Option<&Counter> {
        self.open.get()?.arrived[self.direction as usize].as_ref()
    }

    fn packets(&self, headers: u64) -> [u64; 3] {
        let arrived = self.arrived();
        arrived.map_or([0; 3], |arrived| arrived.packets(headers))
    }

    fn has_ended(&self) -> bool {
        self.failure.get().is_some()
    }

    fn is_counted(&self) -> bool {
        self.open.get().is_none() || self.arrived().is_some()
    }
}

/// Input and results of probes.
#[derive(Default)]
struct Shared {
    probes: Mutex<Probes>,
    failed: AtomicU64,
    carriers: Mutex<Vec<Arc<Carrier>>>,
    /// Rate of probe pairs, in pairs per 1000 seconds.
    pace: AtomicU64,
}

impl Shared {
    fn probes<T>(&self, with: impl FnOnce(&mut Probes) -> T) -> T {
        with(&mut lock(&self.probes))
    }

    /// Returns a random connection that carries load.
    fn any_carrier(&self, random: &mut SplitMix64) -> Option<SendRequest<Bytes>> {
        let carriers = lock(&self.carriers);
        let open: Vec<_> = carriers
            .iter()
            .filter(|carrier| !carrier.has_ended())
            .filter_map(|carrier| carrier.open.get())
            .collect();
        let index = random.next().checked_rem(open.len() as u64)?;
        Some(open[index as usize].requests.clone())
    }

    /// Starts foreign and self probes in turn, at the current rate.
    async fn launch(self: Arc<Self>, site: Arc<Site>, clock: Instant) {
        let mut random = SplitMix64::new(clock.elapsed().as_nanos() as u64);
        let mut under_way = JoinSet::new();
        let mut timer = tokio::time::interval(STEP);
        let (mut due, mut is_foreign) = (0.0, true);
        loop {
            timer.tick().await;
            while under_way.try_join_next().is_some() {}
            due += 2e-3 * self.pace.load(Relaxed) as f64 * STEP.as_secs_f64();
            while due >= 1.0 {
                due -= 1.0;
                let (shared, site) = (Arc::clone(&self), Arc::clone(&site));
                let carrier = self.any_carrier(&mut random);
                is_foreign = !is_foreign;
                if under_way.len() >= UNDER_WAY {
                    continue;
                }
                under_way.spawn(async move {
                    let ended = match (is_foreign, carrier) {
                        (true, _) => site.probe(clock).await.map(|probe| {
                            shared.probes(|probes| probes.foreign.push(probe));
                        }),
                        (false, Some(requests)) => {
                            site.probe_on(&requests, clock).await.map(|probe| {
                                shared.probes(|probes| probes.own.push(probe));
                            })
                        }
                        (false, None) => Ok(()),
                    };
                    if ended.is_err() {
                        shared.failed.fetch_add(1, Relaxed);
                    }
                });
            }
        }
    }
}

#[derive(Default)]
struct DirectionLoad {
    direction: Direction,
    carriers: Vec<(Arc<Carrier>, Task)>,
    bytes: u64,
    /// Sum of `Counter::packets` over all connections, at several times. Probes count as headers.
    crossed: Counts,
    goodput: Goodput,
    series: Vec<(f64, f64)>,
}

impl DirectionLoad {
    /// Counts the IP packets of the load and of its probes.
    fn count(&mut self, at: f64, headers: u64, shared: &Shared) {
        let of_probe = |probe: &Foreign| probe.crossed[self.direction as usize];
        let probes = shared.probes(|of| of.foreign.iter().map(of_probe).sum());
        let mut bytes = vec![0, 0, probes];
        for (carrier, _) in &self.carriers {
            let packets = carrier.packets(headers);
            bytes
                .iter_mut()
                .zip(packets)
                .for_each(|(all, of)| *all += of);
        }
        self.crossed.0.push(Count { at, bytes });
    }

    /// Capacity in bit/s of IP packets, with its range. Evaluates the second half of the load, at least the last
    /// `least` seconds. `None` if unknown.
    fn capacity(&self, least: f64) -> Option<(f64, Range)> {
        let counts = &self.crossed.0;
        // Rounding must not place the window's end after the last count.
        let to = counts.last()?.at - 1e-6;
        let from = (to / 2.0).min(to - least);
        // In-order bytes divided by the bytes of full segments give the mean size of a segment, as a share of a full
        // one. The maximum counts, because a loss delays in-order delivery.
        let window = counts.iter().filter(|count| count.at >= from);
        let share = |count: &Count| count.bytes[1] as f64 / count.bytes[0] as f64;
        let full = window.map(share).reduce(f64::max)?;
        let total = |count: &Count| Count {
            at: count.at,
            bytes: vec![(count.bytes[0] as f64 * full) as u64 + count.bytes[2]],
        };
        let totals = Counts(counts.iter().map(total).collect());
        let window = Window { from, to };
        let is_counted = self.carriers.iter().all(|(of, _)| of.is_counted());
        let rate = is_counted.then(|| totals.rates(window))??[0];
        Some((rate, totals.range(window, LEAST_RANGE)?))
    }

    /// The failure of the first connection, if all connections have ended.
    fn failure(&self) -> Option<&String> {
        let has_ended = |(carrier, _): &(Arc<Carrier>, _)| carrier.has_ended();
        let all_ended = self.carriers.iter().all(has_ended);
        self.carriers.first().filter(|_| all_ended)?.0.failure.get()
    }
}

pub(super) struct Load<'a> {
    options: &'a TestOptions<'a>,
    site: &'a Arc<Site>,
    clock: Instant,
    directions: Vec<DirectionLoad>,
    shared: Arc<Shared>,
    stage: Stage,
    series: Vec<(f64, f64)>,
}

impl<'a> Load<'a> {
    pub(super) fn new(
        options: &'a TestOptions<'a>,
        site: &'a Arc<Site>,
        directions: &[Direction],
    ) -> Self {
        let load = |direction: &Direction| DirectionLoad {
            direction: *direction,
            ..DirectionLoad::default()
        };
        Self {
            options,
            site,
            clock: Instant::now(),
            directions: directions.iter().map(load).collect(),
            shared: Arc::default(),
            stage: Stage::default(),
            series: Vec::new(),
        }
    }

    /// Runs until all values are stable or the time limit expires. Also returns the capacity of the first direction.
    pub(super) async fn run(
        mut self,
        report: &mut dyn FnMut(f64, f64, f64, Option<f64>),
    ) -> Result<(TestedLoad, Option<(f64, Range)>), MeasureError> {
        let probes = Arc::clone(&self.shared).launch(Arc::clone(self.site), self.clock);
        let _prober = Task(tokio::spawn(probes));
        self.add_connections();
        let (interval, longest) = (self.options.interval, self.options.longest);
        let mut last = 0.0;
        loop {
            let end = last + interval.as_secs_f64();
            while self.now() < end {
                sleep(TICK.min(interval)).await;
                self.check()?;
                let now = self.now();
                for load in &mut self.directions {
                    load.count(now, self.site.target.headers(), &self.shared);
                }
                let latest = self.shared.probes(|probes| probes.own.last().copied());
                let done = self.now() / longest.as_secs_f64();
                report(
                    done,
                    self.average(Direction::Up),
                    self.average(Direction::Down),
                    latest.map(|probe| 1e3 * probe.http),
                );
            }
            let now = self.now();
            let is_stable = self.end_interval(now, now - last);
            last = now;
            if is_stable || self.clock.elapsed() + interval / 2 > longest {
                let least = AVERAGED as f64 * interval.as_secs_f64();
                let capacity = self.directions[0].capacity(least);
                return Ok((self.result(), capacity));
            }
            self.add_connections();
        }
    }

    fn now(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    fn of(&self, direction: Direction) -> Option<&DirectionLoad> {
        self.directions.iter().find(|of| of.direction == direction)
    }

    fn average(&self, direction: Direction) -> f64 {
        self.of(direction).map_or(0.0, |of| of.goodput.average())
    }

    /// Adds a connection in each loaded direction, up to the maximum.
    fn add_connections(&mut self) {
        for load in &mut self.directions {
            if load.carriers.len() < self.options.connections {
                let (carrier, task) = Carrier::start(self.site, load.direction);
                lock(&self.shared.carriers).push(Arc::clone(&carrier));
                load.carriers.push((carrier, task));
            }
        }
    }

    /// # Errors
    /// All connections of a direction have ended. The draft ends the test at the first end of a connection. On a slow
    /// line with a long queue, however, a server may end a starved connection as idle.
    fn check(&self) -> Result<(), MeasureError> {
        match self.directions.iter().find_map(DirectionLoad::failure) {
            None => Ok(()),
            Some(message) => Err(MeasureError::protocol(
                &self.site.name(),
                &format!("a connection that carried load ended ({})", quoted(message)),
            )),
        }
    }

    /// Adds the rates of the interval that ends now. Returns true if all values are stable.
    fn end_interval(&mut self, now: f64, seconds: f64) -> bool {
        let mut is_saturated = true;
        let mut least = f64::INFINITY;
        for load in &mut self.directions {
            let carriers = load.carriers.iter();
            let bytes: u64 = carriers.map(|(carrier, _)| carrier.bytes()).sum();
            let rate = 8.0 * bytes.saturating_sub(load.bytes) as f64 / seconds;
            load.bytes = bytes;
            load.series.push((now, rate));
            is_saturated &= load.goodput.push(rate);
            least = least.min(load.goodput.average());
        }
        self.shared
            .pace
            .store((1e3 * pairs_per_second(least)) as u64, Relaxed);
        let Some(of) = self.responsiveness() else {
            return false;
        };
        self.series.push((now, of.rpm));
        is_saturated && self.stage.push(of.rpm)
    }

    /// Responsiveness in the last four intervals.
    fn responsiveness(&self) -> Option<super::calculation::Responsiveness> {
        let window = self.options.interval.as_secs_f64() * AVERAGED as f64;
        let from = self.now() - window;
        self.shared.probes(|probes| probes.responsiveness(from))
    }

    fn result(&self) -> TestedLoad {
        let responsiveness = self.responsiveness();
        let series = |direction| self.of(direction).map(|of| of.series.clone());
        let confidences = self.directions.iter().map(|of| of.goodput.confidence());
        let is_uncounted = |of: &DirectionLoad| of.carriers.iter().any(|(of, _)| !of.is_counted());
        let unacknowledged = self.of(Direction::Up).is_some_and(is_uncounted);
        let carriers = || self.directions.iter().flat_map(|of| &of.carriers);
        let ended = carriers().filter(|(of, _)| of.has_ended()).count();
        let trust = match unacknowledged || ended > 0 {
            true => Confidence::Medium,
            false => Confidence::High,
        };
        TestedLoad {
            duration_s: self.now(),
            connections: carriers().count() - ended,
            rate: Rates {
                up: self.average(Direction::Up),
                down: self.average(Direction::Down),
            },
            rate_confidence: confidences.min().unwrap_or_default().min(trust),
            unacknowledged,
            responsiveness,
            rating: responsiveness.map(|of| Rating::of(of.rpm)),
            rpm_confidence: self.stage.confidence(),
            probes_failed: self.shared.failed.load(Relaxed) as usize,
            series: TestedSeries {
                up: series(Direction::Up).unwrap_or_default(),
                down: series(Direction::Down).unwrap_or_default(),
                rpm: self.series.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_has_the_true_size_of_segments_and_no_stall_of_a_loss() {
        // Each 0.1 s, 1000 bytes and 100 bytes of headers arrive, counted as 1250. In order, bytes come every second.
        let count = |n: u64| Count {
            at: n as f64 / 10.0,
            bytes: vec![1250 * n, 1000 * (n / 10 * 10), 100 * n],
        };
        let load = DirectionLoad {
            direction: Direction::Down,
            carriers: Vec::new(),
            bytes: 0,
            crossed: Counts((1..=100).map(count).collect()),
            goodput: Goodput::default(),
            series: Vec::new(),
        };
        let (rate, range) = load.capacity(4.0).unwrap();
        assert!((rate / 88_000.0 - 1.0).abs() < 0.001, "{rate}");
        let shares = [range.low, range.high].map(|end| end / 88_000.0);
        assert!((shares[0] - 0.985).abs() < 0.001 && (shares[1] - 1.015).abs() < 0.001);
        let early = DirectionLoad {
            crossed: Counts((1..=10).map(count).collect()),
            ..load
        };
        assert_eq!(early.capacity(4.0), None);
    }

    #[tokio::test]
    async fn a_direction_fails_when_its_last_connection_has_ended() {
        let mut load = DirectionLoad {
            direction: Direction::Up,
            carriers: Vec::new(),
            bytes: 0,
            crossed: Counts::default(),
            goodput: Goodput::default(),
            series: Vec::new(),
        };
        assert_eq!(load.failure(), None);
        for _ in 0..2 {
            let task = Task(tokio::spawn(async {}));
            load.carriers.push((Arc::default(), task));
        }
        for (index, failure) in [(1, None), (0, Some(&"0".to_owned()))] {
            let ended = load.carriers[index].0.failure.set(index.to_string());
            assert!(ended.is_ok());
            assert_eq!(load.failure(), failure);
        }
    }
}
