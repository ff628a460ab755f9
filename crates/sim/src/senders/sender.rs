//! The sending end of a connection.

use crate::congestion::{CongestionControl, Recovery};
use crate::packets::{HostClock, Kind, Outbox, Segment};
use crate::senders::{RttEstimator, RttExtent, Sending};

/// Cause of the last reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No reduction, or its recovery is complete.
    Open,
    /// Fast recovery, not yet complete.
    FastRecovery,
    /// A timeout; the window limits how fast earlier segments are retransmitted.
    AfterTimeout,
}

/// A sender. Numbers count segments; number 0 is the SYN.
#[derive(Clone, Debug)]
pub(crate) struct Sender<C, E = ()> {
    pub(crate) congestion: C,
    pub(crate) extension: E,
    pub(super) rtt: RttEstimator,
    recovery: Recovery,
    pub(super) phase: Phase,
    /// Lowest unacknowledged segment.
    pub(super) una: u64,
    /// Next segment to send; without SACK, returns to `una` at a timeout.
    pub(super) next: u64,
    /// Number after the highest segment ever sent.
    pub(super) end: u64,
    /// Value of `end` at the last loss; no fast retransmit until this number is acknowledged (RFC 6582, 3.2, 2).
    pub(super) recover: u64,
    pub(super) duplicate_acks: u32,
    /// True after the first partial ACK of this recovery; only the first one restarts the timer (RFC 6582, "impatient"
    /// variant).
    partial_ack_seen: bool,
    /// Segment whose round trip is measured, and its send time; never a retransmission (Karn).
    pub(super) timed: Option<(u64, u64)>,
    /// Time at which the timer expires, in ns; `u64::MAX` if it is not set.
    pub(super) deadline: u64,
    pub(super) receive_window: f64,
    /// Number after the last segment that the application has written; unlimited if the application writes all at once.
    pub(super) limit: u64,
    /// Time in ns since which no segment is unacknowledged.
    pub(super) idle_since: u64,
    pub(super) initial_window: f64,
    counts: SenderCounts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounts {
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    /// Range of the measured round-trip times.
    pub(crate) rtt: RttExtent,
}

/// Number of duplicate ACKs that indicate a loss.
pub(crate) const THRESHOLD: u32 = 3;
/// Maximum number of new segments per ACK in NewReno's recovery, because a partial ACK may open the window widely.
const RECOVERY_BURST: u64 = 2;

impl<C: CongestionControl, E: Sending> Sender<C, E> {
    /// Creates a sender; `receive_window` is in segments, at least 1.
    pub(crate) fn new(
        congestion: C,
        rtt: RttEstimator,
        recovery: Recovery,
        receive_window: u64,
        extension: E,
    ) -> Self {
        Self {
            congestion,
            extension,
            rtt,
            recovery,
            phase: Phase::Open,
            una: 0,
            next: 0,
            end: 0,
            recover: 0,
            duplicate_acks: 0,
            partial_ack_seen: false,
            timed: None,
            deadline: u64::MAX,
            receive_window: receive_window.max(1) as f64,
            limit: u64::MAX,
            idle_since: 0,
            initial_window: 2.0,
            counts: SenderCounts::default(),
        }
    }

    /// Sets the initial window in segments; RFC 6928 allows 10.
    pub(crate) fn set_initial_window(&mut self, segments: f64) {
        self.initial_window = segments;
    }

    pub(crate) fn set_clock(&mut self, clock: HostClock) {
        self.extension.set_clock(clock);
    }

    /// Limits the application's data to `segments`; [`write`](Self::write) adds more.
    pub(crate) fn limit_to(&mut self, segments: u64) {
        self.limit = segments.saturating_add(1);
    }

    /// Closes the connection: unsent data is discarded.
    pub(crate) fn close(&mut self) {
        self.limit = self.limit.min(self.end.max(1));
    }

    /// Adds `segments` of data from the application.
    pub(crate) fn write(&mut self, now: u64, segments: u64, out: &mut impl Outbox<E::Options>) {
        let idle = self.una == self.end && self.una > 0;
        self.note_application_limit();
        if idle && now.saturating_sub(self.idle_since) > self.rtt.timeout() {
            self.congestion.on_idle(self.initial_window);
        }
        self.limit = self.limit.saturating_add(segments);
        if self.una > 0 && self.duplicate_acks == 0 {
            self.send_allowed(now, out);
        }
    }

    /// True if the SYN was sent.
    pub(crate) fn is_connected(&self) -> bool {
        self.end > 0
    }

    /// True if all written data is acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.una >= self.limit
    }

