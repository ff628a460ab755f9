//! A viewer's record beyond counters: both queues packet by packet, and what each flow and host sends. The
//! forwarding loop writes it into memory that the viewer's side brings, and only while somebody views.

use asymq_core::decide::frame::{Ends, ends};
use asymq_core::hold::{BuildError, FlowTable, Slot};
use asymq_core::units::{Duration, Instant};
use asymq_core::{Direction, Flow, Header};
use std::net::IpAddr;

/// Time between two pictures of the queues.
pub(crate) const PICTURE: Duration = Duration::from_millis(20);
/// The loop takes pictures for at most one part in so many of its time: a long backlog is shown less often.
const PART: u64 = 200;
/// Packets of a queue that a picture looks at. Of a longer one it shows some.
const MAX_SEEN: usize = 4096;
/// Pictures, and packets in all of them, until the viewer's side takes them.
const PICTURES: usize = 64;
const ROOM: usize = 1 << 15;
/// Conversations and hosts until then. Of more conversations those with the fewest bytes are only in the sums of
/// their hosts; more hosts are one.
const FLOWS: u32 = 4096;
const HOSTS: u32 = 2048;

/// A packet in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) arrival: Instant,
    pub(crate) flow: Flow,
    pub(crate) packet: u16,
}

impl Seen {
    fn of(header: &Header) -> Self {
        Self {
            arrival: header.arrival,
            flow: conversation(header.flow),
            packet: packed(header),
        }
    }
}

/// As the drawing code takes it: the class in the two highest bits, and the bytes, at least 1.
fn packed(header: &Header) -> u16 {
    const LEN_BITS: u32 = 14;
    let len = header.len.clamp(1, (1 << LEN_BITS) - 1) as u16;
    (header.traffic_class() as u16) << LEN_BITS | len
}

/// Both directions of a conversation are one.
const fn conversation(flow: Flow) -> Flow {
    Flow(flow.0 & !1)
}

/// A direction's queue in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueNow {
    /// Packets that wait.
    pub(crate) total: u32,
    /// Packets that the picture has.
    pub(crate) seen: u32,
    /// The packet on the link.
    pub(crate) on_link: Option<Seen>,
}

/// Both queues at one time; their packets stand in [`Sight::seen`], those of all pictures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) at: Instant,
    /// Up and down.
    pub(crate) queues: [QueueNow; 2],
}

/// Packets that left in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Sum and maximum of sojourn times.
    pub(crate) waited: Duration,
    pub(crate) longest: Duration,
}

impl Sent {
    fn add(&mut self, len: u32, sojourn: Duration) {
        self.packets += 1;
        self.bytes += u64::from(len);
        self.waited = self.waited + sojourn;
        self.longest = self.longest.max(sojourn);
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.waited = self.waited + other.waited;
        self.longest = self.longest.max(other.longest);
    }
}

/// A conversation: the host at home first, as the first packet seen shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSent {
    pub(crate) flow: Flow,
    /// Home's end and the other; `None` of what is not IP.
    pub(crate) ends: Option<Ends>,
    /// Up and down.
    pub(crate) sent: [Sent; 2],
    /// Its host's place; `None` if there were too many hosts.
    host: Option<Slot>,
}

/// A host at home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostSent {
    /// `None` of what is not IP.
    pub(crate) address: Option<IpAddr>,
    pub(crate) sent: [Sent; 2],
}

/// The record of the loop over some time.
pub(crate) struct Sight {
    pub(crate) since: Instant,
    pub(crate) until: Instant,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) seen: Vec<Seen>,
    flows: FlowTable<FlowSent>,
    hosts: FlowTable<HostSent>,
    /// Hosts for which there was no place.
    pub(crate) others: [Sent; 2],
    /// The latest packet that left, up and down.
    left: [Option<Seen>; 2],
    /// Time of the next picture.
    next: Instant,
}

