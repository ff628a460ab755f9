//! The access link beyond the gateway and the Internet behind it.
//!
//! Uplink: transmitter at the uplink's rate, then half the flow's round trip to the servers.
//! Downlink: the other half from the servers, then a DropTail buffer and a transmitter at the
//! downlink's rate. This kernel need not have netem for it.

mod frame;
mod link;
mod thread;

pub(crate) use frame::Frame;
pub(crate) use link::Link;
pub(crate) use thread::{Ports, run};

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
    to_servers: DelayLine,
    to_downlink: DelayLine,
    rtt_by_port: Vec<Duration>,
}

impl Path {
    pub(crate) fn new(scenario: &Scenario, plan: &Plan, window: Window) -> Self {
        // The gateway has shaped the uplink's traffic: only its jitter waits here, and is not lost.
        let uplink_buffer = Limit::Packets(1000);
        let link = |rate, buffer| Link::new(rate, buffer, LinkMeter::new(rate, window));
        Self {
            up: link(scenario.up, uplink_buffer),
            down: link(scenario.down, scenario.buffer_down),
            to_servers: DelayLine::default(),
            to_downlink: DelayLine::default(),
            rtt_by_port: plan.rtt_by_port(),
        }
    }

    /// Takes a frame that the gateway sent at `now`.
    pub(crate) fn send_up(&mut self, now: Instant, frame: Frame) {
        let mut beyond = half_way(&self.rtt_by_port, &mut self.to_servers);
        self.up.offer(now, frame, &mut beyond);
    }

    /// Takes a frame that a server sent at `now`.
    pub(crate) fn send_down(&mut self, now: Instant, frame: Frame) {
        let rtt = self.rtt_by_port[usize::from(frame.home_port)];
        self.to_downlink
            .push(now + rtt.saturating_sub(rtt / 2), frame);
    }

    /// Hands out every frame that has left by `now`, with the instant at which it was due.
    pub(crate) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Side, Instant, Frame)) {
        let mut beyond = half_way(&self.rtt_by_port, &mut self.to_servers);
        self.up.advance(now, &mut beyond);
        drop(beyond);
        while let Some((due, frame)) = self.to_servers.pop(now) {
            out(Side::Servers, due, frame);
        }
        let mut to_home = |end, frame| out(Side::Home, end, frame);
        while let Some((at, frame)) = self.to_downlink.pop(now) {
            self.down.offer(at, frame, &mut to_home);
        }
        self.down.advance(now, &mut to_home);
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

/// Lets what leaves the uplink travel half its round trip.
fn half_way(rtts: &[Duration], line: &mut DelayLine) -> impl FnMut(Instant, Frame) {
    |end, frame: Frame| line.push(end + rtts[usize::from(frame.home_port)] / 2, frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::{Header, Protocol};
    use asymq_scenario::{Defaults, ScenarioArgs};

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
}
