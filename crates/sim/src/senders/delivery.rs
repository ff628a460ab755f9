//! What an ACK says of the path: round-trip time, delivery rate, losses
//! (draft-ietf-ccwg-bbr, section 4.1; August 2026).

use std::collections::{BTreeSet, VecDeque};

/// What a sender remembers of each segment from the lowest not acknowledged on.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Time at which it was sent last, in ns.
    at: u64,
    /// The send time of the segment that started the sampling interval (`P.first_send_time`).
    first_at: u64,
    /// `C.delivered`, when that last rose, and `C.lost`, as it was sent.
    delivered: u64,
    delivered_at: u64,
    lost: u64,
    /// Segments in flight as it was sent, this one included.
    in_flight: u64,
    app_limited: bool,
    /// Sent more than once: it times nothing (Karn).
    again: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Delivered,
    Lost,
}

/// A segment that is thought lost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lost {
    /// Which segment; 0 is the SYN.
    pub number: u64,
    /// Segments in flight as it was sent, this one included.
    pub in_flight: u64,
    /// Segments lost since it was sent, this one included.
    pub lost: u64,
    /// Segments delivered by now.
    pub delivered: u64,
    /// True if the application limited what was sent then.
    pub app_limited: bool,
}

/// What one ACK says. Times in ns, volumes in segments, the rate in segments per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AckSample {
    /// Time at which it arrived.
    pub now: u64,
    /// The acknowledgement number.
    pub ack: u64,
    /// One past the highest segment sent.
    pub end: u64,
    /// The round-trip time, if it acknowledges a segment that was sent once.
    pub rtt: Option<u64>,
    /// Segments delivered in all (`C.delivered`).
    pub total: u64,
    /// Segments delivered newly by this ACK.
    pub newly: u64,
    /// `C.delivered` as the newest of those was sent (`RS.prior_delivered`).
    pub prior: u64,
    /// Segments delivered since then.
    pub delivered: u64,
    /// Their rate; 0 where there is none to rely on.
    pub rate: f64,
    /// Segments lost since then.
    pub lost: u64,
    /// Segments in flight then.
    pub sent_in_flight: u64,
    /// True if the application limited what was sent then.
    pub app_limited: bool,
    /// Segments in flight now.
    pub in_flight: u64,
    /// True if the window was full at any time in the last round trip.
    pub window_limited: bool,
}

/// A sender's record of deliveries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    sent: VecDeque<Sent>,
    /// The number of the first in `sent`.
    base: u64,
    delivered: u64,
    delivered_at: u64,
    /// Time at which the newest of the delivered segments was sent.
    first_at: u64,
    lost: u64,
    in_flight: u64,
    /// Samples are limited by the application until more than this is delivered; 0 if they are not.
    app_limited: u64,
    /// The window was full in a round trip that ends when more than this is delivered.
    full_until: u64,
    /// All below have been judged.
    judged: u64,
    min_rtt: Option<u64>,
    srtt: u64,
    repairs: Option<Repairs>,
}

/// What is to be sent again, where losses are repaired by what is known of deliveries.
#[derive(Clone, Debug, Default)]
struct Repairs {
    /// Segments that are lost and not sent again yet.
    lost: BTreeSet<u64>,
    /// Those sent again, with their times, in that order.
    again: VecDeque<(u64, u64)>,
}

/// A sample in the making.
#[derive(Clone, Copy, Default)]
struct Sample {
    newest: Option<Sent>,
    newest_number: u64,
    sent_once_at: Option<u64>,
    newly: u64,
}

impl Deliveries {
    /// A record that also says what is to be sent again, and finds retransmissions that are lost too.
    pub(crate) fn with_repairs() -> Self {
        Self {
            repairs: Some(Repairs::default()),
            ..Self::default()
        }
    }

