//! The one machine that the papers' mechanisms are settings of.

use super::composition::{AckHold, Buffer, Composition, ControllerKind, RedOn, ServiceKind};
use crate::classify::Classifier;
use crate::packet::{Header, Packet};
use crate::parts::controller::Controller;
use crate::parts::controller::aq::AqController;
use crate::parts::controller::gradient::Gradient;
use crate::parts::service::{AckCredit, Class, Head, Next, PacedShares, Service, WeightedBytes};
use crate::parts::{AckedBytes, ClassQueue, Red, ThinnedQueue};
use crate::qdisc::{Backlog, ClassStats, Dequeue, Qdisc, Sink, Stats};
use crate::units::{Instant, Limit};

/// The ACK queue.
#[derive(Clone, Debug)]
enum AckQueue<P> {
    Fifo(ClassQueue<P>),
    Thinned(ThinnedQueue<P>),
}

/// An ACK queue and a data queue, a service that chooses between them, and a controller that moves
/// the service's weights.
#[derive(Clone, Debug)]
pub struct Machine<P> {
    classifier: Classifier,
    ack: AckQueue<P>,
    data: ClassQueue<P>,
    red: Option<Red>,
    red_spares_acks: bool,
    service: Service,
    controller: Controller,
    acked: Option<AckedBytes>,
    /// The limit on both classes together, if there is one.
    shared: Option<Limit>,
    /// The limit that is divided in the ratio of service.
    in_ratio: Option<Limit>,
    /// AFVQ: the ACK queue's limit at an empty data queue.
    most_acks: Option<u32>,
    next_ticket: u64,
}

impl<P: Packet> Machine<P> {
    /// The machine so composed, empty.
    pub fn new(parts: &Composition) -> Self {
        let whole = match parts.buffer {
            Buffer::Shared(limit) | Buffer::InRatio(limit) => (limit, limit),
            Buffer::Separate { ack, data } => (ack, data),
        };
        let (controller, moved_share) = match parts.controller {
            ControllerKind::Fixed | ControllerKind::AckLimit(_) => (Controller::Fixed, None),
            ControllerKind::Aq(params) => {
                let (aq, share) = AqController::new(params);
                (Controller::Aq(aq), Some(share))
            }
            ControllerKind::Gradient(params) => (
                Controller::Gradient(Gradient::new(params)),
                Some(Gradient::INITIAL_SHARE),
            ),
        };
        let (red, red_spares_acks) = match parts.red {
            RedOn::Nothing => (None, true),
            RedOn::Data(params) => (Some(Red::new(params)), true),
            RedOn::All(params) => (Some(Red::new(params)), false),
        };
        let service = Self::service(parts, whole.1);
        let meters_acks =
            matches!(service, Service::Credit(_)) || matches!(controller, Controller::Gradient(_));
        let mut machine = Self {
            classifier: parts.classifier,
            ack: match parts.ack {
                AckHold::Fifo => AckQueue::Fifo(ClassQueue::new(whole.0)),
                AckHold::Thinned(thinning, bounds) => {
                    AckQueue::Thinned(ThinnedQueue::new(thinning, bounds, whole.0))
                }
            },
            data: ClassQueue::new(whole.1),
            red,
            red_spares_acks,
            service,
            controller,
            acked: meters_acks.then(AckedBytes::default),
            shared: match parts.buffer {
                Buffer::Shared(limit) | Buffer::InRatio(limit) => Some(limit),
                Buffer::Separate { .. } => None,
            },
            in_ratio: match parts.buffer {
                Buffer::InRatio(limit) => Some(limit),
                _ => None,
            },
            most_acks: match parts.controller {
                ControllerKind::AckLimit(most) => Some(most.max(1)),
                _ => None,
            },
            next_ticket: 0,
        };
        if let Some(share) = moved_share.or(machine.service.data_share()) {
            machine.share(share);
        }
        machine.follow_data_backlog();
        machine
    }

    fn service(parts: &Composition, data_limit: Limit) -> Service {
        match parts.service {
            ServiceKind::Shared => Service::Shared,
            ServiceKind::AcksFirst => Service::AcksFirst,
            ServiceKind::RoundRobin => Service::RoundRobin { turn: Class::Ack },
            ServiceKind::Weighted(share) => Service::Weighted(WeightedBytes::new(share)),
            ServiceKind::Paced(share) => Service::Paced(PacedShares::new(parts.link, share)),
            ServiceKind::Credit(per) => {
                // As much as a full data queue could spend.
                let most = match data_limit {
                    Limit::Packets(packets) => u64::from(packets) * 1500,
                    Limit::Bytes(bytes) => bytes,
                };
                Service::Credit(AckCredit::new(per, parts.link, parts.opposite, most))
            }
        }
    }

    /// Splits service, and the buffer if it follows.
    fn share(&mut self, data_share: f64) {
        self.service.set_data_share(data_share);
        if let Some(limit) = self.in_ratio {
            let (data, ack) = split_buffer(limit, data_share);
            self.data.set_limit(data);
            self.set_ack_limit(ack);
            // A class over its limit since the ratio moved still fills places of the other.
            self.shared = Some(limit.with_value(data.value() + ack.value()));
        }
    }

    #[inline]
    fn tick(&mut self, now: Instant) {
        if let Some(data_share) = self.controller.tick(now) {
            self.share(data_share);
        }
    }

    fn set_ack_limit(&mut self, limit: Limit) {
        match &mut self.ack {
            AckQueue::Fifo(queue) => queue.set_limit(limit),
            AckQueue::Thinned(queue) => queue.set_limit(limit),
        }
    }

