//! Interface of congestion controls, which set the window. The sender detects losses and retransmits.

/// A congestion window and its rules. Windows are in segments, times in ns.
///
/// The sender reports events, and reads [`window`](Self::window) before each segment. The sender itself detects losses
/// and retransmits: by RFC 8985 and RFC 9937 with SACK, otherwise by RFC 6582.
pub trait CongestionControl {
    /// Maximum number of segments in flight; at least one.
    fn window(&self) -> f64;
    /// Reports that the connection is established.
    fn on_established(&mut self, initial_window: f64);
    /// Reports that `acked` segments were acknowledged at `now`, outside fast recovery and while the window limited the
    /// sender. `srtt` is the smoothed round-trip time in ns. `acked` is 0 for a further ACK of the same segment; ACK
    /// regeneration with `R` above 1 sends such ACKs.
    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64);
    /// Reports the start of fast recovery by the third duplicate ACK, with `flight` segments in flight.
    fn on_fast_retransmit(&mut self, flight: f64);
    /// Reports that the retransmission timer expired, with `flight` segments in flight.
    fn on_timeout(&mut self, flight: f64);

    // Without SACK, the window grows in fast recovery by segments that have left the network (RFC 5681, section 3.2).

    /// Reports a further duplicate ACK in fast recovery, which shows that one more segment has left the network.
    fn on_duplicate_ack(&mut self) {}
    /// Reports that `acked` segments were acknowledged and that fast recovery continues.
    fn on_partial_ack(&mut self, _acked: u64) {}
    /// Reports the end of fast recovery; also called before a timeout.
    fn on_recovered(&mut self) {}
    /// Reports the start of a recovery with SACK, with `flight` segments in flight. The window needs no inflation,
    /// because the sender counts segments that have left the network.
    fn on_selective_loss(&mut self, flight: f64) {
        self.on_fast_retransmit(flight);
        self.on_recovered();
    }

    // Methods with default implementations, for congestion controls that need more information.

    /// Slow-start threshold in segments, also PRR's target. Below half of it, pacing sends 2 windows per RTT.
    fn threshold(&self) -> f64 {
        f64::MAX
    }
    /// Pacing rate in segments per second; `None` if the sender derives the rate from the window.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }
    /// True if the congestion control deliberately sends below the capacity. Delivery rates then do not show the
    /// capacity.
    fn limits_samples(&self) -> bool {
        false
    }
    /// Reports that the application paused for longer than the retransmission timeout (RFC 5681, section 4.1).
    fn on_idle(&mut self, _restart_window: f64) {}
    /// Reports the path sample of an ACK. Without SACK, this call precedes [`on_ack`](Self::on_ack); with SACK, it
    /// follows. Called only if deliveries are measured.
    fn on_sample(&mut self, _sample: &AckSample) {}
    /// Reports that a segment was declared lost. Called only if deliveries are measured.
    fn on_lost(&mut self, _now: u64, _lost: &Lost) {}
    /// Reports an ACK of `acked` segments up to `una`, of which `marked` were marked. With classic ECN, `marked` is 0
    /// or `acked`. `end` is the number after the highest segment sent. Called only with ECN.
    fn on_echo(&mut self, _acked: u64, _marked: u64, _una: u64, _end: u64) {}
    /// Responds to a mark with `flight` segments in flight, at most once per window. By default, a mark has the same
    /// effect as a loss (RFC 3168, section 6.1.2).
    fn on_mark(&mut self, flight: f64) {
        self.on_fast_retransmit(flight);
        self.on_recovered();
    }
}

/// Rules for loss recovery after three duplicate ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// The first new ACK ends fast recovery (RFC 5681, section 3.2).
    Reno,
    /// A partial ACK retransmits the next hole. An ACK of all data sent before the recovery ends it (RFC 6582).
    NewReno,
}

/// A segment that is considered lost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lost {
    /// Number of the segment; 0 is the SYN.
    pub number: u64,
    /// Segments in flight when this segment was sent, including this segment.
    pub in_flight: u64,
    /// Number of segments lost since this segment was sent, including this segment.
    pub lost: u64,
    /// Total number of segments delivered up to now.
    pub delivered: u64,
    /// True if the application limited the sender when this segment was sent.
    pub app_limited: bool,
}

