//! One qdisc: a discipline and its egress, and the statistics of `tc -s`.

use crate::frame::Frame;
use crate::host::{Handle, Host, Listener, with_frame};
use crate::learning::Learning;
use crate::request::Description;
use crate::skb::Skb;
use crate::window::Windows;
use alloc::boxed::Box;
use asymq_core::catalog::{BoxedQdisc, Catalog as _, Context, Standard, Value, Values};
use asymq_core::decide::frame::{FlowKey, Parsed, parse_prefix};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::{BuildError, Egress, Meters, boxed};
use asymq_core::qdisc::Counter;
use asymq_core::units::{Instant, Limit, Rate};
use asymq_core::{Direction, Fate, Header, Packet as _, Reason, Sink, TrafficClass};
use asymq_rates::RateLaw;
use asymq_wire::statistics::{self, class};
use asymq_wire::{Numbers, Rule, rules};

/// Maximum number of segments of an aggregate that are counted one by one.
const MAX_SEGMENTS: u32 = 512;

pub(crate) struct Instance {
    egress: Egress<Skb>,
    key: FlowKey,
    windows: Windows,
    /// Overhead of the link; `None` if the link charges the length from the qdisc layer.
    overhead: Option<Overhead>,
    learning: Option<Learning>,
    /// True if the buffer bounds only the FIFO after a fault.
    separate: bool,
    /// Rules of the defaults that depend on the link; `None` if too many. `line` has their rates and their buffer.
    rules: Option<[Option<Rule>; 3]>,
    line: (Rate, Option<Rate>, Limit),
}

/// Passes dropped and filtered packets to C.
struct Freed(Host);

impl Sink<Skb> for Freed {
    fn dropped(&mut self, _now: Instant, packet: Skb, reason: Reason) {
        self.0.gone(packet.handle, reason.fate() == Fate::Filtered);
    }
}

impl Instance {
    #[inline(never)]
    pub(crate) fn build(
        now: Instant,
        secret: [u64; 2],
        description: &Description,
    ) -> Result<Box<Self>, BuildError> {
        let config = &description.config;
        let qdisc = Standard.build::<Skb>(config)?;
        let learning = match description.auto {
            Some((range, direction)) => Some(Learning::new(range, config.link, direction)?),
            None => None,
        };
        let key = match qdisc.reads_flows() || learning.is_some() {
            true => FlowKey::new(secret),
            false => FlowKey::none(),
        };
        Self::of(now, description, qdisc, learning, key)
    }

    /// A separate function, so that its stack frame is freed before deep calls.
    #[inline(never)]
    fn of(
        now: Instant,
        description: &Description,
        qdisc: BoxedQdisc<Skb>,
        learning: Option<Learning>,
        key: FlowKey,
    ) -> Result<Box<Self>, BuildError> {
        let config = &description.config;
        boxed(Self {
            egress: match description.shaped {
                true => Egress::new(qdisc, config.link),
                false => Egress::unshaped(qdisc),
            },
            key,
            windows: Windows::new(now)?,
            overhead: Some(description.overhead).filter(|of| *of != Overhead::default()),
            learning,
            separate: description.separate,
            rules: None,
            line: (config.link, config.reverse, config.limit),
        })
    }

    /// True if the rates of a running instance may change.
    pub(crate) fn follows_rates(&self) -> bool {
        self.learning.is_none() && self.rules.is_some() && self.egress.qdisc().follows_rates()
    }

    /// A separate function, so that its stack frame is freed before deep calls.
    #[inline(never)]
    pub(crate) fn set_rules(&mut self, numbers: &Numbers, given: &Numbers) {
        self.rules = rules(numbers, given);
    }

    /// True if the instance can continue on this line: no default limit changes, and the buffer changes
    /// (`buffer_moves`) only if it bounds nothing but the FIFO after a fault.
    pub(crate) fn follows(&self, line: (Rate, Option<Rate>, Limit), buffer_moves: bool) -> bool {
        // In disciplines that follow rates, no rule of a limit reads other values.
        let values = &Values::default();
        let value = |rule: Rule, (link, reverse, limit)| {
            rule(&Context {
                link,
                reverse,
                limit,
                values,
            })
        };
        let stays = |rule: &Rule| match (value(*rule, line), value(*rule, self.line)) {
            (Value::Limit(new), Value::Limit(old)) => new == old,
            _ => false,
        };
        self.follows_rates()
            && (self.separate || !buffer_moves)
            && self.rules.iter().flatten().flatten().all(stays)
    }

