//! Congestion control: the size of the window. The sender decides when to retransmit.

use crate::congestion::Connection;
use crate::senders::{AckSample, Lost};

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
