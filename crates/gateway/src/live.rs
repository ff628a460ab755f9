//! The way of what viewers see from the forwarding loop to the page. The loop waits for nobody, and does
//! nothing of it while nobody asks.

use crate::forwarder::Forwarder;
use crate::sight::{Picture, Seen, Sent, Sight};
use asymq_core::Flow;
use asymq_core::decide::frame::Ends;
use asymq_core::units::{Duration, Instant};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time;

/// The loop goes on recording for so long after it was asked last.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two exchanges, however many viewers there are.
const EXCHANGE: time::Duration = time::Duration::from_millis(200);
/// Time over which rates and delays are computed.
const WINDOW: Duration = Duration::from_secs(1);
/// Pictures that are kept, and bytes of an answer.
const KEPT: usize = 150;
const MAX_ANSWER: usize = 1 << 18;
/// Packets of a queue that a picture shows: more than a page has pixels for.
const MAX_SHOWN: usize = 1000;
/// Hosts of the table, and flows of each.
const HOSTS: usize = 32;
const FLOWS: usize = 10;
/// Flows whose numbers are remembered.
const KNOWN: usize = 1 << 14;

/// Between loop and page: memory goes there empty and comes back full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<Between>);

#[derive(Default)]
struct Between {
    /// Questions so far.
    asked: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    empty: Option<Box<Sight>>,
    full: Option<Box<Sight>>,
    /// Not needed any more: to be freed where time does not matter.
    retired: Option<Box<Sight>>,
}

impl std::fmt::Debug for Between {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Between").finish_non_exhaustive()
    }
}

/// The loop's side.
pub(crate) struct Recorder {
    live: Live,
    asked: u64,
    until: Instant,
}

impl Recorder {
    pub(crate) fn new(live: Live) -> Self {
        Self {
            live,
            asked: 0,
            until: Instant::ZERO,
        }
    }

    /// For each turn of the loop; when to be called again at the latest, if anybody views.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        clock: impl Fn() -> Instant,
    ) -> Option<Instant> {
        let asked = self.live.0.asked.load(Ordering::Relaxed);
        if asked == self.asked && forwarder.sight().is_none() {
            return None;
        }
        self.record(now, asked, forwarder, clock)
    }

    fn record(
        &mut self,
        now: Instant,
        asked: u64,
        forwarder: &mut Forwarder,
        clock: impl Fn() -> Instant,
    ) -> Option<Instant> {
        if asked != self.asked {
            self.until = now + PATIENCE;
        }
        let next = forwarder.sight().as_ref().map(|sight| sight.next());
        if next.is_some_and(|next| now < next) {
            self.asked = asked;
            return next;
        }
        forwarder.take_picture(now, clock);
        // The page holds it for the move of a pointer.
        let Ok(mut places) = self.live.0.places.try_lock() else {
            return forwarder.sight().as_ref().map(|sight| sight.next());
        };
        self.asked = asked;
        let sight = forwarder.sight();
        if now >= self.until {
            places.retired = sight.take();
        } else if places.full.is_none()
            && let Some(mut empty) = places.empty.take()
        {
            empty.begin(now, sight.as_deref());
            places.full = sight.replace(empty);
        }
        sight.as_ref().map(|sight| sight.next())
    }
}

/// The page's side.
pub(crate) struct Viewer {
    live: Live,
    /// Of this gateway: another counts from the start.
    id: u32,
    asked: Option<time::Instant>,
    exchanged: Option<time::Instant>,
    spare: Option<Box<Sight>>,
    /// Pictures as bytes, the oldest first, and how many there were.
    pictures: VecDeque<Vec<u8>>,
    count: u64,
    /// Numbers of conversations, from 1 to 255 and again, and their ends.
    known: HashMap<Flow, (u8, Option<Ends>)>,
    number: u8,
    window: Window,
    /// Packets of each conversation that wait, up and down, by the latest picture.
    waiting: HashMap<Flow, [Backlog; 2]>,
    table: String,
}

/// Packets that left since a time.
#[derive(Default)]
struct Window {
    since: Option<Instant>,
    flows: HashMap<Flow, [Sent; 2]>,
    hosts: HashMap<Option<IpAddr>, [Sent; 2]>,
    others: [Sent; 2],
}

