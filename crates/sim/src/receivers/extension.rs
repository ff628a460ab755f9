//! A receiver's state for TCP options and ECN.

use crate::ecn::EcnReceiver;
use crate::packets::{HostClock, Options, RangeSet, TcpOptions};
use asymq_core::decide::ack::MAX_SACK_RANGES;
use asymq_core::packet::flags;

/// A receiver's state with all options.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullReceiving {
    sack: bool,
    timestamps: bool,
    /// PINGs of a QUIC receiver. QUIC retransmits with new numbers, so gaps remain; only the first segment after a gap
    /// is acknowledged at once (RFC 9000, section 13.2.1). `None` for TCP, which acknowledges each segment after a gap
    /// at once.
    pub(super) quic: Option<Pings>,
    /// Delay of ACKs as in Linux; `None` for other receivers.
    delay: Option<AckDelay>,
    /// True if the latest segment ends a burst (PSH).
    pushed: bool,
    pub(super) clock: HostClock,
    mss: u16,
    /// Lowest missing segment.
    next: u64,
    /// Segments received beyond `next`.
    beyond: RangeSet,
    /// Segment that arrived twice, for the DSACK (RFC 2883) in the next ACK.
    duplicate: Option<u64>,
    /// Starts of the ranges in `beyond`, most recently extended first.
    latest: Vec<u64>,
    /// TS.Recent (RFC 7323, section 4.3).
    recent: u32,
    ecn: Option<EcnReceiver>,
}

impl FullReceiving {
    pub(crate) fn new(sack: bool, timestamps: bool, mss: u16, ecn: Option<EcnReceiver>) -> Self {
        Self {
            sack,
            timestamps,
            mss,
            ecn,
            ..Self::default()
        }
    }

    /// Returns a receiver that delays ACKs as Linux does.
    pub(crate) fn with_linux_delay(self) -> Self {
        Self {
            delay: Some(AckDelay::default()),
            ..self
        }
    }

    /// Maximum delay of an ACK in ns: Linux's estimate, at least `least`. QUIC and other receivers use `least`.
    pub(super) fn ack_timeout(&self, least: u64) -> u64 {
        let delay = self.delay.filter(|_| self.quic.is_none());
        delay.map_or(least, |delay| delay.timeout().max(least))
    }

    /// Returns the maximum delay in ns of the ACK of a segment beyond a gap; `None` if the ACK must leave at once.
    /// `waiting` segments are unacknowledged; `next` is missing.
    pub(super) fn compression(&mut self, next: u64, waiting: u32) -> Option<u64> {
        let delay = self.delay.as_mut().filter(|_| self.quic.is_none())?;
        delay.compression(next, waiting)
    }

    /// Processes the expiry of the delayed-ACK timer.
    pub(super) fn on_ack_timeout(&mut self) {
        if let Some(delay) = &mut self.delay {
            delay.on_timeout();
        }
    }

    /// True if a delayed ACK must be sent before a segment with these options is processed.
    pub(super) fn changes(&self, options: &TcpOptions) -> bool {
        self.ecn.is_some_and(|ecn| ecn.changes(options))
    }

    /// True if the latest segment must be acknowledged at once.
    pub(super) fn is_due(&self) -> bool {
        self.delay.is_some_and(|delay| delay.quick > 0)
            || self.pushed
            || self.ecn.is_some_and(|ecn| ecn.is_due())
    }

    /// Processes the arrival of segment `number`. `acked` is the last acknowledgement number sent; `next` is the lowest
    /// missing segment after the arrival.
    pub(super) fn arrived(
        &mut self,
        now: u64,
        number: u64,
        (acked, next): (u64, u64),
        options: &TcpOptions,
    ) {
        // Ignores segments out of order, as Linux does: a long recovery then counts as a pause, and starts quick ACKs.
        if let Some(delay) = &mut self.delay
            && (self.next..next).contains(&number)
        {
            delay.on_segment(now, number);
        }
        if let Some(pings) = &mut self.quic {
            pings.last = now;
        }
        self.pushed = options.flags & flags::PSH != 0;
        if let Some(ecn) = &mut self.ecn {
            ecn.arrived(number, self.mss.into(), options);
        }
        if let Some((value, _)) = options.timestamps
            && value >= self.recent
            && number <= acked
        {
            self.recent = value;
        }
        if !self.sack {
            return;
        }
        if number < self.next || self.beyond.containing(number).is_some() {
            self.duplicate = Some(number);
            if number < self.next
                && let Some(delay) = &mut self.delay
            {
                delay.on_duplicate();
            }
        }
        self.next = next;
        self.beyond.remove_below(next);
        if number > next {
            let (start, end) = self.beyond.insert(number, number + 1);
            self.latest.retain(|&other| other < start || other >= end);
            self.latest.insert(0, start);
        }
        self.latest.retain(|&start| start >= next);
    }