    /// Segment `number` is sent; `window` segments may be in flight.
    pub(crate) fn on_sent(&mut self, now: u64, number: u64, window: f64) {
        let index = number.saturating_sub(self.base) as usize;
        let again = index < self.sent.len();
        // What has arrived and is sent again after a timeout brings nothing new.
        if again && self.sent[index].state == State::Delivered {
            return;
        }
        if !again || self.sent[index].state != State::InFlight {
            if self.in_flight == 0 {
                self.first_at = now;
                self.delivered_at = now;
            }
            self.in_flight += 1;
        }
        if let Some(repairs) = &mut self.repairs
            && again
        {
            repairs.lost.remove(&number);
            repairs.again.push_back((now, number));
        }
        let record = Sent {
            at: now,
            first_at: self.first_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited > 0,
            again,
            state: State::InFlight,
        };
        match self.sent.get_mut(index) {
            Some(place) => *place = record,
            None => self.sent.push_back(record),
        }
        if self.in_flight as f64 + 1.0 > window {
            self.full_until = self.delivered + self.in_flight;
        }
    }

    /// Takes an ACK of all below `ack` that also reports `ranges`, and shows by whichever rule that
    /// all below `lost_below` are lost that were sent once and have not arrived. Each goes to `lost`.
    pub(crate) fn on_ack(
        &mut self,
        now: u64,
        ack: u64,
        ranges: impl Iterator<Item = (u64, u64)>,
        lost_below: u64,
        lost: impl FnMut(Lost),
    ) -> AckSample {
        let mut sample = Sample::default();
        while self.base < ack
            && let Some(sent) = self.sent.pop_front()
        {
            self.deliver(now, self.base, sent, &mut sample);
            self.base += 1;
        }
        for (start, stop) in ranges {
            let stop = stop.min(self.base + self.sent.len() as u64);
            for number in start.max(self.base)..stop {
                let place = &mut self.sent[(number - self.base) as usize];
                let sent = *place;
                place.state = State::Delivered;
                self.deliver(now, number, sent, &mut sample);
            }
        }
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        self.judge(lost_below, lost);
        self.finish(now, ack, sample)
    }

    fn deliver(&mut self, now: u64, number: u64, sent: Sent, sample: &mut Sample) {
        if sent.state == State::Delivered {
            return;
        }
        match (sent.state, &mut self.repairs) {
            (State::InFlight, _) => self.in_flight -= 1,
            (_, Some(repairs)) => {
                repairs.lost.remove(&number);
            }
            _ => {}
        }
        self.delivered += 1;
        self.delivered_at = now;
        sample.newly += 1;
        if !sent.again {
            sample.sent_once_at = sample.sent_once_at.max(Some(sent.at));
        }
        let key = (sent.at, number);
        if sample
            .newest
            .is_none_or(|newest| key > (newest.at, sample.newest_number))
        {
            sample.newest = Some(sent);
            sample.newest_number = number;
        }
    }

