//! What the simulator runs for each congestion control that a scenario can name.

use crate::congestion::AnyCongestion;
use crate::congestion::Bbr3;
use crate::congestion::Cubic;
use crate::congestion::Dctcp;
use crate::congestion::HyStart;
use crate::congestion::Outside;
use crate::congestion::maker;
use crate::congestion::{ByteCounting, Reno};
use crate::senders::Recovery;
use asymq_scenario::{Scenario, Tcp};

/// How the senders of a run behave.
#[derive(Debug)]
pub(crate) struct TcpModel<C> {
    /// What connections get their window from, before they send anything.
    pub(crate) congestion: C,
    /// Loss recovery without SACK; with it, all recover by RFC 6675.
    pub(crate) recovery: Recovery,
}

impl TcpModel<AnyCongestion> {
    /// The scenario's model; `None` if the simulator does not implement its congestion control. Each
    /// is named here, so that none runs as another under its own name.
    pub(crate) fn of(scenario: &Scenario) -> Option<Self> {
        let counting = scenario.byte_counting;
        let (reno, counted, cubic) = (Reno::new(), ByteCounting::new(), Cubic::new(counting));
        let of_reno = match (counting, scenario.hystart) {
            (false, false) => AnyCongestion::Reno(reno),
            (true, false) => AnyCongestion::ByteCounting(counted),
            (false, true) => AnyCongestion::HyStartReno(HyStart::new(reno)),
            (true, true) => AnyCongestion::HyStartByteCounting(HyStart::new(counted)),
        };
        let (congestion, recovery) = match scenario.tcp {
            Tcp::Reno => (of_reno, Recovery::Reno),
            Tcp::Newreno => (of_reno, Recovery::NewReno),
            Tcp::Cubic => {
                let cubic = match scenario.hystart {
                    false => AnyCongestion::Cubic(cubic),
                    true => AnyCongestion::HyStartCubic(HyStart::new(cubic)),
                };
                (cubic, Recovery::NewReno)
            }
            Tcp::Dctcp => {
                let dctcp = match counting {
                    false => AnyCongestion::Dctcp(Dctcp::new(reno)),
                    true => AnyCongestion::DctcpByteCounting(Dctcp::new(counted)),
                };
                (dctcp, Recovery::NewReno)
            }
            Tcp::Bbr3 => (AnyCongestion::Bbr3(Bbr3::new()), Recovery::NewReno),
            Tcp::Outside(outside) => {
                let outside = Outside::new(maker(outside.name)?);
                (AnyCongestion::Outside(outside), Recovery::NewReno)
            }
            Tcp::Bbr => return None,
        };
        Some(Self {
            congestion,
            recovery,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionControl as _;
    use crate::packets::Segment;
    use crate::packets::{Options as _, TcpOptions};
    use crate::receivers::Receiver;
    use crate::senders::{RttEstimator, Sender};
    use crate::variant::Full;
    use crate::variant::Variant as _;
    use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
    use asymq_core::Duration;
    use asymq_scenario::AckPolicy;

    fn scenario(tcp: Tcp, byte_counting: bool) -> Scenario {
        let args = ScenarioArgs {
            tcp: Some(tcp),
            simulated: SimulatedArgs {
                byte_counting: Some(byte_counting),
                ..SimulatedArgs::default()
            },
            ..ScenarioArgs::default()
        };
        args.resolve(&Defaults::paper()).unwrap()
    }

    /// The congestion window after each of 100 round-trip times of 100 ms, over a path that loses
    /// some segments once each, three in one window, and later two in another, and marks one. Every
    /// second segment is acknowledged.
    fn windows(tcp: Tcp, byte_counting: bool) -> Vec<f64> {
        const RTT: u64 = 100_000_000;
        /// Bounds the flight of what no loss bounds.
        const WINDOW: u64 = 1000;
        let scenario = scenario(tcp, byte_counting);
        let model = TcpModel::of(&scenario).unwrap();
        let rtt = RttEstimator::new(0);
        let sending = Full::sending(&scenario);
        let mut sender = Sender::new(model.congestion, rtt, model.recovery, WINDOW, sending);
        let policy = AckPolicy::Every(2, Duration::from_millis(1));
        let mut receiver = Receiver::new(policy, Full::receiving(&scenario));
        let mut lost = vec![100, 104, 108, 400, 405];
        let mut flight: Vec<Segment<TcpOptions>> = Vec::new();
        sender.connect(0, &mut flight);
        let round = |n: u64| {
            let now = n * RTT;
            // The pacer's segments of the round, or the timer.
            while sender.deadline() < now {
                sender.on_timeout(sender.deadline(), &mut flight);
            }
            let mut acks = Vec::new();
            for mut segment in std::mem::take(&mut flight) {
                if segment.number() == 200 {
                    segment.options.mark_ce();
                }
                match lost.iter().position(|number| *number == segment.number()) {
                    Some(index) => drop(lost.remove(index)),
                    None => receiver.on_segment(now, segment, &mut acks),
                }
            }
            if receiver.deadline() < u64::MAX {
                receiver.on_timeout(receiver.deadline(), &mut acks);
            }
            for ack in acks {
                sender.on_ack(now, ack, &mut flight);
            }
            if sender.deadline() <= now {
                sender.on_timeout(now, &mut flight);
            }
            sender.congestion.window()
        };
        let windows = (1..=100).map(round).collect();
        assert!(lost.is_empty(), "{tcp}: {lost:?} were never sent");
        windows
    }

    #[test]
    fn there_is_a_model_of_every_congestion_control_that_is_said_to_be_simulated() {
        for tcp in Tcp::simulated().chain(Tcp::real()) {
            let scenario = Scenario {
                tcp,
                ..scenario(Tcp::Newreno, false)
            };
            let model = TcpModel::of(&scenario);
            assert_eq!(model.is_some(), tcp.is_simulated(), "{tcp}");
        }
    }

    #[test]
    fn no_two_congestion_controls_move_their_windows_alike() {
        let named = |counting| Tcp::simulated().map(move |tcp| (tcp, counting));
        // BBR counts what is delivered, not ACKs.
        let counting = named(true).filter(|(tcp, _)| *tcp != Tcp::Bbr3);
        let all: Vec<_> = named(false).chain(counting).collect();
        for (index, &one) in all.iter().enumerate() {
            for &other in &all[index + 1..] {
                let same = windows(one.0, one.1) == windows(other.0, other.1);
                assert!(!same, "{one:?} and {other:?}");
            }
        }
    }
}