    pub(crate) fn move_rates(&mut self, now: Instant, link: Rate, reverse: Option<Rate>) {
        self.egress.set_rate(now, link, reverse);
    }

    /// Takes over the counters of another, empty instance.
    pub(crate) fn take_over(&mut self, other: &Self) {
        self.windows.go_on_from(&other.windows);
        self.egress.count_from(*other.egress.meters());
    }

    /// Subtracts queued packets from the arrival counters.
    pub(crate) fn settle(&mut self) {
        let mut meters = *self.egress.meters();
        let backlog = meters.backlog();
        for class in TrafficClass::ALL {
            let (arrived, waits) = (meters.arrived.of_mut(class), backlog.of(class));
            arrived.packets = arrived.packets.wrapping_sub(waits.packets.into());
            arrived.bytes = arrived.bytes.wrapping_sub(waits.bytes);
        }
        self.egress.count_from(meters);
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.egress.backlog().packets
    }

    pub(crate) fn observes(&self) -> bool {
        self.egress.observes_reverse() || self.learns() == Some(Direction::Up)
    }

    /// True if packets may bypass the idle instance, provided that it has no shaper.
    pub(crate) fn allows_bypass(&self) -> bool {
        self.learning.is_none() && self.egress.qdisc().allows_bypass()
    }

    /// Returns the direction whose rate the instance learns.
    pub(crate) fn learns(&self) -> Option<Direction> {
        self.learning.as_ref().map(Learning::direction)
    }

    pub(crate) fn learnt(&self) -> Option<Rate> {
        self.learning.as_ref()?.law().map(RateLaw::rate)
    }

    /// Updates a learnt rate if the time of the next update has come.
    #[inline]
    fn learn(&mut self, now: Instant) {
        let Some(learning) = &mut self.learning else {
            return;
        };
        let backlogged = self.egress.backlog().packets > 0;
        if let Some(rate) = learning.step(now, backlogged) {
            self.egress.set_rate(now, rate, None);
        }
    }

