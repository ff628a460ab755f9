//! ACKs and data in queues of their own: AQ (paper 000, section 3).

use crate::classify::Classifier;
use crate::packet::{Header, Packet};
use crate::parts::aq::{AqController, AqParams, BeyondLimit};
use crate::parts::{Class, ClassQueue, WeightedBytes};
use crate::qdisc::{Backlog, Dequeue, Qdisc, Sink, Stats};
use crate::units::{Instant, Limit};

/// An ACK queue and a data queue, served byte for byte in AQ's ratio while both are occupied, and
/// sharing the buffer in the same ratio.
#[derive(Clone, Debug)]
pub struct TwoClass<P> {
    classifier: Classifier,
    ack: ClassQueue<P>,
    data: ClassQueue<P>,
    service: WeightedBytes,
    controller: AqController,
    limit: Limit,
}

impl<P: Packet> TwoClass<P> {
    /// AQ with `limit` as the buffer that both queues share.
    pub fn aq(params: AqParams, classifier: Classifier, limit: Limit) -> Self {
        let (controller, data_share) = AqController::new(params);
        let mut aq = Self {
            classifier,
            ack: ClassQueue::new(limit),
            data: ClassQueue::new(limit),
            service: WeightedBytes::new(data_share),
            controller,
            limit,
        };
        aq.share(data_share);
        aq
    }

    /// Splits service and buffer; `B_D / B_A = R_D / R_A` (section 3), at least one place each.
    fn share(&mut self, data_share: f64) {
        self.service.set_data_share(data_share);
        let (data, ack) = split_buffer(self.limit, data_share);
        self.data.set_limit(data);
        self.ack.set_limit(ack);
    }

    #[inline]
    fn tick(&mut self, now: Instant) {
        if let Some(data_share) = self.controller.tick(now) {
            self.share(data_share);
        }
    }
}

/// The data queue's and the ACK queue's part of a buffer. A byte limit leaves each class room for
/// at least one packet of its kind.
pub fn split_buffer(limit: Limit, data_share: f64) -> (Limit, Limit) {
    let whole = limit.value();
    let (least_data, least_ack) = match limit {
        Limit::Packets(_) => (1, 1),
        Limit::Bytes(_) => (1514, 120),
    };
    let data = (whole as f64 * data_share + 0.5) as u64;
    let data = data.min(whole.saturating_sub(least_ack)).max(least_data);
    let ack = whole.saturating_sub(data).max(least_ack);
    (limit.with_value(data), limit.with_value(ack))
}

impl<P: Packet> Qdisc<P> for TwoClass<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.tick(now);
        let is_ack = self.classifier.is_ack(packet.header());
        self.controller.meter_up(packet.header(), is_ack);
        let queue = if is_ack {
            &mut self.ack
        } else {
            &mut self.data
        };
        queue.enqueue(now, packet, sink);
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.tick(now);
        let (ack_waits, data_waits) = (!self.ack.is_empty(), !self.data.is_empty());
        let Some(class) = self.service.next(ack_waits, data_waits) else {
            return Dequeue::Empty;
        };
        let queue = match class {
            Class::Ack => &mut self.ack,
            Class::Data => &mut self.data,
        };
        match queue.dequeue() {
            Some(packet) => {
                if ack_waits && data_waits {
                    self.service.charge(class, packet.header().len);
                }
                Dequeue::Packet(packet)
            }
            None => Dequeue::Empty,
        }
    }

    #[inline]
    fn observe(&mut self, now: Instant, crossing: &Header) {
        self.tick(now);
        self.controller.meter_down(crossing);
    }

    fn observes_crossing(&self) -> bool {
        true
    }

    fn drain(&mut self) -> Option<P> {
        self.ack.drain().or_else(|| self.data.drain())
    }

    fn backlog(&self) -> Backlog {
        let (ack, data) = (self.ack.stats().backlog, self.data.stats().backlog);
        Backlog {
            packets: ack.packets + data.packets,
            bytes: ack.bytes + data.bytes,
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            ack: self.ack.stats(),
            data: self.data.stats(),
        }
    }

    fn probe(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("data_share", self.service.data_share());
        show("data_per_ack", self.controller.data_per_ack());
        show("ack_limit", self.ack.limit().value() as f64);
        show("data_limit", self.data.limit().value() as f64);
        let beyond = self.controller.params().static_data_share().is_err();
        let starving = self.controller.params().beyond_limit == BeyondLimit::StarveAcks;
        show(
            "beyond_limit",
            f64::from(u8::from(beyond) + u8::from(beyond && starving)),
        );
    }
}
