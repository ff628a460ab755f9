//! The bottleneck link in one direction: a discipline, a rate and a delay.

use crate::histogram::Histogram;
use crate::packet::{Kind, SimPacket};
use crate::path::TxTimes;
use asymq_core::packet::Header;
use asymq_core::{Dequeue, DropReason, Instant, Qdisc, Rate, Sink};
use std::collections::VecDeque;

/// A link that is brought up to date when somebody looks.
///
/// No departure is an event. [`catch_up`](Link::catch_up) asks the discipline at the very instants
/// at which the transmitter became free, in order, before anything later is enqueued. That is exact
/// as long as nobody needs a packet's effect earlier than [`due`](Link::due).
pub(crate) struct Link {
    qdisc: Box<dyn Qdisc<SimPacket> + Send>,
    observes: bool,
    /// Packets seen on the other direction and when, not yet shown to the discipline.
    crossing: VecDeque<(u64, Header)>,
    tx: TxTimes,
    propagation: u64,
    /// A packet has no effect elsewhere sooner than this after its transmission starts.
    lookahead: u64,
    /// When the transmitter is free.
    free: u64,
    /// When the discipline is asked next; `u64::MAX` if nothing waits.
    next: u64,
    dropped: Dropped,
    busy: Busy,
    last: Load,
    sojourn: Histogram,
}

/// What a packet counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Data,
    Ack,
    Other,
}

/// Time that the transmitter was busy, in ns, by [`Load`].
pub(crate) type Busy = [u64; 3];

/// A packet whose last bit has left the link.
pub(crate) struct Delivery {
    /// When it is out at the other end, in ns.
    pub(crate) at: u64,
    /// When its transmission started, in ns.
    pub(crate) sent: u64,
    /// The packet.
    pub(crate) packet: SimPacket,
}

#[derive(Clone, Copy, Debug, Default)]
struct Dropped(u64);

impl Sink<SimPacket> for Dropped {
    #[inline]
    fn dropped(&mut self, _now: Instant, _packet: SimPacket, _reason: DropReason) {
        self.0 += 1;
    }
}

impl Link {
    /// An idle link of `rate`, with `propagation` in ns.
    pub(crate) fn new(
        qdisc: Box<dyn Qdisc<SimPacket> + Send>,
        rate: Rate,
        propagation: u64,
    ) -> Self {
        /// No IP packet is shorter.
        const SHORTEST: u32 = 20;
        let tx = TxTimes::new(rate);
        Self {
            observes: qdisc.observes_crossing(),
            qdisc,
            crossing: VecDeque::new(),
            lookahead: tx.nanos(SHORTEST) + propagation,
            tx,
            propagation,
            free: 0,
            next: u64::MAX,
            dropped: Dropped::default(),
            busy: Busy::default(),
            last: Load::Other,
            sojourn: Histogram::default(),
        }
    }

    /// Whether the discipline wants to see what crosses.
    #[inline]
    pub(crate) fn observes(&self) -> bool {
        self.observes
    }

    /// Shows the discipline a packet that crosses at `at`, later than any before it.
    #[inline]
    pub(crate) fn observe(&mut self, at: u64, crossing: Header) {
        self.crossing.push_back((at, crossing));
    }

    /// The link must be caught up before anything is done at this time, in ns.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.next.saturating_add(self.lookahead)
    }

    /// Takes a packet that arrives at `now`. The link must be caught up to `now`.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: u64, packet: SimPacket) {
        self.show_crossing(now);
        let now_instant = Instant::from_nanos(now);
        self.qdisc.enqueue(now_instant, packet, &mut self.dropped);
        self.next = self.next.min(now.max(self.free));
    }

    /// Carries out all departures up to and including `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: u64, mut deliver: impl FnMut(Delivery)) {
        while self.next <= now {
            let start = self.next;
            self.show_crossing(start);
            let answer = self
                .qdisc
                .dequeue(Instant::from_nanos(start), &mut self.dropped);
            self.next = match answer {
                Dequeue::Packet(packet) => {
                    self.sojourn
                        .record(start - packet.header.arrival.as_nanos());
                    let tx = self.tx.nanos(packet.header.len);
                    self.last = load(packet.segment.kind);
                    self.busy[self.last as usize] += tx;
                    self.free = start + tx;
                    deliver(Delivery {
                        at: self.free + self.propagation,
                        sent: start,
                        packet,
                    });
                    self.free
                }
                Dequeue::NotBefore(instant) => instant.as_nanos().max(start + 1),
                Dequeue::Empty => u64::MAX,
            };
        }
    }

    #[inline]
    fn show_crossing(&mut self, now: u64) {
        while let Some(&(at, header)) = self.crossing.front()
            && at <= now
        {
            self.qdisc.observe(Instant::from_nanos(at), &header);
            self.crossing.pop_front();
        }
    }

    /// Busy time up to `now`, to which the link is caught up.
    pub(crate) fn busy(&self, now: u64) -> Busy {
        let mut busy = self.busy;
        // The transmission under way was counted whole when it started.
        busy[self.last as usize] -= self.free.saturating_sub(now);
        busy
    }

    /// Packets dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.0
    }

    /// Packets waiting.
    pub(crate) fn waiting(&self) -> u32 {
        self.qdisc.backlog().packets
    }

    /// Times that packets waited since the last [`forget_sojourns`](Link::forget_sojourns).
    pub(crate) fn sojourns(&self) -> &Histogram {
        &self.sojourn
    }

    /// Starts the sojourn times afresh.
    pub(crate) fn forget_sojourns(&mut self) {
        self.sojourn.clear();
    }
}

#[inline]
fn load(kind: Kind) -> Load {
    match kind {
        Kind::Data => Load::Data,
        Kind::Ack => Load::Ack,
        Kind::Syn | Kind::SynAck | Kind::Datagram => Load::Other,
    }
}
