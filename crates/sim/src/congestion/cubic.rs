//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction.

use crate::congestion::contract::inherit;
use crate::congestion::{CongestionControl, Reno, WindowBased};

/// `C` in segments per second cubed (RFC 9438, section 5).
const C: f64 = 0.4;
/// Factor by which the window is reduced, beta_cubic (section 4.6).
const BETA: f64 = 0.7;
/// Growth per round of the Reno-friendly estimate while it is below the window before the reduction (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// State of CUBIC; windows in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubic {
    /// The window, the threshold, and the inflation in fast recovery.
    reno: Reno,
    /// Maximum number of segments credited per ACK in slow start.
    counted: u64,
    /// `W_max`; 0 after a timeout.
    w_max: f64,
    /// Window before the last reduction, `cwnd_prior`.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// The current stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start time in ns.
    start: u64,
    /// `K` in seconds.
    k: f64,
    w_est: f64,
}

impl Cubic {
    /// Creates the window of a new connection. In slow start, an ACK is credited with at most `counted` segments: 1, or
    /// 2 (RFC 3465).
    pub(crate) const fn new(counted: u64) -> Self {
        Self {
            reno: Reno::new(),
            counted,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
        }
    }

    /// Returns `W_cubic(t)` (eq. 1); `t` is in seconds from the start of the epoch.
    fn curve(&self, epoch: Epoch, t: f64) -> f64 {
        let from_plateau = t - epoch.k;
        C * from_plateau * from_plateau * from_plateau + self.w_max
    }

    /// Starts an epoch with `K` from eq. 2. `K` is 0 unless the window is below `W_max`.
    fn begin(&mut self, now: u64) -> Epoch {
        let cwnd = self.reno.cwnd;
        let k = if cwnd < self.w_max {
            libm::cbrt((self.w_max - cwnd) / C)
        } else {
            self.w_max = cwnd;
            0.0
        };
        Epoch {
            start: now,
            k,
            w_est: cwnd,
        }
    }
}

impl CongestionControl for Cubic {
    inherit!(reno: window threshold on_established on_duplicate_ack on_partial_ack on_recovered);

    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64) {
        let cwnd = self.reno.cwnd;
        if cwnd < self.reno.ssthresh {
            let grown = cwnd + acked.min(self.counted) as f64;
            self.reno.cwnd = grown.min(self.reno.ssthresh.max(cwnd + 1.0));
            return;
        }
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now),
        };
        // Eq. 4 uses segments, not ACKs. Linux and ns-3 use segments too in the concave region.
        let alpha = if epoch.w_est >= self.cwnd_prior {
            1.0
        } else {
            ALPHA
        };
        epoch.w_est += alpha * acked as f64 / cwnd;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let t = seconds(now - epoch.start);
        if self.curve(epoch, t) < epoch.w_est {
            self.reno.cwnd = cwnd.max(epoch.w_est);
        } else {
            // Sections 4.2, 4.4 and 4.5.
            let target = self.curve(epoch, t + seconds(srtt)).clamp(cwnd, 1.5 * cwnd);
            self.reno.cwnd += (target - cwnd) / cwnd * acked as f64;
        }
        self.epoch = Some(epoch);
    }

    /// Discards the epoch, since idle time does not count (section 5.8).
    fn on_idle(&mut self, restart_window: f64) {
        self.epoch = None;
        self.reno.on_idle(restart_window);
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        let cwnd = self.reno.cwnd;
        self.cwnd_prior = cwnd;
        // Fast convergence (section 4.7).
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.epoch = None;
        self.reno.on_fast_retransmit(flight);
        self.reno.ssthresh = (flight * BETA).max(2.0);
        self.reno.cwnd = self.reno.ssthresh;
    }

    /// Section 4.8: like Reno, except for the threshold. The next epoch starts at the plateau of the curve.
    fn on_timeout(&mut self, flight: f64) {
        self.cwnd_prior = self.reno.cwnd;
        // A repeated timeout with one segment in flight leaves the threshold unchanged (RFC 5681, section 3.1). Other
        // timeouts have more segments in flight.
        let threshold = match flight > 1.0 {
            true => (flight * BETA).max(2.0),
            false => self.reno.ssthresh,
        };
        self.reno.on_timeout(flight);
        self.reno.ssthresh = threshold;
        self.w_max = 0.0;
        self.epoch = None;
    }
}

