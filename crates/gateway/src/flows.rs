//! Traffic of each flow, counted by the forwarding loop while the page requests it.

use crate::io::Frame;
use asymq_core::decide::frame::{Ends, ends};
use asymq_core::hold::{BuildError, FlowTable};
use asymq_core::{Direction, Duration, Flow, Header};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of flows that are counted separately.
const FLOWS: u32 = 4096;
/// Maximum number of a direction's queued packets that are counted, to bound the time.
const MAX_VISITED: u32 = 4096;
/// Number of intervals that are counted after each request.
const REQUESTED: u32 = 3;

/// Requests from the page's thread to the forwarding loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowRequests(Arc<AtomicU32>);

impl FlowRequests {
    pub(crate) fn request(&self) {
        self.0.store(REQUESTED, Ordering::Relaxed);
    }

    /// True if the next interval was requested.
    fn take(&self) -> bool {
        let left = |left: u32| left.checked_sub(1);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        taken.is_ok()
    }
}

/// Packets in one direction: those sent in the interval, and those queued at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Sum of sojourn times.
    pub(crate) sojourn: Duration,
    pub(crate) longest_sojourn: Duration,
    pub(crate) backlog_packets: u32,
    pub(crate) backlog_bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.sojourn = self.sojourn + other.sojourn;
        self.longest_sojourn = self.longest_sojourn.max(other.longest_sojourn);
        self.backlog_packets += other.backlog_packets;
        self.backlog_bytes += other.backlog_bytes;
    }
}

/// Traffic of one conversation, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowTraffic {
    /// Both ends of the conversation, the end at home first; `None` if the packets are not IP.
    pub(crate) ends: Option<Ends>,
    /// Traffic of the uplink and of the downlink.
    pub(crate) traffic: [Traffic; 2],
}

/// Traffic of one interval by flow.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FlowSnapshot {
    /// Length of the interval in seconds.
    pub(crate) interval: f64,
    pub(crate) flows: Vec<FlowTraffic>,
    /// Traffic of flows for which the table had no room, up and down.
    pub(crate) others: [Traffic; 2],
}

pub(crate) struct FlowCounters {
    requests: FlowRequests,
    enabled: bool,
    flows: FlowTable<FlowTraffic>,
    others: [Traffic; 2],
}

impl FlowCounters {
    pub(crate) fn new(requests: FlowRequests) -> Result<Self, BuildError> {
        Ok(Self {
            requests,
            enabled: false,
            flows: FlowTable::new(FLOWS)?,
            others: Default::default(),
        })
    }

    /// Counts a sent packet. The IP header in `frame` begins at `network`.
    pub(crate) fn sent(
        &mut self,
        direction: Direction,
        header: &Header,
        sojourn: Duration,
        frame: (&[u8], u16),
    ) {
        if self.enabled {
            self.find(direction, header, frame).add(&Traffic {
                packets: 1,
                bytes: header.len.into(),
                sojourn,
                longest_sojourn: sojourn,
                ..Traffic::default()
            });
        }
    }

    /// Ends an interval of `interval` seconds, and starts the next one. `visit` passes the queued frames of a
    /// direction to its callback until the callback returns false.
    pub(crate) fn snapshot(
        &mut self,
        interval: f64,
        visit: impl Fn(Direction, &mut dyn FnMut(&Frame) -> bool),
    ) -> Option<FlowSnapshot> {
        let was_enabled = self.enabled;
        self.enabled = self.requests.take();
        if !was_enabled {
            return None;
        }
        for direction in Direction::ALL {
            let mut visited = 0;
            visit(direction, &mut |frame| {
                let at = (&*frame.bytes, frame.network);
                let traffic = self.find(direction, &frame.header, at);
                traffic.backlog_packets += 1;
                traffic.backlog_bytes += u64::from(frame.header.len);
                visited += 1;
                visited < MAX_VISITED
            });
        }
        let flows = self.flows.iter().copied().collect();
        self.flows.clear();
        Some(FlowSnapshot {
            interval,
            flows,
            others: std::mem::take(&mut self.others),
        })
    }