    /// Returns the options of an ACK up to `next`.
    fn ack_options(&mut self, now: u64, next: u64) -> TcpOptions {
        if let Some(delay) = &mut self.delay {
            delay.quick = delay.quick.saturating_sub(1);
        }
        let timestamps = self
            .timestamps
            .then(|| (self.clock.stamp(now), self.recent));
        let mut options = TcpOptions::new(timestamps, self.mss);
        if let Some(ecn) = &mut self.ecn {
            ecn.mark(&mut options);
        }
        // RFC 2018, section 3: as many blocks as fit. Timestamps leave room for three.
        let mut room = MAX_SACK_RANGES - usize::from(self.timestamps);
        if let Some(number) = self.duplicate.take() {
            options.push_sack(number.wrapping_sub(next), (number + 1).wrapping_sub(next));
            room -= 1;
        }
        for &start in self.latest.iter().take(room) {
            if let Some((start, end)) = self.beyond.containing(start) {
                options.push_sack(start - next, end - next);
            }
        }
        options.keep_what_fits();
        if let Some(pings) = &mut self.quic {
            pings.mark(now, &mut options);
        }
        options
    }
}

/// PINGs in a QUIC receiver's ACKs. The sender acknowledges these ACKs, so that the receiver can discard ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pings {
    /// Number of ACKs per PING.
    every: u32,
    /// Number of ACKs since the last PING.
    since: u32,
    /// Arrival of the last packet in ns.
    last: u64,
}

impl Pings {
    /// Minimum ACK delay in ns whose encoding takes two bytes: 64 units of 8 us (RFC 9000, section 18.2).
    const LONG: u64 = 64 * 8_000;

    pub(super) fn new(every: u32) -> Self {
        Self {
            every,
            since: 0,
            last: 0,
        }
    }

    /// Adds the PING and the additional bytes to an ACK's options.
    fn mark(&mut self, now: u64, options: &mut TcpOptions) {
        self.since += 1;
        options.ping = self.since == self.every;
        if options.ping {
            self.since = 0;
        }
        options.added = u8::from(options.ping) + u8::from(now - self.last >= Self::LONG);
    }
}

/// Linux's delay of ACKs, adapted to the time between segments. Times are in ns.
#[derive(Clone, Copy, Debug, Default)]
struct AckDelay {
    /// Number of remaining quick ACKs, which are sent at once.
    quick: u32,
    /// Adapted delay of an ACK (`ato`); 0 before the first data.
    timeout: u64,
    /// Arrival of the last segment.
    last: u64,
    /// The round-trip time of the handshake: from the SYN to the first data.
    rtt: u64,
    /// The lowest missing segment, and the number of its duplicate ACKs, up to the limit.
    duplicates: (u64, u32),
}

impl AckDelay {
    /// Number of ACKs sent at once at the start, after a pause and after a duplicate (`TCP_MAX_QUICKACKS`).
    const QUICK: u32 = 16;
    /// Bounds of an ACK's delay in ns (`TCP_ATO_MIN` and `TCP_DELACK_MAX`).
    const MIN: u64 = 40_000_000;
    const MAX: u64 = 200_000_000;

    /// Number of duplicate ACKs per missing segment that are sent at once (`TCP_FASTRETRANS_THRESH`).
    const DUPLICATES: u32 = 3;
    /// Divisor of the round-trip time. The quotient, at most `COMPRESSION`, plus `SLACK` is the delay of later
    /// duplicate ACKs in ns (`tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns`).
    const COMPRESSION_PART: u64 = 20;
    const COMPRESSION: u64 = 1_000_000;
    const SLACK: u64 = 100_000;
    /// Maximum number of segments per compressed ACK (`tcp_comp_sack_nr`).
    const COMPRESSED: u32 = 44;