#[derive(Clone, Copy, Default)]
struct Backlog {
    packets: u32,
    bytes: u64,
}

/// The answer about hosts and flows.
#[derive(Serialize)]
struct Table {
    format: u32,
    /// Seconds over which rates and delays are.
    interval: f64,
    /// The hosts at home with the largest traffic.
    hosts: Vec<HostRow>,
    /// All others together, if there are any.
    others: Option<HostRow>,
}

#[derive(Serialize)]
struct HostRow {
    /// `null` for what is not IP, and for many hosts together.
    address: Option<IpAddr>,
    up: Way,
    down: Way,
    /// Number of flows.
    flows: usize,
    /// Those of them with the largest traffic.
    largest: Vec<FlowRow>,
}

#[derive(Serialize)]
struct FlowRow {
    /// Its number in the pictures of the queues.
    id: u8,
    /// Protocol above IP, by IANA's numbers.
    protocol: u8,
    port: u16,
    /// The other end.
    to: Option<IpAddr>,
    to_port: u16,
    up: Way,
    down: Way,
}

/// One direction of a host or flow.
#[derive(Clone, Copy, Serialize)]
struct Way {
    /// Sent, in bit/s.
    rate: f64,
    packets: u64,
    backlog_packets: u32,
    backlog_bytes: u64,
    /// Sojourn times in ms of what left; 0 if nothing did.
    sojourn_mean_ms: f64,
    sojourn_max_ms: f64,
}

impl Way {
    fn new(sent: &Sent, backlog: Backlog, interval: f64) -> Self {
        let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
        Self {
            rate: (sent.bytes as f64 * 8.0 / interval).round(),
            packets: sent.packets,
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            sojourn_mean_ms: ms(sent.waited / sent.packets.max(1)),
            sojourn_max_ms: ms(sent.longest),
        }
    }
}

impl Viewer {
    pub(crate) fn new(live: Live, id: u64) -> Self {
        Self {
            live,
            id: id as u32,
            asked: None,
            exchanged: None,
            spare: None,
            pictures: VecDeque::new(),
            count: 0,
            known: HashMap::new(),
            number: 0,
            window: Window::default(),
            waiting: HashMap::new(),
            table: empty_table(),
        }
    }

    /// Pictures after the `after`-th, as numbers of 32 bits, little-endian: the gateway's id, what to ask for
    /// next, and of each picture its time in ms and both queues, up and down. A queue is what waits, how many packets
    /// follow, the one on the link or 0, and packets in the order of their arrival; a packet is its bytes in 14 bits, its
    /// class in 2 (0 ACK, 1 data, 2 other), and its flow's number.
    pub(crate) fn pictures(&mut self, after: u64) -> Vec<u8> {
        self.ask();
        let first = self.count - self.pictures.len() as u64;
        // One who asks for more than there is knows another gateway.
        let after = if after > self.count { 0 } else { after };
        let gone = usize::try_from(after.saturating_sub(first)).unwrap_or(KEPT);
        let mut room = MAX_ANSWER;
        let newest = self.pictures.iter().skip(gone).rev();
        let fitting: Vec<_> = newest
            .take_while(|picture| {
                room = room.saturating_sub(picture.len());
                room > 0
            })
            .collect();
        let mut answer = Vec::with_capacity(MAX_ANSWER - room + 8);
        push(&mut answer, self.id);
        push(&mut answer, self.count as u32);
        fitting.into_iter().rev().for_each(|of| answer.extend(of));
        answer
    }

    /// The table of hosts and flows as JSON; without any before the first second.
    pub(crate) fn table(&mut self) -> String {
        self.ask();
        self.table.clone()
    }

