//! AQM of one flow queue. The AQM learns a target of the sojourn time from the effect of each signal on the queue.
//!
//! A queue that stays above its target gets one signal (a CE mark or a drop), and then time to respond. If the queue
//! ran empty after the signal, the target was too low and rises. If a queue remained all the time, it only added delay,
//! and the target falls. So the target approaches the queue length that the sender's window needs. This length depends
//! on round-trip time and congestion control, which are not measured.

use crate::{Duration, FULL_PACKET, Instant};

/// Minimum sojourn time for a signal, in times of a full packet. Marks on shorter queues would leave slow links idle.
const MIN_PACKETS: u64 = 2;

/// Time from a signal until its effect is evaluated: several round trips of most senders.
const EPOCH: Duration = Duration::from_millis(1250);

/// Maximum idle time that counts. Longer pauses come from the application.
const MAX_IDLE: Duration = Duration::from_millis(500);

/// An epoch with at most this idle time counts as busy.
const MIN_IDLE: Duration = Duration::from_millis(3);

/// Maximum number of halvings of the interval between signals, for a queue that does not respond.
const MAX_HALVINGS: u8 = 7;

/// Parameters common to all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetParams {
    /// Initial target of a new flow.
    pub start: Duration,
    /// Minimum of learnt targets.
    pub min: Duration,
    /// Maximum of learnt targets.
    pub max: Duration,
    /// Time for which a queue must exceed its target before the first signal; zero disables signals.
    pub interval: Duration,
    /// Bytes that must be queued behind a dropped packet, so that the sender detects the loss.
    pub floor: u64,
    /// Transmission time of a full packet.
    pub full_packet: Duration,
}

impl TargetParams {
    /// For a flow without a learnt target: true if a packet exceeds the bounds of a signal.
    #[inline]
    pub(super) fn start_is_exceeded(&self, sojourn: Duration, left: u64, sends: Sends) -> bool {
        // The first comparison suffices for most packets.
        sojourn > self.full_packet * MIN_PACKETS && self.interval > Duration::ZERO && {
            let (target, floor) = sends.bounds(self.start, sojourn, self);
            sojourn > target && left >= floor
        }
    }
}

/// Target of small packets, in transmission times of a full packet.
pub(super) const SMALL_WAIT: u64 = 8;

/// Kind of a flow's packets; determines the bounds of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// Data that a signal would drop.
    Data,
    /// ECN-capable data. A signal marks it, so one packet queued behind it suffices.
    Marked,
    /// Small packets, for example QUIC's ACKs. Their queue may run empty without loss of throughput.
    Small,
}

impl Sends {
    /// Returns the effective target, and the bytes that must be queued behind a packet for a signal. `target` is the
    /// flow's target. Above the maximum target, [`Data`](Self::Data) needs one more. The sender's window is then near
    /// its minimum, and a loss would cause a timeout.
    #[inline]
    fn bounds(self, target: Duration, sojourn: Duration, params: &TargetParams) -> (Duration, u64) {
        let more = u64::from(sojourn > params.max) * u64::from(FULL_PACKET);
        match self {
            Self::Data => (target, params.floor + more),
            Self::Marked => (target, 1),
            Self::Small => (params.full_packet * SMALL_WAIT, 1),
        }
    }
}

/// Instant of an event that has not happened. The time since this instant is zero.
pub(super) const NEVER: Instant = Instant::MAX;

/// Treatment of a packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Send it unchanged.
    None,
    /// Mark it if it is ECN-capable.
    Mark,
    /// Mark it, or drop it if it is not ECN-capable.
    Drop,
}

/// A time in four bytes. Times above 4.3 s are stored as 4.3 s, which is above every target.
#[derive(Clone, Copy, Debug, Default)]
struct ShortTime(u32);

impl ShortTime {
    const MAX: Self = Self(u32::MAX);

    fn of(time: Duration) -> Self {
        Self(u32::try_from(time.as_nanos()).unwrap_or(u32::MAX))
    }

    const fn get(self) -> Duration {
        Duration::from_nanos(self.0 as u64)
    }
}

