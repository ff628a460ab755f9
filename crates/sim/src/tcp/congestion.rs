//! Congestion control: the size of the window. The sender decides when to retransmit.

use super::delivery::{AckSample, Lost};
use crate::congestion::Connection;

/// A congestion window and the rules that move it. Windows are in segments, times in ns.
///
/// The sender calls what happened, and reads [`window`](Self::window) before each segment that it sends.
/// It finds losses and sends again by itself: with SACK by RFC 6675, without by RFC 6582.
pub trait CongestionControl {
    /// Segments that may be in flight; at least one.
    fn window(&self) -> f64;
    /// The connection is established.
    fn on_established(&mut self, initial_window: f64);
    /// `acked` segments were acknowledged at `now` outside fast recovery, by a sender that uses its window;
    /// `srtt` is the smoothed round-trip time. None if an ACK is split (AR's factor `R`).
    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64);
    /// Fast recovery begins with the third duplicate ACK; `flight` segments are in flight.
    fn on_fast_retransmit(&mut self, flight: f64);
    /// The retransmission timer expired with `flight` segments in flight.
    fn on_timeout(&mut self, flight: f64);

    // Without SACK, the window counts what has left the network in fast recovery (RFC 5681, section 3.2).

    /// A further duplicate ACK in fast recovery: one more segment has left the network.
    fn on_duplicate_ack(&mut self) {}
    /// `acked` segments were acknowledged, but fast recovery goes on.
    fn on_partial_ack(&mut self, _acked: u64) {}
    /// Fast recovery is over; also before a timeout.
    fn on_recovered(&mut self) {}
    /// A recovery by SACK begins with `flight` segments in flight: the sender knows what has left the
    /// network, so that the window is not inflated for it.
    fn on_selective_loss(&mut self, flight: f64) {
        self.on_fast_retransmit(flight);
        self.on_recovered();
    }

    // Of those that need to know more. Others keep these.

    /// The slow-start threshold: below it, pacing (if asked for) leaves the window room to double.
    fn threshold(&self) -> f64 {
        f64::MAX
    }
    /// Segments per second, if it sets a pacing rate of its own.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }
    /// Whether it sends less than the path might carry, so that delivery rates say nothing.
    fn limits_samples(&self) -> bool {
        false
    }
    /// The application paused for longer than the retransmission timeout (RFC 5681, section 4.1).
    fn on_idle(&mut self, _restart_window: f64) {}
    /// What an ACK says of the path; before [`on_ack`](Self::on_ack) without SACK, and after with it. Only
    /// where deliveries are measured.
    fn on_sample(&mut self, _sample: &AckSample) {}
    /// A segment is judged lost. Only where deliveries are measured.
    fn on_lost(&mut self, _now: u64, _lost: &Lost) {}
    /// An ACK of `acked` segments has come, of all below `una` now, with ECE if `marked`; all below
    /// `end` was sent. Only with ECN.
    fn on_echo(&mut self, _acked: u64, _marked: bool, _una: u64, _end: u64) {}
    /// A mark must be answered, at most once in a window, with `flight` segments in flight: as a loss
    /// is (RFC 3168, section 6.1.2).
    fn on_mark(&mut self, flight: f64) {
        self.on_fast_retransmit(flight);
        self.on_recovered();
    }
}

/// A window with a slow-start threshold that another rule may move.
pub(crate) trait WindowBased: CongestionControl + Copy {
    /// Sets both.
    fn adjust(&mut self, window: f64, threshold: f64);
}

/// What the connections of a run get theirs from.
pub(crate) trait Prototype: CongestionControl {
    /// A new connection's.
    fn of_connection(&self, connection: &Connection) -> Self;
}

/// Slow start, congestion avoidance and the window of fast recovery (RFC 5681, section 3; RFC 6582,
/// section 3.2). Basic IEEE 754 operations only, so the same on every platform.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reno {
    /// The congestion window, without inflation.
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// What fast recovery adds to the window: segments known to have left the network.
    inflation: f64,
}