    /// Asks the loop for records, and takes those that it has made.
    fn ask(&mut self) {
        let now = time::Instant::now();
        let pause = self.asked.map(|at| now - at);
        self.asked = Some(now);
        self.live.0.asked.fetch_add(1, Ordering::Relaxed);
        // What was recorded before a pause is of no interest.
        let stale = pause.is_none_or(|pause| pause > PATIENCE.into());
        if stale {
            self.pictures.clear();
            self.waiting.clear();
            self.window = Window::default();
            self.table = empty_table();
        }
        if !stale && self.exchanged.is_some_and(|at| now - at < EXCHANGE) {
            return;
        }
        let empty = match self.spare.take() {
            Some(spare) => Some(spare),
            None => Sight::new().ok().map(Box::new),
        };
        let (full, _retired) = {
            let places = &self.live.0.places;
            let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
            match places.empty {
                Some(_) => self.spare = empty,
                None => places.empty = empty,
            }
            (places.full.take(), places.retired.take())
        };
        self.exchanged = Some(now);
        if let Some(mut full) = full {
            if !stale {
                self.absorb(&full);
            }
            full.clear();
            self.spare.get_or_insert(full);
        }
    }

    fn absorb(&mut self, sight: &Sight) {
        for flow in sight.flows() {
            self.number_of(flow.flow, Some(flow.ends));
        }
        let mut seen = sight.seen.as_slice();
        for (index, picture) in sight.pictures.iter().enumerate() {
            let is_last = index + 1 == sight.pictures.len();
            seen = self.add_picture(picture, seen, is_last);
        }
        let window = &mut self.window;
        let since = *window.since.get_or_insert(sight.since);
        for flow in sight.flows() {
            join(window.flows.entry(flow.flow).or_default(), &flow.sent);
        }
        for host in sight.hosts() {
            join(window.hosts.entry(host.address).or_default(), &host.sent);
        }
        join(&mut window.others, &sight.others);
        let interval = sight.until.saturating_since(since);
        if interval >= WINDOW {
            let window = std::mem::take(&mut self.window);
            self.window.since = Some(sight.until);
            self.table = self.written(window, interval.as_secs_f64());
        }
    }

