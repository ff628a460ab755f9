//! The FIFO of a modem, with a rate and a size that the shaper cannot read.

use crate::schedule::Schedule;
use asymq_core::Limit;
use asymq_core::decide::random::SplitMix64;
use asymq_scenario::{
    DelayStep, Direction, Draw, Modem, RateSource, RttRange, Scenario, Source, fraction, uniform,
};
use std::collections::VecDeque;

/// One direction of a modem: a FIFO, and the path after it. Times are in ns from the start of the run.
#[derive(Debug)]
pub struct ModemQueue {
    schedule: Schedule,
    limit: Limit,
    grants: Option<Grants>,
    delays: Vec<DelayStep>,
    /// End of the current or last transmission.
    free_at: u64,
    /// Time at which the latest packet leaves the path.
    out_at: u64,
    /// Packets that are still in the modem: departure time and bytes.
    waiting: VecDeque<(u64, u32)>,
    bytes: u64,
    lost: u64,
}

/// A modem's rates over a run, in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct KnownRates {
    /// Mean rate of the slowest second without an outage.
    pub min: f64,
    /// Mean rate over the run.
    pub mean: f64,
    /// Mean rate of the fastest second.
    pub max: f64,
}

/// Requests and grants of the uplink. A packet waits for the grant of the request that includes the packet.
#[derive(Debug)]
struct Grants {
    times: RttRange,
    random: SplitMix64,
    /// Time of the latest request in ns.
    requested: u64,
    /// Time of this request's grant in ns.
    granted: u64,
}

impl Grants {
    /// Earliest start of a packet that arrives at `now`.
    fn start(&mut self, now: u64) -> u64 {
        if now > self.requested {
            // The next request is sent with the granted data, or at once if no grant is pending.
            self.requested = now.max(self.granted);
            let time = self.times.at(fraction(self.random.next()));
            self.granted = self.requested + time.as_nanos();
        }
        self.granted
    }
}

impl ModemQueue {
    /// Creates the empty FIFO of a direction's modem, if the scenario has one.
    pub fn new(scenario: &Scenario, seed: u64, direction: Direction) -> Option<Self> {
        let modem = direction.pick(scenario.modem_up, scenario.modem_down)?;
        let schedule = Schedule::of(scenario, direction);
        let seed = uniform(seed, Source::Link(direction), Draw::Grants).to_bits();
        Some(Self::with(
            &modem,
            schedule.unwrap_or_else(|| Schedule::constant(modem.rate)),
            scenario.steps_delay.clone(),
            seed,
        ))
    }

    fn with(modem: &Modem, schedule: Schedule, delays: Vec<DelayStep>, seed: u64) -> Self {
        Self {
            schedule,
            limit: modem.limit(),
            grants: modem.grant.map(|times| Grants {
                times,
                random: SplitMix64::new(seed),
                requested: 0,
                granted: 0,
            }),
            delays,
            free_at: 0,
            out_at: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            lost: 0,
        }
    }

