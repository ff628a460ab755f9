//! Endpoints of a conversation: TCP, constant-rate UDP, the probe, a source of short transfers.

use super::applications::{Act, Application, Web};
use crate::packets::{HostClock, Kind, Options, Outbox, Segment, flood_number};
use crate::receivers::Receiver;
use crate::senders::Sender;
use crate::variant::Variant;
use asymq_core::Duration;
use asymq_core::measure::Histogram;
use asymq_scenario::{Direction, QuicStack};
use std::cell::Cell;
use std::collections::VecDeque;

/// A side of the access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Home,
    Server,
}

/// The side that sends data in `direction`.
pub(crate) fn sender_of(direction: Direction) -> Side {
    direction.pick(Side::Home, Side::Server)
}

/// Both endpoints of a conversation. Times are in ns; `u64::MAX` means never.
pub(crate) enum Agent<V: Variant> {
    /// A TCP flow.
    Tcp(Box<TcpFlow<V>>),
    /// Constant-rate UDP in one direction.
    Udp(Cbr),
    /// The probe, which starts at home.
    Probe(Box<Probe>),
    /// A source of short transfers; each transfer is a separate conversation.
    Web(Box<Web>),
}

/// Sender and receiver of a TCP flow; times are in ns.
pub(crate) struct TcpFlow<V: Variant> {
    pub(crate) direction: Direction,
    /// Time at which the application connects.
    pub(crate) start: u64,
    /// Time at which the application connects; later, time of its next write.
    pub(crate) acts: u64,
    /// The application; `None` if it writes unlimited data at the start.
    pub(crate) application: Option<Box<Application>>,
    /// ACKs per round-trip time, if the sender requests a number.
    pub(crate) acks_per_rtt: Option<u32>,
    /// QUIC stack of both ends, which determines when the receiver acknowledges.
    pub(crate) stack: Option<&'static QuicStack>,
    /// Spin bits of home and server; `None` unless the flow is QUIC with spin bits.
    pub(crate) spins: Option<[bool; 2]>,
    pub(crate) sender: Sender<V::Congestion, V::Sending>,
    pub(crate) receiver: Receiver<V::Receiving>,
}

/// Constant-rate UDP; times are in ns.
pub(crate) struct Cbr {
    pub(crate) direction: Direction,
    pub(crate) next: u64,
    pub(crate) stop: u64,
    pub(crate) interval: u64,
    pub(crate) kind: Kind,
    /// Index of the conversation and number of packets sent; `None` unless it is a flood.
    pub(crate) flood: Option<(usize, u64)>,
}

/// A sequence of datagrams that the server echoes, and their queueing delays.
#[derive(Default)]
pub(crate) struct Probe {
    pub(crate) next: u64,
    pub(crate) interval: u64,
    /// Delay with empty queues by direction, in ns.
    pub(crate) base: [u64; 2],
    /// Queueing delays in ns of datagrams on their way back, with their numbers.
    pub(crate) returning: VecDeque<(u64, u64)>,
    /// Queueing delays by direction, including those in modems.
    pub(crate) delays: [Histogram; 2],
    /// Longest of these delays since the last reading, by direction, in ns.
    pub(crate) longest: [Cell<u64>; 2],
    /// Queueing delays of both directions together.
    pub(crate) round_trips: Histogram,
    /// Number of the first datagram that is counted; numbers are departure times in ns.
    pub(crate) since: u64,
    /// Counters of datagrams at the server. `way_back` counts datagrams on the way back, `at_home` counts round trips.
    pub(crate) at_server: Arrivals,
    pub(crate) way_back: Arrivals,
    pub(crate) at_home: Arrivals,
}

/// Counters of arriving datagrams. A datagram counts as lost when a later one has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    arrived: u64,
    lost: u64,
}

impl Arrivals {
    /// Counts the arrival of datagram `number`. From `since` on, one datagram is sent per `interval`.
    fn take(&mut self, number: u64, since: u64, interval: u64) {
        self.arrived += 1;
        let sent = (number - since) / interval + 1;
        self.lost = sent.max(self.arrived + self.lost) - self.arrived;
    }

