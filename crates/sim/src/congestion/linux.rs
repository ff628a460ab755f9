//! CUBIC and HyStart as in Linux 6 (`tcp_cubic.c`): computed in whole segments, from the minimum round-trip time.

use crate::congestion::hystart::{
    MAX_RTT_THRESH, MIN_RTT_DIVISOR, MIN_RTT_THRESH, MS, RTT_SAMPLES,
};
use crate::congestion::{AckSample, CongestionControl};

const SECOND: u64 = 1000 * MS;
/// Factor by which the integers `C` and `BETA` are scaled.
const SCALE: u64 = 1024;
const C: u64 = 410;
const BETA: u64 = 717;
/// Maximum time without an update of `count` while the window is constant.
const UPDATE: u64 = SECOND / 32;
/// Maximum number of segments per increment before the first loss: growth by at least 5 % a round trip.
const MAX_FIRST_COUNT: u64 = 20;
/// Minimum window at which HyStart may end slow start.
const LOW_WINDOW: u64 = 16;
/// Maximum time between two ACKs in HyStart's train; `ACK_DELAY` allows for pacing and offloads.
const ACK_DELTA: u64 = 2 * MS;
const ACK_DELAY: u64 = MS;

/// CUBIC of Linux. Windows are in segments, times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinuxCubic {
    cwnd: u64,
    ssthresh: u64,
    /// Maximum number of segments credited per ACK in slow start.
    counted: u64,
    /// Segments acknowledged since the window last grew (`snd_cwnd_cnt`).
    credit: u64,
    /// Segments needed for the next growth (`cnt`).
    count: u64,
    /// Window before the last reduction, or less with fast convergence; 0 after a timeout.
    last_max: u64,
    epoch: Option<Epoch>,
    /// Window and time at the last update of `count`.
    updated: (u64, u64),
    /// Minimum round-trip time, without samples from the first second of an epoch.
    min_rtt: Option<u64>,
    hystart: bool,
    /// HyStart's round trip; `None` without HyStart, or after it has ended slow start.
    round: Option<Round>,
}

/// State of congestion avoidance since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    /// Time from the start to the plateau in 1/1024 s.
    k: u64,
    /// Window of the plateau in segments.
    plateau: u64,
    /// Window that a Reno sender would have, in segments.
    reno: u64,
    /// Segments acknowledged since `reno` last grew.
    acked: u64,
}

/// A round trip of HyStart, which ends with an ACK beyond `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    start: u64,
    /// Time of the last ACK in the train.
    train_end: u64,
    min_rtt: Option<u64>,
    samples: u32,
}

impl LinuxCubic {
    /// Creates the window of a new connection. In slow start, an ACK is credited with at most `counted` segments.
    pub(crate) fn new(counted: u64, hystart: bool) -> Self {
        Self {
            cwnd: 1,
            ssthresh: u64::MAX,
            counted,
            hystart,
            round: hystart.then(Round::default),
            ..Self::default()
        }
    }

    fn begin(&self, now: u64) -> Epoch {
        let cwnd = self.cwnd;
        let missing = self.last_max.saturating_sub(cwnd);
        // K in seconds is the cube root of missing / C.
        let k = libm::cbrt(missing as f64 * SCALE as f64 / C as f64) * SCALE as f64;
        Epoch {
            start: now,
            k: k as u64,
            plateau: cwnd.max(self.last_max),
            reno: cwnd,
            acked: 0,
        }
    }

    /// Returns the number of segments per increment, computed from the cubic function.
    fn cubic_count(&self, now: u64, epoch: &Epoch) -> u64 {
        let t = now - epoch.start + self.min_rtt.unwrap_or(0);
        let t = (u128::from(t) * u128::from(SCALE) / u128::from(SECOND)) as u64;
        let away = u128::from(t.abs_diff(epoch.k));
        let delta = ((u128::from(C) * away * away * away) >> 40) as u64;
        let target = match t < epoch.k {
            true => epoch.plateau.saturating_sub(delta),
            false => epoch.plateau + delta,
        };
        let count = match target.checked_sub(self.cwnd) {
            None | Some(0) => 100 * self.cwnd,
            Some(more) => self.cwnd / more,
        };
        match self.last_max {
            0 => count.min(MAX_FIRST_COUNT),
            _ => count,
        }
    }

