//! Every discipline with every kind of parameter, sensible or not.

use super::named::named;
use asymq_core::classify::Classifier;
use asymq_core::config::Config;
use asymq_core::disciplines::{
    AckHold, Buffer, Composition, ControllerKind, Entry, RedOn, ServiceKind,
};
use asymq_core::parts::controller::aq::{AqParams, BeyondLimit, DataPerAck};
use asymq_core::parts::controller::gradient::{DownloadMeter, GradientParams, Utility};
use asymq_core::parts::service::CreditPer;
use asymq_core::parts::{RedParams, Thinning, ThinningBounds};
use asymq_core::units::{Duration, Limit, Rate};
use proptest::prelude::*;

/// A named discipline, or any choice of parts.
pub(crate) fn any_config() -> BoxedStrategy<Config> {
    prop_oneof![
        4 => (entry(), aq_params(), 0.0..=1.0)
            .prop_flat_map(|(entry, aq, share)| prop::sample::select(named(entry, aq, share)))
            .prop_map(|(_, config)| config),
        2 => (entry(), aq_params()).prop_map(|(entry, aq)| Config::Machine(entry.aq(aq))),
        4 => composition().prop_map(Config::Machine),
    ]
    .boxed()
}

fn entry() -> BoxedStrategy<Entry> {
    (rate(), rate(), limit(), classifier())
        .prop_map(|(link, opposite, limit, classifier)| Entry {
            link,
            opposite,
            limit,
            classifier,
        })
        .boxed()
}

fn composition() -> BoxedStrategy<Composition> {
    (
        entry(),
        ack_hold(),
        red(),
        service(),
        controller(),
        buffer(),
    )
        .prop_map(
            |(entry, ack, red, service, controller, buffer)| Composition {
                ack,
                red,
                service,
                controller,
                buffer,
                ..entry.fifo()
            },
        )
        .boxed()
}

/// A number of any size and kind, most often a sensible one.
fn number(sensible: f64) -> BoxedStrategy<f64> {
    prop_oneof![3 => 0.0..=sensible, 1 => any::<f64>()].boxed()
}

fn ack_hold() -> BoxedStrategy<AckHold> {
    let thinning = prop_oneof![Just(Thinning::Filter), Just(Thinning::Slot)];
    let bounds = (0u32..200_000, interval()).prop_map(|(most_stretch, most_gap)| ThinningBounds {
        most_stretch,
        most_gap,
    });
    prop_oneof![
        Just(AckHold::Fifo),
        (thinning, bounds).prop_map(|(thinning, bounds)| AckHold::Thinned(thinning, bounds)),
    ]
    .boxed()
}

fn red() -> BoxedStrategy<RedOn> {
    let params = (
        [number(50.0), number(50.0)],
        [number(1.0), number(1.0)],
        interval(),
        any::<u64>(),
    )
        .prop_map(
            |([low, high], [most, weight], packet_time, seed)| RedParams {
                min_threshold: low,
                max_threshold: high,
                max_probability: most,
                weight,
                packet_time,
                seed,
            },
        )
        .boxed();
    prop_oneof![
        2 => Just(RedOn::Nothing),
        1 => params.clone().prop_map(RedOn::Data),
        1 => params.prop_map(RedOn::All),
    ]
    .boxed()
}

fn service() -> BoxedStrategy<ServiceKind> {
    prop_oneof![
        Just(ServiceKind::Shared),
        Just(ServiceKind::AcksFirst),
        Just(ServiceKind::RoundRobin),
        number(1.0).prop_map(ServiceKind::Weighted),
        number(1.0).prop_map(ServiceKind::Paced),
        Just(ServiceKind::Credit(CreditPer::Byte)),
        any::<u32>().prop_map(|bytes| ServiceKind::Credit(CreditPer::Segment(bytes))),
    ]
    .boxed()
}

