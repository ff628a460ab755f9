//! Probes over UDP, which measure round trips and the queueing delay in each direction.
//!
//! The clocks of both ends may differ. In each direction, the fastest probe over the idle line defines zero delay,
//! once before and once after the loads. A straight line between these two zero points corrects the clocks' drift.

use crate::error::{Doing as _, MeasureError};
use crate::lock::lock;
use crate::wire::{Probe, Token};
use asymq_core::measure::{Histogram, Percentiles};
use asymq_core::units::Duration as Span;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Mean interval of probes.
const EVERY: Duration = Duration::from_millis(40);

fn open(server: SocketAddr) -> io::Result<UdpSocket> {
    let unspecified: SocketAddr = match server {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(server)?;
    Ok(socket)
}

/// A probe that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Time of sending in seconds.
    pub(crate) sent: f64,
    /// One-way times up and down in s. Each has an unknown constant offset; their sum is the round trip without the
    /// server's processing time. `None` without an answer.
    pub(crate) took: Option<[f64; 2]>,
}

impl Sample {
    /// Round trip in seconds.
    pub(crate) fn round_trip(&self) -> Option<f64> {
        self.took.map(|[up, down]| up + down)
    }
}

/// Sends probes and receives their answers until dropped.
pub(crate) struct Prober {
    shared: Arc<Shared>,
    threads: [Option<JoinHandle<()>>; 2],
}

/// State that the sending and the receiving thread share.
#[derive(Debug)]
struct Shared {
    session: Token,
    started: Instant,
    samples: Mutex<Vec<Sample>>,
    stop: AtomicBool,
}

impl Prober {
    /// Starts to probe the server of a session, from one socket.
    pub(crate) fn start(
        server: SocketAddr,
        session: Token,
        started: Instant,
    ) -> Result<Self, MeasureError> {
        let failed = || format!("opening a UDP socket to {server}");
        let receiver = open(server).doing(failed)?;
        let wait = receiver.set_read_timeout(Some(Duration::from_millis(200)));
        let sender = wait.and(receiver.try_clone()).doing(failed)?;
        let shared = Arc::new(Shared {
            session,
            started,
            samples: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let [for_sender, for_receiver] = [Arc::clone(&shared), Arc::clone(&shared)];
        let sending = thread::spawn(move || for_sender.send(&sender));
        let receiving = thread::spawn(move || for_receiver.receive(&receiver));
        Ok(Self {
            shared,
            threads: [Some(sending), Some(receiving)],
        })
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        lock(&self.shared.samples).clone()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for thread in self.threads.iter_mut().filter_map(Option::take) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn send(&self, socket: &UdpSocket) {
        for number in 0_u64.. {
            // Intervals vary from 75 to 125 %, so that probes do not synchronize with periodic traffic.
            let part = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64) >> 54;
            thread::sleep(EVERY.mul_f64(0.75 + part as f64 / 2048.0));
            if self.stop.load(Relaxed) {
                return;
            }
            let sent = self.now();
            lock(&self.samples).push(Sample { sent, took: None });
            let probe = Probe {
                session: self.session,
                number,
                arrived: 0,
                left: 0,
            };
            // A refusal counts as a lost probe.
            let _ = socket.send(&probe.write());
        }
    }

    fn receive(&self, socket: &UdpSocket) {
        let mut bytes = [0; 64];
        while !self.stop.load(Relaxed) {
            let Ok(length) = socket.recv(&mut bytes) else {
                continue;
            };
            let now = self.now();
            let read = bytes.get(..length).and_then(Probe::read);
            let Some(probe) = read.filter(|probe| probe.session == self.session) else {
                continue;
            };
            let (arrived, left) = (probe.arrived as f64 / 1e6, probe.left as f64 / 1e6);
            let mut samples = lock(&self.samples);
            let number = usize::try_from(probe.number).ok();
            // A server cannot hold a probe longer than the probe's round trip.
            if let Some(sample) = number.and_then(|number| samples.get_mut(number))
                && (0.0..=now - sample.sent).contains(&(left - arrived))
            {
                sample.took = sample.took.or(Some([arrived - sample.sent, now - left]));
            }
        }
    }
}

/// A period in seconds of the prober's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Window {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Window {
    pub(crate) const fn new(from: f64, to: f64) -> Self {
        Self { from, to }
    }
}

/// Delays of the idle line in each direction, as a function of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Baseline {
    at: f64,
    took: [f64; 2],
    /// Drift of the clocks in seconds per second.
    drift: [f64; 2],
}

/// Delays of the probes in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Delays {
    /// Round trips in ms.
    pub(crate) rtt_ms: Percentiles,
    /// Queueing delay up and down in ms.
    pub(crate) by_direction_ms: [Percentiles; 2],
    /// Queueing delay up plus down, in ms.
    pub(crate) added_ms: Percentiles,
    /// Round trips per minute, from the mean without the slowest 5 %.
    pub(crate) rpm: f64,
    pub(crate) answered: usize,
    /// Fraction of unanswered probes.
    pub(crate) lost: f64,
}

