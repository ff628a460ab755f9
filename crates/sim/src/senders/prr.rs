//! Proportional Rate Reduction (RFC 9937): computes the number of segments to send per delivered segment, while the
//! flight shrinks to the slow-start threshold.

/// State of one recovery, in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// Segments in flight at the start of the recovery (`RecoverFS`).
    flight: u64,
    /// Segments delivered since the start (`prr_delivered`); `sent` counts sent segments (`prr_out`).
    delivered: u64,
    sent: u64,
    /// Maximum number of segments in flight until the next ACK.
    window: u64,
}

impl Prr {
    /// Starts a recovery. `flight` segments were in flight before the loss; `in_flight` of them are neither delivered
    /// nor lost. At least one segment may be sent.
    pub(crate) fn new(flight: u64, in_flight: u64) -> Self {
        Self {
            flight: flight.max(1),
            delivered: 0,
            sent: 0,
            window: in_flight + 1,
        }
    }

    /// Processes an ACK that delivers segments and leaves `in_flight`. The ACK is `safe` if it acknowledges new data
    /// and shows no further loss.
    pub(crate) fn on_ack(&mut self, delivered: u64, safe: bool, in_flight: u64, threshold: u64) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let mut count = if in_flight > threshold {
            let due = (self.delivered * threshold).div_ceil(self.flight);
            due.saturating_sub(self.sent)
        } else {
            let due = self.delivered.saturating_sub(self.sent).max(delivered);
            (due + u64::from(safe)).min(threshold - in_flight)
        };
        if self.sent == 0 {
            count = count.max(1);
        }
        self.window = in_flight + count;
    }

    pub(crate) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Maximum number of segments in flight.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of segments sent after an ACK.
    fn ack(prr: &mut Prr, delivered: u64, safe: bool, in_flight: u64, threshold: u64) -> u64 {
        prr.on_ack(delivered, safe, in_flight, threshold);
        let count = prr.window() - in_flight;
        (0..count).for_each(|_| prr.on_sent());
        count
    }

    #[test]
    fn above_the_threshold_segments_leave_in_proportion_to_those_delivered() {
        // RFC 9937, section 6.2: ceil(delivered * ssthresh / RecoverFS) - prr_out. One of 20 segments is lost; CUBIC's
        // threshold is 14.
        let mut prr = Prr::new(20, 18);
        let mut in_flight = 19;
        let mut total = 0;
        for delivered in 1..=19 {
            in_flight -= 1;
            let count = ack(&mut prr, 1, false, in_flight, 14);
            total += count;
            in_flight += count;
            let proportional = (delivered * 14u64).div_ceil(20).max(1);
            if in_flight > 14 {
                assert_eq!(total, proportional, "{delivered}");
            }
        }
        assert_eq!(in_flight, 14);
    }

    #[test]
    fn below_the_threshold_an_unsafe_ack_conserves_packets_and_a_safe_one_adds_a_segment() {
        // A burst loses 15 of 20 segments: five are in flight, below the threshold of 10.
        let mut prr = Prr::new(20, 5);
        assert_eq!(ack(&mut prr, 1, false, 4, 10), 1);
        assert_eq!(ack(&mut prr, 1, false, 4, 10), 1);
        assert_eq!(ack(&mut prr, 1, true, 4, 10), 2);
        assert_eq!(ack(&mut prr, 3, true, 2, 10), 4);
    }

    #[test]
    fn no_ack_takes_the_flight_above_the_threshold() {
        let mut prr = Prr::new(20, 5);
        assert_eq!(ack(&mut prr, 6, true, 8, 10), 2);
        assert_eq!(ack(&mut prr, 1, true, 10, 10), 0);
    }

    #[test]
    fn the_first_retransmission_leaves_with_the_ack_that_begins_the_recovery() {
        // The flight equals the threshold. The first ACK permits one segment nevertheless.
        let mut prr = Prr::new(100, 96);
        assert_eq!(prr.window(), 97);
        assert_eq!(ack(&mut prr, 3, false, 10, 10), 1);
        assert_eq!(ack(&mut prr, 1, false, 10, 10), 0);
    }

    #[test]
    fn segments_that_were_not_sent_in_time_are_sent_later() {
        // During three ACKs, the application has nothing to send. The limit is the data delivered since then.
        let mut prr = Prr::new(20, 4);
        for _ in 0..3 {
            prr.on_ack(1, false, 4, 10);
        }
        prr.on_sent();
        assert_eq!(ack(&mut prr, 1, false, 4, 10), 3);
    }
}