    /// Parses a frame. Offsets count from the start of the frame; offsets in the packet are smaller by `added`.
    fn parse(&self, frame: &Frame) -> Parsed {
        parse_prefix(frame.bytes(), frame.wire_len as usize, &self.key)
    }

    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        host: Host,
        now: Instant,
        arrival: Instant,
        handle: Handle,
        frame: &Frame,
    ) {
        let mut packet = Skb::blank(handle, arrival);
        let (class, len) = self.read(now, frame, &mut packet);
        #[cfg(feature = "mutant")]
        core::hint::black_box(frame.bytes()[core::hint::black_box(now.as_nanos() as usize)]);
        self.egress
            .enqueue_known(now, (class, len), packet, &mut Freed(host));
    }

    /// Parses an arrival's header. Returns the arrival's class and length.
    #[inline(always)]
    fn read(&mut self, now: Instant, frame: &Frame, packet: &mut Skb) -> (TrafficClass, u32) {
        packet.read(frame, &self.key, self.overhead.as_ref());
        if let Some(learning) = self
            .learning
            .as_mut()
            .filter(|one| one.direction() == Direction::Down)
        {
            let offsets = (packet.network_at(), packet.transport_at());
            learning.comes(now, packet.header(), offsets, frame);
        }
        (packet.header().traffic_class(), packet.header().len)
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, host: Host, now: Instant) -> Option<Handle> {
        self.learn(now);
        let mut sent = None;
        self.egress.dequeue_ref(now, &mut Freed(host), |_, packet| {
            if let Some(learning) = self
                .learning
                .as_mut()
                .filter(|one| one.direction() == Direction::Up)
            {
                with_frame(packet.handle, |frame| {
                    let offsets = (packet.network_at(), packet.transport_at());
                    learning.leaves(now, packet.header(), offsets, frame);
                });
            }
            let header = packet.header();
            sent = Some((
                packet.handle,
                header.arrival,
                header.traffic_class(),
                header.len,
            ));
        });
        let (handle, arrival, class, len) = sent?;
        let meters = &self.egress.meters().sent;
        self.windows
            .sends(now, now.saturating_since(arrival), (class, len), meters);
        Some(handle)
    }

    /// Returns the time for the next call of [`dequeue`](Self::dequeue).
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.egress.next()
    }

    /// Handles a packet, or an aggregate of packets, of the reverse path.
    pub(crate) fn observe(&mut self, now: Instant, frame: &Frame) {
        let overhead = self.overhead.unwrap_or_default();
        let mut whole = self.parse(frame);
        let offsets = (whole.network, whole.transport);
        whole.network = whole.network.saturating_sub(frame.added);
        let header = whole.header;
        if let Some(learning) = &mut self.learning {
            let mut all = header;
            all.len = overhead.charge(&whole, frame.charged);
            learning.comes(now, &all, offsets, frame);
            self.learn(now);
        }
        let segment = u32::from(frame.segment);
        let segments = match segment {
            0 => 1,
            _ => header.payload.div_ceil(segment).clamp(1, MAX_SEGMENTS),
        };
        let mut left = header.payload;
        for number in 1..=segments {
            let payload = if number == segments { left } else { segment };
            left = left.saturating_sub(payload);
            let others = header.payload.saturating_sub(payload);
            let mut parsed = Parsed {
                header: Header {
                    payload,
                    ip_len: header.ip_len.saturating_sub(others),
                    ..header
                },
                ..whole
            };
            let len = frame.charged.saturating_sub(others);
            parsed.header.len = overhead.charge(&parsed, len);
            self.egress.observe(now, &parsed.header);
        }
    }

    /// Handles a packet that leaves the device at which this qdisc's packets arrived.
    pub(crate) fn departs(&mut self, now: Instant, frame: &Frame) {
        let parsed = self.parse(frame);
        if let Some(learning) = &mut self.learning {
            let offsets = (parsed.network, parsed.transport);
            learning.leaves(now, &parsed.header, offsets, frame);
        }
    }

    /// Removes all packets; C frees them.
    pub(crate) fn empty(&mut self) {
        while self.egress.drain().is_some() {}
    }

    /// Writes counters, recent rates and sojourn times, and the discipline's variables.
    pub(crate) fn show(&self, now: Instant, to: Listener) {
        let meters: &Meters = self.egress.meters();
        to.list(statistics::OF_TOTAL, || {
            for (fate, id) in Fate::ALL.into_iter().zip(statistics::FIRST..) {
                to.number(id, meters.fate(fate).total().packets);
            }
        });
        for class in TrafficClass::ALL {
            to.list(statistics::of_class(class), || {
                self.show_class(now, class, to)
            });
        }
        to.list(statistics::OF_CONTROL, || {
            if let Some(law) = self.learning.as_ref().and_then(Learning::law) {
                show_law(law, to);
            }
            self.egress.qdisc().probe(&mut |name, reading| {
                if let Some(id) = statistics::of_variable(name) {
                    to.number(id, statistics::of_reading(reading).0);
                }
            });
        });
    }

    #[inline(never)]
    fn show_class(&self, now: Instant, class: TrafficClass, to: Listener) {
        let meters: &Meters = self.egress.meters();
        let counter = |id: u16, counter: Counter| {
            to.number(id, counter.packets);
            to.number(id + 1, counter.bytes);
        };
        counter(class::SENT, meters.sent.of(class));
        let waits = meters.backlog().of(class);
        let waits = Counter {
            packets: waits.packets.into(),
            bytes: waits.bytes,
        };
        counter(class::BACKLOG, waits);
        for reason in Reason::ALL {
            if let Some(id) = statistics::of_reason(*reason) {
                to.number(id, meters.left(*reason).of(class).packets);
            }
        }
        to.number(class::MARKED, meters.marked.of(class).packets);
        let recent = self.windows.recent(now, class, meters.sent.of(class));
        to.number(class::RATE, recent.rate);
        for (time, id) in recent.percentiles.iter().zip(class::SOJOURN..) {
            to.number(id, time.as_nanos());
        }
    }
}

fn show_law(law: &RateLaw, to: Listener) {
    let show = |name: &str, value: u64| {
        if let Some(id) = statistics::of_variable(name) {
            to.number(id, value);
        }
    };
    show("auto_rate", law.rate().bits_per_sec());
    show("auto_capacity", law.capacity().bits_per_sec());
    show("auto_line_queue", law.queue().as_nanos());
    show(law.reason().variable(), 1);
}
