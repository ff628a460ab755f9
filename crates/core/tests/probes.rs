//! Control variables. Their names are an interface for tables, plots and metrics; their values change.

use asymq_core::catalog::{BoxedQdisc, Catalog, Standard};
use asymq_core::decide::ack::Unfiltered;
use asymq_core::hold::Egress;
use asymq_core::packet::{Header, Protocol, flags};
use asymq_core::qdisc::Qdisc;
use asymq_core::units::{Duration, Instant};
use asymq_laws::{Numbered, golden};

fn build(name: &str) -> BoxedQdisc<Numbered> {
    let config = golden::config(&Standard, name).unwrap();
    Standard.build(&config).unwrap()
}

fn variables(qdisc: &(impl Qdisc<Numbered> + ?Sized)) -> Vec<(&'static str, f64)> {
    let mut shown = vec![];
    qdisc.probe(&mut |name, reading| shown.push((name, reading.as_f64())));
    shown
}

#[test]
fn each_part_shows_its_variables() {
    let limits = ["ack_limit", "data_limit"];
    let unfiltered = Unfiltered::ALL.map(Unfiltered::variable);
    for (name, own) in [
        ("droptail", &[][..]),
        ("acks-first", &limits),
        ("prr", &["data_share"]),
        ("wrr", &["data_share"]),
        ("cbq", &["data_share"]),
        ("aq", &["data_share", "data_per_ack"]),
        ("vaq", &["credit"]),
        ("red", &["red_average"]),
        ("fq", &["flows"]),
        ("codel", &["codel_target", "codel_count"]),
        ("fq_codel", &["new_flows", "old_flows"]),
        ("cake", &["sparse_flows", "bulk_flows"]),
        ("dualpi2", &["probability"]),
        (
            "asymq",
            &[
                "ack_wait",
                "ack_bytes",
                "downlink",
                "downlink_used",
                "sparse_flows",
                "bulk_flows",
                "bulk_target",
            ],
        ),
        ("sad", &unfiltered),
    ] {
        let shown: Vec<_> = variables(&*build(name))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let known =
            |name: &&str| own.contains(name) || limits.contains(name) || unfiltered.contains(name);
        assert!(shown.iter().all(known), "{name}: {shown:?}");
        assert!(
            own.iter().all(|own| shown.contains(own)),
            "{name}: {shown:?}"
        );
    }
}

#[test]
fn an_egress_shows_the_reverse_path_to_a_discipline_that_observes_it() {
    let link = golden::config(&Standard, "asymq").unwrap().link;
    for (name, asks) in [("asymq", true), ("droptail", false)] {
        let mut egress = Egress::new(build(name), link);
        assert_eq!(egress.observes_reverse(), asks);
        let data = Header {
            len: 1500,
            ip_len: 1500,
            payload: 1460,
            flags: flags::ACK,
            protocol: Protocol::Tcp,
            ..Header::default()
        };
        for millis in 1..2000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            egress.observe(now, &data);
        }
        let downlink = variables(egress.qdisc())
            .into_iter()
            .find(|(name, _)| *name == "downlink");
        match (asks, downlink) {
            // 12 Mbit/s, minus one packet in 200 ms.
            (true, Some((_, rate))) => assert!((11.8e6..=12e6).contains(&rate), "{rate}"),
            (asks, downlink) => assert!(!asks && downlink.is_none(), "{downlink:?}"),
        }
    }
}