    /// Returns the delay of a duplicate ACK after the first three (`__tcp_ack_snd_check`); `None` for no delay.
    fn compression(&mut self, next: u64, waiting: u32) -> Option<u64> {
        if self.quick > 0 || waiting > Self::COMPRESSED {
            return None;
        }
        if self.duplicates.0 != next {
            self.duplicates = (next, 0);
        }
        if self.duplicates.1 < Self::DUPLICATES {
            self.duplicates.1 += 1;
            return None;
        }
        Some((self.rtt / Self::COMPRESSION_PART).min(Self::COMPRESSION) + Self::SLACK)
    }

    /// Processes the arrival of a segment (`tcp_event_data_recv`).
    fn on_segment(&mut self, now: u64, number: u64) {
        let gap = now - self.last;
        self.last = now;
        if self.timeout == 0 {
            self.quick = Self::QUICK;
            if number > 0 {
                (self.rtt, self.timeout) = (gap, Self::MIN);
            }
        } else if gap <= Self::MIN / 2 {
            self.timeout = self.timeout / 2 + Self::MIN / 2;
        } else if gap < self.timeout {
            self.timeout = (self.timeout / 2 + gap).min(self.retransmission_timeout());
        } else if gap > self.retransmission_timeout() {
            self.quick = Self::QUICK;
        }
    }

    /// Starts quick ACKs at a segment that has arrived before (`tcp_enter_quickack_mode`).
    fn on_duplicate(&mut self) {
        (self.quick, self.timeout) = (Self::QUICK, Self::MIN);
    }

    /// Doubles the delay after the timer has sent an ACK.
    fn on_timeout(&mut self) {
        self.timeout = (2 * self.timeout).min(self.retransmission_timeout());
    }

    /// Retransmission timeout of the receiver itself, whose only sample is the handshake.
    fn retransmission_timeout(&self) -> u64 {
        self.rtt + Self::MAX.max(2 * self.rtt)
    }

    fn timeout(&self) -> u64 {
        self.timeout.min(self.rtt).clamp(Self::MIN, Self::MAX)
    }
}

/// A receiver's option state: [`FullReceiving`], or `()` in plain TCP.
pub(crate) trait Receiving {
    type Options: Options;

    /// The state with all options; `None` in plain TCP.
    #[inline]
    fn full(&mut self) -> Option<&mut FullReceiving> {
        None
    }

    /// Returns the options of an ACK up to `next`.
    #[inline]
    fn options(&mut self, now: u64, next: u64) -> Self::Options {
        match self.full() {
            Some(full) => Self::Options::of(full.ack_options(now, next)),
            None => Self::Options::default(),
        }
    }
}

impl Receiving for () {
    type Options = ();
}

impl Receiving for FullReceiving {
    type Options = TcpOptions;

