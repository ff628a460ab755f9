//! Strategies for proptest: configurations and steps.

use crate::choice;
use crate::law::Step;
use asymq_core::catalog::{Catalog, Config};
use asymq_core::{Duration, Ecn, Flow, Header, Instant, Protocol, flags};
use proptest::prelude::*;

/// Number of random words for [`choice::config`], which uses fewer.
const WORDS: usize = 240;

/// A discipline of the catalog with random parts and parameters, at a random place. Shrinks to the first or
/// most common choices.
pub fn config<C: Catalog + Clone>(catalog: C) -> impl Strategy<Value = Config> {
    prop::collection::vec(any::<u16>(), WORDS)
        .prop_map(move |words| choice::config(&catalog, &mut choice::from_words(words)))
}

/// Calls of a driver, with packets as hosts send them.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    steps_of(usual().boxed(), 20_000_000)
}

/// Calls with a mix of usual and contradictory packets, and with jumps of time.
pub fn absurd_steps() -> impl Strategy<Value = Vec<Step>> {
    steps_of(prop_oneof![usual(), absurd()].boxed(), u64::MAX)
}

/// Usual packets of hosts: ACKs, data, and some non-TCP packets.
fn usual() -> impl Strategy<Value = Header> {
    let flow = (0u64..4).prop_map(Flow);
    let tcp = |flow, len: u32, payload, ack, ecn| Header {
        flow,
        len,
        ip_len: len,
        payload,
        ack,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ecn,
        ..Header::default()
    };
    prop_oneof![
        4 => (flow.clone(), 40u32..=80, 0u32..200_000)
            .prop_map(move |(flow, len, ack)| tcp(flow, len, 0, ack, Ecn::NotEct)),
        4 => (flow.clone(), 41u32..=1500, 0u8..4)
            .prop_map(move |(flow, len, ecn)| tcp(flow, len, len - 40, 0, Ecn::from_bits(ecn))),
        1 => (flow.clone(), 28u32..=1500).prop_map(move |(flow, len)| Header {
            protocol: Protocol::NonTcp,
            ..tcp(flow, len, 0, 0, Ecn::NotEct)
        }),
        1 => (flow, 46u32..=1500).prop_map(move |(flow, len)| Header {
            protocol: Protocol::Quic,
            ..tcp(flow, len, 0, 0, Ecn::NotEct)
        }),
    ]
}

/// Packets whose properties contradict each other.
fn absurd() -> impl Strategy<Value = Header> {
    let protocol = prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::NonTcp),
        Just(Protocol::Quic),
        Just(Protocol::QuicLong),
        Just(Protocol::Opaque)
    ];
    let numbers = (any::<u64>(), 0u32..1 << 20, any::<u32>(), any::<u32>());
    (numbers, any::<u16>(), 0u8..4, protocol).prop_map(
        |((number, len, ip_len, payload), flags, ecn, protocol)| Header {
            arrival: Instant::from_nanos(number),
            flow: Flow(number),
            len,
            ip_len,
            payload,
            ack: len,
            flags,
            protocol,
            ecn: Ecn::from_bits(ecn),
            note: 0,
        },
    )
}

fn steps_of(header: BoxedStrategy<Header>, longest_wait: u64) -> impl Strategy<Value = Vec<Step>> {
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
