//! The access link beyond the gateway and the Internet behind it.
//!
//! The uplink is a transmitter, a regenerator if the discipline has one, and half of the flow's round-trip time. The
//! downlink is the other half, the scenario's discipline, and a transmitter. After each transmitter, frames are lost,
//! delayed or reordered as the scenario defines, without the kernel's netem.
//!
//! In a direction with a modem, the modem replaces the transmitter, and the gateway holds the discipline.

mod frame;
mod link;
mod thread;

pub(crate) use link::Link;
pub(crate) use thread::{PathResults, Ports, run};

use asymq_core::catalog::Build;
use asymq_core::hold::{DropTail, Regenerator, RegeneratorParams};
use asymq_core::{Discard, Duration, Instant, Limit};
use asymq_gateway::{Frame, LinkError};
use asymq_links::{Impairment, ModemQueue, Schedule};
use asymq_scenario::{Direction, Scenario};
use frame::{DelayLine, Side, home_port};

use crate::clock::Window;
use crate::measure::LinkMeter;
use crate::plan::Plan;

/// Link and path in both directions. Events are handled in order of time; a late call does not change event times.
pub(crate) struct Path {
    pub(crate) up: Link,
    pub(crate) down: Link,
    regenerator: Option<Regenerator<Frame>>,
    to_servers: DelayLine,
    to_downlink: DelayLine,
    to_home: DelayLine,
    /// Loss and delay behind the uplink and the downlink.
    impairments: [Option<Impairment>; 2],
    /// Frames lost by impairments or in a full modem after the warm-up, for each direction.
    pub(crate) lost: [u64; 2],
    rtt_by_port: Vec<Duration>,
    window: Window,
    /// Next time at which meters are read.
    reading_at: Option<Instant>,
}

impl Path {
    /// Creates an idle path.
    pub(crate) fn new(
        catalog: &dyn Build<Frame>,
        scenario: &Scenario,
        plan: &Plan,
        window: Window,
    ) -> Result<Self, LinkError> {
        // Absorbs only jitter: the gateway has already shaped the traffic.
        let jitter = DropTail::new(Limit::Packets(1000)).map_err(LinkError::of("uplink"))?;
        let downlink = catalog.qdisc(&scenario.downlink);
        let params = RegeneratorParams {
            factor: scenario.regenerate,
            // TCP timestamps take 12 bytes.
            segment: scenario.mss - 12,
            spacing: scenario.regenerate_spacing,
            max_gap: scenario.down.tx_time(scenario.mss + scenario.header)
                / u64::from(scenario.regenerate.max(1)),
        };
        let regenerator = (scenario.regenerate > 0).then(|| Regenerator::new(params));
        let link = |direction, rate, qdisc| match ModemQueue::new(scenario, plan.seed, direction) {
            Some(queue) => {
                let meter = LinkMeter::new(queue.schedule().clone(), window);
                Link::modem(queue, window.start, meter)
            }
            None => {
                let meter = LinkMeter::new(Schedule::constant(rate), window);
                Link::new(rate, qdisc, meter)
            }
        };
        Ok(Self {
            up: link(Direction::Up, scenario.up, Box::new(jitter)),
            down: link(
                Direction::Down,
                scenario.down,
                downlink.map_err(LinkError::of("downlink"))?,
            ),
            regenerator: regenerator.transpose().map_err(LinkError::of("uplink"))?,
            to_servers: DelayLine::default(),
            to_downlink: DelayLine::default(),
            to_home: DelayLine::default(),
            impairments: Direction::ALL
                .map(|direction| Impairment::behind(scenario, plan.seed, direction)),
            lost: [0; 2],
            rtt_by_port: plan.rtt_by_port(),
            window,
            reading_at: window.reading_after(window.start),
        })
    }

    pub(crate) fn send_up(&mut self, now: Instant, frame: Frame) {
        self.follow(now);
        let taken = self.up.offer(now, frame);
        self.count(Direction::Up, now, !taken);
    }

    pub(crate) fn send_down(&mut self, now: Instant, frame: Frame) {
        let rtt = self.rtt(&frame, Side::Servers);
        self.to_downlink
            .push(now + rtt.saturating_sub(rtt / 2), frame);
    }