/// Path sample of one ACK. Times are in ns, volumes in segments, rates in segments per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AckSample {
    /// Arrival time of the ACK.
    pub now: u64,
    /// Acknowledgement number.
    pub ack: u64,
    /// Number after the highest segment sent.
    pub end: u64,
    /// Round-trip time of a segment that was sent once; `None` if the ACK acknowledges no such segment.
    pub rtt: Option<u64>,
    /// Total number of delivered segments (`C.delivered`).
    pub total: u64,
    /// Segments that this ACK reports as delivered for the first time.
    pub newly: u64,
    /// Segments that this ACK shows to be lost; 0 without SACK.
    pub newly_lost: u64,
    /// `C.delivered` when the newest acknowledged segment was sent (`RS.prior_delivered`).
    pub prior: u64,
    /// Segments delivered since the newest acknowledged segment was sent.
    pub delivered: u64,
    /// Delivery rate since the newest acknowledged segment was sent; 0 if unreliable.
    pub rate: f64,
    /// Segments lost since the newest acknowledged segment was sent.
    pub lost: u64,
    /// Segments in flight when the newest acknowledged segment was sent.
    pub sent_in_flight: u64,
    /// True if the application limited the sender when the newest acknowledged segment was sent.
    pub app_limited: bool,
    /// Segments in flight now.
    pub in_flight: u64,
    /// True if the window was full at any time during the last round trip.
    pub window_limited: bool,
}

/// A congestion control whose window and slow-start threshold another congestion control may change.
pub(crate) trait WindowBased: CongestionControl + Copy {
    /// Sets the window and the slow-start threshold, in segments.
    fn adjust(&mut self, window: f64, threshold: f64);
}

/// Delegates the listed methods to the congestion control in this field.
macro_rules! inherit {
    ($inner:tt: $($method:ident)*) => { $(inherit!(@$method $inner);)* };
    (@window $inner:tt) => { inherit!(# $inner window() -> f64); };
    (@threshold $inner:tt) => { inherit!(# $inner threshold() -> f64); };
    (@pacing_rate $inner:tt) => { inherit!(# $inner pacing_rate() -> Option<f64>); };
    (@limits_samples $inner:tt) => { inherit!(# $inner limits_samples() -> bool); };
    (@on_established $inner:tt) => { inherit!(# $inner on_established(initial_window: f64)); };
    (@on_ack $inner:tt) => { inherit!(# $inner on_ack(acked: u64, now: u64, srtt: u64)); };
    (@on_idle $inner:tt) => { inherit!(# $inner on_idle(restart_window: f64)); };
    (@on_fast_retransmit $inner:tt) => { inherit!(# $inner on_fast_retransmit(flight: f64)); };
    (@on_selective_loss $inner:tt) => { inherit!(# $inner on_selective_loss(flight: f64)); };
    (@on_duplicate_ack $inner:tt) => { inherit!(# $inner on_duplicate_ack()); };
    (@on_partial_ack $inner:tt) => { inherit!(# $inner on_partial_ack(acked: u64)); };
    (@on_recovered $inner:tt) => { inherit!(# $inner on_recovered()); };
    (@on_timeout $inner:tt) => { inherit!(# $inner on_timeout(flight: f64)); };
    (@on_sample $inner:tt) => { inherit!(# $inner on_sample(sample: &AckSample)); };
    (@on_lost $inner:tt) => { inherit!(# $inner on_lost(now: u64, lost: &Lost)); };
    (@on_echo $inner:tt) => {
        inherit!(# $inner on_echo(acked: u64, marked: u64, una: u64, end: u64));
    };
    (@on_mark $inner:tt) => { inherit!(# $inner on_mark(flight: f64)); };
    (# $inner:tt $name:ident() -> $answer:ty) => {
        fn $name(&self) -> $answer {
            self.$inner.$name()
        }
    };
    (# $inner:tt $name:ident($($arg:ident: $type:ty),*)) => {
        fn $name(&mut self, $($arg: $type),*) {
            self.$inner.$name($($arg),*);
        }
    };
}
pub(crate) use inherit;