    #[inline]
    fn ack_stats(&self) -> ClassStats {
        match &self.ack {
            AckQueue::Fifo(queue) => queue.stats(),
            AckQueue::Thinned(queue) => queue.stats(),
        }
    }

    #[inline]
    fn ack_head(&self) -> Option<Head> {
        match &self.ack {
            AckQueue::Fifo(queue) => queue.head(),
            AckQueue::Thinned(queue) => queue.head(),
        }
    }

    /// AFVQ's rule: in proportion to the room left in the data queue, and never less than one.
    fn follow_data_backlog(&mut self) {
        if let Some(most) = self.most_acks {
            let backlog = self.data.stats().backlog;
            let (used, limit) = match self.data.limit() {
                Limit::Packets(limit) => (u64::from(backlog.packets), u64::from(limit)),
                Limit::Bytes(limit) => (backlog.bytes, limit),
            };
            let room = limit.saturating_sub(used);
            let acks = u64::from(most)
                .saturating_mul(room)
                .div_ceil(limit.max(1))
                .max(1);
            self.set_ack_limit(Limit::Packets(acks as u32));
        }
    }

    /// Whether RED drops this arrival.
    fn drops_early(&mut self, now: Instant, is_ack: bool) -> bool {
        let backlog = self.ack_stats().backlog.packets + self.data.stats().backlog.packets;
        let Some(red) = &mut self.red else {
            return false;
        };
        !(is_ack && self.red_spares_acks) && red.drops(now, f64::from(backlog))
    }
}

/// The data queue's and the ACK queue's part of a buffer, at least one packet of its kind each.
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

impl<P: Packet> Qdisc<P> for Machine<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.tick(now);
        let header = packet.header();
        let is_ack = self.classifier.is_ack(header);
        self.controller.arrived(header, is_ack);
        let room = match self.shared {
            None => true,
            Some(limit) => {
                let backlog = self.backlog();
                limit.admits(backlog.packets, backlog.bytes, header.len)
            }
        };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if self.red.is_some() && self.drops_early(now, is_ack) {
            match &mut self.ack {
                AckQueue::Fifo(queue) if is_ack => queue.drop_early(now, packet, sink),
                AckQueue::Thinned(queue) if is_ack => queue.drop_early(now, packet, sink),
                _ => self.data.drop_early(now, packet, sink),
            }
            return;
        }
        match &mut self.ack {
            AckQueue::Fifo(queue) if is_ack => queue.enqueue(now, ticket, packet, room, sink),
            AckQueue::Thinned(queue) if is_ack => queue.enqueue(now, ticket, packet, room, sink),
            _ => {
                self.data.enqueue(now, ticket, packet, room, sink);
                self.follow_data_backlog();
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, _sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.tick(now);
        let (ack, data) = (self.ack_head(), self.data.head());
        let class = match self.service.next(now, ack, data) {
            Next::Serve(class) => class,
            Next::NotBefore(at) => return Dequeue::NotBefore(at),
            Next::Empty => return Dequeue::Empty,
        };
        let is_ack = class == Class::Ack;
        let packet = match &mut self.ack {
            AckQueue::Fifo(queue) if is_ack => queue.dequeue(),
            AckQueue::Thinned(queue) if is_ack => queue.dequeue(),
            _ => self.data.dequeue(),
        };
        let Some(packet) = packet else {
            return Dequeue::Empty;
        };
        let header = packet.header();
        self.service
            .sent(now, class, header.len, ack.is_some() && data.is_some());
        let acked = match &mut self.acked {
            Some(acked) if is_ack => acked.pass(header),
            _ => 0,
        };
        if let (true, Service::Credit(credit)) = (is_ack, &mut self.service) {
            credit.earn(acked);
        }
        self.controller.sent(header, is_ack, acked);
        if !is_ack {
            self.follow_data_backlog();
        }
        Dequeue::Packet(packet)
    }

    #[inline]
    fn observe(&mut self, now: Instant, crossing: &Header) {
        self.tick(now);
        self.controller.crossed(crossing);
    }

    fn observes_crossing(&self) -> bool {
        matches!(self.controller, Controller::Aq(_))
    }

    fn drain(&mut self) -> Option<P> {
        // In the order of arrival over both classes, so that a successor sees what this one saw.
        let ack_first = match (self.ack_head(), self.data.head()) {
            (Some((ack, _)), Some((data, _))) => ack < data,
            (ack, _) => ack.is_some(),
        };
        match &mut self.ack {
            AckQueue::Fifo(queue) if ack_first => queue.drain(),
            AckQueue::Thinned(queue) if ack_first => queue.drain(),
            _ => self.data.drain(),
        }
    }

    fn backlog(&self) -> Backlog {
        let (ack, data) = (self.ack_stats().backlog, self.data.stats().backlog);
        Backlog {
            packets: ack.packets + data.packets,
            bytes: ack.bytes + data.bytes,
        }
    }

    fn stats(&self) -> Stats {
        Stats {
            ack: self.ack_stats(),
            data: self.data.stats(),
        }
    }

    fn probe(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(share) = self.service.data_share() {
            show("data_share", share);
        }
        if let Controller::Aq(aq) = &self.controller {
            show("data_per_ack", aq.data_per_ack());
        }
        if let Service::Credit(credit) = &self.service {
            show("credit", credit.bytes() as f64);
        }
        if let Some(red) = &self.red {
            show("red_average", red.average());
        }
        let ack_limit = match &self.ack {
            AckQueue::Fifo(queue) => queue.limit(),
            AckQueue::Thinned(queue) => queue.limit(),
        };
        show("ack_limit", ack_limit.value() as f64);
        show("data_limit", self.data.limit().value() as f64);
    }
}
