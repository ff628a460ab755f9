//! Every quantity parses back to the value that was printed.

use asymq_core::decide::overhead::Overhead;
use asymq_core::units::{Bytes, Duration, Instant, Limit, Rate};
use proptest::prelude::*;

/// Numbers of every magnitude, round and odd.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift),
        (0u64..2000, 0u32..16).prop_map(|(n, zeros)| n * 10u64.pow(zeros)),
        (0u64..2000, 0u32..6).prop_map(|(n, kilos)| n << (10 * kilos)),
    ]
}

proptest! {
    #[test]
    fn durations_read_back_as_they_print(nanos in number()) {
        let span = Duration::from_nanos(nanos);
        prop_assert_eq!(span.to_string().parse(), Ok(span));
    }

    #[test]
    fn rates_read_back_as_they_print(bits in number()) {
        if let Some(rate) = Rate::from_bits_per_sec(bits) {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }

    #[test]
    fn sizes_and_limits_read_back_as_they_print(n in number()) {
        prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        for limit in [Limit::Bytes(n.clamp(1, 1 << 32)), Limit::Packets(n.clamp(1, 1_000_000) as u32)] {
            prop_assert_eq!(limit.to_string().parse(), Ok(limit));
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*|[0-9.]{0,40}[a-z]{0,5}|(overhead|mpu|raw|atm|ethernet|[-0-9]{1,12}| ){0,9}") {
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Limit>();
        let _ = text.parse::<Bytes>();
        if let Ok(overhead) = text.parse::<Overhead>() {
            prop_assert_eq!(overhead.to_string().parse(), Ok(overhead));
        }
    }

    #[test]
    fn a_link_never_sends_faster_than_its_rate(bytes: u32, bits in 1u64..1_000_000_000_000) {
        let time = Rate::from_bits_per_sec(bits).unwrap().tx_time(bytes).as_nanos();
        let exact = u128::from(bytes) * 8_000_000_000;
        let sent_by = |nanos: u128| nanos * u128::from(bits);
        if time < u64::MAX {
            prop_assert!(sent_by(time.into()) >= exact);
            prop_assert!(time == 0 || sent_by(u128::from(time) - 1) < exact);
        }
    }

    #[test]
    fn time_stops_at_the_end_of_its_range(at: u64, span: u64, factor: u64) {
        let (at, span) = (Instant::from_nanos(at), Duration::from_nanos(span));
        prop_assert!(at + span >= at);
        prop_assert!(span + span >= span);
        prop_assert!(factor == 0 || span * factor >= span);
        prop_assert!((at + span).saturating_since(at) <= span);
    }
}
