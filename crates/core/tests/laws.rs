//! Every discipline, with any parts, parameters and traffic, keeps every law.

use asymq_core::catalog::{Catalog, Role, Standard};
use asymq_core::packet::{Flow, Header, Protocol, flags};
use asymq_core::{Discard, Instant};
use asymq_laws::{golden, obey, strategy};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_as_it_comes_keeps_every_law(steps in strategy::steps()) {
        for entry in Standard.of_role(Role::Qdisc) {
            let config = golden::config(&Standard, entry.name).expect("a discipline");
            obey(&Standard, &config, &steps);
        }
    }

    #[test]
    fn any_parts_and_parameters_keep_every_law(
        config in strategy::config(Standard),
        steps in strategy::steps(),
    ) {
        obey(&Standard, &config, &steps);
    }

    #[test]
    fn absurd_packets_and_leaps_of_time_break_no_law(
        config in strategy::config(Standard),
        steps in strategy::absurd_steps(),
    ) {
        obey(&Standard, &config, &steps);
    }
}

#[test]
fn every_discipline_shows_all_packets_that_wait() {
    for entry in Standard.of_role(Role::Qdisc) {
        let config = golden::config(&Standard, entry.name).unwrap();
        let mut qdisc = Standard.build::<Header>(&config).unwrap();
        for number in 0..40 {
            let ack = Header {
                flow: Flow(number % 7 * 2),
                len: 66,
                protocol: Protocol::Tcp,
                flags: flags::ACK,
                ..Header::default()
            };
            let (len, payload) = (1500, 1448);
            let data = Header {
                len,
                payload,
                ..ack
            };
            let packet = if number % 2 == 0 { ack } else { data };
            qdisc.enqueue(Instant::from_nanos(1), packet, &mut Discard);
        }
        let mut shown = 0;
        qdisc.visit(&mut |_| {
            shown += 1;
            true
        });
        assert_eq!(shown, qdisc.backlog().packets, "{}", entry.name);
        assert!(shown > 10, "{}: {shown}", entry.name);
    }
}
