//! The path of a frame between the ports, without I/O and without a clock.

use crate::config::{BuiltLink, BuiltStage, LinkConfig};
use crate::conntrack::NatMap;
use crate::direction::DirectionState;
use crate::flows::{FlowCounters, FlowSnapshot};
use crate::io::{Frame, PacketIo};
use crate::passive::{self, Passive};
use crate::rate_probe::RateProbe;
use asymq_core::decide::frame::{self, FlowKey, Parsed};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::{Handover, Meters};
use asymq_core::{Backlog, Direction, Duration, Header, Instant, Protocol, Rate};
use asymq_rates::{Learner, Observed, RateLaw};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Both directions of a link. Each direction also observes the frames that the other direction sends.
pub struct Forwarder {
    config: LinkConfig,
    directions: [DirectionState; 2],
    key: FlowKey,
    watch: Option<Watch>,
    pub(crate) flows: Option<FlowCounters>,
    pub(crate) passive: Passive,
    /// Tracks round trips, even if no rate is learnt.
    learner: Box<Learner>,
    /// Time of the next learning step.
    learns_at: Instant,
    rate_probe: RateProbe,
    /// Hosts behind the NAT of the router on which the gateway runs.
    pub(crate) nat: Option<Arc<NatMap>>,
    /// Number of times that the link was changed.
    pub(crate) changes: u64,
}

type Watch = Box<dyn FnMut(Direction, &Header, Duration) + Send>;

impl Forwarder {
    /// Creates a forwarder with empty queues. `key` is the secret key of the flow hash.
    pub fn new(link: BuiltLink, key: FlowKey) -> Self {
        Self {
            directions: link.stages.map(DirectionState::new),
            config: link.config,
            learner: link.learner,
            learns_at: Instant::ZERO,
            rate_probe: RateProbe::new(key.number()),
            key,
            watch: None,
            flows: None,
            passive: Passive::default(),
            nat: None,
            changes: 0,
        }
    }

    /// Sets a callback that gets direction, header and sojourn time of every sent frame.
    pub fn set_watch(&mut self, watch: impl FnMut(Direction, &Header, Duration) + Send + 'static) {
        self.watch = Some(Box::new(watch));
    }

    /// Current configuration.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Processes a frame that travels in `direction`: queues, drops or sends it. `out` sends frames.
    pub fn take(
        &mut self,
        now: Instant,
        direction: Direction,
        bytes: &[u8],
        out: &mut impl PacketIo,
    ) {
        let parsed = frame::parse(bytes, &self.key);
        let len = charge(&self.config.overhead, &parsed);
        if self.config.rate_probe.is_some() && self.is_probes(now, direction, bytes, parsed.network)
        {
            return;
        }
        let mut frame = frame::Frame::new(now, &parsed, len, bytes);
        self.passive.acknowledge(direction, &frame.header);
        if direction == Direction::Down {
            let observed = self.read(&frame);
            let answered = self.learner.comes(now, &frame.header, observed.as_ref());
            frame.header.note = passive::note(&frame.header, answered);
        }
        let state = &mut self.directions[direction as usize];
        if state.is_direct() {
            state.pass(&frame.header);
            self.sent(now, direction, &frame);
            out.send(bytes);
            return;
        }
        let nat = self.nat.as_ref();
        let frame = Frame {
            header: frame.header,
            network: frame.network,
            transport: frame.transport,
            translated: nat.map_or(0, |nat| nat.host(direction, bytes, frame.network)),
            bytes: bytes.into(),
        };
        state.push(now, frame);
    }

    /// Sends up to `max` frames that may leave now, through `out`. Returns the departure time of the next frame, if one
    /// waits.
    pub fn transmit(
        &mut self,
        now: Instant,
        direction: Direction,
        max: usize,
        out: &mut impl PacketIo,
    ) -> Option<Instant> {
        if self.config.learns() && now >= self.learns_at {
            self.learn(now);
        }
        if let (Direction::Up, Some(host)) = (direction, self.config.rate_probe) {
            self.probe(now, host, out);
        }
        for _ in 0..max {
            let Some(frame) = self.directions[direction as usize].pop(now) else {
                break;
            };
            self.sent(now, direction, &frame);
            out.send(&frame.bytes);
        }
        self.directions[direction as usize].next()
    }

    /// Reads the header fields that rate learning and the measurement of round trips need.
    fn read(&self, frame: &frame::Frame<impl AsRef<[u8]>>) -> Option<Observed> {
        let is_used = self.config.learns() || matches!(frame.header.protocol, Protocol::Tcp);
        let offsets = (frame.network, frame.transport);
        is_used.then(|| Observed::read(&frame.header, frame.bytes.as_ref(), offsets))?
    }

    /// Counts a sent packet, and passes its header to the other direction.
    fn sent(&mut self, now: Instant, direction: Direction, frame: &frame::Frame<impl AsRef<[u8]>>) {
        let header = &frame.header;
        match direction {
            Direction::Up => {
                let observed = self.read(frame);
                self.learner.leaves(now, header, observed.as_ref());
            }
            Direction::Down => self.passive.record(now, header),
        }
        let reverse = &mut self.directions[direction.reverse() as usize];
        reverse.observe(now, header);
        let sojourn = now.saturating_since(header.arrival);
        if let Some(watch) = &mut self.watch {
            watch(direction, header, sojourn);
        }
        if let Some(flows) = &mut self.flows {
            let at = (frame.bytes.as_ref(), frame.network);
            flows.sent(direction, header, sojourn, at);
        }
    }

