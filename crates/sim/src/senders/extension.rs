//! Sender state for TCP options, ECN and pacing. In plain TCP it is empty and costs nothing.

use crate::ecn::EcnSender;
use crate::packets::{HostClock, Options, TcpOptions};
use crate::senders::{Bursts, Deliveries, Pacer, Repair};

/// A sender's state with all options.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullSending {
    /// Loss recovery with SACK.
    pub(crate) repair: Option<Repair>,
    pub(crate) timestamps: bool,
    pub(crate) clock: HostClock,
    /// Latest timestamp of the other end (TS.Recent, RFC 7323).
    pub(crate) recent: u32,
    /// An ACK above this number gives the next RTT sample: RFC 6298 assumes one sample a window (RFC 7323, appendix G).
    pub(crate) sample_beyond: u64,
    pub(crate) ecn: Option<EcnSender>,
    pub(crate) deliveries: Option<Deliveries>,
    /// Grouping of new segments into bursts, each with PSH in its last segment, as in Linux.
    pub(crate) bursts: Option<Bursts>,
    pub(crate) pacer: Option<Pacer>,
}

#[cfg(test)]
impl FullSending {
    /// Creates the state with SACK, and with PRR in recoveries.
    pub(crate) fn with_sack() -> Self {
        Self {
            repair: Some(Repair::new(true)),
            deliveries: Some(Deliveries::with_rack()),
            ..Self::default()
        }
    }
}

/// A sender's option state: [`FullSending`], or `()` in plain TCP.
pub(crate) trait Sending {
    type Options: Options;

    /// The state with all options; `None` in plain TCP, where the methods below compile to nothing.
    #[inline]
    fn full(&self) -> Option<&FullSending> {
        None
    }
    #[inline]
    fn full_mut(&mut self) -> Option<&mut FullSending> {
        None
    }

    fn set_clock(&mut self, clock: HostClock) {
        if let Some(full) = self.full_mut() {
            full.clock = clock;
        }
    }

    /// Records the timestamp of an ACK.
    #[inline]
    fn hears(&mut self, options: &Self::Options) {
        if let Some(full) = self.full_mut()
            && let Some((value, _)) = options.on_wire().and_then(|options| options.timestamps)
        {
            full.recent = full.recent.max(value);
        }
    }

    /// The record of deliveries that detects losses; `None` without SACK.
    #[inline]
    fn selective(&mut self) -> Option<&mut Deliveries> {
        self.deliveries().filter(|record| record.has_rack())
    }

    /// The loss recovery with SACK; `None` without SACK.
    #[inline]
    fn repair(&mut self) -> Option<&mut Repair> {
        self.full_mut()?.repair.as_mut()
    }

    /// Returns the options of segment `number`, sent at `now`; `again` is true for a retransmission.
    #[inline]
    fn options(&mut self, now: u64, number: u64, again: bool) -> Self::Options {
        let Some(full) = self.full_mut() else {
            return Self::Options::default();
        };
        let timestamps = (full.clock.stamp(now), full.recent);
        let mut options = TcpOptions::new(full.timestamps.then_some(timestamps), 0);
        if let Some(ecn) = &mut full.ecn {
            ecn.mark(&mut options, number, again);
        }
        if !again && let Some(bursts) = &mut full.bursts {
            options.flags |= bursts.on_sent();
        }
        Self::Options::of(options)
    }

    /// Records that segment `number` was sent, with a window of `window` segments.
    #[inline]
    fn sent(&mut self, now: u64, number: u64, window: f64) {
        let Some(full) = self.full_mut() else {
            return;
        };
        if let Some(deliveries) = &mut full.deliveries {
            deliveries.on_sent(now, number, window);
        }
        if let Some(bursts) = &mut full.bursts {
            bursts.on_segment(now);
        }
        if let Some(pacer) = &mut full.pacer {
            pacer.on_sent(now);
        }
    }

    /// True if the sender uses fields of an ACK other than its number.
    #[inline]
    fn takes_feedback(&self) -> bool {
        self.full()
            .is_some_and(|full| full.ecn.is_some() || full.deliveries.is_some())
    }

    /// Record of deliveries and losses; present with SACK, or if the congestion control needs it.
    #[inline]
    fn deliveries(&mut self) -> Option<&mut Deliveries> {
        self.full_mut()?.deliveries.as_mut()
    }

    /// Bursts of new segments, as in Linux.
    #[inline]
    fn bursts(&mut self) -> Option<&mut Bursts> {
        self.full_mut()?.bursts.as_mut()
    }

    /// ECN state, if both ends use ECN.
    #[inline]
    fn ecn(&mut self) -> Option<&mut EcnSender> {
        self.full_mut()?.ecn.as_mut()
    }

    /// True if the pacer permits a segment at `now`.
    #[inline]
    fn may_send(&mut self, now: u64) -> bool {
        self.pacer().is_none_or(|pacer| pacer.may_send(now))
    }

    /// The pacer; `None` without pacing.
    #[inline]
    fn pacer(&mut self) -> Option<&mut Pacer> {
        self.full_mut()?.pacer.as_mut()
    }

    /// Time at which the pacer permits the held segment; `u64::MAX` if none is held.
    #[inline]
    fn wakes(&self) -> u64 {
        let pacer = self.full().and_then(|full| full.pacer);
        pacer.map_or(u64::MAX, |pacer| pacer.wakes())
    }

    /// True if round-trip times come from timestamps.
    #[inline]
    fn has_timestamps(&self) -> bool {
        self.full().is_some_and(|full| full.timestamps)
    }

    /// Returns the send time of the segment that triggered an ACK with the number `ack`; `None` if the ACK gives no RTT
    /// sample. `end` is the number after the highest segment sent.
    #[inline]
    fn sent_at(&mut self, ack: u64, end: u64, options: &Self::Options) -> Option<u64> {
        let full = self.full_mut()?;
        let (_, echo) = options.on_wire()?.timestamps?;
        let is_due = ack > full.sample_beyond;
        is_due.then(|| {
            full.sample_beyond = end;
            full.clock.time(echo)
        })
    }
}

impl Sending for () {
    type Options = ();
}

impl Sending for FullSending {
    type Options = TcpOptions;

    #[inline]
    fn full(&self) -> Option<&FullSending> {
        Some(self)
    }

    #[inline]
    fn full_mut(&mut self) -> Option<&mut FullSending> {
        Some(self)
    }
}