    /// Share of lost datagrams; 0 if none was sent.
    pub(crate) fn share_lost(&self) -> f64 {
        self.lost as f64 / (self.arrived + self.lost).max(1) as f64
    }
}

impl Probe {
    /// Processes a datagram at the server; its number is its departure time from home.
    fn turn(&mut self, now: u64, number: u64) {
        if number >= self.since {
            self.at_server.take(number, self.since, self.interval);
        }
        let up = (now - number).saturating_sub(self.base[0]);
        self.record(0, up);
        self.returning.push_back((number, up));
    }

    /// Processes a datagram that has returned.
    fn finish(&mut self, now: u64, number: u64) {
        let both = (now - number).saturating_sub(self.base[0] + self.base[1]);
        self.round_trips.record(Duration::from_nanos(both));
        // Datagrams that were lost on the way back or overtaken are removed.
        let mut lost_back = 0;
        while let Some(&(returned, up)) = self.returning.front()
            && returned <= number
        {
            self.returning.pop_front();
            if returned == number {
                let down = both.saturating_sub(up);
                self.record(1, down);
            } else {
                lost_back += u64::from(returned >= self.since);
            }
        }
        if number >= self.since {
            self.way_back.lost += lost_back;
            self.way_back.arrived += 1;
            self.at_home.take(number, self.since, self.interval);
        }
    }

    fn record(&mut self, direction: usize, delay: u64) {
        self.delays[direction].record(Duration::from_nanos(delay));
        let longest = &self.longest[direction];
        longest.set(longest.get().max(delay));
    }

    pub(crate) fn clear(&mut self) {
        self.delays.iter_mut().for_each(Histogram::clear);
        self.round_trips.clear();
        self.since = self.next;
        (self.at_server, self.way_back, self.at_home) = Default::default();
    }
}

impl<V: Variant> Agent<V> {
    /// Processes a segment at `side`, after all earlier timers. Returns the expiry of the next timer at `side`.
    #[inline(always)]
    pub(crate) fn on_segment(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment<V::Options>,
        out: &mut impl Outbox<V::Options>,
    ) -> u64 {
        match self {
            Self::Tcp(flow) if V::Options::EXTRAS && flow.spins.is_some() => {
                flow.spin(now, side, segment, out)
            }
            Self::Tcp(flow) => flow.on_segment(now, side, segment, out),
            _ => self.on_datagram(now, side, segment, out),
        }
    }

    #[inline(never)]
    fn on_datagram(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment<V::Options>,
        out: &mut impl Outbox<V::Options>,
    ) -> u64 {
        match self {
            Self::Probe(probe) if side == Side::Server => {
                probe.turn(now, segment.number());
                out.send(segment);
            }
            Self::Probe(probe) => probe.finish(now, segment.number()),
            Self::Tcp(_) | Self::Udp(_) | Self::Web(_) => {}
        }
        self.deadline(side)
    }

    /// Time at which the next timer at `side` expires.
    pub(crate) fn deadline(&self, side: Side) -> u64 {
        match self {
            Self::Tcp(flow) if side == sender_of(flow.direction) => {
                flow.acts.min(flow.sender.deadline())
            }
            Self::Tcp(flow) => flow.receiver.deadline(),
            Self::Udp(cbr) if side == sender_of(cbr.direction) => cbr.next,
            Self::Probe(probe) if side == Side::Home => probe.next,
            Self::Web(web) if side == Side::Home => web.next,
            Self::Udp(_) | Self::Probe(_) | Self::Web(_) => u64::MAX,
        }
    }

