//! The bottleneck link in one direction: a discipline, a rate and a delay.

use crate::events::NEVER;
use crate::histogram::Histogram;
use crate::packet::{Kind, SimPacket};
use crate::path::TxTimes;
use crate::tcp::Options;
use asymq_core::packet::Header;
use asymq_core::{Dequeue, DropReason, Instant, Qdisc, Rate, Sink};
use std::collections::VecDeque;

/// A discipline and the transmitter behind it. The caller calls [`dequeue`](Link::dequeue) at
/// [`next`](Link::next) and [`enqueue`](Link::enqueue) at arrivals, in order of time.
pub(crate) struct Link<O> {
    qdisc: Box<dyn Qdisc<SimPacket<O>> + Send>,
    observes: bool,
    /// Packets seen on the other direction and when, not yet shown to the discipline.
    crossing: VecDeque<(u64, Header)>,
    tx: TxTimes,
    propagation: u64,
    lookahead: u64,
    /// When the transmitter is free.
    free: u64,
    /// When the discipline is asked next; `NEVER` if nothing waits.
    next: u64,
    dropped: Dropped,
    busy: Busy,
    last: Load,
    sojourn: Histogram,
    /// The latest call: time never goes back.
    #[cfg(debug_assertions)]
    clock: u64,
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

#[derive(Clone, Copy, Debug, Default)]
struct Dropped(u64);

impl<O> Sink<SimPacket<O>> for Dropped {
    #[inline]
    fn dropped(&mut self, _now: Instant, _packet: SimPacket<O>, _reason: DropReason) {
        self.0 += 1;
    }
}

impl<O: Options> Link<O> {
    /// An idle link of `rate`, with `propagation` in ns.
    pub(crate) fn new(
        qdisc: Box<dyn Qdisc<SimPacket<O>> + Send>,
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
            next: NEVER,
            dropped: Dropped::default(),
            busy: Busy::default(),
            last: Load::Other,
            sojourn: Histogram::default(),
            #[cfg(debug_assertions)]
            clock: 0,
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

    /// A packet has no effect elsewhere sooner than this after its transmission starts, in ns; at
    /// least 1.
    #[inline]
    pub(crate) fn lookahead(&self) -> u64 {
        self.lookahead
    }

    /// Takes the least lookahead there is.
    #[cfg(test)]
    pub(crate) fn look_no_further(&mut self) {
        self.lookahead = 1;
    }

    /// When the discipline is to be asked next, in ns; [`NEVER`] if nothing waits.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a packet that arrives at `now`.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: u64, packet: SimPacket<O>) {
        self.show_crossing(now);
        let now_instant = Instant::from_nanos(now);
        self.qdisc.enqueue(now_instant, packet, &mut self.dropped);
        self.next = self.next.min(now.max(self.free));
    }

    /// Asks the discipline at `now`, which is [`next`](Link::next). If a packet's transmission
    /// starts, `deliver` is given when it is out at the other end, and the packet.
    #[inline]
    pub(crate) fn dequeue(&mut self, now: u64, deliver: impl FnOnce(u64, &SimPacket<O>)) {
        self.show_crossing(now);
        let answer = self
            .qdisc
            .dequeue(Instant::from_nanos(now), &mut self.dropped);
        // By reference: a packet just written and at once copied stalls the processor.
        match &answer {
            Dequeue::Packet(packet) => {
                self.sojourn.record(now - packet.header.arrival.as_nanos());
                let tx = self.tx.nanos(packet.header.len);
                self.last = load(packet.segment.kind());
                self.busy[self.last as usize] += tx;
                self.free = now + tx;
                self.next = self.free;
                deliver(self.free + self.propagation, packet);
            }
            Dequeue::NotBefore(instant) => self.next = instant.as_nanos().clamp(now + 1, NEVER),
            Dequeue::Empty => self.next = NEVER,
        }
    }

