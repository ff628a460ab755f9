//! TCP with and without options and byte counting, chosen by type: plain TCP does not pay for what
//! it does not use.

use super::any_congestion::AnyCongestion;
use super::congestion::{Prototype, Reno};
use super::delivery::Deliveries;
use super::ecn::{Echo, EcnReceiver, EcnSender};
use super::options::{Options, TcpOptions};
use super::pacing::Pacer;
use super::ranges::RangeSet;
use super::scoreboard::Scoreboard;
use asymq_core::ack::MAX_SACK_RANGES;
use asymq_scenario::{Scenario, Tcp};

/// What a sender adds for its options.
pub(crate) trait Sending {
    type Options: Options;

    /// What is known to have arrived out of order; `None` without SACK.
    #[inline]
    fn scoreboard(&mut self) -> Option<&mut Scoreboard> {
        None
    }

    /// The options of segment `number`, sent at `now`, and before if it is sent `again`.
    #[inline]
    fn options(&mut self, _now: u64, _number: u64, _again: bool) -> Self::Options {
        Self::Options::default()
    }

    /// Segment `number` was sent; the window is of `window` segments.
    #[inline]
    fn sent(&mut self, _now: u64, _number: u64, _window: f64) {}

    /// Whether anything below takes what an ACK says beside its number.
    #[inline]
    fn takes_feedback(&self) -> bool {
        false
    }

    /// What was delivered and lost, if the congestion control asks.
    #[inline]
    fn deliveries(&mut self) -> Option<&mut Deliveries> {
        None
    }

    /// ECN, if both ends have it.
    #[inline]
    fn ecn(&mut self) -> Option<&mut EcnSender> {
        None
    }

    /// Whether a mark in the window of segment `una` was answered.
    #[inline]
    fn has_answered(&self, _una: u64) -> bool {
        false
    }

    /// Whether the pacer lets a segment leave at `now`.
    #[inline]
    fn may_send(&mut self, _now: u64) -> bool {
        true
    }

    /// When the pacer lets the segment leave that it held back; `u64::MAX` if there is none.
    #[inline]
    fn wakes(&self) -> u64 {
        u64::MAX
    }

    /// That time has come.
    #[inline]
    fn wake(&mut self) {}

    /// Sets the pacer's rate, from the smoothed round-trip time in ns.
    #[inline]
    fn pace(&mut self, _rate: impl FnOnce(u64) -> Option<f64>) {}

    /// Whether round-trip times are read off timestamps.
    #[inline]
    fn has_timestamps(&self) -> bool {
        false
    }

    /// When the segment was sent that the ACK of `ack` answers, if an RTT sample is due; `end` is
    /// one past the highest sent so far.
    #[inline]
    fn sent_at(&mut self, _ack: u64, _end: u64, _options: &Self::Options) -> Option<u64> {
        None
    }
}

/// What a receiver adds for its options.
pub(crate) trait Receiving {
    type Options: Options;

    /// Whether an ACK that is held back must go before a segment with these options is taken.
    #[inline]
    fn changes(&self, _options: &Self::Options) -> bool {
        false
    }

    /// Segment `number` has arrived; `acked` is the last acknowledgement number sent, `next` the
    /// lowest segment missing now.
    #[inline]
    fn arrived(&mut self, _number: u64, _acked: u64, _next: u64, _options: &Self::Options) {}

    /// The options of an ACK of all below `next`.
    #[inline]
    fn options(&mut self, _now: u64, _next: u64) -> Self::Options {
        Self::Options::default()
    }
}

/// Nothing but acknowledgement numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nothing;

impl Sending for Nothing {
    type Options = ();
}

impl Receiving for Nothing {
    type Options = ();
}

/// The parts of TCP that all connections of a run use.
pub(crate) trait Variant: 'static {
    type Options: Options;
    type Congestion: Prototype;
    type Sending: Sending<Options = Self::Options>;
    type Receiving: Receiving<Options = Self::Options>;
    /// A new sender's part.
    fn sending(scenario: &Scenario) -> Self::Sending;
    /// A new receiver's part.
    fn receiving(scenario: &Scenario) -> Self::Receiving;
}

/// Reno's window and no options: what most experiments need, without the cost of the rest.
pub(crate) struct Plain;

impl Variant for Plain {
    type Options = ();
    type Congestion = Reno;
    type Sending = Nothing;
    type Receiving = Nothing;

