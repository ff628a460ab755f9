//! The sender's part in RFC 6675: what an ACK with SACK blocks makes it send.

use crate::congestion::CongestionControl;
use crate::packets::{Options, Outbox, Segment};
use crate::senders::{Phase, Sender, Sending, THRESHOLD};

impl<C: CongestionControl, E: Sending> Sender<C, E> {
    /// Takes an acknowledgement (RFC 6675, section 5).
    pub(super) fn on_selective_ack(
        &mut self,
        now: u64,
        segment: &Segment<E::Options>,
        out: &mut impl Outbox<E::Options>,
    ) {
        let (ack, una_before) = (segment.number(), self.una);
        let (una, end) = (self.una.max(ack), self.end);
        let Some(board) = self.extension.scoreboard() else {
            return;
        };
        let blocks = segment.options.on_wire().map_or(&[][..], |o| o.blocks());
        let blocks = blocks.iter();
        let ranges = blocks.map(|&(start, stop)| (ack + u64::from(start), ack + u64::from(stop)));
        let sacked_before = board.sacked();
        let newly_sacked = board.update(una, end, ranges);
        let delivered = una + board.sacked() - una_before - sacked_before;
        let lost = board.is_lost(una);
        if ack > self.una {
            if self.phase == Phase::FastRecovery && ack < self.recover {
                self.una = ack;
                self.next = self.next.max(ack);
                self.sample_rtt(now, ack, &segment.options);
                self.restart_timer(now);
            } else {
                self.on_new_ack(now, ack, &segment.options);
            }
        }
        if newly_sacked > 0 {
            self.duplicate_acks += 1;
        }
        self.take_feedback(now, segment, (una_before, self.una), delivered);
        let begins = self.duplicate_acks >= THRESHOLD || lost;
        if self.phase != Phase::FastRecovery && begins && self.una >= self.recover {
            self.begin_recovery(now, out);
        }
        self.update_pace();
        self.send_by_pipe(now, out);
    }

    /// RFC 6675, section 5, step 4.
    fn begin_recovery(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        self.recover = self.end;
        self.phase = Phase::FastRecovery;
        let flight = self.flight();
        // One reduction a window, be it for marks or for losses (RFC 3168, section 6.1.2).
        if !self.extension.has_answered(self.una) {
            self.congestion.on_selective_loss(flight);
        }
        self.restart_timer(now);
        self.timed = None;
        let una = self.una;
        self.note_first_loss(now, una);
        if let Some(board) = self.extension.scoreboard() {
            board.begin(una + 1);
        }
        self.send(now, una, out);
    }