impl Sight {
    /// All memory that it will have.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn new() -> Result<Self, BuildError> {
        Ok(Self {
            since: Instant::ZERO,
            until: Instant::ZERO,
            pictures: Vec::with_capacity(PICTURES),
            seen: Vec::with_capacity(ROOM),
            flows: FlowTable::new(FLOWS)?,
            hosts: FlowTable::new(HOSTS)?,
            others: Default::default(),
            left: Default::default(),
            next: Instant::ZERO,
        })
    }

    /// Empties it, for use again.
    pub(crate) fn clear(&mut self) {
        self.pictures.clear();
        self.seen.clear();
        self.flows.clear();
        self.hosts.clear();
        self.others = Default::default();
        self.left = Default::default();
    }

    /// Begins, where another ends.
    pub(crate) fn begin(&mut self, now: Instant, before: Option<&Self>) {
        (self.since, self.until, self.next) = (now, now, now);
        if let Some(before) = before {
            (self.left, self.next) = (before.left, before.next);
        }
    }

    /// Time of the next picture.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// A packet leaves, which waited so long. The IP header of its `frame` begins at `network`.
    pub(crate) fn leaves(
        &mut self,
        direction: Direction,
        header: &Header,
        sojourn: Duration,
        (frame, network): (&[u8], u16),
    ) {
        let way = direction as usize;
        self.left[way] = Some(Seen::of(header));
        let flow = conversation(header.flow);
        let found = match self.flows.find(flow) {
            Some(slot) => Some(slot),
            None => {
                let ends = ends(frame, network).map(|of| match direction {
                    Direction::Up => of,
                    Direction::Down => Ends {
                        hosts: [of.hosts[1], of.hosts[0]],
                        ports: [of.ports[1], of.ports[0]],
                        ..of
                    },
                });
                let address = ends.map(|of| of.hosts[0]);
                // None is forgotten: flows point to them.
                let host = self.hosts.find_or_insert(
                    key(address),
                    |_| None,
                    || HostSent {
                        address,
                        sent: Default::default(),
                    },
                );
                let bytes = |of: &FlowSent| Some(of.sent[0].bytes + of.sent[1].bytes);
                self.flows.find_or_insert(flow, bytes, || FlowSent {
                    flow,
                    ends,
                    sent: Default::default(),
                    host,
                })
            }
        };
        let Some(of) = found.and_then(|slot| self.flows.get_mut(slot)) else {
            return;
        };
        of.sent[way].add(header.len, sojourn);
        let host = of.host.and_then(|slot| self.hosts.get_mut(slot));
        let host = host.map_or(&mut self.others, |host| &mut host.sent);
        host[way].add(header.len, sojourn);
    }

    /// Takes a picture, of which `queue` gives a direction: it shows what waits, and says how many do and whether the
    /// link is busy.
    pub(crate) fn take_picture(
        &mut self,
        now: Instant,
        queue: impl Fn(Direction, &mut dyn FnMut(&Header) -> bool) -> (u32, bool),
    ) {
        self.until = now;
        if self.pictures.len() == PICTURES || self.seen.len() + 2 * MAX_SEEN > ROOM {
            return;
        }
        let queues = Direction::ALL.map(|direction| {
            let before = self.seen.len();
            let seen = &mut self.seen;
            let (total, busy) = queue(direction, &mut |header| {
                seen.push(Seen::of(header));
                seen.len() - before < MAX_SEEN
            });
            QueueNow {
                total,
                seen: (self.seen.len() - before) as u32,
                on_link: self.left[direction as usize].filter(|_| busy),
            }
        });
        self.pictures.push(Picture { at: now, queues });
    }

    /// A picture that began at `began` is taken at `now`; when the next one is due.
    pub(crate) fn rest(&mut self, began: Instant, now: Instant) {
        let took = now.saturating_since(began);
        self.next = began + PICTURE.max(took * PART);
    }

    /// All conversations, in no order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &FlowSent> {
        self.flows.iter()
    }

    /// All hosts, in no order.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &HostSent> {
        self.hosts.iter()
    }
}