impl Baseline {
    /// Computes the baseline from the fastest probes of two idle periods. If the periods differ by more than clocks can
    /// drift, the queue had not drained, and the later period is ignored.
    pub(crate) fn of(samples: &[Sample], before: Window, after: Option<Window>) -> Option<Self> {
        const MAX_DRIFT: f64 = 200e-6;
        let fastest = |window| {
            let took = |direction: usize| move |sample: &Sample| Some(sample.took?[direction]);
            let least = |direction| {
                sent(samples, window)
                    .filter_map(took(direction))
                    .reduce(f64::min)
            };
            Some([least(0)?, least(1)?])
        };
        let first = fastest(before)?;
        let at = f64::midpoint(before.from, before.to);
        let mut drift = [0.0; 2];
        if let Some((window, later)) = after.and_then(|window| Some((window, fastest(window)?))) {
            let passed = f64::midpoint(window.from, window.to) - at;
            let rate = |direction: usize| (later[direction] - first[direction]) / passed;
            if rate(0).abs() < MAX_DRIFT && rate(1).abs() < MAX_DRIFT {
                // Clock drift has opposite signs in the two directions; a common change is not drift.
                let clocks = (rate(0) - rate(1)) / 2.0;
                drift = [clocks, -clocks];
            }
        }
        Some(Self {
            at,
            took: first,
            drift,
        })
    }

    fn added(&self, sample: &Sample) -> Option<[f64; 2]> {
        let took = sample.took?;
        let of = |direction: usize| {
            let idle = self.took[direction] + self.drift[direction] * (sample.sent - self.at);
            // One direction takes at most the time of the round trip.
            (took[direction] - idle).clamp(0.0, (took[0] + took[1]).max(0.0))
        };
        Some([of(0), of(1)])
    }

    /// Delays of the probes sent in a window; `None` if no probe was answered.
    pub(crate) fn delays(&self, samples: &[Sample], window: Window) -> Option<Delays> {
        let sent = || sent(samples, window);
        let mut trips: Vec<f64> = sent().filter_map(Sample::round_trip).collect();
        trips.sort_by(f64::total_cmp);
        let kept = &trips[..trips.len() - trips.len() / 20];
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let added: Vec<[f64; 2]> = sent().filter_map(|sample| self.added(sample)).collect();
        let of = |direction: usize| percentiles(added.iter().map(|added| added[direction]));
        (!trips.is_empty()).then(|| Delays {
            rtt_ms: percentiles(trips.iter().copied()),
            by_direction_ms: [of(0), of(1)],
            added_ms: percentiles(added.iter().map(|[up, down]| up + down)),
            rpm: 60.0 / mean,
            answered: trips.len(),
            lost: 1.0 - trips.len() as f64 / sent().count() as f64,
        })
    }

    /// Returns each probe's time in the window in s, and its queueing delay up plus down in ms, for charts.
    pub(crate) fn series(&self, samples: &[Sample], window: Window) -> Vec<(f64, f64)> {
        let point = |sample: &Sample| {
            let [up, down] = self.added(sample)?;
            Some((sample.sent - window.from, 1e3 * (up + down)))
        };
        sent(samples, window).filter_map(point).collect()
    }
}

/// Probes sent in a window.
fn sent(samples: &[Sample], window: Window) -> impl Iterator<Item = &Sample> {
    let window = window.from..window.to;
    samples
        .iter()
        .filter(move |sample| window.contains(&sample.sent))
}

fn percentiles(seconds: impl Iterator<Item = f64>) -> Percentiles {
    let mut histogram = Histogram::default();
    for second in seconds {
        histogram.record(Span::from_nanos((second.max(0.0) * 1e9) as u64));
    }
    histogram.percentiles_ms().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a probe every 0.1 s. The clocks differ by 5 s and drift by 100 ppm. From 2 to 8 s the uplink has a
    /// queue of 80 ms.
    fn samples() -> Vec<Sample> {
        let sample = |index: u32| {
            let sent = f64::from(index) * 0.1;
            let queue = if (2.0..8.0).contains(&sent) {
                0.08
            } else {
                0.0
            };
            let clock = 5.0 + sent * 1e-4;
            Sample {
                sent,
                took: (index % 10 != 9).then_some([0.01 + queue + clock, 0.02 - clock]),
            }
        };
        (0..100).map(sample).collect()
    }

    const fn window(from: f64, to: f64) -> Window {
        Window { from, to }
    }

    #[test]
    fn a_queue_is_seen_in_its_direction_though_the_clocks_disagree_and_drift() {
        let samples = samples();
        let baseline = Baseline::of(&samples, window(0.0, 2.0), Some(window(8.0, 10.0))).unwrap();
        let loaded = baseline.delays(&samples, window(2.0, 8.0)).unwrap();
        let [up, down] = loaded.by_direction_ms;
        assert!((up.p50 - 80.0).abs() < 0.5, "{up:?}");
        assert!(down.p99 < 0.3, "{down:?}");
        assert!((loaded.added_ms.p99 - 80.0).abs() < 0.5, "{loaded:?}");
        assert!((loaded.rtt_ms.p50 - 110.0).abs() < 0.6, "{loaded:?}");
        assert!((loaded.rpm - 60.0 / 0.11).abs() < 2.0, "{loaded:?}");
        assert!((loaded.lost - 0.1).abs() < 1e-9, "{loaded:?}");
        let idle = baseline.delays(&samples, window(0.0, 2.0)).unwrap();
        assert!(idle.added_ms.p99 < 0.5 && (idle.rtt_ms.p50 - 30.0).abs() < 0.2);
    }

    #[test]
    fn an_undrained_queue_does_not_count_as_drift() {
        let samples = samples();
        let baseline = Baseline::of(&samples, window(0.0, 2.0), Some(window(4.0, 6.0))).unwrap();
        assert_eq!(baseline.drift, [0.0; 2]);
    }

    #[test]
    fn unanswered_probes_have_no_delay() {
        let silent = [Sample::default()];
        assert_eq!(Baseline::of(&silent, window(0.0, 1.0), None), None);
        let samples = samples();
        let baseline = Baseline::of(&samples, window(0.0, 2.0), None).unwrap();
        assert_eq!(baseline.delays(&silent, window(0.0, 1.0)), None);
    }
}