    /// Time in ns at which all written data was acknowledged; `None` before.
    pub(crate) fn done_at(&self) -> Option<u64> {
        self.is_done().then_some(self.idle_since)
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    pub(crate) fn smoothed_rtt(&self) -> u64 {
        self.rtt.smoothed()
    }

    pub(crate) fn counts(&self) -> SenderCounts {
        SenderCounts {
            rtt: self.rtt.extent(),
            ..self.counts
        }
    }

    pub(crate) fn clear_counts(&mut self) {
        self.counts = SenderCounts::default();
        self.rtt.clear_extent();
    }

    pub(crate) fn connect(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        self.send_window(now, u64::MAX, out);
    }

    /// Processes an ACK; `segment` has its number and options.
    #[inline(always)]
    pub(crate) fn on_ack(
        &mut self,
        now: u64,
        segment: Segment<E::Options>,
        out: &mut impl Outbox<E::Options>,
    ) {
        self.extension.hears(&segment.options);
        if self.extension.selective().is_some() {
            self.on_selective_ack(now, &segment, out);
            return;
        }
        let ack = segment.number();
        let una = self.una.max(ack);
        self.take_feedback(now, &segment, (self.una, una), una - self.una);
        if ack > self.una {
            let partial = self.phase == Phase::FastRecovery
                && self.recovery == Recovery::NewReno
                && ack < self.recover;
            if partial {
                self.on_partial_ack(now, ack, &segment.options, out);
            } else {
                self.on_new_ack(now, ack, &segment.options);
            }
        } else if ack == self.una && ack < self.end {
            self.on_duplicate_ack(now, out);
        }
        self.update_pace();
        if self.duplicate_acks == 0 {
            self.send_window(now, u64::MAX, out);
        } else if self.duplicate_acks >= THRESHOLD {
            let burst = match self.recovery {
                Recovery::Reno => u64::MAX,
                Recovery::NewReno => RECOVERY_BURST,
            };
            self.send_window(now, burst, out);
        }
    }

    /// Sends a segment that the pacer held.
    #[cold]
    fn on_pace(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        if let Some(pacer) = self.extension.pacer() {
            pacer.wake();
        }
        if self.extension.selective().is_some() {
            self.send_selective(now, false, out);
        } else if self.duplicate_acks == 0 || self.duplicate_acks >= THRESHOLD {
            self.send_window(now, 1, out);
        }
    }

    /// Processes an ACK of all segments below `number` and of a part of segment `number`. Such an ACK counts as an ACK
    /// of new data: only ACK regeneration with `R` above 1 sends it, to open the window earlier.
    #[cold]
    pub(crate) fn on_ack_within(
        &mut self,
        now: u64,
        segment: Segment<E::Options>,
        out: &mut impl Outbox<E::Options>,
    ) {
        if segment.number() > self.una {
            self.on_ack(now, segment, out);
        } else if segment.number() == self.una && self.duplicate_acks == 0 {
            self.congestion.on_ack(0, now, self.rtt.smoothed());
            self.send_allowed(now, out);
        }
    }

    /// Sends as many segments as the window permits, outside recovery.
    fn send_allowed(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        if self.extension.selective().is_some() {
            self.send_selective(now, false, out);
        } else {
            self.send_window(now, u64::MAX, out);
        }
    }

    /// True if the window, not the application, limits the sender.
    #[inline]
    pub(super) fn uses_window(&self) -> bool {
        self.next < self.limit || (self.next - self.una) as f64 + 1.0 > self.effective_window()
    }

    fn on_new_ack(&mut self, now: u64, ack: u64, options: &E::Options) {
        if self.phase == Phase::FastRecovery {
            self.congestion.on_recovered();
            self.phase = Phase::Open;
        }
        self.partial_ack_seen = false;
        self.duplicate_acks = 0;
        let established = self.una == 0;
        let window_used = self.uses_window();
        let acked = ack - self.una;
        self.una = ack;
        self.next = self.next.max(ack);
        self.sample_rtt(now, ack, options);
        if ack < self.end {
            self.restart_timer(now);
        } else {
            self.deadline = u64::MAX;
            self.idle_since = now;
        }
        if established {
            self.congestion.on_established(self.initial_window);
        } else if window_used {
            self.congestion.on_ack(acked, now, self.rtt.smoothed());
        }
    }

    #[inline]
    fn sample_rtt(&mut self, now: u64, ack: u64, options: &E::Options) {
        if let Some(sent) = self.extension.sent_at(ack, self.end, options) {
            self.rtt.sample(sent, now);
        }
        if let Some((number, sent)) = self.timed
            && ack > number
        {
            self.rtt.sample(sent, now);
            self.timed = None;
        }
    }

    fn on_partial_ack(
        &mut self,
        now: u64,
        ack: u64,
        options: &E::Options,
        out: &mut impl Outbox<E::Options>,
    ) {
        if !self.partial_ack_seen {
            self.partial_ack_seen = true;
            self.restart_timer(now);
        }
        self.congestion.on_partial_ack(ack - self.una);
        self.una = ack;
        self.next = self.next.max(ack);
        if self.timed.is_some_and(|(number, _)| ack > number) {
            self.timed = None;
            self.rtt.end_backoff();
        }
        if let Some(sent) = self.extension.sent_at(ack, self.end, options) {
            self.rtt.sample(sent, now);
        }
        self.send(now, self.una, out);
    }

    fn on_duplicate_ack(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        self.duplicate_acks += 1;
        if self.duplicate_acks > THRESHOLD {
            if self.phase == Phase::FastRecovery {
                self.congestion.on_duplicate_ack();
            }
        } else if self.duplicate_acks == THRESHOLD {
            if self.una > self.recover {
                self.fast_retransmit(now, out);
            }
        } else {
            self.limited_transmit(now, out);
        }
    }

    /// Performs a fast retransmit (RFC 5681, section 3.2, steps 2 and 3).
    fn fast_retransmit(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        self.recover = self.end;
        self.phase = Phase::FastRecovery;
        let flight = self.flight();
        self.congestion.on_fast_retransmit(flight);
        self.restart_timer(now);
        self.timed = None;
        self.send(now, self.una, out);
    }

    /// Sends a new segment at each of the first two duplicate ACKs (RFC 3042).
    fn limited_transmit(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        let beyond = self.congestion.window() + f64::from(self.duplicate_acks);
        let room = self.next - self.una < beyond.min(self.receive_window) as u64;
        if room && self.next < self.limit {
            self.send_next(now, out);
        }
    }

    /// Called when the pacer permits a segment, or when a timer expires: RACK-TLP's, or the retransmission timer (RFC
    /// 6298, 5.4 to 5.6; RFC 5681, section 3.1).
    pub(crate) fn on_timeout(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        if now < self.deadline && self.extension.wakes() <= now {
            return self.on_pace(now, out);
        }
        if self.on_repair_timer(now, out) {
            return;
        }
        if self.una == 0 {
            // The SYN was lost (RFC 5681, section 3.1).
            self.initial_window = 1.0;
        }
        self.counts.timeouts += 1;
        self.congestion.on_recovered();
        let flight = self.flight();
        self.congestion.on_timeout(flight);
        self.phase = Phase::AfterTimeout;
        self.duplicate_acks = 0;
        self.recover = self.end;
        self.rtt.back_off();
        self.restart_timer(now);
        self.timed = None;
        self.next = self.una;
        if let Some(deliveries) = self.extension.deliveries() {
            deliveries.on_timeout(now);
        }
        if self.extension.selective().is_some() {
            return self.send_after_timeout(now, out);
        }
        self.send_window(now, u64::MAX, out);
    }

    /// Time of the next call of [`on_timeout`](Self::on_timeout) in ns. Any other call may change it.
    #[inline]
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.min(self.extension.wakes())
    }

