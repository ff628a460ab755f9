//! Reno (RFC 5681), and the variant that counts bytes instead of ACKs (RFC 3465).

use crate::congestion::contract::inherit;
use crate::congestion::{CongestionControl, WindowBased};

/// Slow start, congestion avoidance, and the window of fast recovery (RFC 5681, section 3; RFC 6582, section 3.2). Uses
/// only basic IEEE 754 operations, so results are equal on all platforms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reno {
    /// Congestion window without inflation.
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Inflation of the window in fast recovery: segments known to have left the network.
    inflation: f64,
}

impl Reno {
    /// Creates the window of a new connection, which allows one SYN.
    pub(crate) const fn new() -> Self {
        Self {
            cwnd: 1.0,
            ssthresh: f64::MAX,
            inflation: 0.0,
        }
    }

    /// Sets the threshold to half of the flight in whole segments (RFC 5681, eq. 4).
    fn halve_ssthresh(&mut self, flight: f64) {
        self.ssthresh = ((flight / 2.0) as u64).max(2) as f64;
    }
}

impl CongestionControl for Reno {
    fn window(&self) -> f64 {
        self.cwnd + self.inflation
    }

    fn on_established(&mut self, initial_window: f64) {
        self.cwnd = initial_window;
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.cwnd = self.cwnd.min(restart_window);
    }

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

    /// Deflates the window by the acknowledged segments minus the retransmitted one. An excess over the inflation
    /// reduces `cwnd`, so that the end of recovery causes no burst (RFC 6582, section 3.2, step 3, as in ns-2).
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

impl WindowBased for Reno {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.cwnd = window;
        self.ssthresh = threshold;
    }
}

/// Appropriate byte counting (RFC 3465) with L = 2, on top of Reno's rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCounting {
    reno: Reno,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    counted: f64,
    /// True in slow start after a timeout, in which an ACK counts as one segment (section 2.3).
    after_timeout: bool,
}

impl ByteCounting {
    /// Creates the window of a new connection.
    pub(crate) const fn new() -> Self {
        Self {
            reno: Reno::new(),
            counted: 0.0,
            after_timeout: false,
        }
    }
}

impl CongestionControl for ByteCounting {
    inherit!(reno: window threshold on_established on_idle on_duplicate_ack on_partial_ack on_recovered);

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

    fn on_timeout(&mut self, flight: f64) {
        self.counted = 0.0;
        self.after_timeout = true;
        self.reno.on_timeout(flight);
    }
}

impl WindowBased for ByteCounting {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.counted = 0.0;
        self.reno.adjust(window, threshold);
    }
}
