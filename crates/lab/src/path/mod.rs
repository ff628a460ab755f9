//! The access link beyond the gateway and the Internet behind it.
//!
//! Uplink: transmitter at the uplink's rate, a regenerator for disciplines that come with one, then
//! half the flow's round trip to the servers. Downlink: the other half from the servers, then the
//! scenario's discipline and a transmitter at the downlink's rate. This kernel need not have netem
//! for it.

mod frame;
mod link;
mod thread;

pub(crate) use frame::Frame;
pub(crate) use link::Link;
pub(crate) use thread::{Ports, run};

use asymq_core::config::Config;
use asymq_core::parts::{Regenerator, RegeneratorParams};
use asymq_core::units::{Duration, Instant, Limit};
use asymq_scenario::Scenario;
use frame::DelayLine;

use crate::measure::{LinkMeter, Window};
use crate::plan::Plan;

/// An end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Home,
    Servers,
}

/// Both directions of link and path, in exact time; what is asked late is answered as if in time.
pub(crate) struct Path {
    pub(crate) up: Link,
    pub(crate) down: Link,
    regenerator: Option<Regenerator<Frame>>,
    to_servers: DelayLine,
    to_downlink: DelayLine,
    rtt_by_port: Vec<Duration>,
}

impl Path {
    pub(crate) fn new(scenario: &Scenario, plan: &Plan, window: Window) -> Self {
        // The gateway has shaped the uplink's traffic: only its jitter waits here, and is not lost.
        let jitter = Config::DropTail {
            limit: Limit::Packets(1000),
        };
        let downlink = scenario.qdisc_down_config(Scenario::waiting_limit(scenario.buffer_down));
        let link = |rate, discipline| Link::new(rate, discipline, LinkMeter::new(rate, window));
        let params = RegeneratorParams {
            factor: scenario.regeneration(),
            // Kernels spend 12 bytes on timestamps.
            segment: scenario.mss - 12,
            paced: scenario.regenerate_paced,
        };
        Self {
            up: link(scenario.up, &jitter),
            down: link(scenario.down, &downlink),
            regenerator: (scenario.regeneration() > 0).then(|| Regenerator::new(params)),
            to_servers: DelayLine::default(),
            to_downlink: DelayLine::default(),
            rtt_by_port: plan.rtt_by_port(),
        }
    }

    /// Takes a frame that the gateway sent at `now`.
    pub(crate) fn send_up(&mut self, now: Instant, frame: Frame) {
        self.with_uplink(|link, beyond| link.offer(now, frame, beyond));
    }

    /// Takes a frame that a server sent at `now`.
    pub(crate) fn send_down(&mut self, now: Instant, frame: Frame) {
        let rtt = self.rtt_by_port[usize::from(frame.home_port)];
        self.to_downlink
            .push(now + rtt.saturating_sub(rtt / 2), frame);
    }

    /// Hands out every frame that has left by `now`, with the instant at which it was due.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Side, Instant, Frame)) {
        self.with_uplink(|link, beyond| link.advance(now, beyond));
        while let Some((due, frame)) = self.to_servers.pop(now) {
            out(Side::Servers, due, frame);
        }
        let mut to_home = |end, frame| out(Side::Home, end, frame);
        while let Some((at, frame)) = self.to_downlink.pop(now) {
            self.down.offer(at, frame, &mut to_home);
        }
        self.down.advance(now, &mut to_home);
    }

    /// Lets what leaves the uplink meanwhile travel half its round trip.
    fn with_uplink(&mut self, work: impl FnOnce(&mut Link, &mut dyn FnMut(Instant, Frame))) {
        let Self {
            up,
            down,
            regenerator,
            to_servers,
            rtt_by_port,
            ..
        } = self;
        let mut travel = |at, frame: Frame| {
            to_servers.push(at + rtt_by_port[usize::from(frame.home_port)] / 2, frame);
        };
        work(up, &mut |end, frame| {
            down.observe(end, &frame.header);
            let Some(regenerator) = regenerator else {
                return travel(end, frame);
            };
            regenerator.push(end, frame);
            // When each leaves follows from what came before it.
            while let Some(due) = regenerator.next_at() {
                if let Some(frame) = regenerator.pop(due) {
                    travel(due, frame);
                }
            }
        });
    }

    /// When something will leave or move on next.
    pub(crate) fn next(&self) -> Option<Instant> {
        let events = [
            self.up.next(),
            self.to_servers.next(),
            self.to_downlink.next(),
            self.down.next(),
        ];
        events.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::frame::FlowKey;
    use asymq_core::{Header, Protocol};
    use asymq_scenario::{Defaults, QdiscName, ScenarioArgs};
    use clap::ValueEnum as _;

    #[test]
    fn a_round_trip_is_the_flows_own_and_the_transmissions() {
        let args = ScenarioArgs {
            rtt: Some("20ms..300ms".parse().unwrap()),
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::lab()).unwrap();
        let plan = Plan::new(&scenario, 1);
        let start = Instant::ZERO;
        let window = Window {
            start,
            warm: start,
            end: start + Duration::from_secs(10),
        };
        for talk in plan.uploads.iter().chain(&plan.downloads) {
            let mut path = Path::new(&scenario, &plan, window);
            let frame = || Frame {
                transport: 0,
                header: Header {
                    len: 1500,
                    protocol: Protocol::Tcp,
                    ..Header::default()
                },
                home_port: talk.home_port,
                bytes: Vec::new(),
            };
            let mut there = None;
            path.send_up(start, frame());
            while let Some(next) = path.next() {
                path.advance(next, &mut |side, due, _| there = Some((side, due)));
            }
            let (side, there) = there.unwrap();
            assert_eq!(side, Side::Servers);
            let mut back = None;
            path.send_down(there, frame());
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
    fn acks_given_up_before_the_uplink_are_made_again_beyond_it() {
        let count = |qdisc: &str| {
            let args = ScenarioArgs {
                qdisc: Some(QdiscName::from_str(qdisc, false).unwrap()),
                ..ScenarioArgs::default()
            };
            let scenario = args.resolve(&Defaults::lab()).unwrap();
            let plan = Plan::new(&scenario, 1);
            let start = Instant::ZERO + Duration::from_secs(1);
            let window = Window {
                start,
                warm: start,
                end: start + Duration::from_secs(10),
            };
            let mut path = Path::new(&scenario, &plan, window);
            let home_port = plan.downloads[0].home_port;
            let ack = |segments: u32| {
                let mut bytes = vec![0; 54];
                bytes[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 40]);
                bytes[23] = 6;
                bytes[34..36].copy_from_slice(&home_port.to_be_bytes());
                bytes[42..46].copy_from_slice(&(segments * 1448).to_be_bytes());
                bytes[46..48].copy_from_slice(&[0x50, 0x10]);
                Frame::read(bytes, Side::Home, &FlowKey::new([0, 0])).unwrap()
            };
            path.send_up(start, ack(1));
            path.send_up(start + Duration::from_millis(40), ack(5));
            let mut there = Vec::new();
            path.advance(window.end, &mut |_, _, frame| {
                let number = &frame.bytes[42..46];
                there.push(u32::from_be_bytes(number.try_into().unwrap()) / 1448);
            });
            there
        };
        assert_eq!(count("sad"), [1, 5]);
        assert_eq!(count("sad+ar+cbq"), [1, 2, 3, 4, 5]);
    }
}