    /// Keeps a picture, whose packets are the first of `seen`; the rest of them.
    fn add_picture<'a>(
        &mut self,
        picture: &Picture,
        mut seen: &'a [Seen],
        is_last: bool,
    ) -> &'a [Seen] {
        let mut bytes = Vec::new();
        push(&mut bytes, (picture.at.as_nanos() / 1_000_000) as u32);
        if is_last {
            self.waiting.clear();
        }
        for (way, queue) in picture.queues.iter().enumerate() {
            let (of_queue, rest) = seen.split_at((queue.seen as usize).min(seen.len()));
            seen = rest;
            let mut packets = of_queue.to_vec();
            packets.sort_by_key(|packet| packet.arrival);
            if is_last {
                for packet in &packets {
                    let backlog = &mut self.waiting.entry(packet.flow).or_default()[way];
                    backlog.packets += 1;
                    backlog.bytes += u64::from(packet.packet & 0x3fff);
                }
            }
            packets.truncate(MAX_SHOWN);
            push(&mut bytes, queue.total);
            push(&mut bytes, packets.len() as u32);
            let on_link = queue.on_link.map_or(0, |packet| self.numbered(&packet));
            push(&mut bytes, on_link);
            for packet in &packets {
                let number = self.numbered(packet);
                push(&mut bytes, number);
            }
        }
        if self.pictures.len() == KEPT {
            self.pictures.pop_front();
        }
        self.pictures.push_back(bytes);
        self.count += 1;
        seen
    }

    fn numbered(&mut self, packet: &Seen) -> u32 {
        u32::from(self.number_of(packet.flow, None)) << 16 | u32::from(packet.packet)
    }

    /// The number of a conversation, which gets one at first.
    fn number_of(&mut self, flow: Flow, ends: Option<Option<Ends>>) -> u8 {
        if self.known.len() == KNOWN {
            self.known.clear();
        }
        let next = self.number % u8::MAX + 1;
        let known = self.known.entry(flow).or_insert_with(|| {
            self.number = next;
            (next, None)
        });
        known.1 = ends.flatten().or(known.1);
        known.0
    }

    fn written(&self, mut window: Window, interval: f64) -> String {
        for flow in self.waiting.keys() {
            window.flows.entry(*flow).or_default();
        }
        let backlog = |flow: Flow| self.waiting.get(&flow).copied().unwrap_or_default();
        let mut of_hosts: HashMap<Option<IpAddr>, Vec<(Flow, [Sent; 2])>> = HashMap::new();
        for (flow, sent) in window.flows {
            let ends = self.known.get(&flow).and_then(|(_, ends)| *ends);
            let address = ends.map(|ends| ends.hosts[0]);
            of_hosts.entry(address).or_default().push((flow, sent));
        }
        for address in of_hosts.keys() {
            window.hosts.entry(*address).or_default();
        }
        let mut hosts: Vec<_> = window.hosts.into_iter().collect();
        hosts.sort_by_key(|(address, sent)| (std::cmp::Reverse(bytes(sent)), *address));
        let mut rest = window.others;
        let (mut rest_flows, mut rest_backlog) = (0, [Backlog::default(); 2]);
        let mut rows = Vec::new();
        for (address, sent) in hosts {
            let mut flows = of_hosts.remove(&address).unwrap_or_default();
            flows.sort_by_key(|(flow, sent)| (std::cmp::Reverse(bytes(sent)), *flow));
            let mut waits = [Backlog::default(); 2];
            for (way, waits) in waits.iter_mut().enumerate() {
                for (flow, _) in &flows {
                    waits.packets += backlog(*flow)[way].packets;
                    waits.bytes += backlog(*flow)[way].bytes;
                }
            }
            if rows.len() == HOSTS {
                join(&mut rest, &sent);
                rest_flows += flows.len();
                for (rest, waits) in rest_backlog.iter_mut().zip(waits) {
                    rest.packets += waits.packets;
                    rest.bytes += waits.bytes;
                }
                continue;
            }
            let [up, down] = [0, 1].map(|way| Way::new(&sent[way], waits[way], interval));
            let largest = flows.iter().take(FLOWS).map(|(flow, sent)| {
                let (id, ends) = self.known.get(flow).copied().unwrap_or_default();
                let waits = backlog(*flow);
                let [up, down] = [0, 1].map(|way| Way::new(&sent[way], waits[way], interval));
                FlowRow {
                    id,
                    protocol: ends.map_or(0, |ends| ends.protocol),
                    port: ends.map_or(0, |ends| ends.ports[0]),
                    to: ends.map(|ends| ends.hosts[1]),
                    to_port: ends.map_or(0, |ends| ends.ports[1]),
                    up,
                    down,
                }
            });
            rows.push(HostRow {
                address,
                up,
                down,
                flows: flows.len(),
                largest: largest.collect(),
            });
        }
        let has_rest = bytes(&rest) > 0 || rest_flows > 0;
        let others = has_rest.then(|| {
            let way = |way: usize| Way::new(&rest[way], rest_backlog[way], interval);
            HostRow {
                address: None,
                up: way(0),
                down: way(1),
                flows: rest_flows,
                largest: Vec::new(),
            }
        });
        text(&Table {
            format: 1,
            interval,
            hosts: rows,
            others,
        })
    }
}

fn text(table: &Table) -> String {
    serde_json::to_string(table).unwrap_or_default()
}

fn empty_table() -> String {
    text(&Table {
        format: 1,
        interval: 0.0,
        hosts: Vec::new(),
        others: None,
    })
}

fn join(sum: &mut [Sent; 2], more: &[Sent; 2]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        sum.join(more);
    }
}

fn bytes(sent: &[Sent; 2]) -> u64 {
    sent[0].bytes + sent[1].bytes
}