/// State of one queue. An instant is [`NEVER`] if its event has not happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// The target; zero before the first packet.
    target: ShortTime,
    /// Time at which the queue last rose above its target; [`NEVER`] while the queue is below it.
    above: Instant,
    /// Time of the last [`Signal::Drop`] or overflow.
    signalled: Instant,
    /// Time of the signal whose effect is being observed.
    epoch: Instant,
    /// Minimum sojourn time in the epoch; zero if the queue ran empty.
    low: ShortTime,
    /// Time in the epoch in which the queue was empty and its idle clock ran.
    idle: ShortTime,
    /// For an empty queue: value of its idle clock when the queue ran empty.
    empty_since: Instant,
    /// Number of signals to which the queue has not responded.
    signals: u8,
    /// Two fields of the pool, stored here in padding: a flag for recent use, and the number of the flow's queue.
    pub(super) used: bool,
    pub(super) owner: u16,
}

impl Target {
    /// Creates an initial target for the flow in this queue.
    pub(super) fn of(owner: u16) -> Self {
        Self {
            target: ShortTime::default(),
            above: NEVER,
            signalled: Instant::ZERO,
            epoch: NEVER,
            low: ShortTime::default(),
            idle: ShortTime::default(),
            empty_since: NEVER,
            signals: 0,
            used: false,
            owner,
        }
    }

    /// Counts the idle time that ends with this arrival. The idle clock `idle` runs while the link is idle, or while
    /// other hosts use this host's part of the link.
    pub(super) fn on_enqueue(&mut self, idle: Instant) {
        let idle = idle.saturating_since(self.empty_since);
        if idle <= MAX_IDLE {
            self.idle = ShortTime::of(self.idle.get() + idle);
        }
        self.empty_since = NEVER;
    }

    /// Returns the signal for a packet that leaves after `sojourn`, with `left` bytes queued behind it.
    pub(super) fn on_dequeue(
        &mut self,
        (now, idle): (Instant, Instant),
        sojourn: Duration,
        left: u64,
        sends: Sends,
        params: &TargetParams,
    ) -> Signal {
        if params.interval == Duration::ZERO {
            return Signal::None;
        }
        if self.target.0 == 0 {
            self.target = ShortTime::of(params.start);
        }
        self.judge(now, params);
        self.low = ShortTime::of(self.low.get().min(sojourn));
        if left == 0 {
            self.low = ShortTime::default();
            self.empty_since = idle;
        }
        let (target, floor) = sends.bounds(self.target.get(), sojourn, params);
        let hold = params.interval * 4 + target;
        let bound = target.max(params.full_packet * MIN_PACKETS);
        if sojourn <= bound || (left < floor && sojourn > params.max) {
            self.above = NEVER;
            let responded = left == 0 || sojourn * 2 < target;
            if responded || now.saturating_since(self.signalled) > hold * 2 {
                self.signals = 0;
            }
            return Signal::None;
        }
        self.above = self.above.min(now);
        let halvings = self.signals.saturating_sub(1).min(MAX_HALVINGS);
        // Far above a learnt target, half of the interval suffices. A slow start needs the whole interval.
        let far = u8::from(sojourn > bound * 2 && self.target.get() != params.start);
        let interval = params.interval / (1 << (halvings + far));
        if left < floor || now.saturating_since(self.above) < interval {
            return Signal::None;
        }
        if self.signals > 0 && now.saturating_since(self.signalled) < hold / (1 << halvings) {
            return Signal::Mark;
        }
        Signal::Drop
    }

    /// Records that the last [`Signal`] was sent.
    pub(super) fn on_signal(&mut self, now: Instant, signal: Signal) {
        if signal == Signal::Drop {
            self.signalled = now;
            self.signals = self.signals.saturating_add(1);
        }
        self.watch(now);
    }

    /// Records a drop by a full buffer: a signal that the target did not cause.
    pub(super) fn on_overflow(&mut self, now: Instant) {
        self.signalled = now;
        self.signals = self.signals.max(1);
        self.watch(now);
    }

    /// Starts an epoch if none is running.
    fn watch(&mut self, now: Instant) {
        if self.epoch == NEVER {
            self.epoch = now;
            self.idle = ShortTime::default();
            self.low = ShortTime::MAX;
        }
    }

