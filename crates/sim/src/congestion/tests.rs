//! Tests that no two congestion controls behave alike.

use super::*;
use crate::congestion::Connection;
use crate::packets::{Options as _, Segment, TcpOptions};
use crate::receivers::Receiver;
use crate::senders::{RttEstimator, Sender};
use crate::variant::{Full, Variant as _};
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

/// Returns the congestion window after each of 100 round trips of 100 ms. The path loses three segments of one window
/// and two of a later one, and marks one segment; retransmissions arrive. Every third segment is acknowledged.
fn windows(tcp: Tcp, byte_counting: bool) -> Vec<f64> {
    const RTT: u64 = 100_000_000;
    /// Upper bound of the flight, for congestion controls without a bound by losses.
    const WINDOW: u64 = 1000;
    let scenario = scenario(tcp, byte_counting);
    let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
    let rtt = RttEstimator::new(0);
    let connection = Connection {
        payload: scenario.payload(),
        seed: 0,
    };
    let sending = Full::sending(&scenario, &model);
    let mut sender = Sender::new(
        Full::congestion(&model, &connection),
        rtt,
        model.recovery,
        WINDOW,
        sending,
    );
    let policy = AckPolicy::Every(3, Duration::from_millis(1));
    let mut receiver = Receiver::new(policy, Full::receiving(&scenario));
    let mut lost = vec![100, 104, 108, 400, 405];
    let mut flight: Vec<Segment<TcpOptions>> = Vec::new();
    sender.connect(0, &mut flight);
    let round = |n: u64| {
        let now = n * RTT;
        // Sends paced segments of the round, or runs the retransmission timer.
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
        let model = TcpModel::of(&Catalog::new(), &scenario);
        assert_eq!(model.is_some(), tcp.is_simulated(), "{tcp}");
    }
}

#[test]
fn no_two_congestion_controls_move_their_windows_alike() {
    let named = |counting| Tcp::simulated().map(move |tcp| (tcp, counting));
    // BBR counts delivered segments, so `byte_counting` has no effect on BBR.
    let counting = named(true).filter(|(tcp, _)| tcp.counts_bytes());
    let all: Vec<_> = named(false).chain(counting).collect();
    for (index, &one) in all.iter().enumerate() {
        for &other in &all[index + 1..] {
            let same = windows(one.0, one.1) == windows(other.0, other.1);
            assert!(!same, "{one:?} and {other:?}");
        }
    }
}
