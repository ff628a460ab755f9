//! Bounds of learnt rates under arbitrary samples.

#[path = "common/line.rs"]
mod line;

use line::{Claim, Readable, rates_keep_their_bounds};
use proptest::prelude::*;

fn claim() -> impl Strategy<Value = Claim> {
    let stamp = prop_oneof![0..50i32, -1000..1000i32, any::<i32>()];
    let echo = prop_oneof![0..100u16, any::<u16>()];
    let ack = prop_oneof![-100_000..0i32, any::<i32>()];
    (any::<u8>(), stamp, echo, ack, 0..20_000u16, 40..1500u16).prop_map(
        |(conversation, stamp, echo, ack, pause, len)| Claim {
            conversation,
            stamp,
            echo,
            ack,
            pause,
            len,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn no_samples_drive_a_rate_to_its_floor_or_hold_it_there(
        claims in prop::collection::vec(claim(), 0..40),
        readable in prop::sample::select(Readable::ALL.to_vec()),
    ) {
        rates_keep_their_bounds(readable, &claims);
    }
}

#[test]
fn ever_later_packets_do_not_drive_a_rate_to_its_floor() {
    for (stamp, echo) in [(0, 500), (1, 200), (5, 40), (20, 300), (-5, 100)] {
        for pause in [500, 5000, 10_000] {
            let claims: Vec<Claim> = (0..8)
                .map(|conversation| Claim {
                    conversation,
                    stamp,
                    echo,
                    ack: 0,
                    pause,
                    len: 1500,
                })
                .collect();
            for readable in Readable::ALL {
                rates_keep_their_bounds(readable, &claims);
            }
        }
    }
}