    /// Calls `out` with every frame that left by `now`, and with its departure time.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Side, Instant, Frame)) {
        self.follow(now);
        while let Some((due, frame)) = self.to_servers.pop(now) {
            out(Side::Servers, due, frame);
        }
        while let Some((due, frame)) = self.to_home.pop(now) {
            out(Side::Home, due, frame);
        }
    }

    /// Handles the events of uplink and downlink until `now`, in order of time.
    fn follow(&mut self, now: Instant) {
        loop {
            let (up, down) = (self.up.next(), self.down.next());
            let events = [up, down, self.to_downlink.next()];
            let next = events.into_iter().flatten().min();
            let next = next.filter(|at| *at <= now);
            // Includes events at the time of the reading.
            if let Some(at) = self.reading_at.filter(|at| *at <= now)
                && next.is_none_or(|next| next > at)
            {
                self.up.read_meters(at);
                self.down.read_meters(at);
                self.reading_at = self.window.reading_after(at);
                continue;
            }
            let Some(at) = next else {
                return;
            };
            if up == Some(at) {
                if let Some(frame) = self.up.step(at) {
                    self.leave_uplink(at, frame);
                }
            } else if down == Some(at) {
                if let Some(frame) = self.down.step(at) {
                    if let Some(regenerator) = &mut self.regenerator {
                        regenerator.observe(at, &frame.header);
                    }
                    if let Some(at) = self.impair(Direction::Down, at) {
                        self.to_home.push(at, frame);
                    }
                }
            } else if let Some((at, frame)) = self.to_downlink.pop(at) {
                let taken = self.down.offer(at, frame);
                self.count(Direction::Down, at, !taken);
            }
        }
    }

    /// Sends a frame, and the ACKs regenerated before it, from the uplink to the servers, half a round trip away.
    fn leave_uplink(&mut self, at: Instant, frame: Frame) {
        let Some(out) = self.impair(Direction::Up, at) else {
            return;
        };
        self.down.observe(at, &frame.header);
        let Some(mut regenerator) = self.regenerator.take() else {
            return self.travel(out, frame);
        };
        regenerator.push(out, frame, &mut Discard);
        // Each departure depends on the previous frame.
        while let Some(due) = regenerator.next_at() {
            if let Some(frame) = regenerator.pop(due) {
                self.travel(due, frame);
            }
        }
        self.regenerator = Some(regenerator);
    }

    /// Returns the time at which a frame leaves the impairment behind a link; `None` if the frame is lost.
    fn impair(&mut self, direction: Direction, at: Instant) -> Option<Instant> {
        let Some(impairment) = &mut self.impairments[direction as usize] else {
            return Some(at);
        };
        let out = impairment.pass(at.as_nanos());
        self.count(direction, at, out.is_none());
        out.map(Instant::from_nanos)
    }

    fn count(&mut self, direction: Direction, at: Instant, is_lost: bool) {
        let counts = is_lost && self.window.counts(at);
        self.lost[direction as usize] += u64::from(counts);
    }

    fn travel(&mut self, at: Instant, frame: Frame) {
        let half = self.rtt(&frame, Side::Home) / 2;
        self.to_servers.push(at + half, frame);
    }

    fn rtt(&self, frame: &Frame, from: Side) -> Duration {
        let port = home_port(frame, from).map(usize::from);
        let rtt = port.and_then(|port| self.rtt_by_port.get(port));
        rtt.copied().unwrap_or(Duration::ZERO)
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let events = [
            self.up.next(),
            self.to_servers.next(),
            self.to_downlink.next(),
            self.down.next(),
            self.to_home.next(),
        ];
        events.into_iter().flatten().min()
    }
}