    fn sending(_scenario: &Scenario) -> Nothing {
        Nothing
    }

    fn receiving(_scenario: &Scenario) -> Nothing {
        Nothing
    }
}

/// Every window and option.
pub(crate) struct Full;

impl Variant for Full {
    type Options = TcpOptions;
    type Congestion = AnyCongestion;
    type Sending = FullSending;
    type Receiving = FullReceiving;

    fn sending(scenario: &Scenario) -> FullSending {
        FullSending {
            scoreboard: scenario.sack.then(Scoreboard::default),
            timestamps: scenario.timestamps,
            sample_beyond: 0,
            ecn: scenario.tcp_ecn.then(EcnSender::default),
            deliveries: match scenario.tcp {
                // As Linux' RACK repairs for BBR; the others do as RFC 6675 says.
                Tcp::Bbr3 => Some(Deliveries::with_repairs()),
                _ => scenario.measures_deliveries().then(Deliveries::default),
            },
            pacer: scenario.paces().then(Pacer::default),
        }
    }

    fn receiving(scenario: &Scenario) -> FullReceiving {
        let echo = match scenario.tcp {
            Tcp::Dctcp => Echo::Exact,
            _ => Echo::Latched,
        };
        FullReceiving {
            ecn: scenario.tcp_ecn.then(|| EcnReceiver::new(echo)),
            ..FullReceiving::new(
                scenario.sack,
                scenario.timestamps,
                scenario.payload() as u16,
            )
        }
    }
}

/// See [`Full`].
#[derive(Clone, Debug, Default)]
pub(crate) struct FullSending {
    pub(crate) scoreboard: Option<Scoreboard>,
    pub(crate) timestamps: bool,
    /// One sample per window, as RFC 6298's constants presume (RFC 7323, appendix G).
    pub(crate) sample_beyond: u64,
    pub(crate) ecn: Option<EcnSender>,
    pub(crate) deliveries: Option<Deliveries>,
    pub(crate) pacer: Option<Pacer>,
}

impl Sending for FullSending {
    type Options = TcpOptions;

    fn scoreboard(&mut self) -> Option<&mut Scoreboard> {
        self.scoreboard.as_mut()
    }

    fn options(&mut self, now: u64, number: u64, again: bool) -> TcpOptions {
        let mut options = TcpOptions::new(self.timestamps.then_some((clock(now), 0)), 0);
        if let Some(ecn) = &mut self.ecn {
            ecn.mark(&mut options, number, again);
        }
        options
    }

    fn sent(&mut self, now: u64, number: u64, window: f64) {
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.on_sent(now, number, window);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now);
        }
    }

    fn takes_feedback(&self) -> bool {
        self.ecn.is_some() || self.deliveries.is_some()
    }

    fn deliveries(&mut self) -> Option<&mut Deliveries> {
        self.deliveries.as_mut()
    }

    fn ecn(&mut self) -> Option<&mut EcnSender> {
        self.ecn.as_mut()
    }

    fn has_answered(&self, una: u64) -> bool {
        self.ecn.is_some_and(|ecn| ecn.has_answered(una))
    }

    fn may_send(&mut self, now: u64) -> bool {
        self.pacer.as_mut().is_none_or(|pacer| pacer.may_send(now))
    }

    fn wakes(&self) -> u64 {
        self.pacer.map_or(u64::MAX, |pacer| pacer.wakes())
    }

    fn wake(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.wake();
        }
    }

    fn pace(&mut self, rate: impl FnOnce(u64) -> Option<f64>) {
        let srtt = self.deliveries.as_ref().map_or(0, Deliveries::smoothed);
        if let Some(pacer) = &mut self.pacer
            && let Some(rate) = rate(srtt)
        {
            pacer.set_rate(rate);
        }
    }

    fn has_timestamps(&self) -> bool {
        self.timestamps
    }

    fn sent_at(&mut self, ack: u64, end: u64, options: &TcpOptions) -> Option<u64> {
        let (_, echo) = options.timestamps.filter(|_| ack > self.sample_beyond)?;
        self.sample_beyond = end;
        Some(u64::from(echo) * TICK)
    }
}

/// The timestamp clock's tick in ns.
const TICK: u64 = 1_000_000;

