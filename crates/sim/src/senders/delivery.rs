//! Path samples from ACKs: round-trip time, delivery rate, losses (draft-ietf-ccwg-bbr, section 4.1; August 2026).

use crate::congestion::{AckSample, Lost};
use crate::packets::RangeSet;
use crate::senders::rack::Rack;
use std::collections::{BTreeSet, VecDeque};

/// State of an unacknowledged segment; times are in ns.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Time of the last transmission in ns.
    at: u64,
    /// The send time of the segment that started the sampling interval (`P.first_send_time`).
    first_at: u64,
    /// Values when the segment was sent: `C.delivered`, the time of its last increase, and `C.lost`.
    delivered: u64,
    delivered_at: u64,
    lost: u64,
    /// Number of segments in flight when this segment was sent, including this segment.
    in_flight: u64,
    app_limited: bool,
    /// True if the segment was sent more than once; it then gives no round-trip time (Karn).
    again: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Delivered,
    Lost,
}

/// A sender's record of deliveries; times are in ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    sent: VecDeque<Sent>,
    /// Number of the first segment in `sent`.
    base: u64,
    delivered: u64,
    delivered_at: u64,
    /// Send time of the newest delivered segment, or of the first one after a pause.
    first_at: u64,
    lost: u64,
    in_flight: u64,
    /// Samples are limited by the application until this number of segments is delivered; 0 for no limit.
    app_limited: u64,
    /// The last round trip with a full window ends when this number of segments is delivered.
    full_until: u64,
    /// All segments below this number that were sent only once are delivered or lost.
    judged: u64,
    min_rtt: Option<u64>,
    srtt: u64,
    /// State of RACK, which detects losses with SACK; `None` without SACK. The fields below are used only with RACK.
    rack: Option<Rack>,
    /// Segments that are SACKed but not acknowledged.
    sacked: RangeSet,
    /// Number of the segments in `sacked`.
    sacked_count: u64,
    /// Lost segments that have not been retransmitted yet.
    holes: BTreeSet<u64>,
    /// Retransmitted segments and their send times, in order of send time.
    again: VecDeque<(u64, u64)>,
    /// True if a retransmission was among the losses of the latest detection.
    lost_again: bool,
    /// Time in ns at which further segments count as lost, unless they arrive before.
    due: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Sample {
    newest: Option<Sent>,
    newest_number: u64,
    sent_once_at: Option<u64>,
    newly: u64,
}

impl Deliveries {
    /// Creates a record that also detects losses by RACK.
    pub(crate) fn with_rack() -> Self {
        Self {
            rack: Some(Rack::default()),
            ..Self::default()
        }
    }