impl Reno {
    /// The window of a connection that has sent nothing: one SYN may go.
    pub(crate) const fn new() -> Self {
        Self {
            cwnd: 1.0,
            ssthresh: f64::MAX,
            inflation: 0.0,
        }
    }

    /// RFC 5681, eq. 4, in whole segments.
    fn halve_ssthresh(&mut self, flight: f64) {
        self.ssthresh = ((flight / 2.0) as u64).max(2) as f64;
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn window(&self) -> f64 {
        self.cwnd + self.inflation
    }

    fn on_established(&mut self, initial_window: f64) {
        self.cwnd = initial_window;
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.cwnd = self.cwnd.min(restart_window);
    }

    #[inline]
    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {
        if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.halve_ssthresh(flight);
        self.cwnd = (flight / 2.0).max(1.0);
        self.inflation = 3.0;
    }

    fn on_duplicate_ack(&mut self) {
        self.inflation += 1.0;
    }

    /// Deflates the window by what was acknowledged, less the segment that is retransmitted. What
    /// exceeds the inflation comes off the window itself, so that the end of recovery releases no
    /// burst (RFC 6582, section 3.2, step 3, and ns-2's reading of it).
    fn on_partial_ack(&mut self, acked: u64) {
        let acked = acked as f64;
        if self.inflation > acked {
            self.inflation -= acked - 1.0;
        } else {
            self.cwnd = (self.cwnd - (acked - self.inflation)).max(1.0);
            self.inflation = 1.0;
        }
    }

    fn on_recovered(&mut self) {
        self.inflation = 0.0;
    }

    fn on_timeout(&mut self, flight: f64) {
        self.halve_ssthresh(flight);
        self.cwnd = 1.0;
        self.inflation = 0.0;
    }

    fn threshold(&self) -> f64 {
        self.ssthresh
    }
}

impl Prototype for Reno {
    fn of_connection(&self, _connection: &Connection) -> Self {
        *self
    }
}

impl WindowBased for Reno {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.cwnd = window;
        self.ssthresh = threshold;
    }
}

/// Appropriate byte counting (RFC 3465) over Reno's rules, with L = 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCounting {
    reno: Reno,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    counted: f64,
    /// Slow start after a timeout counts one segment per ACK (section 2.3).
    after_timeout: bool,
}

impl ByteCounting {
    /// The window of a connection that has sent nothing.
    pub(crate) const fn new() -> Self {
        Self {
            reno: Reno::new(),
            counted: 0.0,
            after_timeout: false,
        }
    }
}

impl CongestionControl for ByteCounting {
    fn window(&self) -> f64 {
        self.reno.window()
    }

    fn on_established(&mut self, initial_window: f64) {
        self.reno.on_established(initial_window);
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.reno.on_idle(restart_window);
    }

    fn on_ack(&mut self, acked: u64, _now: u64, _srtt: u64) {
        let reno = &mut self.reno;
        if reno.cwnd < reno.ssthresh {
            let limit = if self.after_timeout { 1 } else { 2 };
            reno.cwnd += acked.min(limit) as f64;
        } else {
            self.after_timeout = false;
            self.counted += acked as f64;
            if self.counted >= reno.cwnd {
                self.counted -= reno.cwnd;
                reno.cwnd += 1.0;
            }
        }
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.counted = 0.0;
        self.reno.on_fast_retransmit(flight);
    }

    fn on_duplicate_ack(&mut self) {
        self.reno.on_duplicate_ack();
    }

    fn on_partial_ack(&mut self, acked: u64) {
        self.reno.on_partial_ack(acked);
    }

    fn on_recovered(&mut self) {
        self.reno.on_recovered();
    }

    fn on_timeout(&mut self, flight: f64) {
        self.counted = 0.0;
        self.after_timeout = true;
        self.reno.on_timeout(flight);
    }

    fn threshold(&self) -> f64 {
        self.reno.threshold()
    }
}

impl WindowBased for ByteCounting {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.counted = 0.0;
        self.reno.adjust(window, threshold);
    }
}
