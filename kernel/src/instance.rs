//! One qdisc: a discipline at its egress, and what `tc -s` shows of it.

use crate::frame::Frame;
use crate::host::{Handle, Host, Kind, Listener, with_frame};
use crate::learning::Learning;
use crate::request::Description;
use crate::skb::Skb;
use crate::window::Windows;
use alloc::boxed::Box;
use asymq_core::catalog::wire::{Numbers, id};
use asymq_core::catalog::{Catalog as _, Standard};
use asymq_core::control::rate::RateLaw;
use asymq_core::frame::{FlowKey, Parsed, parse_prefix};
use asymq_core::hold::{BuildError, Egress, Meters};
use asymq_core::overhead::Overhead;
use asymq_core::qdisc::{Counter, Reading};
use asymq_core::units::{Instant, Rate, Share};
use asymq_core::{Fate, Header, Packet as _, Reason, Sink, Toward, TrafficClass};
use core::fmt::Write as _;

/// Segments of an aggregate that are counted one by one; none has more but of the shortest segments.
const MAX_SEGMENTS: u32 = 512;

pub(crate) struct Instance {
    egress: Egress<Skb>,
    key: FlowKey,
    windows: Windows,
    overhead: Overhead,
    learning: Option<Learning>,
}

/// What is dropped goes back to C.
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
            Some((range, toward)) => Some(Learning::new(range, config.link, toward)?),
            None => None,
        };
        let key = match qdisc.reads_flows() || learning.is_some() {
            true => FlowKey::new(secret),
            false => FlowKey::none(),
        };
        Ok(Box::new(Self {
            egress: match description.shaped {
                true => Egress::new(qdisc, config.link),
                false => Egress::unshaped(qdisc),
            },
            key,
            windows: Windows::new(now),
            overhead: description.overhead,
            learning,
        }))
    }

    /// Whether the qdisc that is meant is this one, made of `then`, at other rates, and the discipline follows those:
    /// then nothing is to be built.
    pub(crate) fn goes_on(&self, then: &Numbers, now: &Numbers) -> bool {
        let is_learnt = self.learning.is_some() || now.get(id::UP_MIN).is_some();
        !is_learnt && self.egress.qdisc().follows_rates() && then.differ_in_rates_alone(now)
    }

    pub(crate) fn move_rates(&mut self, now: Instant, link: Rate, reverse: Option<Rate>) {
        self.egress.set_rate(now, link, reverse);
    }

    /// Counts on where another instance stopped, in which nothing waits.
    pub(crate) fn take_over(&mut self, other: &Self) {
        self.windows.go_on_from(&other.windows);
        self.egress.count_from(*other.egress.meters());
    }

    /// Takes what waits out of the counters, as if it had never come.
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

    /// Packets that wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.egress.backlog().packets
    }

    pub(crate) fn observes(&self) -> bool {
        self.egress.observes_reverse() || self.learns() == Some(Toward::Up)
    }

    /// Direction whose rate it learns.
    pub(crate) fn learns(&self) -> Option<Toward> {
        self.learning.as_ref().map(Learning::toward)
    }

    /// The rate as learnt so far.
    pub(crate) fn learnt(&self) -> Option<Rate> {
        self.learning.as_ref()?.law().map(RateLaw::rate)
    }

    /// Moves the rate, if it is learnt and the time has come.
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

    /// What the frame says, with offsets in it; those in the packet are less by what was added.
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
        let mut parsed = self.parse(frame);
        let (network, transport) = (parsed.network, parsed.transport);
        parsed.network = network.saturating_sub(frame.added);
        parsed.header.len = self.overhead.charge(&parsed, frame.charged);
        parsed.header.arrival = arrival;
        if let Some(learning) = self
            .learning
            .as_mut()
            .filter(|one| one.toward() == Toward::Down)
        {
            learning.comes(now, &parsed.header, (network, transport), frame);
        }
        let packet = Skb::new(parsed.header, handle, network, transport);
        #[cfg(feature = "selftest")]
        crate::selftest::panic_if_asked();
        #[cfg(feature = "mutant")]
        core::hint::black_box(frame.bytes()[core::hint::black_box(now.as_nanos() as usize)]);
        self.egress.enqueue(now, packet, &mut Freed(host));
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, host: Host, now: Instant) -> Option<Handle> {
        self.learn(now);
        let mut sent = None;
        self.egress.dequeue_ref(now, &mut Freed(host), |_, packet| {
            if let Some(learning) = self
                .learning
                .as_mut()
                .filter(|one| one.toward() == Toward::Up)
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

    /// When to call [`dequeue`](Self::dequeue).
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.egress.next()
    }

    /// Shows the discipline a packet of the reverse path, or an aggregate of several.
    pub(crate) fn observe(&mut self, now: Instant, frame: &Frame) {
        let overhead = self.overhead;
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

    /// Takes note of a packet that leaves the device from which this one's packets come.
    pub(crate) fn departs(&mut self, now: Instant, frame: &Frame) {
        let parsed = self.parse(frame);
        if let Some(learning) = &mut self.learning {
            let offsets = (parsed.network, parsed.transport);
            learning.leaves(now, &parsed.header, offsets, frame);
        }
    }

    /// Forgets all that waits: C frees it.
    pub(crate) fn empty(&mut self) {
        while self.egress.drain().is_some() {}
    }

    /// Counters, recent rates and sojourn times, and the discipline's variables.
    pub(crate) fn show(&self, now: Instant, to: Listener) {
        let meters: &Meters = self.egress.meters();
        for fate in Fate::ALL {
            let total = meters.fate(fate).total();
            to.value(fate.name(), Kind::Count, total.packets);
        }
        let backlog = meters.backlog();
        for class in TrafficClass::ALL {
            let name = Name::of(class.name());
            let counter = |what: &str, counter: Counter| {
                to.value(
                    name.with(what).with("packets").text(),
                    Kind::Count,
                    counter.packets,
                );
                to.value(
                    name.with(what).with("bytes").text(),
                    Kind::Count,
                    counter.bytes,
                );
            };
            counter("sent", meters.sent.of(class));
            let waits = backlog.of(class);
            let waits = Counter {
                packets: waits.packets.into(),
                bytes: waits.bytes,
            };
            counter("backlog", waits);
            for reason in Reason::ALL {
                let left = meters.left(*reason).of(class).packets;
                to.value(name.with(reason.name()).text(), Kind::Count, left);
            }
            let marked = meters.marked.of(class).packets;
            to.value(name.with("marked").text(), Kind::Count, marked);
            let recent = self.windows.recent(now, class, meters.sent.of(class));
            to.value(name.with("rate").text(), Kind::Rate, recent.rate);
            for (what, time) in ["p50", "p95", "p99", "max"].iter().zip(recent.percentiles) {
                let name = name.with("sojourn").with(what);
                to.value(name.text(), Kind::Time, time.as_nanos());
            }
        }
        let control = Name::of("control");
        if let Some(law) = self.learning.as_ref().and_then(Learning::law) {
            let rate = |name: &str, rate: Rate| {
                to.value(control.with(name).text(), Kind::Rate, rate.bits_per_sec());
            };
            rate("auto_rate", law.rate());
            rate("auto_capacity", law.capacity());
            let queue = law.queue().as_nanos();
            to.value(control.with("auto_line_queue").text(), Kind::Time, queue);
            let reason = law.reason().variable();
            to.value(control.with(reason).text(), Kind::Count, 1);
        }
        self.egress.qdisc().probe(&mut |name, reading| {
            let (kind, value) = match reading {
                Reading::Count(count) => (Kind::Count, count),
                Reading::Share(share) => (Kind::Share, share_steps(share)),
                Reading::Time(time) => (Kind::Time, time.as_nanos()),
                Reading::Real(number) => (Kind::Real, number.to_bits()),
            };
            to.value(control.with(name).text(), kind, value);
        });
    }
}

fn share_steps(share: Share) -> u64 {
    share.steps().into()
}

/// A short name in levels, without allocation; what is too long is cut.
#[derive(Clone, Copy)]
struct Name {
    bytes: [u8; 40],
    len: usize,
}

impl Name {
    fn of(text: &str) -> Self {
        let mut name = Self {
            bytes: [0; 40],
            len: 0,
        };
        let _ = name.write_str(text);
        name
    }

    fn with(mut self, level: &str) -> Self {
        let _ = self.write_str(".");
        let _ = self.write_str(level);
        self
    }

    fn text(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl core::fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        for (slot, byte) in rest.iter_mut().zip(text.bytes()) {
            *slot = byte;
            self.len += 1;
        }
        Ok(())
    }
}