    /// Accepts a packet of `len` bytes at `now`; calls must be in order of time. Returns the time at which the last bit
    /// leaves the path after the modem; `None` if the buffer is full.
    pub fn pass(&mut self, now: u64, len: u32) -> Option<u64> {
        while let Some(&(out, gone)) = self.waiting.front()
            && out <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(gone);
        }
        if !self
            .limit
            .admits(self.waiting.len() as u32, self.bytes, len)
        {
            self.lost += 1;
            return None;
        }
        let ready = match &mut self.grants {
            Some(grants) => grants.start(now),
            None => now,
        };
        let start = match self.free_at > ready {
            true => self.schedule.resume(self.free_at),
            false => self.schedule.wake(ready),
        };
        self.free_at = self.schedule.send(start, len);
        self.waiting.push_back((self.free_at, len));
        self.bytes += u64::from(len);
        let passed = self
            .delays
            .partition_point(|step| step.at.as_nanos() <= self.free_at);
        let extra = passed
            .checked_sub(1)
            .map_or(0, |last| self.delays[last].to.as_nanos());
        self.out_at = self.out_at.max(self.free_at + extra);
        Some(self.out_at)
    }

    /// Waiting time in ns, without a grant, of a packet that arrives at `now`.
    pub fn wait(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// Mean rate in bytes per second from `now` on, over `span` ns.
    pub fn rate(&self, now: u64, span: u64) -> f64 {
        let carried = self.schedule.capacity(now + span) - self.schedule.capacity(now);
        carried * 1e9 / span as f64
    }

    /// Time in ns over which the rate source `oracle` averages; longer for a trace, whose steps are single packets.
    pub const fn oracle_span(&self) -> u64 {
        match self.schedule {
            Schedule::Steps(_) => 10_000_000,
            Schedule::Trace(_) => 50_000_000,
        }
    }

    /// Schedule of the modem's rates.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Bytes that the modem can carry from the start of the run to `now`.
    pub fn capacity(&self, now: u64) -> f64 {
        self.schedule.capacity(now)
    }

    /// Rates until `end`: the mean, and the minimum and maximum over one second. Seconds with an outage do not count.
    pub fn known_rates(&self, end: u64) -> KnownRates {
        const SECOND: u64 = 1_000_000_000;
        /// Share of the mean below which a second is an outage.
        const OUTAGE: f64 = 0.02;
        let mean = 8.0 * self.rate(0, end);
        let seconds = (0..(end / SECOND).max(1))
            .map(|second| 8.0 * self.rate(second * SECOND, SECOND))
            .filter(|rate| *rate >= OUTAGE * mean);
        let (min, max) = seconds.fold((f64::INFINITY, 0.0f64), |(min, max), rate| {
            (min.min(rate), max.max(rate))
        });
        KnownRates { min, mean, max }
    }

    /// Rate in bit/s that a fixed `source` derives from the rates until `end`; `None` if the source is not fixed.
    pub fn fixed_rate(&self, source: RateSource, end: u64) -> Option<f64> {
        /// Ratio of the fixed rate to the mean or minimum rate.
        const SHARE: f64 = 0.95;
        let known = match source {
            RateSource::FixedMean => self.known_rates(end).mean,
            RateSource::FixedMin => self.known_rates(end).min,
            _ => return None,
        };
        Some(SHARE * known)
    }

    /// Number of packets dropped because the buffer was full.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MS: u64 = 1_000_000;

    fn modem(modem: &str, rates: &[&str], delays: &[&str]) -> ModemQueue {
        let modem: Modem = modem.parse().unwrap();
        let rates: Vec<_> = rates.iter().map(|step| step.parse().unwrap()).collect();
        let delays = delays.iter().map(|step| step.parse().unwrap()).collect();
        ModemQueue::with(&modem, Schedule::steps(modem.rate, &rates), delays, 1)
    }

    #[test]
    fn packets_leave_one_by_one_at_the_rate_of_their_time_and_are_lost_where_the_buffer_is_full() {
        let mut modem = modem("1mbit,buffer=36ms", &["30ms:2mbit"], &[]);
        // 1500 bytes take 12 ms; the buffer has room for three of them.
        assert_eq!(modem.pass(0, 1500), Some(12 * MS));
        assert_eq!(modem.pass(0, 1500), Some(24 * MS));
        // Half of the packet leaves at 1 Mbit/s, the rest in 3 ms.
        assert_eq!(modem.pass(0, 1500), Some(33 * MS));
        assert_eq!(modem.wait(0), 33 * MS);
        assert_eq!((modem.pass(0, 1500), modem.lost()), (None, 1));
        assert_eq!(modem.pass(12 * MS, 1500), Some(39 * MS));
        assert_eq!(modem.rate(40 * MS, 10 * MS), 250_000.0);
    }

    #[test]
    fn a_longer_path_delays_and_a_shorter_one_does_not_let_packets_overtake() {
        let mut modem = modem("1mbit", &[], &["20ms:30ms", "40ms:0ms"]);
        assert_eq!(modem.pass(0, 1500), Some(12 * MS));
        assert_eq!(modem.pass(0, 1500), Some(24 * MS + 30 * MS));
        assert_eq!(modem.pass(0, 1500), Some(36 * MS + 30 * MS));
        assert_eq!(
            modem.pass(0, 1500),
            Some(66 * MS),
            "48 ms, but for the one before"
        );
    }

    #[test]
    fn a_packet_waits_for_the_grant_of_a_request_that_counts_it() {
        let mut modem = modem("1gbit,grant=4ms..4ms", &[], &[]);
        let tx = 12_000;
        assert_eq!(modem.pass(MS, 1500), Some(5 * MS + tx));
        // Too late for that request. The next request is sent with the granted data at 5 ms.
        assert_eq!(modem.pass(2 * MS, 1500), Some(9 * MS + tx));
        assert_eq!(modem.pass(4 * MS, 1500), Some(9 * MS + 2 * tx));
        assert_eq!(modem.pass(30 * MS, 1500), Some(34 * MS + tx));
    }
}