fn push(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend(number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LinkConfig, STANDARD, Stage};
    use crate::io::PacketIo;
    use asymq_core::Direction;
    use asymq_core::catalog::{Params, Place, Standard, resolve};
    use asymq_core::decide::random::mix;
    use asymq_core::frame::FlowKey;
    use asymq_core::overhead::Overhead;
    use asymq_core::units::{Limit, Rate};
    use serde_json::Value;

    struct Nowhere;

    impl PacketIo for Nowhere {
        fn receive(&mut self, _: usize, _: &mut dyn FnMut(&[u8])) -> std::io::Result<usize> {
            Ok(0)
        }
        fn send(&mut self, _frame: &[u8]) {}
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// 1 Mbit/s up through a FIFO, down at once, and what views it.
    struct Bench {
        forwarder: Forwarder,
        recorder: Recorder,
        viewer: Viewer,
        now: Instant,
    }

    impl Bench {
        fn new() -> Self {
            let up: Rate = "1mbit".parse().unwrap();
            let place = Place {
                link: up,
                reverse: None,
                limit: Limit::Packets(1000),
            };
            let config = resolve(&Standard, "droptail", &Params::new(), &Params::new(), place);
            let link = LinkConfig {
                up,
                down: None,
                auto: [None, None],
                rate_probe: None,
                overhead: Overhead::default(),
                uplink: Stage::Queue(config.unwrap()),
                downlink: Stage::AtOnce,
            };
            let built = link.build(STANDARD).unwrap();
            let live = Live::default();
            Self {
                forwarder: Forwarder::new(built, FlowKey::new([1, 2])),
                recorder: Recorder::new(live.clone()),
                viewer: Viewer::new(live, 7),
                now: Instant::from_nanos(1),
            }
        }

        /// Goes on in steps of 1 ms; every 10 ms each of two hosts uploads a packet.
        fn run(&mut self, ms: u64, mut each: impl FnMut(&mut Self, u64)) {
            for step in 0..ms {
                self.now += Duration::from_millis(1);
                for (host, len) in [(1, 250), (2, 500)] {
                    if step % 10 == 0 {
                        let frame = frame(host, 5000 + u16::from(host), len);
                        self.forwarder
                            .take(self.now, Direction::Up, &frame, &mut Nowhere);
                    }
                }
                self.forwarder
                    .transmit(self.now, Direction::Up, 64, &mut Nowhere);
                let now = self.now;
                self.recorder.turn(now, &mut self.forwarder, || now);
                each(self, step);
            }
        }

        fn table(&mut self) -> Value {
            serde_json::from_str(&self.viewer.table()).unwrap()
        }
    }

    /// A UDP packet of `len` bytes from a host at home.
    fn frame(host: u8, port: u16, len: u16) -> Vec<u8> {
        let mut frame = vec![0; len.into()];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(len - 14).to_be_bytes());
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, host]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 200]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[37] = 53;
        frame
    }

    /// A viewer that asks every 100 ms is let at the exchange.
    fn view(bench: &mut Bench, step: u64) {
        if step % 100 == 99 {
            bench.viewer.exchanged = None;
            bench.viewer.ask();
        }
    }

    /// Packets that wait, the one on the link, and those that are shown.
    type Queue = (u32, u32, Vec<u32>);

    /// Of each picture its time and both queues.
    fn pictures(bytes: &[u8]) -> Vec<(u32, Vec<Queue>)> {
        let numbers: Vec<u32> = bytes
            .chunks(4)
            .map(|four| u32::from_le_bytes(four.try_into().unwrap()))
            .collect();
        assert_eq!(numbers[0], 7);
        let mut rest = &numbers[2..];
        let mut pictures = Vec::new();
        while let [at, more @ ..] = rest {
            rest = more;
            let mut queues = Vec::new();
            for _ in 0..2 {
                let [total, shown, on_link, more @ ..] = rest else {
                    panic!("cut short")
                };
                let (packets, more) = more.split_at(*shown as usize);
                queues.push((*total, *on_link, packets.to_vec()));
                rest = more;
            }
            pictures.push((*at, queues));
        }
        pictures
    }

    #[test]
    fn hosts_have_their_rates_the_largest_first() {
        let mut bench = Bench::new();
        bench.run(3000, view);
        let table = bench.table();
        let hosts = table["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 2, "{table}");
        for (row, (address, rate)) in hosts
            .iter()
            .zip([("10.0.0.2", 400_000.0), ("10.0.0.1", 200_000.0)])
        {
            assert_eq!(row["address"], address);
            let shown = row["up"]["rate"].as_f64().unwrap();
            assert!((shown / rate - 1.0).abs() < 0.03, "{row}");
            assert_eq!(row["down"]["rate"], 0.0);
            assert_eq!(row["flows"], 1);
            let flow = &row["largest"][0];
            assert_eq!(flow["up"], row["up"]);
            assert_eq!(
                (&flow["to"], &flow["to_port"]),
                (&"10.0.0.200".into(), &53.into())
            );
            assert_eq!(flow["protocol"], 17);
        }
        // The packet of host 2 waits for that of host 1, 2 ms.
        let wait = hosts[0]["up"]["sojourn_mean_ms"].as_f64().unwrap();
        assert!((1.9..3.1).contains(&wait), "{wait}");
    }

    #[test]
    fn pictures_show_the_packets_of_each_flow_every_20_ms() {
        let mut bench = Bench::new();
        let mut answers = Vec::new();
        bench.run(1000, |bench, step| {
            view(bench, step);
            // 100 packets at once, which take 0.4 s.
            if step == 400 {
                for number in 0..100 {
                    let frame = frame(3 + number % 2, 9, 500);
                    bench
                        .forwarder
                        .take(bench.now, Direction::Up, &frame, &mut Nowhere);
                }
            }
            if step == 599 {
                answers = bench.viewer.pictures(0);
            }
        });
        let pictures = pictures(&answers);
        for (earlier, later) in pictures.iter().zip(&pictures[1..]) {
            assert!((20..=21).contains(&(later.0 - earlier.0)));
        }
        let (_, queues) = pictures
            .iter()
            .find(|(_, queues)| queues[0].0 > 90)
            .unwrap();
        let (total, on_link, packets) = &queues[0];
        assert_eq!(*total as usize, packets.len());
        assert!(*on_link > 0);
        let mut counts = HashMap::<u32, u32>::new();
        for packet in packets {
            *counts.entry(packet >> 16).or_default() += 1;
            // UDP, of its bytes.
            assert_eq!(packet >> 14 & 3, 2);
            assert!([250, 500].contains(&(packet & 0x3fff)));
        }
        let of_burst = counts.values().filter(|count| **count > 40).count();
        assert_eq!(of_burst, 2, "{counts:?}");
        assert_eq!(queues[1], (0, 0, vec![]));
    }

    #[test]
    fn nothing_is_recorded_unless_somebody_views_and_an_end_of_that_is_noticed() {
        let mut bench = Bench::new();
        bench.run(500, |bench, _| {
            assert!(bench.forwarder.sight().is_none());
        });
        bench.run(2000, view);
        assert!(bench.forwarder.sight().is_some());
        bench.run(5000, |_, _| {});
        assert!(bench.forwarder.sight().is_none());
        // A viewer after a pause sees nothing of before.
        bench.viewer.asked = None;
        assert_eq!(bench.table()["hosts"], serde_json::json!([]));
        assert_eq!(bench.viewer.pictures(0).len(), 8);
        bench.run(2500, view);
        assert_eq!(bench.table()["hosts"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn ten_thousand_flows_are_a_short_table_and_a_short_answer() {
        let mut bench = Bench::new();
        bench.run(4000, |bench, step| {
            for number in 0..20 {
                // What a FIFO drops depends on the order.
                let port = mix(step * 20 + number) % 10_000;
                let frame = frame(10 + (port % 100) as u8, port as u16, 100);
                bench
                    .forwarder
                    .take(bench.now, Direction::Up, &frame, &mut Nowhere);
            }
            view(bench, step);
        });
        let table = bench.table();
        let hosts = table["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), HOSTS);
        assert!(
            hosts
                .iter()
                .all(|row| row["largest"].as_array().unwrap().len() <= FLOWS)
        );
        let all = hosts.iter().chain([&table["others"]]);
        let sum: f64 = all.map(|row| row["up"]["rate"].as_f64().unwrap()).sum();
        assert!((sum / 1e6 - 1.0).abs() < 0.03, "{sum}");
        assert!(bench.viewer.table.len() < 200_000);
        let answer = bench.viewer.pictures(0);
        assert!(answer.len() <= MAX_ANSWER);
        let pictures = pictures(&answer);
        assert!(
            pictures
                .iter()
                .all(|(_, queues)| queues[0].2.len() <= MAX_SHOWN)
        );
        assert!(bench.viewer.known.len() <= KNOWN);
        assert!(bench.viewer.pictures.len() <= KEPT);
    }

    #[test]
    fn one_who_asks_for_more_than_there_is_gets_what_there_is() {
        let mut bench = Bench::new();
        bench.run(1000, view);
        let all = bench.viewer.pictures(0);
        assert!(all.len() > 8);
        assert_eq!(bench.viewer.pictures(u64::MAX), all);
        let count = bench.viewer.count;
        assert_eq!(bench.viewer.pictures(count).len(), 8);
    }
}