    /// Runs the timer that expires at [`deadline`](Self::deadline), which must be `now`.
    pub(crate) fn on_timeout(&mut self, now: u64, side: Side, out: &mut impl Outbox<V::Options>) {
        match self {
            Self::Tcp(flow) => match flow.spins {
                None => flow.on_timeout(now, side, out),
                Some(spins) => {
                    let spin = spins[side as usize];
                    flow.on_timeout(now, side, &mut Spinning { spin, out });
                }
            },
            Self::Udp(cbr) => {
                let number = match &mut cbr.flood {
                    None => now,
                    Some((index, count)) => {
                        *count += 1;
                        flood_number(*index, *count)
                    }
                };
                out.send(Segment::new(cbr.kind, number));
                cbr.next = match cbr.next + cbr.interval {
                    next if next < cbr.stop => next,
                    _ => u64::MAX,
                };
            }
            Self::Probe(probe) => {
                out.send(Segment::new(Kind::Datagram, now));
                probe.next += probe.interval;
            }
            Self::Web(web) => web.wait(),
        }
    }
}

/// Sets the spin bit of all packets that a side sends.
struct Spinning<'a, B> {
    spin: bool,
    out: &'a mut B,
}

impl<O: Options, B: Outbox<O>> Outbox<O> for Spinning<'_, B> {
    fn send(&mut self, mut segment: Segment<O>) {
        segment.options.set_spin(self.spin);
        self.out.send(segment);
    }
}

impl<V: Variant> TcpFlow<V> {
    #[inline(always)]
    fn on_segment(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment<V::Options>,
        out: &mut impl Outbox<V::Options>,
    ) -> u64 {
        if side != sender_of(self.direction) {
            if V::Options::EXTRAS
                && let Some(acks) = self.acks_per_rtt
            {
                self.receiver
                    .wait_up_to(self.sender.smoothed_rtt() / u64::from(acks));
            }
            if V::Options::EXTRAS
                && let Some(stack) = self.stack
            {
                let packets = self.receiver.data_in_order();
                let rule = stack.rule(packets, self.sender.smoothed_rtt());
                self.receiver.acknowledge_each(rule);
            }
            self.receiver.on_segment(now, segment, out);
            return self.receiver.deadline();
        }
        if segment.kind() == Kind::AckWithin {
            self.sender.on_ack_within(now, segment, out);
        } else {
            self.sender.on_ack(now, segment, out);
        }
        self.acts.min(self.sender.deadline())
    }

    fn on_timeout(&mut self, now: u64, side: Side, out: &mut impl Outbox<V::Options>) {
        if side != sender_of(self.direction) {
            self.receiver.on_timeout(now, out);
        } else if now == self.acts {
            self.act(now, out);
        } else {
            self.sender.on_timeout(now, out);
        }
    }

    /// Returns the spin bit to send: the client (at home) inverts the last received bit, the server repeats it. Packets
    /// of a flow stay in order, except on paths that reorder.
    #[inline(never)]
    fn spin(
        &mut self,
        now: u64,
        side: Side,
        segment: Segment<V::Options>,
        out: &mut impl Outbox<V::Options>,
    ) -> u64 {
        let came = segment
            .options
            .on_wire()
            .is_some_and(|options| options.spin);
        let spin = came != (side == Side::Home);
        if let Some(spins) = &mut self.spins {
            spins[side as usize] = spin;
        }
        self.on_segment(now, side, segment, &mut Spinning { spin, out })
    }

    /// Sets the clock of the server's timestamps. The clock at home shows the time of the run.
    pub(crate) fn set_server_clock(&mut self, clock: HostClock) {
        match self.direction {
            Direction::Up => self.receiver.set_clock(clock),
            Direction::Down => self.sender.set_clock(clock),
        }
    }

    /// Lets the application connect, write or close.
    fn act(&mut self, now: u64, out: &mut impl Outbox<V::Options>) {
        if !self.sender.is_connected() {
            self.sender.connect(now, out);
        }
        let application = self.application.as_mut();
        self.acts = match application.map(|application| application.act(now)) {
            None => u64::MAX,
            Some(Act::Write(segments, next)) => {
                self.sender.write(now, segments, out);
                next
            }
            Some(Act::Close) => {
                self.sender.close();
                u64::MAX
            }
        };
    }

    /// Attaches an application to the connection, instead of unlimited data.
    pub(crate) fn run_application(&mut self, application: Application) {
        self.sender.limit_to(0);
        self.application = Some(Box::new(application));
    }
}