    fn find(
        &mut self,
        direction: Direction,
        header: &Header,
        (frame, network): (&[u8], u16),
    ) -> &mut Traffic {
        // The flow numbers of both directions differ only in the lowest bit.
        let flow = Flow(header.flow.0 & !1);
        let new = || {
            let mut ends = ends(frame, network);
            if let (Direction::Down, Some(ends)) = (direction, &mut ends) {
                ends.hosts.reverse();
                ends.ports.reverse();
            }
            FlowTraffic {
                ends,
                traffic: Default::default(),
            }
        };
        let slot = self.flows.find_or_insert(flow, |_| None, new);
        let found = slot.and_then(|slot| self.flows.get_mut(slot));
        let traffic = found.map_or(&mut self.others, |flow| &mut flow.traffic);
        &mut traffic[direction as usize]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A UDP frame between the home host number `host` and port `port` of a server.
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

    fn header(direction: Direction, flow: u64, len: u32) -> Header {
        Header {
            flow: Flow(flow << 1 | direction as u64),
            len,
            ..Header::default()
        }
    }

    pub(crate) fn send(
        counters: &mut FlowCounters,
        direction: Direction,
        host: u8,
        flow: u64,
        len: u32,
    ) {
        let frame = frame(direction, host, flow as u16);
        let sojourn = Duration::from_millis(flow);
        let header = header(direction, flow, len);
        counters.sent(direction, &header, sojourn, (&frame, 14));
    }

    /// Returns counters whose current interval is requested.
    pub(crate) fn requested() -> FlowCounters {
        let mut counters = FlowCounters::new(FlowRequests::default()).unwrap();
        counters.requests.request();
        assert_eq!(counters.snapshot(1.0, |_, _| {}), None);
        counters
    }

    #[test]
    fn a_flow_has_both_directions_and_its_waiting_packets() {
        let mut counters = requested();
        send(&mut counters, Direction::Down, 1, 5, 1000);
        send(&mut counters, Direction::Up, 1, 5, 60);
        send(&mut counters, Direction::Up, 1, 5, 70);
        let snapshot = counters.snapshot(1.0, |direction, each| {
            let waiting = Frame {
                header: header(direction, 6, 500),
                network: 14,
                transport: 0,
                translated: 0,
                bytes: frame(direction, 2, 6).into(),
            };
            let count = if direction == Direction::Up { 9999 } else { 2 };
            let _ = (0..count).all(|_| each(&waiting));
        });
        let snapshot = snapshot.unwrap();
        let [five, six] = [5, 6].map(|port| {
            let is_it = |flow: &&FlowTraffic| flow.ends.unwrap().ports == [1000, port];
            *snapshot.flows.iter().find(is_it).unwrap()
        });
        let host = |last: u8| std::net::IpAddr::from([10, 0, 0, last]);
        assert_eq!(five.ends.unwrap().hosts, [host(1), host(200)]);
        assert_eq!(six.ends.unwrap().hosts, [host(2), host(200)]);
        let [up, down] = five.traffic;
        assert_eq!((up.packets, up.bytes, down.bytes), (2, 130, 1000));
        assert_eq!(up.sojourn, Duration::from_millis(10));
        assert_eq!(up.longest_sojourn, Duration::from_millis(5));
        let backlog = six.traffic.map(|of| (of.packets, of.backlog_packets));
        assert_eq!(backlog, [(0, MAX_VISITED), (0, 2)]);
    }

    #[test]
    fn flows_beyond_the_table_are_summed() {
        let mut counters = requested();
        for flow in 0..10_000u64 {
            send(&mut counters, Direction::Up, 1, flow << 16, 60);
        }
        let snapshot = counters.snapshot(1.0, |_, _| {}).unwrap();
        assert!(snapshot.flows.len() <= FLOWS as usize);
        let found: u64 = snapshot.flows.iter().map(|of| of.traffic[0].packets).sum();
        assert_eq!(found + snapshot.others[0].packets, 10_000);
    }

    #[test]
    fn counting_stops_some_intervals_after_the_last_request() {
        let mut counters = requested();
        let mut counted = 0;
        for _ in 0..10 {
            send(&mut counters, Direction::Up, 1, 1, 60);
            let snapshot = counters.snapshot(1.0, |_, _| {});
            counted += snapshot.map_or(0, |of| of.flows.len());
        }
        assert_eq!(counted, REQUESTED as usize);
    }
}