/// Key of a host.
fn key(address: Option<IpAddr>) -> Flow {
    use asymq_core::decide::random::mix;
    Flow(match address {
        None => 0,
        Some(IpAddr::V4(ip)) => mix(ip.to_bits().into()),
        Some(IpAddr::V6(ip)) => {
            let bits = ip.to_bits();
            mix(mix((bits >> 64) as u64) ^ bits as u64)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP frame from home's host `host` to port `port` of a server, or back.
    fn frame(direction: Direction, host: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[17] = 46;
        frame[23] = 17;
        let ends = [(26, 34, host, 1000), (30, 36, 200, port)];
        for (end, (_, _, address, port)) in ends.into_iter().enumerate() {
            let (at, port_at, ..) = ends[end ^ usize::from(direction == Direction::Down)];
            frame[at..at + 4].copy_from_slice(&[10, 0, 0, address]);
            frame[port_at..port_at + 2].copy_from_slice(&u16::to_be_bytes(port));
        }
        frame
    }

    fn sends(sight: &mut Sight, direction: Direction, host: u8, flow: u64, len: u32) {
        let header = Header {
            flow: Flow(flow << 1 | direction as u64),
            len,
            ..Header::default()
        };
        let frame = frame(direction, host, flow as u16);
        sight.leaves(
            direction,
            &header,
            Duration::from_millis(flow),
            (&frame, 14),
        );
    }

    #[test]
    fn a_flow_has_both_directions_and_its_host_the_sum_of_its_flows() {
        let mut sight = Sight::new().unwrap();
        sends(&mut sight, Direction::Down, 1, 5, 1000);
        sends(&mut sight, Direction::Up, 1, 5, 60);
        sends(&mut sight, Direction::Up, 1, 6, 70);
        sends(&mut sight, Direction::Up, 2, 7, 80);
        let five = sight.flows().find(|of| of.flow == Flow(10)).unwrap();
        let ends = five.ends.unwrap();
        assert_eq!(
            ends.hosts,
            [[10, 0, 0, 1], [10, 0, 0, 200]].map(IpAddr::from)
        );
        assert_eq!((ends.ports, ends.protocol), ([1000, 5], 17));
        assert_eq!(five.sent.map(|sent| sent.bytes), [60, 1000]);
        assert_eq!(five.sent[1].longest, Duration::from_millis(5));
        let mut hosts: Vec<_> = sight
            .hosts()
            .map(|of| (of.address, of.sent.map(|of| of.bytes)))
            .collect();
        hosts.sort();
        let address = |last| Some(IpAddr::from([10, 0, 0, last]));
        assert_eq!(hosts, [(address(1), [130, 1000]), (address(2), [80, 0])]);
    }

    #[test]
    fn of_too_many_flows_the_largest_stay_and_their_host_has_the_sum() {
        let mut sight = Sight::new().unwrap();
        for flow in 1..=10_000u64 {
            let len = if flow == 17 { 100_000 } else { 60 };
            sends(
                &mut sight,
                Direction::Up,
                1,
                flow.wrapping_mul(0x9e37_79b9),
                len,
            );
        }
        assert!(sight.flows().count() <= FLOWS as usize);
        let largest = sight.flows().map(|of| of.sent[0].bytes).max();
        assert_eq!(largest, Some(100_000));
        let host: u64 = sight.hosts().map(|of| of.sent[0].bytes).sum();
        assert_eq!(host, 9_999 * 60 + 100_000);
    }

    #[test]
    fn too_many_hosts_are_one() {
        let mut sight = Sight::new().unwrap();
        for host in 0..20_000u32 {
            let mut bytes = frame(Direction::Up, 1, 9);
            bytes[26..30].copy_from_slice(&host.to_be_bytes());
            let header = Header {
                flow: Flow(u64::from(host) << 20),
                len: 100,
                ..Header::default()
            };
            sight.leaves(Direction::Up, &header, Duration::ZERO, (&bytes, 14));
        }
        assert!(sight.hosts().count() <= HOSTS as usize);
        let hosts: u64 = sight.hosts().map(|of| of.sent[0].packets).sum();
        assert_eq!(hosts + sight.others[0].packets, 20_000);
    }

    #[test]
    fn pictures_are_whole_and_bounded() {
        let mut sight = Sight::new().unwrap();
        let memory = (sight.seen.capacity(), sight.pictures.capacity());
        let header = Header {
            len: 1500,
            ..Header::default()
        };
        for picture in 1..1000 {
            sight.take_picture(Instant::from_nanos(picture), |direction, see| {
                let waiting = if direction == Direction::Up {
                    3000
                } else {
                    10_000
                };
                let shown = (0..waiting).take_while(|_| see(&header)).count();
                assert!(shown <= MAX_SEEN);
                (waiting, true)
            });
        }
        assert_eq!((sight.seen.capacity(), sight.pictures.capacity()), memory);
        let shown = sight.pictures.iter().flat_map(|of| of.queues);
        assert_eq!(
            shown.map(|of| of.seen as usize).sum::<usize>(),
            sight.seen.len()
        );
        assert!(sight.pictures.len() > 3);
        for picture in &sight.pictures {
            assert_eq!(picture.queues.map(|of| of.total), [3000, 10_000]);
            assert_eq!(picture.queues.map(|of| of.seen as usize), [3000, MAX_SEEN]);
        }
        sight.rest(Instant::from_nanos(0), Instant::from_nanos(1000));
        assert_eq!(sight.next(), Instant::ZERO + PICTURE);
        sight.rest(Instant::ZERO, Instant::ZERO + Duration::from_millis(1));
        assert_eq!(sight.next(), Instant::ZERO + Duration::from_millis(200));
    }
}
