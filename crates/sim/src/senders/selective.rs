//! Senders with SACK: recovery by RACK-TLP (RFC 8985) and PRR (RFC 9937).

use crate::congestion::CongestionControl;
use crate::packets::{Options, Outbox, Segment};
use crate::senders::prr::Prr;
use crate::senders::{Phase, Sender, Sending, rate_of_window};

/// State of loss recovery with SACK.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repair {
    timer: Timer,
    probe: Option<Probe>,
    /// PRR of the current recovery; `None` if there is no recovery or it does not use PRR.
    prr: Option<Prr>,
    /// True if recoveries use PRR. Congestion controls with their own pacing rate have their own rules.
    reduces_in_proportion: bool,
}

impl Repair {
    /// The state of a new connection, with PRR or without.
    pub(crate) fn new(reduces_in_proportion: bool) -> Self {
        Self {
            reduces_in_proportion,
            ..Self::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Timer {
    #[default]
    Retransmission,
    /// Tail loss probe: the last segments may be lost.
    Probe,
    /// End of the reordering window; segments then count as lost.
    Reordering,
}

/// A tail loss probe that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Number after the highest segment sent when the probe was sent (`TLP.end_seq`).
    end: u64,
    /// True if the probe was a retransmission (`TLP.is_retrans`).
    again: bool,
}

/// Maximum delay in ns of the ACK of a single segment (`TLP.max_ack_delay`).
const MAX_ACK_DELAY: u64 = 200_000_000;
/// Probe timeout in ns before the first round-trip time is known.
const FIRST_PROBE: u64 = 1_000_000_000;

impl<C: CongestionControl, E: Sending> Sender<C, E> {
    /// Processes an acknowledgement.
    pub(super) fn on_selective_ack(
        &mut self,
        now: u64,
        segment: &Segment<E::Options>,
        out: &mut impl Outbox<E::Options>,
    ) {
        let (before, ack) = (self.una, segment.number());
        let una = before.max(ack);
        let recovering = self.phase != Phase::Open && una < self.recover;
        let congestion = &mut self.congestion;
        let Some(deliveries) = self.extension.selective() else {
            return;
        };
        let flight = deliveries.in_flight();
        let blocks = segment.options.on_wire().map_or(&[][..], |o| o.blocks());
        let sample = deliveries.on_selective_ack(now, ack, blocks, recovering, |lost| {
            congestion.on_lost(now, &lost);
        });
        let (in_flight, lost_again) = (sample.in_flight, deliveries.lost_again());
        // The lowest segment was retransmitted after the SACKed one was sent, so its ACK may still be on the way.
        let waits = deliveries.oldest() > sample.rtt.map(|rtt| now - rtt);
        if let Some(rtt) = sample.rtt {
            self.rtt.sample_each(rtt, una, self.end);
            if ack == before && waits {
                self.restart_timer(now);
            }
        }
        self.take_probe_answer(ack, before, blocks);
        if ack > before {
            self.advance(now, ack, sample.newly);
        }
        self.take_echo(segment, (before, una), sample.newly);
        self.take_sample(&sample);
        if sample.newly_lost > 0 && self.starts_recovery(lost_again) {
            self.begin_recovery(now, (flight, in_flight), out);
        }
        let threshold = self.congestion.window() as u64;
        if let Some(Repair { prr: Some(prr), .. }) = self.extension.repair() {
            let safe = una > before && sample.newly_lost == 0;
            prr.on_ack(sample.newly, safe, in_flight, threshold);
        }
        self.update_pace();
        self.send_selective(now, ack > before, out);
    }

    /// True if a loss starts a recovery. After a timeout, only the loss of a retransmission starts one, as in Linux.
    /// Without this recovery, the window would stay constant, and the same segments would be lost repeatedly.
    fn starts_recovery(&self, lost_again: bool) -> bool {
        self.phase == Phase::Open || self.phase == Phase::AfterTimeout && lost_again
    }

    /// Advances to the acknowledgement number `ack`; `delivered` segments are newly delivered.
    fn advance(&mut self, now: u64, ack: u64, delivered: u64) {
        let established = self.una == 0;
        let window_used = self.uses_window();
        self.una = ack;
        self.next = self.next.max(ack);
        if self.phase != Phase::Open && ack >= self.recover {
            self.phase = Phase::Open;
            self.congestion.on_recovered();
            self.clear_repair();
            if let Some(deliveries) = self.extension.selective() {
                deliveries.on_recovered();
            }
        }
        if ack < self.end {
            self.restart_timer(now);
        } else {
            self.idle_since = now;
        }
        if established {
            self.congestion.on_established(self.initial_window);
        } else if window_used && self.phase != Phase::FastRecovery {
            self.congestion.on_ack(delivered, now, self.rtt.smoothed());
        }
    }

    /// Ends PRR, and clears the probe.
    fn clear_repair(&mut self) {
        if let Some(repair) = self.extension.repair() {
            (repair.prr, repair.probe) = (None, None);
        }
    }

    /// Processes an answer to a probe (RFC 8985, section 7.4.2). `before` was the previous acknowledgement number.
    fn take_probe_answer(&mut self, ack: u64, before: u64, blocks: &[(u32, u32)]) {
        let Some(repair) = self.extension.repair() else {
            return;
        };
        let Some(probe) = repair.probe.filter(|probe| ack >= probe.end) else {
            return;
        };
        let repeats = super::delivery::repeated(ack, blocks) == Some(probe.end - 1);
        let both_arrived = repeats || ack == before && blocks.is_empty();
        if !probe.again || both_arrived || ack > probe.end {
            repair.probe = None;
        }
        // The probe has repaired a loss.
        if probe.again && !both_arrived && ack > probe.end && self.phase == Phase::Open {
            let flight = self.flight();
            self.congestion.on_selective_loss(flight);
        }
    }

    /// Starts a recovery; `flight` segments were in flight before the loss, `in_flight` are now.
    fn begin_recovery(
        &mut self,
        now: u64,
        (flight, in_flight): (u64, u64),
        out: &mut impl Outbox<E::Options>,
    ) {
        self.recover = self.end;
        self.phase = Phase::FastRecovery;
        let reduced = self.flight();
        // One reduction per window, for marks and losses together (RFC 3168, section 6.1.2).
        let una = self.una;
        let ecn = self.extension.ecn();
        if !ecn.is_some_and(|ecn| ecn.has_answered(una)) {
            self.congestion.on_selective_loss(reduced);
        }
        self.clear_repair();
        match self.extension.repair() {
            Some(repair) if repair.reduces_in_proportion => {
                repair.prr = Some(Prr::new(flight, in_flight));
            }
            _ => self.send_first_lost(now, out),
        }
    }

    /// Retransmits the lowest lost segment even if the window is full.
    fn send_first_lost(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        let lost = self
            .extension
            .selective()
            .and_then(|deliveries| deliveries.first_lost());
        if let Some(number) = lost {
            self.restart_timer(now);
            self.send(now, number, out);
        }
    }

    /// Fills the window, first with lost segments, then with new ones. Then sets the timer; `advanced` is true if data
    /// was acknowledged.
    pub(super) fn send_selective(
        &mut self,
        now: u64,
        advanced: bool,
        out: &mut impl Outbox<E::Options>,
    ) {
        let mut sent = advanced;
        loop {
            let limit = self.sendable();
            let mut window = self.congestion.window() as u64;
            if let Some(Repair { prr: Some(prr), .. }) = self.extension.repair() {
                window = prr.window();
            }
            let Some(deliveries) = self.extension.selective() else {
                return;
            };
            let (lost, in_flight) = (deliveries.first_lost(), deliveries.in_flight());
            let oldest = deliveries.oldest();
            let sends = lost.is_some() || self.next < limit;
            if !sends || in_flight >= window || !self.extension.may_send(now) {
                break;
            }
            let left = limit.saturating_sub(self.next);
            let new = left.min(window - in_flight);
            let ack_due = oldest.unwrap_or(now) + self.rtt.smoothed();
            if lost.is_none()
                && let Some(bursts) = self.extension.bursts()
            {
                let threshold = self.congestion.threshold();
                let rate = rate_of_window(window as f64, threshold, self.rtt.smoothed());
                let may_wait = self.phase == Phase::Open && left > 1;
                if may_wait && bursts.waits(now, (new, window), rate, ack_due) {
                    break;
                }
                bursts.begin(new, rate);
            }
            sent = true;
            if let Some(Repair { prr: Some(prr), .. }) = self.extension.repair() {
                prr.on_sent();
            }
            match lost {
                Some(number) => {
                    if number == self.una {
                        self.restart_timer(now);
                    }
                    self.send(now, number, out);
                }
                None => self.send_next(now, out),
            }
        }
        self.set_timer(now, sent);
    }

    /// Number after the highest segment that application and receiver permit.
    fn sendable(&self) -> u64 {
        let edge = self.una.saturating_add(self.receive_window as u64);
        self.limit.min(edge)
    }

    /// Sets the timer after an ACK or a transmission; `moved` is true if new data was acknowledged or sent.
    fn set_timer(&mut self, now: u64, moved: bool) {
        if self.una == self.end {
            self.deadline = u64::MAX;
            return;
        }
        let timeout = self.rtt.timeout();
        let in_order = self.phase == Phase::Open && self.una > 0;
        let probe_after = self.probe_timeout();
        let Some(deliveries) = self.extension.selective() else {
            return;
        };
        let (due, has_gap) = (deliveries.due(), deliveries.has_gap());
        let expiry = deliveries.oldest().unwrap_or(now) + timeout;
        let Some(repair) = self.extension.repair() else {
            return;
        };
        let may_probe = in_order && !has_gap && repair.probe.is_none();
        if let Some(due) = due {
            (repair.timer, self.deadline) = (Timer::Reordering, due);
        } else if may_probe && (moved || repair.timer != Timer::Probe) {
            let probe = now + probe_after;
            let at = if expiry > now {
                probe.min(expiry)
            } else {
                probe
            };
            (repair.timer, self.deadline) = (Timer::Probe, at);
        } else if !may_probe && repair.timer != Timer::Retransmission {
            (repair.timer, self.deadline) = (Timer::Retransmission, expiry.max(now + 1));
        }
    }

    /// Returns the probe timeout (RFC 8985, section 7.2).
    fn probe_timeout(&self) -> u64 {
        match self.rtt.smoothed() {
            0 => FIRST_PROBE,
            srtt if self.end - self.una == 1 => 2 * srtt + MAX_ACK_DELAY,
            srtt => 2 * srtt,
        }
    }

    /// Processes the expiry of the timer, unless it is the retransmission timer. Returns false if it is.
    pub(super) fn on_repair_timer(&mut self, now: u64, out: &mut impl Outbox<E::Options>) -> bool {
        match self.extension.repair().map(|repair| repair.timer) {
            None | Some(Timer::Retransmission) => return false,
            Some(Timer::Probe) => self.send_probe(now, out),
            Some(Timer::Reordering) => self.on_reordering_timer(now, out),
        }
        true
    }

    /// Marks segments as lost if their reordering window has passed (RFC 8985, section 6.2, step 5).
    fn on_reordering_timer(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        let recovering = self.phase != Phase::Open;
        let congestion = &mut self.congestion;
        let Some(deliveries) = self.extension.selective() else {
            return;
        };
        let flight = deliveries.in_flight();
        deliveries.detect(now, recovering, |lost| congestion.on_lost(now, &lost));
        let (in_flight, lost_again) = (deliveries.in_flight(), deliveries.lost_again());
        if in_flight < flight && self.starts_recovery(lost_again) {
            self.begin_recovery(now, (flight, in_flight), out);
        }
        self.send_selective(now, false, out);
    }

    /// Sends a probe (RFC 8985, section 7.3): a new segment if there is one, otherwise the last segment again.
    fn send_probe(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        let again = self.next >= self.sendable();
        match again {
            true => self.send(now, self.end - 1, out),
            false => self.send_next(now, out),
        }
        let end = self.end;
        if let Some(repair) = self.extension.repair() {
            repair.probe = Some(Probe { end, again });
        }
        self.restart_timer(now);
    }

    pub(super) fn send_after_timeout(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        self.next = self.end;
        self.clear_repair();
        self.send_first_lost(now, out);
        self.send_selective(now, false, out);
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: u64) {
        if let Some(repair) = self.extension.repair() {
            repair.timer = Timer::Retransmission;
        }
        self.deadline = now + self.rtt.timeout();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Recovery;
    use crate::congestion::Reno;
    use crate::packets::{Kind, TcpOptions};
    use crate::senders::{Bursts, FullSending, RttEstimator};

    const MS: u64 = 1_000_000;
    const RTT: u64 = 100 * MS;

    struct Wire {
        sender: Sender<Reno, FullSending>,
        now: u64,
    }

    impl Wire {
        /// Creates an established sender with `flight` segments in flight; returns the lowest one.
        fn open(flight: u64) -> (Self, u64) {
            let mut wire = Self::new(u64::MAX);
            let (mut una, mut round) = (0, 1);
            while wire.sender.next - wire.sender.una < flight {
                una += 1;
                if una == round {
                    wire.now += RTT;
                    round = wire.sender.next + 1;
                }
                wire.ack(una, &[]);
            }
            wire.now += RTT;
            (wire, una)
        }

        /// Creates a sender that connects, and has this many segments to send.
        fn new(segments: u64) -> Self {
            let (rtt, extension) = (RttEstimator::linux(), FullSending::with_sack());
            let mut sender = Sender::new(Reno::new(), rtt, Recovery::NewReno, u64::MAX, extension);
            sender.limit_to(segments);
            sender.connect(0, &mut Vec::new());
            Self { sender, now: 0 }
        }

        /// Returns the segments that the sender sends after this ACK; blocks are in segments.
        fn ack(&mut self, una: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
            let mut options = TcpOptions::new(None, 1460);
            for &(start, end) in blocks {
                options.push_sack(start.wrapping_sub(una), end.wrapping_sub(una));
            }
            let mut out = Vec::new();
            let ack = Segment::with(Kind::Ack, una, options);
            self.sender.on_ack(self.now, ack, &mut out);
            out.iter().map(|segment| segment.number()).collect()
        }

        /// Returns the segments that the sender sends when its timer expires.
        fn expire(&mut self) -> Vec<u64> {
            self.now = self.sender.deadline();
            let mut out = Vec::new();
            self.sender.on_timeout(self.now, &mut out);
            out.iter().map(|segment| segment.number()).collect()
        }

        fn window(&self) -> f64 {
            self.sender.congestion.window()
        }
    }

    #[test]
    fn all_holes_of_a_window_are_filled_within_a_round_trip() {
        let (mut wire, una) = Wire::open(20);
        let lost = [0, 2, 4, 6, 8].map(|n| una + n);
        let mut again = Vec::new();
        for arrived in (una..una + 20).filter(|n| !lost.contains(n)) {
            let odd = (una..=arrived)
                .filter(|n| !lost.contains(n))
                .map(|n| (n, n + 1));
            let mut blocks: Vec<_> = odd.collect();
            let rest = blocks.len().saturating_sub(4);
            blocks.drain(..rest);
            again.extend(wire.ack(una, &blocks));
        }
        again.retain(|n| *n < una + 20);
        assert_eq!(again, lost);
    }

    #[test]
    fn one_ack_that_reports_three_arrivals_is_enough() {
        let (mut wire, una) = Wire::open(10);
        assert_eq!(wire.ack(una, &[(una + 1, una + 3)]).len(), 2);
        assert_eq!(wire.sender.phase, Phase::Open);
        assert_eq!(wire.ack(una, &[(una + 1, una + 4)])[0], una);
    }

    #[test]
    fn a_lone_segment_waits_for_the_next_ack_unless_a_recovery_runs() {
        let (mut wire, una) = Wire::open(20);
        wire.sender.congestion.on_selective_loss(40.0);
        wire.sender.extension.bursts = Some(Bursts::default());
        // All segments were sent a round-trip time ago, so the next ACK is due.
        let sent = [1, 2, 3].map(|acked| wire.ack(una + acked, &[]).len());
        assert_eq!(sent, [1, 0, 2]);
        wire.now += 2 * MS;
        assert_eq!(wire.ack(una + 4, &[]).len(), 1);
        let in_recovery = |bursts| {
            let (mut wire, una) = Wire::open(20);
            wire.sender.extension.bursts = bursts;
            [4, 5, 6, 7].map(|end| wire.ack(una, &[(una + 1, una + end)]).len())
        };
        assert_eq!(in_recovery(Some(Bursts::default())), in_recovery(None));
    }

    #[test]
    fn recovery_halves_the_window_once_and_ends_with_the_last_segment_sent_before_it() {
        let (mut wire, una) = Wire::open(16);
        wire.ack(una, &[(una + 1, una + 4)]);
        assert_eq!(
            (wire.sender.phase, wire.window()),
            (Phase::FastRecovery, 8.0)
        );
        let end = wire.sender.recover;
        wire.ack(una + 6, &[(una + 8, una + 12)]);
        assert_eq!(
            (wire.sender.phase, wire.window()),
            (Phase::FastRecovery, 8.0)
        );
        wire.ack(end, &[]);
        assert_eq!(wire.sender.phase, Phase::Open);
        assert!(wire.sender.next - wire.sender.una <= 9);
    }

    #[test]
    fn a_retransmission_lost_after_a_timeout_begins_a_recovery() {
        let (mut wire, una) = Wire::open(16);
        while wire.sender.phase != Phase::AfterTimeout {
            wire.expire();
        }
        for acked in [1, 3, 7] {
            wire.now += RTT;
            wire.ack(una + acked, &[]);
        }
        assert_eq!(wire.sender.phase, Phase::AfterTimeout);
        let window = wire.window();
        wire.now += RTT;
        let sent = wire.ack(una + 7, &[(una + 8, una + 9)]);
        assert_eq!(sent, [una + 7], "one segment for one that arrived");
        assert_eq!(wire.sender.phase, Phase::FastRecovery);
        assert!(wire.window() < window, "{} of {window}", wire.window());
    }

    #[test]
    fn one_loss_of_twenty_sends_a_segment_for_every_other_that_arrives() {
        // PRR with a factor of one half; RFC 6675 would send nothing for half of a round trip.
        let (mut wire, una) = Wire::open(20);
        let sent: Vec<usize> = (2..=20)
            .map(|arrived| wire.ack(una, &[(una + 1, una + arrived)]).len())
            .collect();
        // The first two ACKs cause limited transmits; the third starts the recovery.
        assert_eq!(sent[..4], [1, 1, 1, 0]);
        let recovery = &sent[2..18];
        assert!(
            recovery.windows(2).all(|pair| pair[0] + pair[1] == 1),
            "{sent:?}"
        );
    }

    #[test]
    fn a_sack_of_a_segment_sent_before_the_retransmission_restarts_the_timer() {
        let (mut wire, una) = Wire::open(16);
        assert_eq!(wire.ack(una, &[(una + 1, una + 4)])[0], una);
        wire.now += RTT / 2;
        let sent = wire.ack(una, &[(una + 8, una + 12), (una + 1, una + 4)]);
        assert_eq!(wire.sender.deadline(), wire.now + wire.sender.rtt.timeout());
        // A segment sent after the retransmission arrives, so the retransmission is late.
        let before = wire.sender.deadline();
        wire.now += RTT / 2;
        wire.ack(una, &[(sent[0], sent[0] + 1)]);
        assert!(wire.sender.deadline() <= before);
    }

    #[test]
    fn a_loss_among_the_last_segments_is_found_by_time_and_not_by_the_retransmission_timer() {
        // RFC 8985, section 3.2: a single SACK arrives, then the reordering timer expires.
        let mut wire = Wire::new(4);
        wire.now = RTT;
        wire.ack(1, &[]);
        wire.now += RTT;
        assert_eq!(wire.ack(3, &[]), [3, 4]);
        wire.now += RTT;
        assert_eq!(wire.ack(3, &[(4, 5)]), [0; 0]);
        let due = wire.now + RTT / 4;
        assert_eq!((wire.expire(), wire.now), (vec![3], due));
        assert_eq!(wire.sender.counts().timeouts, 0);
    }

    #[test]
    fn a_lost_tail_is_probed_two_round_trips_after_the_last_segment() {
        // RFC 8985, 7.2: the probe timeout is 2 SRTT; 7.3: without new data, the probe is the last segment.
        let mut wire = Wire::new(4);
        wire.now = RTT;
        wire.ack(1, &[]);
        wire.now += RTT;
        assert_eq!(wire.ack(3, &[]), [3, 4]);
        let due = wire.now + 2 * RTT;
        assert_eq!((wire.expire(), wire.now), (vec![4], due));
        assert_eq!(wire.sender.counts().timeouts, 0);
        // The SACK of the probe makes RACK retransmit segment 3.
        wire.now += RTT;
        assert_eq!(wire.ack(3, &[(4, 5)]), [3]);
        assert_eq!(wire.sender.counts().timeouts, 0);
    }

    #[test]
    fn a_probe_of_a_lone_segment_waits_for_a_delayed_ack() {
        // At 300 ms, the retransmission timer (900 ms) is later than the probe timer; at 100 ms, it is the bound.
        for (rtt, probe) in [(300, 800), (100, 300)] {
            let mut wire = Wire::new(1);
            wire.now = rtt * MS;
            assert_eq!(wire.ack(1, &[]), [1]);
            assert_eq!(wire.sender.deadline(), wire.now + probe * MS);
        }
    }

    #[test]
    fn a_probe_is_one_segment_of_new_data_if_there_is_any_in_any_window() {
        let (mut wire, una) = Wire::open(10);
        let end = wire.sender.end;
        assert_eq!(wire.expire(), [end]);
        assert_eq!(wire.sender.counts().retransmissions, 0);
        // The second timer is the retransmission timer.
        assert_eq!(wire.expire()[0], una);
        assert_eq!(wire.sender.counts().timeouts, 1);
    }

    #[test]
    fn a_loss_that_a_probe_repairs_reduces_the_window_and_a_probe_that_arrives_twice_does_not() {
        // RFC 8985, section 7.4.2: a DSACK shows that the tail was not lost.
        for (dsack, window) in [(false, 2.0), (true, 3.0)] {
            let mut wire = Wire::new(4);
            wire.now = RTT;
            wire.ack(1, &[]);
            wire.now += RTT;
            wire.ack(3, &[]);
            assert_eq!(wire.expire(), [4]);
            wire.ack(5, &[]);
            if dsack {
                wire.ack(5, &[(4, 5)]);
            }
            wire.sender.write(wire.now, 1, &mut Vec::new());
            wire.ack(6, &[]);
            assert_eq!(wire.window(), window);
        }
    }

    #[test]
    fn after_a_timeout_only_missing_segments_are_retransmitted() {
        let (mut wire, una) = Wire::open(10);
        wire.expire();
        assert_eq!(wire.expire()[0], una);
        wire.now += RTT;
        // The ACK of the retransmission reports that all but the fifth segment have arrived.
        let end = wire.sender.end;
        let sent = wire.ack(una + 4, &[(una + 5, end)]);
        assert_eq!(sent, [una + 4, end]);
    }
}