impl WindowBased for Cubic {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.reno.adjust(window, threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const RTT: u64 = SECOND / 10;

    #[test]
    fn an_ack_of_ten_segments_grows_the_window_as_ten_acks_do() {
        // RFC 9438, eq. 4 uses acknowledged segments, not ACKs.
        let after = |each: u64| {
            let mut cubic = reduced();
            for round in 0..20 {
                for _ in 0..70 / each {
                    cubic.on_ack(each, round * RTT, RTT);
                }
            }
            cubic.window()
        };
        let (one, ten) = (after(1), after(10));
        assert!(one > 80.0 && (ten / one - 1.0).abs() < 0.02, "{one} {ten}");
    }

    /// Returns a window of 100 segments after a reduction, in congestion avoidance.
    fn reduced() -> Cubic {
        let mut cubic = Cubic::new(1);
        cubic.on_established(100.0);
        cubic.on_fast_retransmit(100.0);
        cubic.on_recovered();
        cubic
    }

    /// Returns the window after each round trip.
    fn rounds(cubic: &mut Cubic, count: u64) -> Vec<f64> {
        let round = |n: u64| {
            let acks = cubic.window() as u64;
            for ack in 0..acks {
                cubic.on_ack(1, n * RTT + ack * RTT / acks, RTT);
            }
            cubic.window()
        };
        (0..count).map(round).collect()
    }

    #[test]
    fn a_segment_that_times_out_twice_lowers_the_threshold_once() {
        let mut cubic = reduced();
        cubic.on_timeout(70.0);
        cubic.on_timeout(1.0);
        assert_eq!((cubic.window(), cubic.reno.ssthresh), (1.0, 49.0));
    }

    #[test]
    fn a_reduction_leaves_seven_tenths() {
        assert_eq!(reduced().window(), 70.0);
    }

    #[test]
    fn the_window_follows_the_cubic_curve_to_its_plateau_and_beyond() {
        // RFC 9438: W(t) = 0.4 (t - K)^3 + 100, K = cbrt(30 / 0.4) = 4.217 s. Reno's estimate grows by 0.53 segments a
        // round, 5.3 a second. It is below W(t) in the first two seconds and at the end.
        let mut cubic = reduced();
        let windows = rounds(&mut cubic, 100);
        let curve = |t: f64| 0.4 * (t - 75.0f64.cbrt()).powi(3) + 100.0;
        for round in [5u64, 10, 85, 99] {
            let t = (round + 1) as f64 / 10.0;
            let window = windows[round as usize];
            assert!(
                (window - curve(t)).abs() < 3.0,
                "{t} s: {window} of {}",
                curve(t)
            );
        }
    }

    #[test]
    fn it_is_never_slower_than_reno_would_be() {
        // W_est grows by 0.529 segments a round from 7, and by 1 a round from 10.
        let mut cubic = Cubic::new(1);
        cubic.on_established(10.0);
        cubic.on_fast_retransmit(10.0);
        cubic.on_recovered();
        let windows = rounds(&mut cubic, 12);
        let reno = 10.0 + (12.0 - 3.0 / ALPHA);
        // A round has one ACK per whole segment of the window, so it has at most a tenth fewer ACKs than the window.
        assert!(
            windows[11] <= reno && windows[11] - 7.0 >= 0.88 * (reno - 7.0),
            "{windows:?}"
        );
    }

    #[test]
    fn a_flow_that_gives_way_twice_gives_more() {
        let mut cubic = reduced();
        cubic.on_fast_retransmit(70.0);
        assert!((cubic.w_max - 70.0 * 0.85).abs() < 1e-12);
    }

    #[test]
    fn the_window_grows_by_half_at_most_in_a_round() {
        let mut cubic = reduced();
        cubic.on_ack(1, 0, RTT);
        // During a minute without ACKs, the curve rises far above the window.
        let before = cubic.window();
        for _ in 0..before as u64 {
            cubic.on_ack(1, 60 * SECOND, RTT);
        }
        assert!(cubic.window() <= before * 1.66, "{}", cubic.window());
    }
}