    /// Fills the pipe up to the window: in recovery by RFC 6675's NextSeg, else with new segments.
    pub(super) fn send_by_pipe(&mut self, now: u64, out: &mut impl Outbox<E::Options>) {
        if self
            .extension
            .deliveries()
            .is_some_and(|deliveries| deliveries.repairs())
        {
            return self.send_by_deliveries(now, out);
        }
        loop {
            let (una, recover) = (self.una, self.recover);
            let limit = self
                .limit
                .min(una.saturating_add(self.receive_window as u64));
            let window = self.congestion.window() as u64;
            let recovering = self.phase == Phase::FastRecovery;
            let Some(board) = self.extension.scoreboard() else {
                return;
            };
            // After a timeout, what the receiver has need not be sent again.
            self.next = board.first_missing(self.next);
            let next = self.next;
            let new = next < limit;
            let pipe = match recovering {
                true => board.pipe(una, next),
                false => board.outstanding(una, next),
            };
            if pipe >= window {
                return;
            }
            if !self.extension.may_send(now) {
                return;
            }
            let Some(board) = self.extension.scoreboard() else {
                return;
            };
            let again = match recovering {
                true => board
                    .next_lost(una)
                    .or_else(|| if new { None } else { board.next_missing(una) })
                    .or_else(|| {
                        if new {
                            None
                        } else {
                            board.rescue(una, next, recover)
                        }
                    }),
                false => None,
            };
            match again {
                Some(number) => self.send(now, number, out),
                None if new => self.send_next(now, out),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Reno;
    use crate::packets::{Kind, TcpOptions};
    use crate::senders::{FullSending, Recovery, RttEstimator, Scoreboard};

    const RTT: u64 = 100_000_000;

    /// A sender with `flight` segments out, the lowest of which is returned.
    fn open(flight: u64) -> (Sender<Reno, FullSending>, u64) {
        let extension = FullSending {
            scoreboard: Some(Scoreboard::default()),
            ..FullSending::default()
        };
        let congestion = Reno::new();
        let rtt = RttEstimator::new(0);
        let mut sender = Sender::new(congestion, rtt, Recovery::NewReno, u64::MAX, extension);
        let mut out = Vec::new();
        sender.connect(0, &mut out);
        let mut una = 0;
        while sender.next - sender.una < flight {
            una += 1;
            ack(&mut sender, una, &[]);
        }
        (sender, una)
    }

    /// What an ACK makes the sender send; blocks in segments.
    fn ack(sender: &mut Sender<Reno, FullSending>, una: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut options = TcpOptions::new(None, 1460);
        for &(start, end) in blocks {
            options.push_sack(start - una, end - una);
        }
        let mut out = Vec::new();
        sender.on_ack(RTT, Segment::with(Kind::Ack, una, options), &mut out);
        out.iter().map(|segment| segment.number()).collect()
    }

    #[test]
    fn all_holes_of_a_window_are_filled_within_a_round_trip() {
        let (mut sender, una) = open(20);
        let lost = [0, 2, 4, 6, 8].map(|n| una + n);
        let mut again = Vec::new();
        for arrived in (una..una + 20).filter(|n| !lost.contains(n)) {
            let odd = (una..=arrived)
                .filter(|n| !lost.contains(n))
                .map(|n| (n, n + 1));
            let mut blocks: Vec<_> = odd.collect();
            let rest = blocks.len().saturating_sub(4);
            blocks.drain(..rest);
            again.extend(ack(&mut sender, una, &blocks));
        }
        again.retain(|n| *n < una + 20);
        assert_eq!(again, lost);
    }

    #[test]
    fn one_ack_that_reports_three_arrivals_is_enough() {
        let (mut sender, una) = open(10);
        assert_eq!(
            ack(&mut sender, una, &[(una + 1, una + 3)]).len(),
            2,
            "limited transmit"
        );
        assert_eq!(ack(&mut sender, una, &[(una + 1, una + 4)])[0], una);
    }

    #[test]
    fn recovery_halves_the_window_once_and_ends_with_the_last_segment_sent_before_it() {
        let (mut sender, una) = open(16);
        ack(&mut sender, una, &[(una + 1, una + 4)]);
        assert_eq!(
            (sender.phase, sender.congestion.window()),
            (Phase::FastRecovery, 8.0)
        );
        let end = sender.recover;
        ack(&mut sender, una + 6, &[(una + 8, una + 12)]);
        assert_eq!(
            (sender.phase, sender.congestion.window()),
            (Phase::FastRecovery, 8.0)
        );
        ack(&mut sender, end, &[]);
        assert_eq!(sender.phase, Phase::Open);
        assert!(sender.next - sender.una <= 9);
    }

    #[test]
    fn after_a_timeout_only_what_is_missing_is_sent_again() {
        let (mut sender, una) = open(10);
        let mut out = Vec::new();
        sender.on_timeout(sender.deadline(), &mut out);
        assert_eq!(out[0].number(), una);
        // Its ACK reports that all but the fifth have arrived.
        let sent = ack(&mut sender, una + 4, &[(una + 5, una + 10)]);
        assert_eq!(sent, [una + 4, una + 10]);
    }
}