    #[inline]
    fn show_crossing(&mut self, now: u64) {
        #[cfg(debug_assertions)]
        {
            assert!(now >= self.clock, "{now} ns after {} ns", self.clock);
            self.clock = now;
        }
        while let Some(&(at, header)) = self.crossing.front()
            && at <= now
        {
            self.qdisc.observe(Instant::from_nanos(at), &header);
            self.crossing.pop_front();
        }
    }

    /// Busy time up to `now`, to which the link has run.
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
        Kind::Ack | Kind::RewrittenAck | Kind::AckWithin => Load::Ack,
        Kind::Syn | Kind::SynAck | Kind::Datagram => Load::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Layout, Segment};
    use asymq_core::Limit;
    use asymq_core::config::Config;
    use asymq_core::qdisc::{Backlog, Stats};
    use asymq_scenario::Toward;

    const MS: u64 = 1_000_000;

    fn data(number: u64, now: u64) -> SimPacket {
        let segment = Segment::new(Kind::Data, number);
        Layout::new(0, 1460, 40, 0).packet(segment, Toward::Up, Instant::from_nanos(now))
    }

    fn link(qdisc: Box<dyn Qdisc<SimPacket> + Send>) -> Link<()> {
        Link::new(qdisc, "1mbit".parse().unwrap(), 5 * MS)
    }

    /// Lets the link work off what it has; times of delivery by segment.
    fn run(link: &mut Link<()>) -> Vec<(u64, u64)> {
        let mut delivered = Vec::new();
        while link.next() < NEVER {
            link.dequeue(link.next(), |at, packet| {
                delivered.push((packet.segment.number(), at));
            });
        }
        delivered
    }

    #[test]
    fn packets_leave_back_to_back_and_arrive_after_transmission_and_propagation() {
        let limit = Limit::Packets(2);
        let mut link = link(Config::DropTail { limit }.build());
        for number in 0..4 {
            link.enqueue(MS, data(number, MS));
            if number == 0 {
                // An idle link takes the first at once: it does not count as waiting.
                assert_eq!(link.next(), MS);
                link.dequeue(MS, |at, _| assert_eq!(at, 18 * MS));
            }
        }
        assert_eq!((link.waiting(), link.dropped()), (2, 1));
        // 1500 bytes take 12 ms at 1 Mbit/s.
        assert_eq!(run(&mut link), [(1, 30 * MS), (2, 42 * MS)]);
        assert_eq!(link.busy(37 * MS)[Load::Data as usize], 36 * MS);
        assert_eq!(link.busy(20 * MS)[Load::Data as usize], 19 * MS);
    }

    /// Lets nothing go before a given time.
    struct Paced(Vec<SimPacket>, u64);

    impl Qdisc<SimPacket> for Paced {
        fn enqueue(&mut self, _: Instant, packet: SimPacket, _: &mut dyn Sink<SimPacket>) {
            self.0.push(packet);
        }
        fn dequeue(&mut self, now: Instant, _: &mut dyn Sink<SimPacket>) -> Dequeue<SimPacket> {
            if self.0.is_empty() {
                Dequeue::Empty
            } else if now.as_nanos() < self.1 {
                Dequeue::NotBefore(Instant::from_nanos(self.1))
            } else {
                Dequeue::Packet(self.0.remove(0))
            }
        }
        fn drain(&mut self) -> Option<SimPacket> {
            self.0.pop()
        }
        fn backlog(&self) -> Backlog {
            Backlog::default()
        }
        fn stats(&self) -> Stats {
            Stats::default()
        }
    }

    #[test]
    fn a_discipline_that_waits_is_asked_again_when_it_said() {
        let mut link = link(Box::new(Paced(Vec::new(), 100 * MS)));
        link.enqueue(0, data(0, 0));
        link.enqueue(0, data(1, 0));
        assert_eq!(run(&mut link), [(0, 117 * MS), (1, 129 * MS)]);
    }
}