    fn judge(&mut self, now: Instant, params: &TargetParams) {
        if now.saturating_since(self.epoch) < EPOCH {
            return;
        }
        self.epoch = NEVER;
        let (target, idle, low) = (self.target.get(), self.idle.get(), self.low.get());
        let target = match idle > MIN_IDLE {
            true => target + (idle / 2).min(target),
            false => target.saturating_sub((low.min(target) / 2).max(target / 16)),
        };
        self.target = ShortTime::of(target.max(params.min).min(params.max));
    }

    pub(super) const fn target(&self) -> Duration {
        self.target.get()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::asymq) const PARAMS: TargetParams = TargetParams {
        start: Duration::from_millis(40),
        min: Duration::from_millis(5),
        max: Duration::from_millis(250),
        interval: Duration::from_millis(200),
        floor: 2800,
        full_packet: Duration::from_millis(1),
    };

    /// Queue from which a packet leaves every 10 ms.
    struct Bench {
        sends: Sends,
        target: Target,
        now: Instant,
        /// The link's idle clock.
        idle: Instant,
        drops: u32,
        marks: u32,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                sends: Sends::Data,
                target: Target::of(0),
                now: Instant::from_nanos(1),
                idle: Instant::ZERO,
                drops: 0,
                marks: 0,
            }
        }

        /// For `ms` ms, packets leave after a sojourn time of `sojourn` ms.
        fn run(&mut self, ms: u64, sojourn: u64, left: u64) {
            let sojourn = Duration::from_millis(sojourn);
            for _ in 0..ms / 10 {
                self.now += Duration::from_millis(10);
                self.target.on_enqueue(self.idle);
                let signal = self.target.on_dequeue(
                    (self.now, self.idle),
                    sojourn,
                    left,
                    self.sends,
                    &PARAMS,
                );
                match signal {
                    Signal::None => continue,
                    Signal::Mark => self.marks += 1,
                    Signal::Drop => self.drops += 1,
                }
                if signal == Signal::Drop {
                    self.target.on_signal(self.now, signal);
                }
            }
        }

        /// The queue is empty for `ms` ms; during `idle` ms of this time the link is idle too.
        fn run_dry(&mut self, ms: u64, idle: u64) {
            let now = (self.now, self.idle);
            self.target
                .on_dequeue(now, Duration::ZERO, 0, self.sends, &PARAMS);
            self.now += Duration::from_millis(ms);
            self.idle += Duration::from_millis(idle);
        }

        fn target_ms(&self) -> u64 {
            self.target.target().as_nanos() / 1_000_000
        }
    }

    #[test]
    fn a_queue_above_its_target_gets_one_drop_after_an_interval_and_then_peace() {
        let mut bench = Bench::new();
        bench.run(200, 60, 10_000);
        assert_eq!(bench.drops, 0);
        bench.run(600, 60, 10_000);
        assert_eq!(bench.drops, 1);
    }

    #[test]
    fn a_mark_needs_one_packet_behind_it_and_a_drop_two() {
        for (sends, left, signals) in [
            (Sends::Marked, 1514, true),
            (Sends::Marked, 0, false),
            (Sends::Data, 1514, false),
            (Sends::Data, 3028, true),
        ] {
            let mut bench = Bench {
                sends,
                ..Bench::new()
            };
            bench.run(1_000, 60, left);
            assert_eq!(bench.drops > 0, signals, "{sends:?} {left}");
        }
    }

    #[test]
    fn a_queue_that_does_not_answer_gets_more_and_more_drops() {
        let mut bench = Bench::new();
        bench.run(1_000, 200, 10_000);
        let first = bench.drops;
        bench.run(3_000, 200, 10_000);
        let before = bench.drops;
        bench.run(1_000, 200, 10_000);
        assert!(first <= 2, "{first}");
        assert!(bench.drops - before >= 80, "{before}, {}", bench.drops);
    }

    #[test]
    fn a_full_buffer_counts_as_a_signal_but_does_not_speed_up_further_ones() {
        let mut bench = Bench::new();
        for _ in 0..20 {
            bench.target.on_overflow(bench.now);
        }
        bench.run(800, 60, 10_000);
        assert_eq!(bench.drops, 0);
        bench.run(400, 60, 10_000);
        assert_eq!(bench.drops, 1);
    }

    #[test]
    fn a_queue_that_ran_empty_gets_no_faster_signals() {
        let mut bench = Bench::new();
        bench.run(1_900, 60, 10_000);
        let before = bench.drops;
        bench.run_dry(10, 0);
        bench.run(900, 60, 10_000);
        assert_eq!(bench.drops - before, 1);
    }

    #[test]
    fn packets_with_few_behind_count_as_above_the_target_up_to_its_maximum() {
        for (sojourn, drops) in [(60, 1), (300, 0)] {
            let mut bench = Bench::new();
            bench.run(300, sojourn, 1514);
            assert_eq!(bench.drops, 0);
            bench.run(10, sojourn, 10_000);
            assert_eq!(bench.drops, drops, "{sojourn} ms");
        }
    }

    #[test]
    fn above_twice_a_learnt_target_half_of_the_interval_suffices() {
        for (sojourn, drops) in [(45, 0), (60, 1)] {
            let mut bench = Bench::new();
            bench.run(300, 60, 10_000);
            bench.run(1_500, 30, 10_000);
            bench.run_dry(10, 0);
            let before = bench.drops;
            bench.run(120, sojourn, 10_000);
            assert_eq!((bench.target_ms(), bench.drops - before), (25, drops));
        }
    }

    #[test]
    fn below_the_target_and_with_few_packets_behind_there_is_no_signal() {
        for (sojourn, left) in [(39, 100_000), (200, 2_799)] {
            let mut bench = Bench::new();
            bench.run(5_000, sojourn, left);
            assert_eq!((bench.drops, bench.marks), (0, 0), "{sojourn} ms, {left}");
        }
    }

    #[test]
    fn a_delay_that_always_stands_lowers_the_target_by_half_of_it() {
        for sends in [Sends::Data, Sends::Marked] {
            let mut bench = Bench {
                sends,
                ..Bench::new()
            };
            bench.run(300, 60, 10_000);
            bench.run(1_700, 30, 10_000);
            assert_eq!(bench.target_ms(), 25, "{sends:?}");
        }
    }

    #[test]
    fn an_empty_queue_raises_the_target_by_half_of_the_time_in_which_the_link_was_idle() {
        // Idle times of up to 3 ms and pauses of the application do not count: the target falls by a sixteenth.
        let cases = [
            (50, 0, 37),
            (50, 3, 37),
            (50, 4, 42),
            (50, 20, 50),
            (900, 900, 37),
        ];
        for (ms, idle, expected) in cases {
            let mut bench = Bench::new();
            bench.run(300, 60, 10_000);
            bench.run_dry(ms, idle);
            bench.run(2_000, 10, 10_000);
            assert_eq!(bench.target_ms(), expected, "{idle} ms");
        }
    }

    #[test]
    fn a_wait_beyond_all_targets_with_two_packets_behind_gets_no_drop() {
        for (sojourn, left, is_dropped) in
            [(250, 3_000, true), (251, 3_000, false), (251, 4_500, true)]
        {
            let mut bench = Bench::new();
            bench.run(1_000, sojourn, left);
            assert_eq!(bench.drops > 0, is_dropped, "{sojourn} ms, {left}");
        }
    }

    #[test]
    fn small_packets_may_wait_for_eight_full_ones_with_any_target() {
        for (sojourn, sends, drops) in [
            (9, Sends::Small, true),
            (8, Sends::Small, false),
            (9, Sends::Data, false),
        ] {
            let mut bench = Bench {
                sends,
                ..Bench::new()
            };
            bench.run(2_000, sojourn, 100_000);
            assert_eq!(bench.drops > 0, drops, "{sojourn} ms, {sends:?}");
            assert_eq!(bench.target_ms() < 40, drops);
        }
    }

    #[test]
    fn the_target_stays_within_its_range() {
        let mut bench = Bench::new();
        for _ in 0..60 {
            bench.run(300, 300, 10_000);
            bench.run(1_300, 35, 10_000);
        }
        assert!(bench.target_ms() >= 5);
        for _ in 0..60 {
            bench.run(300, 300, 10_000);
            bench.run_dry(400, 400);
            bench.run(1_300, 1, 10_000);
        }
        assert_eq!(bench.target_ms(), 250);
    }
}
