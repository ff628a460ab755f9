//! What happens to a frame between the ports, without I/O and without a clock.

use crate::frame::Frame;
use crate::io::PacketIo;
use crate::meter::Meters;
use crate::shaper::Shaper;
use asymq_core::config::Config;
use asymq_core::frame::{self, FlowKey};
use asymq_core::overhead::Overhead;
use asymq_core::qdisc::{Dequeue, Discard};
use asymq_core::units::{Duration, Instant, Rate};
use asymq_core::{Backlog, Header, Qdisc, Stats};

/// Frames from the LAN wait in the discipline and leave at the uplink's rate; frames from the WAN
/// pass at once, seen by the discipline.
pub struct Forwarder {
    qdisc: Box<dyn Qdisc<Frame> + Send>,
    observes: bool,
    shaper: Shaper,
    overhead: Overhead,
    key: FlowKey,
    meters: Meters,
    watch: Option<Watch>,
}

type Watch = Box<dyn FnMut(&Header, Duration) + Send>;

impl std::fmt::Debug for Forwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("backlog", &self.qdisc.backlog())
            .field("shaper", &self.shaper)
            .finish_non_exhaustive()
    }
}

impl Forwarder {
    /// A forwarder with an empty queue. `key` is the secret that flows are hashed with.
    pub fn new(discipline: &Config, up: Rate, overhead: Overhead, key: FlowKey) -> Self {
        let qdisc = discipline.build();
        Self {
            observes: qdisc.observes_crossing(),
            qdisc,
            shaper: Shaper::new(up),
            overhead,
            key,
            meters: Meters::default(),
            watch: None,
        }
    }

    /// Shows `watch` every frame that starts towards the WAN, and how long it has waited.
    pub fn set_watch(&mut self, watch: impl FnMut(&Header, Duration) + Send + 'static) {
        self.watch = Some(Box::new(watch));
    }

    /// A frame came from the LAN: it joins the queue, or is dropped there.
    #[inline]
    pub fn from_lan(&mut self, now: Instant, bytes: &[u8]) {
        let (header, transport) = self.read(now, bytes);
        if self.qdisc.backlog().packets == 0 {
            self.shaper.wake(now);
        }
        let frame = Frame {
            header,
            transport,
            bytes: bytes.into(),
        };
        self.qdisc.enqueue(now, frame, &mut Discard);
    }

    /// A frame came from the WAN: it goes to the LAN at once.
    #[inline]
    pub fn from_wan(&mut self, now: Instant, bytes: &[u8], lan: &mut impl PacketIo) {
        let (header, _) = self.read(now, bytes);
        if self.observes {
            self.qdisc.observe(now, &header);
        }
        self.meters.down.count(&header);
        lan.send(bytes);
    }

    /// Sends to the WAN what may go now, at most `most` frames; answers when to be called again:
    /// not at all before frames come in, if the queue is empty.
    #[inline]
    pub fn transmit(
        &mut self,
        now: Instant,
        most: usize,
        wan: &mut impl PacketIo,
    ) -> Option<Instant> {
        for _ in 0..most {
            if self.shaper.free_at() > now {
                break;
            }
            match self.qdisc.dequeue(now, &mut Discard) {
                Dequeue::Packet(frame) => {
                    self.shaper.start(now, frame.header.len);
                    let sojourn = now.saturating_since(frame.header.arrival);
                    self.meters.up.count(&frame.header);
                    self.meters.sojourn(&frame.header, sojourn);
                    if let Some(watch) = &mut self.watch {
                        watch(&frame.header, sojourn);
                    }
                    wan.send(&frame.bytes);
                }
                Dequeue::NotBefore(then) => return Some(then.max(self.shaper.free_at())),
                Dequeue::Empty => return None,
            }
        }
        (self.qdisc.backlog().packets > 0).then(|| self.shaper.free_at())
    }

    /// What waits for the uplink.
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// The discipline's counters.
    pub fn stats(&self) -> Stats {
        self.qdisc.stats()
    }

    /// The discipline's control variables by name.
    pub fn probes(&self) -> Vec<(&'static str, f64)> {
        let mut probes = Vec::new();
        self.qdisc
            .probe(&mut |name, value| probes.push((name, value)));
        probes
    }

    /// What passed in both directions.
    pub(crate) fn meters(&mut self) -> &mut Meters {
        &mut self.meters
    }

    #[inline]
    fn read(&self, now: Instant, bytes: &[u8]) -> (Header, u16) {
        let parsed = frame::parse(bytes, &self.key);
        let header = Header {
            arrival: now,
            len: self.overhead.charge(&parsed, parsed.header.len),
            ..parsed.header
        };
        (header, parsed.transport)
    }
}
