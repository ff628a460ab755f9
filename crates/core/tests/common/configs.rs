//! Every discipline with every kind of parameter, sensible or not.

use asymq_core::classify::Classifier;
use asymq_core::config::Config;
use asymq_core::parts::aq::{AqParams, BeyondLimit, DataPerAck};
use asymq_core::units::{Duration, Limit, Rate};
use proptest::prelude::*;

pub(crate) fn any_config() -> impl Strategy<Value = Config> {
    prop_oneof![
        1 => limit().prop_map(|limit| Config::DropTail { limit }),
        4 => (prop_oneof![papers_aq(), any_aq()], classifier(), limit())
            .prop_map(|(params, classifier, limit)| Config::Aq { params, classifier, limit }),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Packets(0)),
        Just(Limit::Packets(1)),
        (2u32..60).prop_map(Limit::Packets),
        Just(Limit::Packets(u32::MAX)),
        Just(Limit::Bytes(0)),
        (1u64..4_000).prop_map(Limit::Bytes),
        (4_000u64..100_000).prop_map(Limit::Bytes),
        Just(Limit::Bytes(u64::MAX)),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(1),
        Just(1_000_000_000_000),
        1_000u64..100_000_000,
        Just(1_000_000),
        Just(10_000_000),
    ]
    .prop_map(|bits| Rate::from_bits_per_sec(bits).unwrap())
}

fn size() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(40), Just(1500), Just(u32::MAX), 1u32..2000]
}

fn data_per_ack() -> impl Strategy<Value = DataPerAck> {
    prop_oneof![
        Just(DataPerAck::Measured),
        (1.0..4.0).prop_map(DataPerAck::Given),
        any::<f64>().prop_map(DataPerAck::Given),
    ]
}

fn interval() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_nanos(u64::MAX)),
        (1u64..1_000).prop_map(Duration::from_millis),
    ]
}

fn classifier() -> impl Strategy<Value = Classifier> {
    prop_oneof![Just(Classifier::PureAck), size().prop_map(Classifier::Size)]
}

fn beyond_limit() -> impl Strategy<Value = BeyondLimit> {
    prop_oneof![
        Just(BeyondLimit::EqualShares),
        Just(BeyondLimit::StarveAcks)
    ]
}

/// AQ on links like the paper's, where measured traffic moves the ratio.
fn papers_aq() -> impl Strategy<Value = AqParams> {
    let up = (200_000u64..4_000_000).prop_map(|bits| Rate::from_bits_per_sec(bits).unwrap());
    let data_per_ack = prop_oneof![
        Just(DataPerAck::Measured),
        Just(DataPerAck::Given(1.0)),
        Just(DataPerAck::Given(2.0))
    ];
    (up, data_per_ack, 10u64..300, beyond_limit()).prop_map(
        |(up, data_per_ack, interval, beyond_limit)| AqParams {
            data_per_ack,
            interval: Duration::from_millis(interval),
            beyond_limit,
            ..AqParams::new(up, Rate::from_bits_per_sec(10_000_000).unwrap())
        },
    )
}

fn any_aq() -> impl Strategy<Value = AqParams> {
    let rates = (rate(), rate());
    let sizes = (size(), size());
    (rates, sizes, data_per_ack(), interval(), beyond_limit()).prop_map(
        |((up, down), (ack_size, data_size), data_per_ack, interval, beyond_limit)| AqParams {
            ack_size,
            data_size,
            data_per_ack,
            interval,
            beyond_limit,
            ..AqParams::new(up, down)
        },
    )
}
