//! Every discipline obeys every law, with random parts, parameters and traffic.

use crate::sent::Sent;
use asymq_core::catalog::{Catalog, Config, Role, Standard};
use asymq_core::packet::{Flow, Header, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::{Discard, Instant};
use asymq_laws::{Step, golden, obey, strategy};
use proptest::prelude::*;
use std::panic::catch_unwind;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_default_discipline_keeps_every_law(steps in strategy::steps()) {
        for entry in Standard.of_role(Role::Qdisc) {
            let config = golden::config(&Standard, entry.name).expect("a discipline");
            let kept = catch_unwind(|| obey(&Standard, &config, &steps));
            prop_assert!(kept.is_ok(), "{} breaks the law above", entry.name);
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

    #[test]
    fn packets_past_an_idle_discipline_that_allows_it_change_nothing(steps in strategy::steps()) {
        let mut allow = 0;
        for entry in Standard.of_role(Role::Qdisc) {
            let config = golden::config(&Standard, entry.name).expect("a discipline");
            if Standard.build::<Sent>(&config).expect("it builds").allows_bypass() {
                allow += 1;
                let [seen, passed] = [false, true].map(|bypass| fates(&config, &steps, bypass));
                prop_assert_eq!(seen, passed, "{}", entry.name);
            }
        }
        prop_assert!(allow > 0);
    }
}

/// Packet numbers in the order in which they left, each with the reason if it was dropped.
#[derive(Default)]
struct Fates(Vec<(u32, Option<Reason>)>);

impl Sink<Sent> for Fates {
    fn dropped(&mut self, _now: Instant, packet: Sent, reason: Reason) {
        self.0.push((packet.header.note, Some(reason)));
    }
}

/// Returns the fates of packets. With `bypass`, a packet that finds the queue empty does not pass the discipline.
fn fates(config: &Config, steps: &[Step], bypass: bool) -> Vec<(u32, Option<Reason>)> {
    let mut qdisc = Standard.build::<Sent>(config).expect("it builds");
    let (mut fates, mut now) = (Fates::default(), Instant::ZERO);
    let mut number = 0;
    for step in steps {
        let mut is_idle = false;
        match *step {
            Step::Enqueue(header) => {
                number += 1;
                let packet = Header {
                    note: number,
                    arrival: now,
                    ..header
                };
                is_idle = qdisc.backlog().packets == 0;
                if is_idle && bypass {
                    fates.0.push((number, None));
                    continue;
                }
                qdisc.enqueue(now, packet.into(), &mut fates);
            }
            Step::Wait(time) => now += time,
            Step::Observe(header) => qdisc.observe(now, &header),
            Step::Dequeue | Step::DrainAll => {}
        }
        if (is_idle || matches!(step, Step::Dequeue))
            && let Dequeue::Packet(packet) = qdisc.dequeue(now, &mut fates)
        {
            fates.0.push((packet.header.note, None));
        }
    }
    fates.0
}

#[test]
fn every_discipline_shows_all_packets_that_wait() {
    for entry in Standard.of_role(Role::Qdisc) {
        let config = golden::config(&Standard, entry.name).unwrap();
        let mut qdisc = Standard.build::<Sent>(&config).unwrap();
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
            qdisc.enqueue(Instant::from_nanos(1), packet.into(), &mut Discard);
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