    /// Returns the traffic by flow in the interval that ends now, if the page requested it.
    pub(crate) fn flow_snapshot(&mut self, interval: f64) -> Option<FlowSnapshot> {
        let directions = &self.directions;
        let flows = self.flows.as_mut()?;
        flows.snapshot(interval, |direction, each| {
            directions[direction as usize].visit(each);
        })
    }

    /// Sends a probe directly, bypassing the discipline, if one is scheduled.
    fn probe(&mut self, now: Instant, host: Ipv4Addr, out: &mut impl PacketIo) {
        if self.config.learns()
            && self.learner.probe_is_due(now)
            && let Some((number, frame)) = self.rate_probe.request(host)
        {
            self.learner.probe_leaves(now, number);
            out.send(&frame);
        }
    }

    /// True for the answer to a probe, which is not forwarded. Of an uplink frame, only stores the home host's address.
    fn is_probes(
        &mut self,
        now: Instant,
        direction: Direction,
        bytes: &[u8],
        network: u16,
    ) -> bool {
        let Some(host) = self.config.rate_probe.filter(|_| self.config.learns()) else {
            return false;
        };
        match direction {
            Direction::Up => {
                self.rate_probe.learn(bytes, network);
                false
            }
            Direction::Down => {
                let number = self.rate_probe.answered(host, bytes, network);
                number
                    .inspect(|number| self.learner.probe_returns(now, *number))
                    .is_some()
            }
        }
    }

    #[cold]
    fn learn(&mut self, now: Instant) {
        self.learns_at = now + Learner::INTERVAL;
        let waits = |state: &DirectionState| state.backlog().packets > 0;
        self.learner
            .step(now, self.directions.each_ref().map(waits));
        for direction in Direction::ALL {
            if let Some(rate) = self.learner.law(direction).map(RateLaw::rate) {
                let reverse = self.capacity(direction.reverse());
                self.directions[direction as usize].set_rate(now, rate, reverse);
            }
        }
    }

    /// Rate of a direction's shaper, configured or learnt; `None` without a shaper.
    pub(crate) fn capacity(&self, direction: Direction) -> Option<Rate> {
        let learnt = self.learner.law(direction).map(RateLaw::rate);
        learnt.or(self.config.capacity(direction))
    }

    /// Changes the link. Queued frames move to the new disciplines in order, and keep their arrival times. A direction
    /// without changes keeps its parts. Returns the replaced parts; the caller frees them outside the forwarding loop.
    pub fn change(
        &mut self,
        now: Instant,
        link: BuiltLink,
        lan: &mut impl PacketIo,
        wan: &mut impl PacketIo,
    ) -> (Handover, BuiltLink) {
        self.changes += 1;
        let old = std::mem::replace(&mut self.config, link.config);
        let mut learner = link.learner;
        if old.auto != self.config.auto {
            std::mem::swap(&mut self.learner, &mut learner);
            self.learns_at = now;
        }
        let mut sum = Handover::default();
        let mut stages = [BuiltStage::Direct, BuiltStage::Direct];
        for (direction, built) in Direction::ALL.into_iter().zip(link.stages) {
            let (stage, rate) = (self.config.stage(direction), self.config.rate(direction));
            let overhead = self.config.overhead;
            if (stage, rate) == (old.stage(direction), old.rate(direction))
                && overhead == old.overhead
            {
                continue;
            }
            let key = &self.key;
            let update = |frame: &mut Frame| {
                let parsed = frame::parse(&frame.bytes, key);
                frame.header.len = charge(&overhead, &parsed);
            };
            let replaced = self.directions[direction as usize].replace(now, built, rate, update);
            for frame in replaced.released {
                self.directions[direction as usize].pass(&frame.header);
                self.sent(now, direction, &frame);
                match direction {
                    Direction::Up => wan.send(&frame.bytes),
                    Direction::Down => lan.send(&frame.bytes),
                }
            }
            sum.packets += replaced.handover.packets;
            sum.dropped += replaced.handover.dropped;
            stages[direction as usize] = replaced.retired;
        }
        let config = old;
        let retired = BuiltLink {
            config,
            stages,
            learner,
        };
        (sum, retired)
    }

    /// True if frames never wait in this direction.
    pub const fn is_direct(&self, direction: Direction) -> bool {
        self.directions[direction as usize].is_direct()
    }

    /// Backlog of a direction.
    pub fn backlog(&self, direction: Direction) -> Backlog {
        self.directions[direction as usize].backlog()
    }

    /// Counters of a direction, summed over all its stages. Regenerated ACKs count as arrived.
    pub const fn meters(&self, direction: Direction) -> &Meters {
        self.directions[direction as usize].meters()
    }

    /// Control variables of a direction.
    pub fn probes(&self, direction: Direction) -> Vec<(&'static str, f64)> {
        let mut probes = self.directions[direction as usize].probes();
        if let Some(law) = self.learner.law(direction) {
            probes.extend([
                ("auto_rate", law.rate().bits_per_sec() as f64),
                ("auto_capacity", law.capacity().bits_per_sec() as f64),
                ("auto_line_queue", law.queue().as_secs_f64()),
                (law.reason().variable(), 1.0),
            ]);
        }
        probes
    }

    pub(crate) fn state(&mut self, direction: Direction) -> &mut DirectionState {
        &mut self.directions[direction as usize]
    }
}

fn charge(overhead: &Overhead, parsed: &Parsed) -> u32 {
    overhead.charge(parsed, parsed.header.len)
}
