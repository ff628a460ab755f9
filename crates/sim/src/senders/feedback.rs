//! A sender's pacing, and its response to marks, losses and delivery rates that ACKs report.

use crate::congestion::{AckSample, CongestionControl};
use crate::packets::{Options, Segment};
use crate::senders::{Sender, Sending, rate_of_window};

impl<C: CongestionControl, E: Sending> Sender<C, E> {
    /// Processes marks and path samples of an ACK up to `una`. `before` was the previous acknowledgement number;
    /// `delivered` segments are newly delivered.
    #[inline]
    pub(super) fn take_feedback(
        &mut self,
        now: u64,
        segment: &Segment<E::Options>,
        (before, una): (u64, u64),
        delivered: u64,
    ) {
        if !self.extension.takes_feedback() {
            return;
        }
        self.take_echo(segment, (before, una), delivered);
        if let Some(deliveries) = self.extension.deliveries() {
            let sample = deliveries.on_ack(now, segment.number());
            self.take_sample(&sample);
        }
    }

    /// Processes an ACK's marks (RFC 3168, section 6.1.2). In a SYN-ACK, ECE accepts ECN and reports no mark.
    pub(super) fn take_echo(
        &mut self,
        segment: &Segment<E::Options>,
        (before, una): (u64, u64),
        delivered: u64,
    ) {
        let Some(ecn) = self.extension.ecn() else {
            return;
        };
        let Some(options) = segment.options.on_wire() else {
            return;
        };
        if before == 0 {
            return ecn.agree(options);
        }
        let (acked, end) = (una - before, self.end);
        let marked = ecn.marks(options, acked, delivered);
        // A loss in this window has already reduced the window.
        let answers = marked > 0 && una > self.recover && ecn.answers(una, end);
        self.congestion.on_echo(acked, marked, una, end);
        if answers {
            let flight = self.flight();
            self.congestion.on_mark(flight);
        }
    }

    /// Passes a path sample to the congestion control.
    pub(super) fn take_sample(&mut self, sample: &AckSample) {
        self.congestion.on_sample(sample);
        if self.congestion.limits_samples()
            && let Some(deliveries) = self.extension.deliveries()
        {
            deliveries.limit_by_application();
        }
    }

    /// Marks samples as limited by the application if all written data was sent and the window is not full.
    pub(super) fn note_application_limit(&mut self) {
        let (next, limit, window) = (self.next, self.limit, self.congestion.window());
        if let Some(deliveries) = self.extension.deliveries()
            && next >= limit
            && (deliveries.in_flight() as f64) < window
        {
            deliveries.limit_by_application();
        }
    }

