//! Sender state for TCP options, ECN and pacing. In plain TCP it is empty and costs nothing.

use crate::packets::{HostClock, Options, TcpOptions};
use crate::senders::{Deliveries, EcnSender, Pacer, Repair};

/// Sender state for its options.
pub(crate) trait Sending {
    type Options: Options;

    /// Sets the clock of its host.
    fn set_clock(&mut self, _clock: HostClock) {}

    /// Processes the options of an ACK.
    #[inline]
    fn hears(&mut self, _options: &Self::Options) {}

    /// The record of deliveries that finds losses; `None` without SACK.
    #[inline]
    fn selective(&mut self) -> Option<&mut Deliveries> {
        None
    }

    /// Next action of a sender with SACK; `None` without SACK.
    #[inline]
    fn repair(&mut self) -> Option<&mut Repair> {
        None
    }

    /// Options of segment `number`, sent at `now`; `again` is true for a retransmission.
    #[inline]
    fn options(&mut self, _now: u64, _number: u64, _again: bool) -> Self::Options {
        Self::Options::default()
    }

    /// Segment `number` was sent; the window is of `window` segments.
    #[inline]
    fn sent(&mut self, _now: u64, _number: u64, _window: f64) {}

    /// True if more than an ACK's number is used.
    #[inline]
    fn takes_feedback(&self) -> bool {
        false
    }

    /// Record of deliveries and losses, with SACK or if the congestion control needs it.
    #[inline]
    fn deliveries(&mut self) -> Option<&mut Deliveries> {
        None
    }

    /// ECN, if both ends have it.
    #[inline]
    fn ecn(&mut self) -> Option<&mut EcnSender> {
        None
    }

    /// True if the sender has responded to a mark in the window of segment `una`.
    #[inline]
    fn has_answered(&self, _una: u64) -> bool {
        false
    }

    /// True if the pacer lets a segment leave at `now`.
    #[inline]
    fn may_send(&mut self, _now: u64) -> bool {
        true
    }

    /// Time at which the pacer releases a held segment; `u64::MAX` if there is none.
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

    /// True if round-trip times are read off timestamps.
    #[inline]
    fn has_timestamps(&self) -> bool {
        false
    }

    /// Send time of the segment that triggered the ACK of `ack`, if an RTT sample is due; `end` is one past the highest
    /// segment sent.
    #[inline]
    fn sent_at(&mut self, _ack: u64, _end: u64, _options: &Self::Options) -> Option<u64> {
        None
    }
}

/// Sender state with every option.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullSending {
    /// With SACK.
    pub(crate) repair: Option<Repair>,
    pub(crate) timestamps: bool,
    pub(crate) clock: HostClock,
    /// The latest timestamp of the other end (TS.Recent, RFC 7323).
    pub(crate) recent: u32,
    /// One sample per window, as assumed by RFC 6298's constants (RFC 7323, appendix G).
    pub(crate) sample_beyond: u64,
    pub(crate) ecn: Option<EcnSender>,
    pub(crate) deliveries: Option<Deliveries>,
    pub(crate) pacer: Option<Pacer>,
}

#[cfg(test)]
impl FullSending {
    /// With SACK, and PRR in recoveries.
    pub(crate) fn with_sack() -> Self {
        Self {
            repair: Some(Repair::new(true)),
            deliveries: Some(Deliveries::with_rack()),
            ..Self::default()
        }
    }
}

impl Sending for FullSending {
    type Options = TcpOptions;

    fn set_clock(&mut self, clock: HostClock) {
        self.clock = clock;
    }

    fn hears(&mut self, options: &TcpOptions) {
        if let Some((value, _)) = options.timestamps {
            self.recent = self.recent.max(value);
        }
    }

    fn selective(&mut self) -> Option<&mut Deliveries> {
        self.deliveries
            .as_mut()
            .filter(|deliveries| deliveries.has_rack())
    }

    fn repair(&mut self) -> Option<&mut Repair> {
        self.repair.as_mut()
    }

    fn options(&mut self, now: u64, number: u64, again: bool) -> TcpOptions {
        let timestamps = (self.clock.stamp(now), self.recent);
        let mut options = TcpOptions::new(self.timestamps.then_some(timestamps), 0);
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
        Some(self.clock.time(echo))
    }
}