/// The timestamp clock. It wraps after 49 days, and the longest run is ten hours: neither wrapping
/// nor PAWS arises.
fn clock(now: u64) -> u32 {
    (now / TICK) as u32
}

/// See [`Full`].
#[derive(Clone, Debug)]
pub(crate) struct FullReceiving {
    sack: bool,
    timestamps: bool,
    mss: u16,
    /// What has arrived beyond the lowest missing segment.
    beyond: RangeSet,
    /// Where the ranges of `beyond` begin, the latest to have grown first.
    latest: Vec<u64>,
    /// TS.Recent (RFC 7323, section 4.3).
    recent: u32,
    ecn: Option<EcnReceiver>,
}

impl FullReceiving {
    /// A receiver that has received nothing.
    pub(crate) fn new(sack: bool, timestamps: bool, mss: u16) -> Self {
        Self {
            sack,
            timestamps,
            mss,
            beyond: RangeSet::default(),
            latest: Vec::new(),
            recent: 0,
            ecn: None,
        }
    }
}

impl Receiving for FullReceiving {
    type Options = TcpOptions;

    fn changes(&self, options: &TcpOptions) -> bool {
        self.ecn.is_some_and(|ecn| ecn.changes(options))
    }

    fn arrived(&mut self, number: u64, acked: u64, next: u64, options: &TcpOptions) {
        if let Some(ecn) = &mut self.ecn {
            ecn.arrived(options);
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
        self.beyond.remove_below(next);
        if number > next {
            let (start, end) = self.beyond.insert(number, number + 1);
            self.latest.retain(|&other| other < start || other >= end);
            self.latest.insert(0, start);
        }
        self.latest.retain(|&start| start >= next);
    }

    fn options(&mut self, now: u64, next: u64) -> TcpOptions {
        let timestamps = self.timestamps.then(|| (clock(now), self.recent));
        let mut options = TcpOptions::new(timestamps, self.mss);
        // RFC 2018, section 3: as many blocks as fit, and timestamps leave room for three.
        if let Some(ecn) = &mut self.ecn {
            ecn.mark(&mut options);
        }
        let room = MAX_SACK_RANGES - usize::from(self.timestamps);
        for &start in self.latest.iter().take(room) {
            if let Some((start, end)) = self.beyond.containing(start) {
                options.push_sack(start - next, end - next);
            }
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Layout, Segment};
    use crate::tcp::Receiver;
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_core::Instant;
    use asymq_core::packet::Packet;
    use asymq_scenario::Toward;

    /// The blocks of the ACK after these arrivals, as (start, end) segments.
    fn blocks(receiving: &mut FullReceiving, arrivals: &[u64], next: u64) -> Vec<(u64, u64)> {
        for &number in arrivals {
            receiving.arrived(number, next, next, &TcpOptions::default());
        }
        let options = receiving.options(0, next);
        let absolute =
            |&(start, end): &(u32, u32)| (next + u64::from(start), next + u64::from(end));
        options.blocks().iter().map(absolute).collect()
    }

    #[test]
    fn the_first_block_holds_the_latest_segment_and_the_others_follow_by_age() {
        // RFC 2018, section 4.
        let mut receiving = FullReceiving::new(true, false, 1000);
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
        // Timestamps shorten segments; blocks and numbers must agree on how long they are.
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
            .map(|ack| layout.packet(*ack, Toward::Up, Instant::ZERO).ack_info())
            .collect();
        let (hole, closed) = (acks[0].unwrap(), acks[1].unwrap());
        assert_eq!(hole.ranges().len(), 1);
        assert_eq!(hole.ranges()[0].end, closed.ack);
        assert!(closed.supersedes(&hole, None));
    }

    #[test]
    fn timestamps_leave_room_for_three_blocks() {
        let mut receiving = FullReceiving::new(true, true, 1000);
        assert_eq!(blocks(&mut receiving, &[3, 5, 7, 9], 1).len(), 3);
    }

    #[test]
    fn the_echo_is_of_the_segment_that_advanced_the_window() {
        // RFC 7323, section 4.3: of delayed ACKs the first, and nothing newer while a hole is open.
        let mut receiving = FullReceiving::new(false, true, 1000);
        let mut echo = |number, last_ack, value| {
            let options = TcpOptions::new(Some((value, 0)), 0);
            receiving.arrived(number, last_ack, number, &options);
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