    #[inline]
    pub(super) fn update_pace(&mut self) {
        let congestion = &self.congestion;
        let srtt = self.extension.deliveries().map_or(0, |all| all.smoothed());
        if let Some(pacer) = self.extension.pacer() {
            let of_window = || rate_of_window(congestion.window(), congestion.threshold(), srtt);
            let own = congestion.pacing_rate();
            if let Some(rate) = own.or_else(|| (srtt > 0).then(of_window)) {
                pacer.set_rate(rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Recovery;
    use crate::congestion::Reno;
    use crate::ecn::EcnSender;
    use crate::packets::{Kind, TcpOptions};
    use crate::senders::{Deliveries, FullSending, Pacer, RttEstimator};
    use asymq_core::packet::flags;

    const MS: u64 = 1_000_000;

    struct Wire {
        sender: Sender<Reno, FullSending>,
        sent: Vec<Segment<TcpOptions>>,
    }

    impl Wire {
        /// Creates an established sender with `flight` segments in flight, from the returned number on.
        fn open(extension: FullSending, flight: u64) -> (Self, u64) {
            let rtt = RttEstimator::new(0);
            let mut wire = Self {
                sender: Sender::new(Reno::new(), rtt, Recovery::NewReno, u64::MAX, extension),
                sent: Vec::new(),
            };
            wire.sender.connect(0, &mut wire.sent);
            let mut una = 0;
            while wire.sender.next - wire.sender.una < flight {
                una += 1;
                wire.ack(100 * MS, una, 0, None);
            }
            (wire, una)
        }

        /// Returns the segments that the sender sends after an ACK with these flags and this block.
        fn ack(&mut self, now: u64, una: u64, flags: u16, block: Option<(u64, u64)>) -> Vec<u64> {
            let mut options = TcpOptions::new(None, 1460);
            options.flags = flags;
            if let Some((start, end)) = block {
                options.push_sack(start - una, end - una);
            }
            let ack = Segment::with(Kind::Ack, una, options);
            self.sent.clear();
            self.sender.on_ack(now, ack, &mut self.sent);
            self.sent.iter().map(|segment| segment.number()).collect()
        }
    }

    fn with_ecn(sack: bool) -> FullSending {
        let base = match sack {
            true => FullSending::with_sack(),
            false => FullSending::default(),
        };
        FullSending {
            ecn: Some(EcnSender::default()),
            ..base
        }
    }

    #[test]
    fn marks_halve_the_window_once_per_round_trip_and_the_next_segment_has_cwr() {
        // RFC 3168, section 6.1.2.
        for sack in [false, true] {
            let (mut wire, una) = Wire::open(with_ecn(sack), 16);
            wire.ack(200 * MS, una + 1, flags::ECE, None);
            assert!((wire.sender.congestion.window() - 8.0).abs() < 1.2);
            let reduced = wire.sender.congestion.window();
            for ack in 2..=16 {
                wire.ack(200 * MS, una + ack, flags::ECE, None);
                let cwr: Vec<bool> = wire
                    .sent
                    .iter()
                    .map(|s| s.options.flags & flags::CWR != 0)
                    .collect();
                if let Some((first, rest)) = cwr.split_first() {
                    let is_first = wire.sent[0].number() == una + 16;
                    assert_eq!(*first, is_first, "{ack}");
                    assert!(!rest.contains(&true));
                }
            }
            assert!(wire.sender.congestion.window() < reduced + 2.0);
            wire.ack(300 * MS, una + 17, flags::ECE, None);
            assert!(wire.sender.congestion.window() < reduced * 0.7);
        }
    }

    #[test]
    fn a_loss_in_a_window_that_a_mark_has_halved_halves_it_no_further() {
        let (mut wire, una) = Wire::open(with_ecn(true), 16);
        wire.ack(200 * MS, una + 1, flags::ECE, None);
        let reduced = wire.sender.congestion.window();
        let again = wire.ack(200 * MS, una + 1, 0, Some((una + 2, una + 6)));
        assert_eq!(again[0], una + 1);
        assert_eq!(wire.sender.congestion.window(), reduced);
        let mark = wire.sent[0].options;
        assert_eq!(
            (mark.ecn.is_capable(), mark.flags),
            (false, 0),
            "section 6.1.5"
        );
    }

    #[test]
    fn a_mark_in_a_window_that_a_loss_has_halved_halves_it_no_further() {
        let (mut wire, una) = Wire::open(with_ecn(true), 16);
        wire.ack(200 * MS, una, 0, Some((una + 1, una + 5)));
        let reduced = wire.sender.congestion.window();
        wire.ack(200 * MS, una, flags::ECE, Some((una + 1, una + 7)));
        assert_eq!(wire.sender.congestion.window(), reduced);
    }

    #[test]
    fn a_paced_window_leaves_segment_by_segment_and_ends_with_the_timer_off() {
        let extension = FullSending {
            deliveries: Some(Deliveries::default()),
            pacer: Some(Pacer::default()),
            ..FullSending::default()
        };
        let mut sender = Sender::new(
            Reno::new(),
            RttEstimator::new(0),
            Recovery::NewReno,
            u64::MAX,
            extension,
        );
        sender.limit_to(200);
        let mut out: Vec<Segment<TcpOptions>> = Vec::new();
        sender.connect(0, &mut out);
        let (mut now, mut una, mut times) = (0, 0, Vec::new());
        while !sender.is_done() {
            now += 100 * MS;
            while sender.deadline() < now {
                let at = sender.deadline();
                let before = out.len();
                sender.on_timeout(at, &mut out);
                times.extend(out[before..].iter().map(|_| at));
            }
            // One ACK acknowledges all segments sent so far, as after ACK filtering.
            una += std::mem::take(&mut out).len() as u64;
            let ack = Segment::with(Kind::Ack, una, TcpOptions::default());
            sender.on_ack(now, ack, &mut out);
            assert!(una < 15 || out.len() <= 1, "{} at once", out.len());
        }
        assert_eq!(sender.deadline(), u64::MAX);
        // Slow start: twice the window per round-trip time.
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap > 0), "{gaps:?}");
        assert!(gaps.len() > 80, "{}", gaps.len());
    }
}