    fn finish(&mut self, now: u64, ack: u64, sample: Sample) -> AckSample {
        let mut answer = AckSample {
            now,
            ack,
            end: self.base + self.sent.len() as u64,
            rtt: sample.sent_once_at.map(|at| now - at),
            total: self.delivered,
            newly: sample.newly,
            in_flight: self.in_flight,
            window_limited: self.delivered <= self.full_until,
            ..AckSample::default()
        };
        if let Some(rtt) = answer.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.srtt = match self.srtt {
                0 => rtt,
                srtt => srtt - srtt / 8 + rtt / 8,
            };
        }
        let Some(newest) = sample.newest else {
            answer.prior = self.delivered;
            return answer;
        };
        self.first_at = self.first_at.max(newest.at);
        // The longer of the two: neither a burst of ACKs nor one of segments is the path's rate.
        let interval = (newest.at - newest.first_at).max(now - newest.delivered_at);
        answer.prior = newest.delivered;
        answer.delivered = self.delivered - newest.delivered;
        answer.lost = self.lost - newest.lost;
        answer.sent_in_flight = newest.in_flight;
        answer.app_limited = newest.app_limited;
        if interval > 0 && self.min_rtt.is_some_and(|least| interval >= least) {
            answer.rate = answer.delivered as f64 / (interval as f64 / 1e9);
        }
        answer
    }

    fn judge(&mut self, lost_below: u64, mut each: impl FnMut(Lost)) {
        let end = lost_below.min(self.base + self.sent.len() as u64);
        for number in self.judged.max(self.base)..end {
            let sent = self.sent[(number - self.base) as usize];
            if sent.state == State::InFlight && !sent.again {
                each(self.lose(number));
            }
        }
        self.judged = self.judged.max(end);
        while let Some(number) = self.lost_again() {
            each(self.lose(number));
        }
    }

    /// A segment that was sent again and is lost again: one that was sent later, by more than the
    /// reordering that RACK allows (RFC 8985, section 6.2), has arrived.
    fn lost_again(&mut self) -> Option<u64> {
        let reordering = self.min_rtt? / 4;
        let again = &mut self.repairs.as_mut()?.again;
        while let Some(&(at, number)) = again.front()
            && at + reordering < self.first_at
        {
            again.pop_front();
            let index = number.checked_sub(self.base);
            let sent = index.and_then(|index| self.sent.get(index as usize));
            if sent.is_some_and(|sent| sent.at == at && sent.state == State::InFlight) {
                return Some(number);
            }
        }
        None
    }

    /// The lowest segment that is lost and not sent again.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.repairs.as_ref()?.lost.first().copied()
    }

    /// True if it says what is to be sent again.
    pub(crate) fn repairs(&self) -> bool {
        self.repairs.is_some()
    }

    /// Segment `number` is lost, whatever was known of it.
    pub(crate) fn lose(&mut self, number: u64) -> Lost {
        let place = &mut self.sent[(number - self.base) as usize];
        if place.state == State::InFlight {
            place.state = State::Lost;
            self.in_flight -= 1;
            self.lost += 1;
            if let Some(repairs) = &mut self.repairs {
                repairs.lost.insert(number);
            }
        }
        Lost {
            number,
            in_flight: place.in_flight,
            lost: self.lost - place.lost,
            delivered: self.delivered,
            app_limited: place.app_limited,
        }
    }

    /// The timer expired: all that is in flight is lost.
    pub(crate) fn lose_all(&mut self) {
        for number in self.base..self.base + self.sent.len() as u64 {
            self.lose(number);
        }
    }

    /// What is sent from now on until this is delivered is less than the path might carry.
    pub(crate) fn limit_by_application(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1);
    }

    /// True if segment `number` is in flight, and was sent once.
    pub(crate) fn is_in_flight_once(&self, number: u64) -> bool {
        let index = number.checked_sub(self.base);
        let sent = index.and_then(|index| self.sent.get(index as usize));
        sent.is_some_and(|sent| sent.state == State::InFlight && !sent.again)
    }

    /// Segments in flight (`C.inflight`).
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    pub(crate) fn smoothed(&self) -> u64 {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Takes an ACK that shows no loss.
    fn ack(deliveries: &mut Deliveries, now: u64, ack: u64, ranges: &[(u64, u64)]) -> AckSample {
        deliveries.on_ack(now, ack, ranges.iter().copied(), 0, |_| {})
    }

    /// Segments 0 to 9, sent at once or one each 10 ms.
    fn sent(spacing: u64) -> Deliveries {
        let mut deliveries = Deliveries::default();
        for number in 0..10 {
            deliveries.on_sent(number * spacing, number, 100.0);
        }
        deliveries
    }

    #[test]
    fn the_delivery_rate_is_that_of_the_acks_after_a_burst() {
        // Section 4.1.1.2: ten at once, ACKs 10 ms apart from 100 ms on. The tenth was sent with
        // nothing delivered: 10 in 190 ms.
        let mut deliveries = sent(0);
        let mut sample = AckSample::default();
        for next in 1..=10 {
            sample = ack(&mut deliveries, (90 + 10 * next) * MS, next, &[]);
        }
        assert!((sample.rate - 10.0 / 0.19).abs() < 1e-9, "{}", sample.rate);
        assert_eq!((sample.total, sample.in_flight), (10, 0));
    }

    #[test]
    fn the_delivery_rate_is_that_of_the_sender_where_acks_come_at_once() {
        // ACK thinning: one ACK for ten segments sent over 90 ms, 1 ms after the last of them. What
        // is acknowledged over 91 ms is no more than 10 in max(90, 91) ms.
        let mut deliveries = sent(10 * MS);
        let sample = ack(&mut deliveries, 91 * MS, 10, &[]);
        assert!((sample.rate - 10.0 / 0.091).abs() < 1e-9, "{}", sample.rate);
        assert_eq!(sample.newly, 10);
    }

    #[test]
    fn the_round_trip_time_is_of_the_newest_segment_sent_once() {
        let mut deliveries = sent(10 * MS);
        assert_eq!(ack(&mut deliveries, 100 * MS, 1, &[]).rtt, Some(100 * MS));
        let sample = ack(&mut deliveries, 120 * MS, 1, &[(2, 4)]);
        assert_eq!((sample.rtt, sample.newly), (Some(90 * MS), 2));
        deliveries.on_sent(125 * MS, 1, 100.0);
        assert_eq!(ack(&mut deliveries, 130 * MS, 2, &[]).rtt, None, "Karn");
    }

    #[test]
    fn each_loss_is_judged_once_and_leaves_the_flight() {
        let mut deliveries = sent(MS);
        let mut lost = Vec::new();
        for _ in 0..2 {
            let sacked = [(4, 7)].into_iter();
            deliveries.on_ack(100 * MS, 1, sacked, 4, |segment| lost.push(segment.lost));
        }
        assert_eq!(lost, [1, 2, 3]);
        assert_eq!(deliveries.in_flight(), 3);
        deliveries.on_sent(101 * MS, 1, 100.0);
        assert_eq!(deliveries.in_flight(), 4);
        deliveries.judge(4, |segment| lost.push(segment.lost));
        assert_eq!(
            lost.len(),
            3,
            "what is sent again is not lost for what was before"
        );
        let sample = ack(&mut deliveries, 200 * MS, 4, &[(4, 8)]);
        assert_eq!((sample.total, sample.in_flight), (8, 2));
    }

    #[test]
    fn a_retransmission_is_lost_once_one_sent_a_quarter_round_trip_later_has_arrived() {
        let mut deliveries = Deliveries::with_repairs();
        (0..10).for_each(|number| deliveries.on_sent(0, number, 100.0));
        let sacked = [(1, 10)].into_iter();
        deliveries.on_ack(100 * MS, 0, sacked, 7, |_| {});
        assert_eq!(deliveries.first_lost(), Some(0));
        deliveries.on_sent(100 * MS, 0, 100.0);
        assert_eq!(deliveries.first_lost(), None);
        for (number, at) in [(10, 120), (11, 126), (12, 127)] {
            deliveries.on_sent(at * MS, number, 100.0);
        }
        // Of a round-trip time of 100 ms a quarter; judged from the ACK after on.
        for (end, lost) in [(11, None), (12, None), (13, Some(0))] {
            ack(&mut deliveries, 230 * MS, 0, &[(1, end)]);
            assert_eq!(deliveries.first_lost(), lost, "{end}");
        }
        ack(&mut deliveries, 240 * MS, 13, &[]);
        assert_eq!(deliveries.first_lost(), None);
    }

    #[test]
    fn what_has_arrived_and_is_sent_again_after_a_timeout_is_delivered_once() {
        let mut deliveries = sent(0);
        ack(&mut deliveries, 100 * MS, 0, &[(1, 10)]);
        deliveries.lose_all();
        (0..10).for_each(|number| deliveries.on_sent(400 * MS, number, 100.0));
        assert_eq!(deliveries.in_flight(), 1);
        let sample = ack(&mut deliveries, 500 * MS, 10, &[]);
        assert_eq!((sample.total, sample.newly, sample.in_flight), (10, 1, 0));
    }

    #[test]
    fn samples_are_limited_by_the_application_until_the_bubble_is_delivered() {
        let mut deliveries = sent(MS);
        deliveries.limit_by_application();
        deliveries.on_sent(10 * MS, 10, 100.0);
        assert!(!ack(&mut deliveries, 100 * MS, 10, &[]).app_limited);
        assert!(ack(&mut deliveries, 101 * MS, 11, &[]).app_limited);
        deliveries.on_sent(101 * MS, 11, 100.0);
        assert!(!ack(&mut deliveries, 200 * MS, 12, &[]).app_limited);
    }

    #[test]
    fn the_window_was_full_for_a_round_trip_after_it_was() {
        let mut deliveries = Deliveries::default();
        (0..4).for_each(|number| deliveries.on_sent(0, number, 4.0));
        assert!(ack(&mut deliveries, 100, 2, &[]).window_limited);
        (4..6).for_each(|number| deliveries.on_sent(100, number, 8.0));
        assert!(ack(&mut deliveries, 100, 4, &[]).window_limited);
        assert!(!ack(&mut deliveries, 200, 6, &[]).window_limited);
    }
}
