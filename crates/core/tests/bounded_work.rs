//! The work per packet, measured in accesses to headers, does not depend on the number of flows.

use crate::sent::{LOOKS, Sent};
use crate::traffic;
use asymq_core::Header;
use asymq_core::catalog::{Catalog, Params, Place, Role, Standard, resolve};
use asymq_core::decide::ack::AckInfo;
use asymq_core::qdisc::Discard;
use asymq_core::units::{Duration, Instant, Limit};
use asymq_laws::golden;

/// A packet that can be filtered.
fn watched(header: Header) -> Sent {
    let info = AckInfo {
        ack: header.ack,
        flags: header.flags,
        ..AckInfo::default()
    };
    Sent {
        network: traffic::network(&header),
        ack: header.is_pure_ack().then_some(info),
        ..Sent::from(header)
    }
}

fn looks<T>(work: impl FnOnce() -> T) -> (u64, T) {
    LOOKS.set(0);
    let result = work();
    (LOOKS.get(), result)
}

/// Maximum accesses for one enqueue and for one dequeue.
fn most_looks(discipline: &str, flows: u64, limit: Limit) -> (u64, u64) {
    let place = Place {
        limit,
        ..golden::place()
    };
    // All packets may be filtered. Queues have one place for each flow.
    let given = Params::new()
        .with("max-stretch", "1073741824b")
        .with("max-gap", "100s");
    let config = resolve(&Standard, discipline, &given, &Params::new(), place).unwrap();
    let mut qdisc = Standard.build(&config).unwrap();
    let (mut enqueue, mut dequeue) = (0, 0);
    let mut now = Instant::from_nanos(1);
    // Fills queues and flow tables, first without departures, then with departures.
    for number in 0..10 * flows {
        now += Duration::from_micros(100);
        let mut header = traffic::packet(now, number, flows);
        // Sometimes a packet is longer than all earlier ones.
        if number % 1_009 == 0 {
            header.len += (number / 1_009) as u32;
        }
        let packet = watched(header);
        let (count, ()) = looks(|| qdisc.enqueue(now, packet, &mut Discard));
        enqueue = enqueue.max(count);
        if number > 4 * flows {
            let (count, _) = looks(|| qdisc.dequeue(now, &mut Discard));
            dequeue = dequeue.max(count);
        }
    }
    (enqueue, dequeue)
}

#[test]
fn one_packet_costs_a_bounded_number_of_looks_for_any_number_of_flows() {
    for entry in Standard.of_role(Role::Qdisc) {
        for limit in [
            Limit::Packets(50_000),
            Limit::Packets(100),
            Limit::Bytes(100_000),
        ] {
            for flows in [10, 10_000] {
                let (enqueue, dequeue) = most_looks(entry.name, flows, limit);
                let what = format!("{}, {flows} flows, {limit}", entry.name);
                println!("{what}: {enqueue} and {dequeue}");
                // A packet of 1500 bytes may evict 28 ACKs of 52 bytes, with two accesses each.
                assert!(enqueue <= 64, "{what}: {enqueue} looks in enqueue");
                // An AQM at the head drops at most 32 packets per dequeue, with four accesses each.
                let resolved = golden::config(&Standard, entry.name).unwrap();
                let most = match resolved.params.text("data-queue").as_deref() {
                    Some("codel" | "fq_codel" | "cake" | "dualpi2") => 140,
                    _ => 12,
                };
                assert!(dequeue <= most, "{what}: {dequeue} looks in dequeue");
            }
        }
    }
}