    /// Records that segment `number` is sent; the window is `window` segments.
    pub(crate) fn on_sent(&mut self, now: u64, number: u64, window: f64) {
        let index = number.saturating_sub(self.base) as usize;
        let again = index < self.sent.len();
        // The retransmission of a delivered segment, after a timeout, is not recorded.
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
        if again && self.rack.is_some() {
            self.holes.remove(&number);
            self.again.push_back((now, number));
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

    /// Processes an ACK up to `ack`, without SACK.
    pub(crate) fn on_ack(&mut self, now: u64, ack: u64) -> AckSample {
        let mut sample = Sample::default();
        self.acknowledge(now, ack, &mut sample);
        self.measure(now, &sample);
        self.finish(now, ack, sample)
    }

    /// Processes an ACK up to `ack` with `blocks`, in segments relative to `ack`. While `recovering`, the reordering
    /// window is 0 unless reordering was seen. Calls `lost` for each segment that is now declared lost.
    pub(crate) fn on_selective_ack(
        &mut self,
        now: u64,
        ack: u64,
        blocks: &[(u32, u32)],
        recovering: bool,
        lost: impl FnMut(Lost),
    ) -> AckSample {
        let mut sample = Sample::default();
        self.acknowledge(now, ack, &mut sample);
        let end = self.end();
        for (start, stop) in absolute(ack, blocks) {
            let (mut number, stop) = (start.max(self.base), stop.min(end));
            while number < stop {
                number = match self.sacked.containing(number) {
                    Some((_, known)) => known,
                    None => {
                        self.sack(now, number, &mut sample);
                        number + 1
                    }
                };
            }
        }
        self.measure(now, &sample);
        if repeated(ack, blocks).is_some()
            && let Some(rack) = &mut self.rack
        {
            rack.on_duplicate(ack, end);
        }
        let lost_before = self.lost;
        self.detect(now, recovering, lost);
        AckSample {
            newly_lost: self.lost - lost_before,
            ..self.finish(now, ack, sample)
        }
    }

    fn sack(&mut self, now: u64, number: u64, sample: &mut Sample) {
        self.sacked.insert(number, number + 1);
        self.sacked_count += 1;
        let place = &mut self.sent[(number - self.base) as usize];
        let sent = *place;
        place.state = State::Delivered;
        self.deliver(now, number, sent, sample);
    }

    /// Marks all segments below `ack` as delivered.
    fn acknowledge(&mut self, now: u64, ack: u64, sample: &mut Sample) {
        while self.base < ack
            && let Some(sent) = self.sent.pop_front()
        {
            self.sacked_count -= u64::from(sent.state == State::Delivered);
            self.deliver(now, self.base, sent, sample);
            self.base += 1;
        }
        self.sacked.remove_below(self.base);
    }

    /// Number after the highest segment sent.
    fn end(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    fn deliver(&mut self, now: u64, number: u64, sent: Sent, sample: &mut Sample) {
        if sent.state == State::Delivered {
            return;
        }
        let min_rtt = self.min_rtt.unwrap_or(0);
        if sent.state == State::InFlight {
            self.in_flight -= 1;
        }
        if let Some(rack) = &mut self.rack {
            self.holes.remove(&number);
            rack.on_delivered(now, number, (sent.at, sent.again), min_rtt);
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

    /// Updates the round-trip times.
    fn measure(&mut self, now: u64, sample: &Sample) {
        if let Some(rtt) = sample.sent_once_at.map(|at| now - at) {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.srtt = match self.srtt {
                0 => rtt,
                srtt => srtt - srtt / 8 + rtt / 8,
            };
        }
    }

    fn finish(&mut self, now: u64, ack: u64, sample: Sample) -> AckSample {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
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
        let Some(newest) = sample.newest else {
            answer.prior = self.delivered;
            return answer;
        };
        self.first_at = self.first_at.max(newest.at);
        // The longer of send and ACK interval, because a burst of ACKs or of segments does not show the path's rate.
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

    /// Finds lost segments (RFC 8985, section 6.2, step 5), and sets the time of the next detection.
    pub(crate) fn detect(&mut self, now: u64, recovering: bool, mut each: impl FnMut(Lost)) {
        let Some(rack) = self.rack else {
            return;
        };
        let window = self.reordering_window(&rack, recovering);
        (self.due, self.lost_again) = (None, false);
        // Original transmissions and retransmissions are each in order of send time.
        let (end, mut number, mut judged) = (self.end(), self.judged.max(self.base), true);
        while number < end {
            let sent = self.sent[(number - self.base) as usize];
            if sent.state == State::InFlight && !sent.again {
                match rack.lost_at(number, sent.at, window) {
                    None => break,
                    Some(at) if at <= now => each(self.lose(number)),
                    waits => (judged, self.due) = (false, waits),
                }
            }
            number += 1;
            if judged {
                self.judged = number;
            }
        }
        while let Some(&(at, number)) = self.again.front() {
            let lost_at = rack.lost_at(number, at, window);
            match self.is_in_flight(number, at) {
                true if lost_at.is_none_or(|lost_at| lost_at > now) => break,
                true => {
                    self.lost_again = true;
                    each(self.lose(number));
                }
                false => {}
            }
            self.again.pop_front();
        }
        let again = self.again.iter();
        let waits = again.map_while(|&(at, number)| {
            let lost_at = rack.lost_at(number, at, window)?;
            Some(self.is_in_flight(number, at).then_some(lost_at))
        });
        self.due = waits.max().flatten().max(self.due);
    }

    fn reordering_window(&self, rack: &Rack, recovering: bool) -> u64 {
        let min_rtt = self.min_rtt.unwrap_or(0);
        rack.window(recovering, self.sacked_count, min_rtt, self.srtt)
    }

    /// True if segment `number`, retransmitted at `at`, is still in flight.
    fn is_in_flight(&self, number: u64, at: u64) -> bool {
        let index = number.checked_sub(self.base);
        let sent = index.and_then(|index| self.sent.get(index as usize));
        sent.is_some_and(|sent| sent.at == at && sent.state == State::InFlight)
    }

    /// Time in ns at which [`detect`](Self::detect) must be called; `None` if no call is needed.
    pub(crate) const fn due(&self) -> Option<u64> {
        self.due
    }

    /// True if the latest [`detect`](Self::detect) found a retransmission lost.
    pub(crate) const fn lost_again(&self) -> bool {
        self.lost_again
    }

    /// Lowest lost segment that has not been retransmitted yet.
    pub(crate) fn first_lost(&self) -> Option<u64> {
        self.holes.first().copied()
    }

    /// Time of the last transmission of the lowest unacknowledged segment, in ns.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.sent.front().map(|sent| sent.at)
    }

    /// True if segments beyond a missing one are SACKed.
    pub(crate) const fn has_gap(&self) -> bool {
        self.sacked_count > 0
    }

    /// True if RACK detects the losses.
    pub(crate) const fn has_rack(&self) -> bool {
        self.rack.is_some()
    }

    /// Updates RACK at the end of a recovery.
    pub(crate) fn on_recovered(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.on_recovered();
        }
    }

    /// Marks segment `number` as lost if it is in flight. Returns the record of its loss.
    pub(crate) fn lose(&mut self, number: u64) -> Lost {
        let place = &mut self.sent[(number - self.base) as usize];
        if place.state == State::InFlight {
            place.state = State::Lost;
            self.in_flight -= 1;
            self.lost += 1;
            if self.rack.is_some() {
                self.holes.insert(number);
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

    /// Processes a retransmission timeout: marks as lost the lowest segment, and all segments that should have arrived
    /// (RFC 8985, section 6.3). Without RACK, marks all segments.
    pub(crate) fn on_timeout(&mut self, now: u64) {
        let rack = self.rack;
        let window = rack.map_or(0, |rack| self.reordering_window(&rack, true));
        for number in self.base..self.end() {
            let at = self.sent[(number - self.base) as usize].at;
            if number == self.base || rack.is_none_or(|rack| rack.expires(at, window) <= now) {
                self.lose(number);
            }
        }
        self.due = None;
    }

    /// Marks samples as limited by the application, until all segments now in flight are delivered.
    pub(crate) fn limit_by_application(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1);
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

/// Converts blocks relative to `ack` to segment numbers. A duplicate segment may be below `ack`.
fn absolute(ack: u64, blocks: &[(u32, u32)]) -> impl Iterator<Item = (u64, u64)> {
    let segment = move |offset: u32| ack.saturating_add_signed(offset.cast_signed().into());
    let blocks = blocks.iter();
    blocks.map(move |&(start, stop)| (segment(start), segment(stop)))
}

/// Returns the segment that arrived twice, from a DSACK (RFC 2883): the first block, if it is below `ack` or inside the
/// second block.
pub(crate) fn repeated(ack: u64, blocks: &[(u32, u32)]) -> Option<u64> {
    let mut blocks = absolute(ack, blocks);
    let (start, stop) = blocks.next()?;
    let second = blocks.next();
    let within = second.is_some_and(|(from, to)| from <= start && stop <= to);
    (start < ack || within).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Processes an ACK up to `una` with these ranges.
    fn ack(deliveries: &mut Deliveries, now: u64, una: u64, ranges: &[(u64, u64)]) -> AckSample {
        lost(deliveries, now, una, ranges, false).0
    }

    /// Like `ack`; also returns the segments found lost.
    fn lost(
        deliveries: &mut Deliveries,
        now: u64,
        una: u64,
        ranges: &[(u64, u64)],
        recovering: bool,
    ) -> (AckSample, Vec<u64>) {
        let from = |number: u64| number.wrapping_sub(una) as u32;
        let blocks: Vec<_> = ranges.iter().map(|r| (from(r.0), from(r.1))).collect();
        let mut numbers = Vec::new();
        let sample = deliveries.on_selective_ack(now, una, &blocks, recovering, |lost| {
            numbers.push(lost.number);
        });
        (sample, numbers)
    }

    /// Creates a record with RACK; segments from 0 on were sent at these times in ms.
    fn rack(times: &[u64]) -> Deliveries {
        let mut deliveries = Deliveries::with_rack();
        for (number, at) in (0..).zip(times) {
            deliveries.on_sent(at * MS, number, 100.0);
        }
        deliveries
    }

    /// Creates a record of segments 0 to 9, sent at once or one every 10 ms.
    fn sent(spacing: u64) -> Deliveries {
        let mut deliveries = Deliveries::default();
        for number in 0..10 {
            deliveries.on_sent(number * spacing, number, 100.0);
        }
        deliveries
    }

    #[test]
    fn the_delivery_rate_is_that_of_the_acks_after_a_burst() {
        // Section 4.1.1.2: ten segments are sent at once; ACKs arrive 10 ms apart from 100 ms on. Nothing was delivered
        // when the tenth segment was sent, so the rate is 10 segments in 190 ms.
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
        // ACK thinning: ten segments are sent over 90 ms, and one ACK for all arrives 1 ms after the last. The rate is
        // 10 segments in the longer interval, max(90, 91) ms.
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
    fn three_segments_sacked_prove_a_loss_once_until_reordering_was_seen() {
        // RFC 8985, section 6.2, step 4.
        let mut deliveries = rack(&[0, 100, 100, 100, 100, 100, 100, 100]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        assert_eq!(
            lost(&mut deliveries, 200 * MS, 1, &[(3, 5)], false).1,
            [0; 0]
        );
        assert_eq!(deliveries.due(), Some(225 * MS), "min_RTT / 4 later");
        assert_eq!(
            lost(&mut deliveries, 201 * MS, 1, &[(3, 6)], false).1,
            [1, 2]
        );
        assert_eq!(
            lost(&mut deliveries, 202 * MS, 1, &[(3, 7)], true).1,
            [0; 0]
        );
        assert_eq!(
            (deliveries.in_flight(), deliveries.first_lost()),
            (1, Some(1))
        );
        deliveries.on_sent(203 * MS, 1, 100.0);
        assert_eq!(
            (deliveries.in_flight(), deliveries.first_lost()),
            (2, Some(2))
        );
        let sample = ack(&mut deliveries, 303 * MS, 8, &[]);
        assert_eq!((sample.total, sample.in_flight), (8, 0));
    }

    #[test]
    fn a_segment_that_is_late_for_a_quarter_of_the_minimum_round_trip_is_lost() {
        // RFC 8985, section 6.2, step 5: sent at 100 ms, RACK.rtt 102 ms, window 25 ms.
        let mut deliveries = rack(&[0, 100, 101]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        ack(&mut deliveries, 203 * MS, 1, &[(2, 3)]);
        assert_eq!(deliveries.due(), Some(227 * MS));
        deliveries.detect(227 * MS - 1, false, |lost| panic!("{lost:?}"));
        let mut found = Vec::new();
        deliveries.detect(227 * MS, false, |lost| found.push(lost.number));
        assert_eq!((found, deliveries.due()), (vec![1], None));
    }

    #[test]
    fn the_timer_is_for_the_segment_that_was_sent_last() {
        // RFC 8985, section 6.2, step 5: the timeout is the maximum over all segments.
        let mut deliveries = rack(&[0, 100, 110, 120]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        ack(&mut deliveries, 220 * MS, 1, &[(3, 4)]);
        assert_eq!(deliveries.due(), Some((110 + 100 + 25) * MS));
    }

    #[test]
    fn after_reordering_a_loss_waits_with_any_sack() {
        // RFC 8985, section 6.2, step 3: segment 2 arrives after segment 3 and was sent only once.
        let mut deliveries = rack(&[0, 100, 100, 100, 200, 200, 200, 200, 200]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        ack(&mut deliveries, 200 * MS, 1, &[(3, 4)]);
        ack(&mut deliveries, 201 * MS, 1, &[(2, 4)]);
        ack(&mut deliveries, 202 * MS, 4, &[]);
        assert_eq!(
            lost(&mut deliveries, 300 * MS, 4, &[(5, 9)], true).1,
            [0; 0]
        );
        assert_eq!(deliveries.due(), Some(325 * MS));
    }

    #[test]
    fn each_round_with_a_dsack_widens_the_window_and_sixteen_recoveries_shrink_it() {
        // Step 4.
        let mut rack = Rack::default();
        let window = |rack: &Rack| rack.window(false, 0, 100, 1000);
        assert_eq!(window(&rack), 25);
        rack.on_duplicate(10, 20);
        assert_eq!(window(&rack), 50);
        rack.on_duplicate(19, 30);
        assert_eq!(window(&rack), 50, "of the same round");
        rack.on_duplicate(20, 30);
        assert_eq!(window(&rack), 75);
        assert_eq!(rack.window(false, 0, 100, 60), 60, "at most SRTT");
        (0..15).for_each(|_| rack.on_recovered());
        assert_eq!(window(&rack), 75);
        rack.on_recovered();
        assert_eq!(window(&rack), 25);
    }

    #[test]
    fn a_dsack_is_below_the_number_or_within_the_second_block() {
        // RFC 2883, sections 4.1 and 4.2.
        let offset = |number: i64| number as u32;
        let dsack = (offset(-2), offset(-1));
        assert_eq!(repeated(10, &[dsack]), Some(8));
        assert_eq!(repeated(10, &[dsack, (3, 5)]), Some(8));
        assert_eq!(repeated(10, &[(3, 4), (2, 5)]), Some(13));
        assert_eq!(repeated(10, &[(3, 4), (6, 9)]), None);
        assert_eq!(repeated(10, &[]), None);
    }

    #[test]
    fn a_retransmission_is_lost_once_one_sent_after_it_has_arrived() {
        let mut deliveries = rack(&[0; 10]);
        let all = [(1, 10)];
        assert_eq!(lost(&mut deliveries, 100 * MS, 0, &all, false).1, [0]);
        deliveries.on_sent(100 * MS, 0, 100.0);
        assert_eq!(deliveries.first_lost(), None);
        deliveries.on_sent(101 * MS, 10, 100.0);
        assert_eq!(lost(&mut deliveries, 201 * MS, 0, &[(1, 11)], true).1, [0]);
        deliveries.on_sent(202 * MS, 0, 100.0);
        let sample = ack(&mut deliveries, 302 * MS, 11, &[]);
        assert_eq!((deliveries.first_lost(), sample.in_flight), (None, 0));
    }

    #[test]
    fn an_answer_before_the_minimum_round_trip_is_to_the_first_transmission() {
        // RFC 8985, section 6.2, step 2.
        let mut deliveries = rack(&[0, 100, 101, 102]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        deliveries.on_sent(190 * MS, 1, 100.0);
        // The ACK is for the first transmission of segment 1, so it does not show that 2 and 3 are lost.
        assert_eq!(lost(&mut deliveries, 200 * MS, 2, &[], true).1, [0; 0]);
        assert_eq!(deliveries.due(), None);
    }

    #[test]
    fn a_timeout_loses_the_first_segment_and_those_that_are_due() {
        // RFC 8985, section 6.3.
        let mut deliveries = rack(&[0, 100, 100, 350]);
        ack(&mut deliveries, 100 * MS, 1, &[]);
        deliveries.on_timeout(400 * MS);
        assert_eq!(
            (deliveries.in_flight(), deliveries.first_lost()),
            (1, Some(1))
        );
        let mut without = sent(0);
        without.on_timeout(400 * MS);
        assert_eq!(without.in_flight(), 0);
    }

    #[test]
    fn a_segment_resent_after_a_timeout_is_delivered_once() {
        let mut deliveries = sent(0);
        ack(&mut deliveries, 100 * MS, 0, &[(1, 10)]);
        deliveries.on_timeout(400 * MS);
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