    /// Updates the number of segments per increment.
    fn update(&mut self, now: u64, acked: u64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(now));
        epoch.acked += acked;
        let (window, at) = self.updated;
        if window != self.cwnd || now - at > UPDATE || self.epoch.is_none() {
            self.updated = (self.cwnd, now);
            self.count = self.cubic_count(now, &epoch);
            // The Reno estimate of Linux grows by 8/15 of a segment per round.
            let round = self.cwnd * 15 / 8;
            epoch.reno += epoch.acked / round;
            epoch.acked %= round;
            if epoch.reno > self.cwnd {
                self.count = self.count.min(self.cwnd / (epoch.reno - self.cwnd));
            }
            self.count = self.count.max(2);
        }
        self.epoch = Some(epoch);
    }

    /// Sets `last_max` for a reduction, with fast convergence. Returns the new threshold.
    fn reduce(&mut self) -> u64 {
        let cwnd = self.cwnd;
        self.last_max = match cwnd < self.last_max {
            true => cwnd * (SCALE + BETA) / (2 * SCALE),
            false => cwnd,
        };
        (self.epoch, self.credit) = (None, 0);
        (cwnd * BETA / SCALE).max(2)
    }

    /// True if slow start must end: a train of ACKs lasts half of the minimum RTT, or the RTT rises.
    fn ends_slow_start(round: &mut Round, now: u64, rtt: u64, least: u64) -> bool {
        if now - round.train_end <= ACK_DELTA {
            round.train_end = now;
            if now - round.start > (least + ACK_DELAY) / 2 {
                return true;
            }
        }
        let lowest = round.min_rtt.map_or(rtt, |lowest| lowest.min(rtt));
        round.min_rtt = Some(lowest);
        round.samples += 1;
        let rise = (least / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        round.samples > RTT_SAMPLES && lowest > least + rise
    }
}

impl CongestionControl for LinuxCubic {
    fn window(&self) -> f64 {
        self.cwnd as f64
    }

    fn threshold(&self) -> f64 {
        match self.ssthresh {
            u64::MAX => f64::MAX,
            threshold => threshold as f64,
        }
    }

    fn on_established(&mut self, initial_window: f64) {
        self.cwnd = initial_window as u64;
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.epoch = None;
        self.cwnd = self.cwnd.min(restart_window as u64);
    }