fn controller() -> BoxedStrategy<ControllerKind> {
    let utility = prop_oneof![
        Just(Utility::Utilization),
        number(1000.0).prop_map(Utility::Priority),
        Just(Utility::Proportional)
    ];
    let meter = prop_oneof![
        Just(DownloadMeter::AckedBytes),
        number(3000.0).prop_map(DownloadMeter::PerAck)
    ];
    let gradient = (rate(), rate(), interval(), number(100.0), utility, meter).prop_map(
        |(up, down, interval, gamma, utility, meter)| GradientParams {
            up,
            down,
            interval,
            gamma,
            utility,
            meter,
        },
    );
    prop_oneof![
        Just(ControllerKind::Fixed),
        aq_params().prop_map(ControllerKind::Aq),
        gradient.prop_map(ControllerKind::Gradient),
        any::<u32>().prop_map(ControllerKind::AckLimit),
    ]
    .boxed()
}

fn buffer() -> BoxedStrategy<Buffer> {
    prop_oneof![
        limit().prop_map(Buffer::Shared),
        limit().prop_map(Buffer::InRatio),
        (limit(), limit()).prop_map(|(ack, data)| Buffer::Separate { ack, data }),
    ]
    .boxed()
}

fn limit() -> BoxedStrategy<Limit> {
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
    .boxed()
}

fn rate() -> BoxedStrategy<Rate> {
    prop_oneof![
        Just(1),
        Just(1_000_000_000_000),
        1_000u64..100_000_000,
        Just(1_000_000),
        Just(10_000_000),
    ]
    .prop_map(|bits| Rate::from_bits_per_sec(bits).unwrap())
    .boxed()
}

fn size() -> BoxedStrategy<u32> {
    prop_oneof![Just(0), Just(40), Just(1500), Just(u32::MAX), 1u32..2000].boxed()
}

fn data_per_ack() -> BoxedStrategy<DataPerAck> {
    prop_oneof![
        Just(DataPerAck::Measured),
        (1.0..4.0).prop_map(DataPerAck::Given),
        any::<f64>().prop_map(DataPerAck::Given),
    ]
    .boxed()
}

fn interval() -> BoxedStrategy<Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_nanos(u64::MAX)),
        (1u64..1_000).prop_map(Duration::from_millis),
    ]
    .boxed()
}

fn classifier() -> BoxedStrategy<Classifier> {
    prop_oneof![Just(Classifier::PureAck), size().prop_map(Classifier::Size)].boxed()
}

fn aq_params() -> BoxedStrategy<AqParams> {
    prop_oneof![papers_aq(), any_aq()].boxed()
}

fn beyond_limit() -> BoxedStrategy<BeyondLimit> {
    prop_oneof![
        Just(BeyondLimit::EqualShares),
        Just(BeyondLimit::StarveAcks)
    ]
    .boxed()
}

/// AQ on links like the paper's, where measured traffic moves the ratio.
fn papers_aq() -> BoxedStrategy<AqParams> {
    let up = (200_000u64..4_000_000).prop_map(|bits| Rate::from_bits_per_sec(bits).unwrap());
    let data_per_ack = prop_oneof![
        Just(DataPerAck::Measured),
        Just(DataPerAck::Given(1.0)),
        Just(DataPerAck::Given(2.0))
    ];
    (up, data_per_ack, 10u64..300, beyond_limit())
        .prop_map(|(up, data_per_ack, interval, beyond_limit)| AqParams {
            data_per_ack,
            interval: Duration::from_millis(interval),
            beyond_limit,
            ..AqParams::new(up, Rate::from_bits_per_sec(10_000_000).unwrap())
        })
        .boxed()
}

fn any_aq() -> BoxedStrategy<AqParams> {
    let rates = (rate(), rate());
    let sizes = (size(), size());
    (rates, sizes, data_per_ack(), interval(), beyond_limit())
        .prop_map(
            |((up, down), (ack_size, data_size), data_per_ack, interval, beyond_limit)| AqParams {
                ack_size,
                data_size,
                data_per_ack,
                interval,
                beyond_limit,
                ..AqParams::new(up, down)
            },
        )
        .boxed()
}