    #[inline]
    fn full(&mut self) -> Option<&mut FullReceiving> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Kind, Layout, Segment};
    use crate::receivers::Receiver;
    use crate::variant::{Full, Variant as _};
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_core::packet::Packet;
    use asymq_core::{Duration, Instant};
    use asymq_scenario::{AckPolicy, Direction};

    const MS: u64 = 1_000_000;

    /// Returns the blocks of the ACK after these arrivals, as (start, end) in segments.
    fn blocks(receiving: &mut FullReceiving, arrivals: &[u64], next: u64) -> Vec<(u64, u64)> {
        for &number in arrivals {
            receiving.arrived(0, number, (next, next), &TcpOptions::default());
        }
        let options = receiving.options(0, next);
        let absolute =
            |&(start, end): &(u32, u32)| (next + u64::from(start), next + u64::from(end));
        options.blocks().iter().map(absolute).collect()
    }

    #[test]
    fn the_first_block_holds_the_latest_segment_and_the_others_follow_by_age() {
        // RFC 2018, section 4.
        let mut receiving = FullReceiving::new(true, false, 1000, None);
        assert_eq!(blocks(&mut receiving, &[3], 1), [(3, 4)]);
        assert_eq!(blocks(&mut receiving, &[5], 1), [(5, 6), (3, 4)]);
        assert_eq!(
            blocks(&mut receiving, &[7, 9], 1),
            [(9, 10), (7, 8), (5, 6), (3, 4)]
        );
        assert_eq!(blocks(&mut receiving, &[4], 1), [(3, 6), (9, 10), (7, 8)]);
        assert_eq!(blocks(&mut receiving, &[11, 13], 1).len(), 4, "what fits");
        assert_eq!(
            blocks(&mut receiving, &[2], 8),
            [(13, 14), (11, 12), (9, 10)]
        );
    }

    #[test]
    fn a_number_that_closes_the_hole_covers_the_block_beyond_it() {
        // Timestamps shorten segments. SACK blocks and sequence numbers must use equal lengths.
        let args = ScenarioArgs {
            simulated: SimulatedArgs {
                sack: Some(true),
                timestamps: Some(true),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        let layout = Layout::new(0, scenario.payload(), scenario.ack_len(), 0);
        let mut receiver = Receiver::new(scenario.ack_policy, Full::receiving(&scenario));
        let mut out: Vec<Segment<TcpOptions>> = Vec::new();
        for number in [0, 1, 3, 2] {
            let options = TcpOptions::new(Some((1, 0)), 0);
            receiver.on_segment(0, Segment::with(Kind::Data, number, options), &mut out);
        }
        let acks: Vec<_> = out[2..]
            .iter()
            .map(|ack| layout.packet(*ack, Direction::Up, Instant::ZERO).ack_info())
            .collect();
        let (hole, closed) = (acks[0].unwrap(), acks[1].unwrap());
        assert_eq!(hole.ranges().len(), 1);
        assert_eq!(hole.ranges()[0].end, closed.ack);
        assert_eq!(closed.keeps(&hole, None), None);
    }

    #[test]
    fn a_quic_receiver_reports_a_gap_once_and_a_tcp_receiver_with_each_segment() {
        let acks = |quic: bool| {
            let policy = AckPolicy::Delayed(Duration::from_millis(25));
            let mut receiver = Receiver::new(policy, FullReceiving::new(true, false, 1000, None));
            if quic {
                receiver.acknowledge_as_quic(0);
            }
            let mut out = Vec::new();
            // Segment 3 is lost and sent again.
            for number in [0, 1, 2, 4, 5, 6, 7, 8, 3, 9] {
                receiver.on_segment(0, Segment::new(Kind::Data, number), &mut out);
            }
            out.len()
        };
        assert_eq!((acks(true), acks(false)), (6, 8));
    }

    #[test]
    fn a_ping_and_a_long_delay_add_a_byte_each_to_an_ack_of_quic() {
        let mut receiving = FullReceiving::new(true, false, 1000, None);
        receiving.quic = Some(Pings::new(3));
        let added = |(last, now): (u64, u64)| {
            receiving.arrived(last, 1, (1, 1), &TcpOptions::default());
            let options = receiving.ack_options(now, 1);
            (options.ping, options.added)
        };
        let times = [
            (0, 0),
            (0, 511_999),
            (0, 512_000),
            (MS, MS),
            (MS, 2 * MS),
            (MS, MS),
        ];
        assert_eq!(
            times.map(added),
            [
                (false, 0),
                (false, 0),
                (true, 2),
                (false, 0),
                (false, 1),
                (true, 1)
            ]
        );
    }

    /// Returns a Linux receiver with a round-trip time of 300 ms, after its quick ACKs.
    fn linux() -> Receiver<FullReceiving> {
        let receiving = FullReceiving::new(true, false, 1000, None).with_linux_delay();
        let mut receiver = Receiver::new(AckPolicy::LINUX, receiving);
        for number in 0..=16 {
            let now = if number == 0 { 0 } else { 300 * MS };
            receiver.on_segment(now, Segment::new(Kind::Data, number), &mut Vec::new());
        }
        receiver
    }

    #[test]
    fn an_ack_of_linux_waits_longer_once_the_timer_has_sent_one() {
        let (mut receiver, mut out) = (linux(), Vec::new());
        receiver.on_segment(360 * MS, Segment::new(Kind::Data, 17), &mut out);
        assert_eq!((out.len(), receiver.deadline()), (0, 400 * MS));
        receiver.on_timeout(400 * MS, &mut out);
        // Segments arrive 60 ms apart. The timeout is 80 ms, then half of that plus the gap.
        receiver.on_segment(420 * MS, Segment::new(Kind::Data, 18), &mut out);
        assert_eq!((out.len(), receiver.deadline()), (1, 520 * MS));
        receiver.on_segment(480 * MS, Segment::new(Kind::Data, 19), &mut out);
        assert_eq!((out.len(), receiver.deadline()), (2, u64::MAX));
        // Segments close together shorten the timeout again; a pause starts quick ACKs.
        (20..40).for_each(|n| receiver.on_segment(480 * MS, Segment::new(Kind::Data, n), &mut out));
        receiver.on_segment(490 * MS, Segment::new(Kind::Data, 40), &mut out);
        assert_eq!(receiver.deadline() / MS, 530);
        out.clear();
        (41..60)
            .for_each(|n| receiver.on_segment(9000 * MS, Segment::new(Kind::Data, n), &mut out));
        assert_eq!(out.len(), 16 + 1);
    }

    #[test]
    fn a_segment_that_ends_a_burst_is_acknowledged_at_once() {
        let (mut receiver, mut out) = (linux(), Vec::new());
        let mut options = TcpOptions::default();
        options.flags = flags::PSH;
        receiver.on_segment(310 * MS, Segment::with(Kind::Data, 17, options), &mut out);
        assert_eq!(out.len(), 1);
        receiver.on_segment(311 * MS, Segment::new(Kind::Data, 18), &mut out);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn duplicate_acks_after_the_third_wait_a_millisecond_for_each_other() {
        // Segment 17 is missing. The round-trip time is 300 ms, so the delay is 1 ms and the timer's slack.
        let (mut receiver, mut out) = (linux(), Vec::new());
        let mut arrive = |number: u64, at: u64, out: &mut Vec<_>| {
            receiver.on_segment(at, Segment::new(Kind::Data, number), out);
            (out.len(), receiver.deadline())
        };
        for number in 18..=20 {
            assert_eq!(arrive(number, 310 * MS, &mut out).1, u64::MAX);
        }
        assert_eq!(arrive(21, 311 * MS, &mut out), (3, 312 * MS + MS / 10));
        assert_eq!(arrive(22, 312 * MS, &mut out), (3, 312 * MS + MS / 10));
        // The missing segment is acknowledged at once, together with all waiting ones.
        assert_eq!(arrive(17, 312 * MS, &mut out), (4, u64::MAX));
        assert_eq!(out[3].number(), 23);
    }

    #[test]
    fn a_compressed_ack_covers_at_most_44_segments_and_does_not_lengthen_delayed_acks() {
        let (mut receiver, mut out) = (linux(), Vec::new());
        let arrivals = (18..=20).chain(21..=65);
        arrivals.for_each(|n| receiver.on_segment(310 * MS, Segment::new(Kind::Data, n), &mut out));
        assert_eq!((out.len(), receiver.deadline()), (4, u64::MAX));
        receiver.on_segment(310 * MS, Segment::new(Kind::Data, 66), &mut out);
        receiver.on_timeout(receiver.deadline(), &mut out);
        receiver.on_segment(312 * MS, Segment::new(Kind::Data, 17), &mut out);
        assert_eq!((out.len(), receiver.deadline()), (6, u64::MAX));
        receiver.on_segment(320 * MS, Segment::new(Kind::Data, 67), &mut out);
        assert_eq!(receiver.deadline(), 360 * MS);
    }

    #[test]
    fn a_segment_that_arrives_again_starts_quick_acks() {
        let (mut receiver, mut out) = (linux(), Vec::new());
        (10..20).for_each(|n| receiver.on_segment(310 * MS, Segment::new(Kind::Data, n), &mut out));
        assert_eq!(out.len(), 7 + 3);
    }

    #[test]
    fn timestamps_leave_room_for_three_blocks() {
        let mut receiving = FullReceiving::new(true, true, 1000, None);
        assert_eq!(blocks(&mut receiving, &[3, 5, 7, 9], 1).len(), 3);
    }

    #[test]
    fn the_echo_is_of_the_segment_that_advanced_the_window() {
        // RFC 7323, section 4.3: a delayed ACK echoes its first segment; the echo is constant while a hole is open.
        let mut receiving = FullReceiving::new(false, true, 1000, None);
        let mut echo = |number, last_ack, value| {
            let options = TcpOptions::new(Some((value, 0)), 0);
            receiving.arrived(0, number, (last_ack, number), &options);
            receiving
                .options(0, number)
                .timestamps
                .map(|(_, echo)| echo)
        };
        assert_eq!(echo(1, 1, 10), Some(10));
        assert_eq!(echo(2, 1, 20), Some(10));
        assert_eq!(echo(4, 3, 40), Some(10));
        assert_eq!(echo(3, 3, 50), Some(50));
    }
}