    fn on_ack(&mut self, mut acked: u64, now: u64, _srtt: u64) {
        if self.cwnd < self.ssthresh {
            let grown = (self.cwnd + acked.min(self.counted)).min(self.ssthresh);
            acked -= acked.min(grown - self.cwnd);
            self.cwnd = grown;
            if grown < self.ssthresh || acked == 0 {
                return;
            }
        }
        self.update(now, acked);
        if self.credit >= self.count {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        self.cwnd += self.credit / self.count;
        self.credit %= self.count;
    }

    fn on_sample(&mut self, sample: &AckSample) {
        let in_first_second = |epoch: Epoch| sample.now - epoch.start < SECOND;
        let is_data = sample.ack > 1;
        let Some(rtt) = sample
            .rtt
            .filter(|_| is_data && !self.epoch.is_some_and(in_first_second))
        else {
            return;
        };
        let least = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(least);
        let Some(round) = self.round.as_mut().filter(|_| self.cwnd < self.ssthresh) else {
            return;
        };
        if sample.ack > round.end {
            *round = Round {
                end: sample.end,
                start: sample.now,
                train_end: sample.now,
                ..Round::default()
            };
        }
        if self.cwnd >= LOW_WINDOW && Self::ends_slow_start(round, sample.now, rtt, least) {
            self.round = None;
            self.ssthresh = self.cwnd;
        }
    }

    fn on_fast_retransmit(&mut self, _flight: f64) {
        self.ssthresh = self.reduce();
        self.cwnd = self.ssthresh;
    }

    /// Reduces the threshold and resets all other state.
    fn on_timeout(&mut self, flight: f64) {
        // A repeated timeout with one segment in flight leaves the threshold unchanged (RFC 5681, section 3.1).
        let ssthresh = match flight > 1.0 {
            true => self.reduce(),
            false => self.ssthresh,
        };
        *self = Self {
            ssthresh,
            ..Self::new(self.counted, self.hystart)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 100 * MS;

    fn sample(now: u64, number: u64, rtt: u64) -> AckSample {
        AckSample {
            now,
            ack: number,
            end: 100 * (number / 100 + 1),
            rtt: Some(rtt),
            ..AckSample::default()
        }
    }

    /// Returns a window of 100 segments after a reduction, with a minimum round-trip time of 100 ms.
    fn reduced() -> LinuxCubic {
        let mut cubic = LinuxCubic::new(u64::MAX, false);
        cubic.on_established(100.0);
        cubic.on_sample(&sample(0, 2, RTT));
        cubic.on_selective_loss(100.0);
        cubic
    }

    /// Returns the window after `rounds` round trips of `rtt`.
    fn after(cubic: &mut LinuxCubic, rounds: u64, rtt: u64) -> f64 {
        for round in 0..rounds {
            let acks = cubic.cwnd;
            for ack in 0..acks {
                cubic.on_ack(1, round * rtt + ack * rtt / acks, 10 * rtt);
            }
        }
        cubic.window()
    }

    #[test]
    fn the_window_follows_the_curve_a_minimum_round_trip_ahead_in_whole_segments() {
        // K = cbrt(30 / 0.4) = 4.217 s. Within a round trip, the window grows towards the target at its end.
        let curve = |t: f64| 0.4 * (t - 75f64.cbrt()).powi(3) + 100.0;
        for (rounds, rtt) in [(10, RTT), (60, RTT), (20, 3 * RTT)] {
            let window = after(&mut reduced(), rounds, rtt);
            let lag = (rtt - RTT) as f64 / 1e9;
            let due = curve(rounds as f64 * rtt as f64 / 1e9 - lag);
            assert!((window - due).abs() < 2.5, "{rounds}: {window} of {due}");
            assert_eq!(window.fract(), 0.0);
        }
    }

    #[test]
    fn the_window_grows_like_renos_if_that_is_larger() {
        // Growth from 7 by 8/15 of a segment a round trip.
        let mut cubic = LinuxCubic::new(u64::MAX, false);
        cubic.on_established(10.0);
        cubic.on_selective_loss(10.0);
        let window = after(&mut cubic, 12, RTT / 10);
        assert!((12.0..=14.0).contains(&window), "{window}");
    }

    #[test]
    fn a_second_reduction_before_the_plateau_lowers_the_plateau() {
        let mut cubic = reduced();
        cubic.on_selective_loss(70.0);
        assert_eq!((cubic.window(), cubic.last_max), (49.0, 59));
    }

    #[test]
    fn segments_counted_before_a_reduction_do_not_grow_the_window_after_it() {
        let mut cubic = LinuxCubic::new(u64::MAX, false);
        cubic.on_established(10.0);
        cubic.on_selective_loss(10.0);
        cubic.on_ack(6, 0, RTT);
        cubic.on_selective_loss(7.0);
        cubic.on_ack(1, 0, RTT);
        assert_eq!(cubic.window(), 4.0);
    }

    #[test]
    fn the_window_grows_by_a_twentieth_per_round_trip_before_the_first_loss() {
        let mut cubic = LinuxCubic::new(u64::MAX, false);
        cubic.on_established(100.0);
        cubic.ssthresh = 100;
        assert!(after(&mut cubic, 3, RTT) >= 114.0);
    }

    #[test]
    fn a_timeout_leaves_a_segment_and_seven_tenths_of_the_threshold() {
        let mut cubic = reduced();
        cubic.on_timeout(70.0);
        assert_eq!((cubic.window(), cubic.threshold()), (1.0, 49.0));
        cubic.on_timeout(1.0);
        assert_eq!((cubic.window(), cubic.threshold()), (1.0, 49.0));
    }

    #[test]
    fn slow_start_ends_at_the_ninth_sample_above_or_half_a_round_trip_of_close_acks() {
        let start = |spacing: u64, rtt: u64| {
            let mut linux = LinuxCubic::new(u64::MAX, true);
            linux.on_established(10.0);
            let mut ack = |number: u64, now: u64, rtt: u64| {
                linux.on_sample(&sample(now * MS, number, rtt * MS));
                linux.on_ack(1, 0, 0);
            };
            (2..50).for_each(|number| ack(number, 100, 100));
            (101..150).for_each(|number| ack(number, 200 + spacing * (number - 101), rtt));
            linux.threshold()
        };
        // The two rounds start with windows of 10 and 58. In the second round, samples count from the first one on.
        assert_eq!(start(3, 112), f64::MAX);
        assert_eq!(start(3, 113), 58.0 + 8.0);
        assert_eq!(start(1, 100), f64::MAX);
        assert_eq!(start(2, 100), 58.0 + 26.0);
    }
}
