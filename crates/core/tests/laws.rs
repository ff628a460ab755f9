//! Every discipline, with any parameters and traffic, keeps every law.

#[path = "common/configs.rs"]
mod configs;
#[path = "common/laws.rs"]
mod laws;
#[path = "common/named.rs"]
mod named;

use asymq_core::packet::{Flow, Header, Protocol, flags};
use asymq_core::units::{Duration, Instant};
use configs::any_config;
use laws::{Step, obey};
use proptest::prelude::*;

/// What hosts send: ACKs, data, and a little that is not TCP.
fn usual() -> impl Strategy<Value = Header> {
    let flow = (0u64..4).prop_map(Flow);
    let tcp = |flow, len: u32, payload, ack| Header {
        flow,
        len,
        ip_len: len,
        payload,
        ack,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ..Header::default()
    };
    prop_oneof![
        4 => (flow.clone(), 40u32..=80, 0u32..200_000)
            .prop_map(move |(flow, len, ack)| tcp(flow, len, 0, ack)),
        4 => (flow.clone(), 41u32..=1500)
            .prop_map(move |(flow, len)| tcp(flow, len, len - 40, 0)),
        1 => (flow, 28u32..=1500).prop_map(move |(flow, len)| Header {
            protocol: Protocol::NonTcp,
            ..tcp(flow, len, 0, 0)
        }),
    ]
}

/// Facts that contradict each other.
fn absurd() -> impl Strategy<Value = Header> {
    let protocol = prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::NonTcp),
        Just(Protocol::Opaque)
    ];
    let numbers = (any::<u64>(), 0u32..1 << 20, any::<u32>(), any::<u32>());
    (numbers, any::<u16>(), protocol).prop_map(
        |((number, len, ip_len, payload), flags, protocol)| Header {
            arrival: Instant::from_nanos(number),
            flow: Flow(number),
            len,
            ip_len,
            payload,
            ack: len,
            flags,
            protocol,
        },
    )
}

fn steps(header: BoxedStrategy<Header>, longest_wait: u64) -> impl Strategy<Value = Vec<Step>> {
    let wait = move || (0..=longest_wait).prop_map(Duration::from_nanos);
    let filling = prop_oneof![
        8 => header.clone().prop_map(Step::Enqueue),
        4 => Just(Step::Dequeue),
        2 => header.clone().prop_map(Step::Observe),
        2 => wait().prop_map(Step::Wait),
    ];
    let emptying = prop_oneof![
        3 => header.prop_map(Step::Enqueue),
        8 => Just(Step::Dequeue),
        2 => wait().prop_map(Step::Wait),
    ];
    let phase = prop_oneof![
        4 => prop::collection::vec(filling, 1..150),
        3 => prop::collection::vec(emptying, 1..80),
        1 => Just(vec![Step::DrainAll]),
    ];
    prop::collection::vec(phase, 1..8).prop_map(|phases| phases.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_keeps_every_law(
        config in any_config(),
        steps in steps(usual().boxed(), 20_000_000),
    ) {
        obey(&config, &steps);
    }

    #[test]
    fn absurd_packets_and_leaps_of_time_break_no_law(
        config in any_config(),
        steps in steps(prop_oneof![usual(), absurd()].boxed(), u64::MAX),
    ) {
        obey(&config, &steps);
    }
}
