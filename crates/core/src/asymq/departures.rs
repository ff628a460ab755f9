//! Dequeues from the data queue: applies the AQM's signals and charges the flow.

use super::isolated::Isolated;
use super::learnt::Learnt;
use super::target::{Signal, TargetParams};
use super::targets::Targets;
use crate::hold::drr::Flow;
use crate::{Duration, Ecn, Header, Instant, Packet, Reason, Sink};

/// Maximum number of drops per dequeue; bounds the work.
const MAX_DROPS: u32 = 8;

impl<P: Packet> Isolated<P> {
    /// Returns the AQM's signal for the oldest packet of a queue.
    #[inline(always)]
    fn signal(
        (targets, params): (&mut Targets, &TargetParams),
        (now, idle): (Instant, impl FnOnce() -> Duration),
        number: u32,
        (flow, packet, left): (&mut Flow<Learnt>, &P, u64),
    ) -> Signal {
        let header = packet.header();
        let sojourn = now.saturating_since(header.arrival);
        let sends = flow.aqm.sends(header.len, header.ecn);
        let place = (number, &mut flow.aqm.target);
        targets.on_dequeue(place, (now, idle), sojourn, left, sends, params)
    }

    /// Applies the AQM's signal, and marks for scalable senders, to the oldest packet of a queue. Returns true if the
    /// packet must be dropped and another packet is queued behind it.
    fn is_dropped(
        &mut self,
        now: Instant,
        number: u32,
        (signal, alone): (Signal, bool),
        sink: &mut dyn Sink<P>,
    ) -> Option<bool> {
        let (flow, packet, left) = self.flows.queues_mut().oldest_mut(number)?;
        let aqm = &mut flow.aqm;
        let Header { ecn, arrival, .. } = *packet.header();
        let waits = match left {
            0 => Duration::ZERO,
            _ => now.saturating_since(arrival),
        };
        let debt = if alone { 0 } else { aqm.debt };
        let (full_packet, ramp) = (self.params.target.full_packet, self.host_credit_limit / 16);
        let scalable = ecn == Ecn::Ect1 && aqm.shallow.marks(waits, full_packet, debt, ramp);
        let marked = (scalable || signal != Signal::None) && packet.mark_ce();
        if marked {
            sink.marked(now, packet.header());
        }
        if marked && signal != Signal::None || signal == Signal::Drop {
            self.targets.on_signal(number, &mut aqm.target, now, signal);
        }
        Some(signal == Signal::Drop && !marked && left > 0)
    }

    /// Marks the oldest packet of a queue, or drops up to [`MAX_DROPS`] until a packet may leave.
    #[inline(never)]
    fn signal_oldest(
        &mut self,
        now: Instant,
        number: u32,
        (mut signal, alone): (Signal, bool),
        sink: &mut dyn Sink<P>,
    ) -> Option<()> {
        for drops in 0..=MAX_DROPS {
            let is_dropped = self.is_dropped(now, number, (signal, alone), sink)?;
            if !is_dropped || drops == MAX_DROPS {
                break;
            }
            let packet = self.take(number)?;
            sink.dropped(now, packet, Reason::Aqm);
            let (flow, packet, left) = self.flows.queues_mut().oldest_mut(number)?;
            let params = (&mut self.targets, &self.params.target);
            let host = flow.aqm.host;
            let now = (now, || self.hosts.idle(host));
            signal = Self::signal(params, now, number, (flow, packet, left));
        }
        Some(())
    }

    /// Chooses the queue whose oldest packet leaves, applies its AQM, and accounts for the packet. Returns the queue
    /// and the packet's length.
    #[inline(always)]
    pub(super) fn admit_oldest(
        &mut self,
        now: Instant,
        sink: &mut dyn Sink<P>,
    ) -> Option<(u32, u32)> {
        let number = self.found_flow()?;
        let early = self.ahead.has(number);
        let alone = early && self.only_ahead();
        let (mut flow, mut packet, mut left) = self.flows.queues_mut().oldest_mut(number)?;
        let params = (&mut self.targets, &self.params.target);
        let host = flow.aqm.host;
        let clocks = (now, || self.hosts.idle(host));
        let signal = Self::signal(params, clocks, number, (flow, packet, left));
        if signal != Signal::None || packet.header().ecn == Ecn::Ect1 {
            self.signal_oldest(now, number, (signal, alone), sink)?;
            (flow, packet, left) = self.flows.queues_mut().oldest_mut(number)?;
        }
        let len = packet.header().len;
        self.hosts.on_departure(now, flow.aqm.host, len);
        flow.aqm.packets = flow.aqm.packets.saturating_sub(1);
        match early {
            true => self.charge_early(number, len, left, alone)?,
            false => flow.earn(-i64::from(len)),
        }
        Some((number, len))
    }
}
