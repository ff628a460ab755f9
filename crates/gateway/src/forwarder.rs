//! What happens to a frame between the ports, without I/O and without a clock.

use crate::frame::Frame;
use crate::io::PacketIo;
use crate::lane::{Lane, Stage};
use asymq_core::frame::{self, FlowKey};
use asymq_core::overhead::Overhead;
use asymq_core::units::{Duration, Instant, Rate};
use asymq_core::{Backlog, Header, Stats};
use asymq_scenario::Toward;

/// The link as a gateway sees it, and what it does there: all that may change while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkConfig {
    /// Capacity towards the Internet.
    pub up: Rate,
    /// Capacity from the Internet.
    pub down: Rate,
    /// What the link charges for a packet.
    pub overhead: Overhead,
    /// What happens to frames towards the Internet.
    pub uplink: Stage,
    /// What happens to frames from the Internet.
    pub downlink: Stage,
}

impl LinkConfig {
    const fn lane(&self, toward: Toward) -> (&Stage, Rate) {
        match toward {
            Toward::Up => (&self.uplink, self.up),
            Toward::Down => (&self.downlink, self.down),
        }
    }
}

/// What a change of [`LinkConfig`] did to the frames that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// They were handed over.
    pub packets: u64,
    /// Of these, what the new discipline dropped: they were more than its limit.
    pub dropped: u64,
}

/// Two lanes, each of which sees what the other sent.
pub struct Forwarder {
    config: LinkConfig,
    lanes: [Lane; 2],
    key: FlowKey,
    watch: Option<Watch>,
}

type Watch = Box<dyn FnMut(&Header, Duration) + Send>;

impl std::fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("config", &self.config)
            .field("backlog", &self.backlog(Toward::Up))
            .finish_non_exhaustive()
    }
}

impl Forwarder {
    /// A forwarder with empty queues. `key` is the secret that flows are hashed with.
    pub fn new(config: &LinkConfig, key: FlowKey) -> Self {
        let lane = |toward| {
            let (stage, rate) = config.lane(toward);
            Lane::new(stage, rate)
        };
        Self {
            config: *config,
            lanes: [lane(Toward::Up), lane(Toward::Down)],
            key,
            watch: None,
        }
    }

    /// Shows `watch` every frame that starts towards the WAN, and how long it has waited.
    pub fn set_watch(&mut self, watch: impl FnMut(&Header, Duration) + Send + 'static) {
        self.watch = Some(Box::new(watch));
    }

    /// What it was told last.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// A frame came that goes `toward`: it waits, is dropped, or goes `out` at once.
    #[inline]
    pub fn take(&mut self, now: Instant, toward: Toward, bytes: &[u8], out: &mut impl PacketIo) {
        let (header, transport) = self.read(now, bytes);
        let lane = &mut self.lanes[toward as usize];
        lane.meters.acks.seen += u64::from(header.is_pure_ack());
        if lane.is_at_once() {
            self.sent(now, toward, &header);
            out.send(bytes);
            return;
        }
        let frame = Frame {
            header,
            transport,
            bytes: bytes.into(),
        };
        lane.push(now, frame);
    }

    /// Sends `out` what may go `toward` there now, at most `most` frames; answers when to be called
    /// again: not at all before frames come in, if none waits.
    #[inline]
    pub fn transmit(
        &mut self,
        now: Instant,
        toward: Toward,
        most: usize,
        out: &mut impl PacketIo,
    ) -> Option<Instant> {
        for _ in 0..most {
            let Some(frame) = self.lanes[toward as usize].pop(now) else {
                break;
            };
            self.sent(now, toward, &frame.header);
            out.send(&frame.bytes);
        }
        self.lanes[toward as usize].next()
    }

    #[inline]
    fn sent(&mut self, now: Instant, toward: Toward, header: &Header) {
        let [up, down] = &mut self.lanes;
        let (lane, crossing) = match toward {
            Toward::Up => (up, down),
            Toward::Down => (down, up),
        };
        let sojourn = now.saturating_since(header.arrival);
        lane.meters.sent.count(header);
        if !lane.is_at_once() {
            lane.meters.sojourn(header, sojourn);
        }
        crossing.observe(now, header);
        if let (Toward::Up, Some(watch)) = (toward, &mut self.watch) {
            watch(header, sojourn);
        }
    }

    /// Goes on as `config` says. What waits moves to the new disciplines in the order in which it
    /// came, and keeps its time of arrival; a lane that does not change is left alone.
    pub fn change(
        &mut self,
        now: Instant,
        config: &LinkConfig,
        lan: &mut impl PacketIo,
        wan: &mut impl PacketIo,
    ) -> Moved {
        let old = std::mem::replace(&mut self.config, *config);
        let mut moved = Moved::default();
        for toward in [Toward::Up, Toward::Down] {
            let (stage, rate) = config.lane(toward);
            if (stage, rate) == old.lane(toward) && config.overhead == old.overhead {
                continue;
            }
            let waiting = self.lanes[toward as usize].change(now, stage, rate);
            let dropped_before = self.dropped(toward);
            moved.packets += waiting.len() as u64;
            for mut frame in waiting {
                let (header, _) = self.read(frame.header.arrival, &frame.bytes);
                frame.header = header;
                if self.lanes[toward as usize].is_at_once() {
                    self.sent(now, toward, &frame.header);
                    match toward {
                        Toward::Up => wan.send(&frame.bytes),
                        Toward::Down => lan.send(&frame.bytes),
                    }
                } else {
                    self.lanes[toward as usize].push(now, frame);
                }
            }
            moved.dropped += self.dropped(toward) - dropped_before;
        }
        moved
    }

    fn dropped(&self, toward: Toward) -> u64 {
        let stats = self.stats(toward);
        [stats.ack, stats.data]
            .iter()
            .map(|class| class.over_limit.packets + class.early.packets)
            .sum()
    }

    /// Whether frames never wait in this direction.
    pub const fn passes_at_once(&self, toward: Toward) -> bool {
        self.lanes[toward as usize].is_at_once()
    }

    /// What waits in a direction's discipline.
    pub fn backlog(&self, toward: Toward) -> Backlog {
        self.lanes[toward as usize].backlog()
    }

    /// A direction's counters, over all disciplines that it had.
    pub fn stats(&self, toward: Toward) -> Stats {
        self.lanes[toward as usize].stats()
    }

    /// A direction's control variables by name.
    pub fn probes(&self, toward: Toward) -> Vec<(&'static str, f64)> {
        self.lanes[toward as usize].probes()
    }

    pub(crate) fn lane(&mut self, toward: Toward) -> &mut Lane {
        &mut self.lanes[toward as usize]
    }

    #[inline]
    fn read(&self, now: Instant, bytes: &[u8]) -> (Header, u16) {
        let parsed = frame::parse(bytes, &self.key);
        let header = Header {
            arrival: now,
            len: self.config.overhead.charge(&parsed, parsed.header.len),
            ..parsed.header
        };
        (header, parsed.transport)
    }
}