#[cfg(test)]
#[path = "../../../gateway/tests/common/checksums.rs"]
mod checksums;

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_core::catalog::Standard;
    use asymq_core::decide::frame::FlowKey;

    const KEY: [u64; 2] = [0, 0];

    /// A TCP segment between home and a server.
    fn segment(from: Side, home_port: u16, ack: u32, payload: usize) -> Frame {
        let mut bytes = vec![0; 54 + payload];
        bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        bytes[16..18].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        bytes[23] = 6;
        let port = if from == Side::Home { 34 } else { 36 };
        bytes[port..port + 2].copy_from_slice(&home_port.to_be_bytes());
        bytes[42..46].copy_from_slice(&ack.to_be_bytes());
        bytes[46..48].copy_from_slice(&[0x50, 0x10]);
        checksums::fill(&mut bytes);
        frame::read(&bytes, from, &FlowKey::new(KEY)).unwrap()
    }

    fn window(start: Instant) -> Window {
        Window {
            start,
            warm: start,
            end: start + Duration::from_secs(10),
        }
    }

    #[test]
    fn a_round_trip_is_the_flows_own_and_the_transmissions() {
        let args = ScenarioArgs {
            rtt: Some("20ms..300ms".parse().unwrap()),
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::lab()).unwrap();
        let plan = Plan::new(&scenario, 1);
        let start = Instant::ZERO;
        for talk in plan.uploads.iter().chain(&plan.downloads) {
            let mut path = Path::new(&Standard, &scenario, &plan, window(start)).unwrap();
            let frame = |from| segment(from, talk.home_port, 0, 1460);
            let mut there = None;
            path.send_up(start, frame(Side::Home));
            while let Some(next) = path.next() {
                path.advance(next, &mut |side, due, _| there = Some((side, due)));
            }
            let (side, there) = there.unwrap();
            assert_eq!(side, Side::Servers);
            let mut back = None;
            path.send_down(there, frame(Side::Servers));
            while let Some(next) = path.next() {
                path.advance(next, &mut |side, due, _| back = Some((side, due)));
            }
            let (side, back) = back.unwrap();
            assert_eq!(side, Side::Home);
            // 1500 bytes take 12 ms at 1 Mbit/s and 1.2 ms at 10 Mbit/s.
            let transmissions = Duration::from_micros(13_200);
            assert_eq!(back.saturating_since(start), talk.rtt + transmissions);
        }
    }

    #[test]
    fn frames_are_lost_and_delayed_as_configured() {
        let args = ScenarioArgs {
            simulated: SimulatedArgs {
                netem_up: Some("loss 20% delay 30ms 10ms".parse().unwrap()),
                netem_down: Some("delay 50ms reorder 50%".parse().unwrap()),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::lab()).unwrap();
        let plan = Plan::new(&scenario, 1);
        let start = Instant::ZERO;
        let mut path = Path::new(&Standard, &scenario, &plan, window(start)).unwrap();
        let port = |talk: &crate::plan::Conversation| talk.home_port;
        let (up, down) = (port(&plan.uploads[0]), port(&plan.downloads[0]));
        let mut left = [Vec::new(), Vec::new()];
        for number in 0..200u32 {
            let now = start + Duration::from_millis(20) * u64::from(1 + number);
            path.advance(now, &mut |side, due, frame| {
                left[side as usize].push((due, frame.header.ack));
            });
            path.send_up(now, segment(Side::Home, up, number, 0));
            path.send_down(now, segment(Side::Servers, down, number, 0));
        }
        path.advance(window(start).end, &mut |side, due, frame| {
            left[side as usize].push((due, frame.header.ack));
        });
        let [home, servers] = left;
        let lost = path.lost[0] as usize;
        assert!((20..60).contains(&lost), "{lost}");
        assert_eq!(
            (servers.len(), home.len(), path.lost[1]),
            (200 - lost, 200, 0)
        );
        let sorted = |frames: &[(Instant, u32)]| frames.is_sorted_by_key(|(_, number)| *number);
        assert!(sorted(&servers), "jitter keeps the order");
        assert!(!sorted(&home), "reordering was asked for");
        assert!(home.is_sorted_by_key(|(due, _)| *due));
    }

    #[test]
    fn a_thread_that_wakes_late_changes_no_instant_and_no_meter() {
        let scenario = ScenarioArgs::default().resolve(&Defaults::lab()).unwrap();
        let plan = Plan::new(&scenario, 1);
        let start = Instant::ZERO + Duration::from_secs(1);
        let window = window(start);
        let run = |wakes_every: u64| {
            let mut path = Path::new(&Standard, &scenario, &plan, window).unwrap();
            let mut left = Vec::new();
            for millis in 0..2_000 {
                let now = start + Duration::from_millis(millis);
                if millis % 7 == 0 {
                    let port = plan.uploads[0].home_port;
                    path.send_up(now, segment(Side::Home, port, 0, 1460));
                }
                if millis % 2 == 0 {
                    let port = plan.downloads[0].home_port;
                    path.send_down(now, segment(Side::Servers, port, 0, 1460));
                }
                if millis % wakes_every == 0 {
                    path.advance(now, &mut |side, due, _| {
                        left.push((due, side == Side::Home))
                    });
                }
            }
            path.advance(window.end, &mut |side, due, _| {
                left.push((due, side == Side::Home))
            });
            left.sort();
            (left, path.up.meter.queue(), path.down.meter.series())
        };
        assert_eq!(run(1), run(100));
    }

    #[test]
    fn acks_filtered_before_the_uplink_are_regenerated_beyond_it() {
        let numbers = |qdisc: &str| {
            let args = ScenarioArgs {
                qdisc: Some(qdisc.into()),
                ..ScenarioArgs::default()
            };
            let scenario = args.resolve(&Defaults::lab()).unwrap();
            let plan = Plan::new(&scenario, 1);
            let start = Instant::ZERO + Duration::from_secs(1);
            let window = window(start);
            let mut path = Path::new(&Standard, &scenario, &plan, window).unwrap();
            let port = plan.downloads[0].home_port;
            let ack = |segments: u32| segment(Side::Home, port, segments * 1448, 0);
            for _ in 0..5 {
                path.send_down(start, segment(Side::Servers, port, 0, 1448));
            }
            path.send_up(start + Duration::from_secs(1), ack(1));
            path.send_up(start + Duration::from_millis(1040), ack(5));
            let mut there = Vec::new();
            path.advance(window.end, &mut |side, _, frame| {
                if side == Side::Servers {
                    let number = &frame.bytes[42..46];
                    there.push(u32::from_be_bytes(number.try_into().unwrap()) / 1448);
                }
            });
            there
        };
        assert_eq!(numbers("sad"), [1, 5]);
        assert_eq!(numbers("sad+ar+cbq"), [1, 2, 3, 4, 5]);
    }
}