    /// Congestion window, or the receiver's window if that is smaller.
    #[inline]
    fn effective_window(&self) -> f64 {
        let window = self.congestion.window();
        // Avoids `f64::min`, which checks for NaN.
        if window < self.receive_window {
            window
        } else {
            self.receive_window
        }
    }

    /// RFC 5681's FlightSize; the window counts as used if unsent data remains.
    pub(super) fn flight(&self) -> f64 {
        let window = self.effective_window();
        if self.end < self.limit {
            window
        } else {
            window.min((self.end - self.una) as f64)
        }
    }

    /// Sends as many segments as the window permits, at most `burst`.
    #[inline]
    fn send_window(&mut self, now: u64, burst: u64, out: &mut impl Outbox<E::Options>) {
        // Conversion to 32 bits takes half as many instructions as conversion to 64 bits.
        let edge = self.una + u64::from(self.effective_window() as u32);
        let edge = edge.min(self.limit).min(self.next.saturating_add(burst));
        while self.next < edge && self.extension.may_send(now) {
            self.send_next(now, out);
        }
    }

    #[inline]
    pub(super) fn send_next(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        let number = self.next;
        self.next += 1;
        self.send(now, number, out);
    }

    #[inline]
    pub(super) fn send(&mut self, now: u64, number: u64, out: &mut impl Outbox<E::Options>) {
        let kind = if number == 0 { Kind::Syn } else { Kind::Data };
        let options = self.extension.options(now, number, number < self.end);
        out.send(Segment::with(kind, number, options));
        self.extension.sent(now, number, self.congestion.window());
        if number >= self.end {
            self.end = number + 1;
            if self.timed.is_none() && !self.extension.has_timestamps() {
                self.timed = Some((number, now));
            }
        } else {
            self.counts.retransmissions += 1;
        }
        if self.deadline == u64::MAX {
            self.restart_timer(now);
        }
    }
}
