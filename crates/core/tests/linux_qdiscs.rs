//! `codel`, `fq_codel`, `cake` and `dualpi2` make the same decisions as Linux's qdiscs, packet by packet and to the
//! nanosecond. `scripts/linux-qdisc/run` compiles Linux's source for user space, and runs these tests.

use crate::sent::Sent;
use asymq_core::catalog::{Catalog, Params, Place, Standard, resolve};
use asymq_core::decide::ack::{AckInfo, SackRange};
use asymq_core::decide::random::SplitMix64;
use asymq_core::packet::{Flow, Header, Network, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Instant, Limit, Rate};
use asymq_core::{Ecn, Qdisc};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The traffic of a trace.
#[derive(Clone, Copy)]
struct Load {
    seed: u64,
    flows: u64,
    /// Difference between two flow numbers. A suitable value makes flows collide in their sets.
    stride: u64,
    hosts: u64,
    packets: u32,
    /// Mean time between packets in nanoseconds.
    gap: u64,
    /// Percentages of packets: ACKs, ECT(0), ECT(1) including 1 % CE, and classes other than best effort.
    acks: u64,
    ecn: u64,
    scalable: u64,
    dscp: u64,
}

const USUAL: Load = Load {
    seed: 1,
    flows: 12,
    stride: 1,
    hosts: 3,
    packets: 30_000,
    gap: 4_000_000,
    acks: 40,
    ecn: 30,
    scalable: 0,
    dscp: 0,
};

fn trace(load: Load) -> Vec<Sent> {
    let mut random = SplitMix64::new(load.seed);
    let mut below = |bound: u64| random.next() % bound.max(1);
    let mut now = 10_000_000_000u64;
    let mut numbers = vec![1u32; load.flows as usize];
    (0..load.packets)
        .map(|number| {
            // Bursts, pauses, and pauses long enough for learnt values to decay.
            now += match below(2000) {
                0 => below(3_000_000_000),
                1..600 => 0,
                _ => below(load.gap * 20 / 7),
            };
            let index = below(load.flows);
            let flow = 1 + index * load.stride;
            let is_ack = below(100) < load.acks;
            let len = if is_ack {
                52 + 12 * below(2) as u32
            } else {
                64 + below(1437) as u32
            };
            let ecn = match below(100).checked_sub(load.ecn) {
                None => Ecn::Ect0,
                Some(0) if load.scalable > 0 => Ecn::Ce,
                Some(beyond) if beyond < load.scalable => Ecn::Ect1,
                Some(_) => Ecn::NotEct,
            };
            let dscp = if below(100) < load.dscp {
                below(64) as u8
            } else {
                0
            };
            let ack = &mut numbers[index as usize];
            // Some ACKs repeat a number; some have SACK.
            if below(8) > 0 {
                *ack = ack.wrapping_add(1460 * (1 + below(2) as u32));
            }
            let sacks = is_ack && below(6) == 0;
            let start = ack.wrapping_add(1460 * (1 + below(2) as u32));
            let range = SackRange {
                start,
                end: start.wrapping_add(1460 * (1 + below(2) as u32)),
            };
            let echo = if is_ack && below(10) == 0 {
                flags::ECE
            } else {
                0
            };
            let header = Header {
                arrival: Instant::from_nanos(now),
                flow: Flow(flow),
                len,
                ip_len: len,
                payload: if is_ack { 0 } else { len - 52 },
                ack: *ack,
                flags: if is_ack { flags::ACK | echo } else { 0 },
                protocol: if is_ack {
                    Protocol::Tcp
                } else {
                    Protocol::NonTcp
                },
                ecn,
                note: 0,
            };
            let mut info = AckInfo {
                ack: *ack,
                window: 500,
                flags: header.flags,
                timestamps: is_ack.then_some((1 + (now / 1_000_000) as u32, 1)),
                ..AckInfo::default()
            };
            if sacks {
                info.sack[0] = range;
                info.sack_ranges = 1;
            }
            Sent {
                number,
                header,
                // Each flow has its own hosts, as a conversation has.
                network: Network {
                    hosts: [1 + index % load.hosts, 100 + index / 2],
                    dscp,
                },
                ack: Some(info),
            }
        })
        .collect()
}

#[derive(Default)]
struct Events(String);

impl Events {
    fn add(&mut self, now: Instant, how: &str, packet: &Sent) {
        let ce = if packet.header.ecn == Ecn::Ce {
            " ce"
        } else {
            ""
        };
        writeln!(self.0, "{} {how} #{}{ce}", now.as_nanos(), packet.number).unwrap();
    }
}

impl Sink<Sent> for Events {
    fn dropped(&mut self, now: Instant, packet: Sent, reason: Reason) {
        self.add(now, reason.name(), &packet);
    }
}

fn ours(qdisc: &str, given: &Params, link: Rate, trace: &[Sent]) -> String {
    let place = Place {
        link,
        reverse: Some(link),
        limit: Limit::Packets(1000),
    };
    let config = resolve(&Standard, qdisc, given, &Params::new(), place).unwrap();
    let mut qdisc = Standard.build::<Sent>(&config).unwrap();
    let mut events = Events::default();
    let mut free = Instant::ZERO;
    let mut serve = |qdisc: &mut dyn Qdisc<Sent>, events: &mut Events, until: Instant| {
        while qdisc.backlog().packets > 0 && free <= until {
            let Dequeue::Packet(packet) = qdisc.dequeue(free, events) else {
                break;
            };
            let now = free;
            free += link.tx_time(packet.header.len);
            events.add(now, "sent", &packet);
        }
        if qdisc.backlog().packets == 0 {
            free = free.max(until);
        }
    };
    for packet in trace {
        let now = packet.header.arrival;
        serve(&mut *qdisc, &mut events, now);
        qdisc.enqueue(now, *packet, &mut events);
    }
    serve(&mut *qdisc, &mut events, Instant::MAX);
    events.0
}

fn linux(qdisc: &str, settings: &str, link: Rate, trace: &[Sent]) -> String {
    let folder = std::env::var("ASYMQ_LINUX_QDISCS").expect("run scripts/linux-qdisc/run");
    let mut input = format!("link={} {settings}\n", link.bits_per_sec());
    for Sent {
        header,
        network,
        ack,
        ..
    } in trace
    {
        let kind = if header.is_pure_ack() { 'a' } else { 'd' };
        let tos = u32::from(network.dscp) << 2 | header.ecn as u32;
        let [source, destination] = network.hosts;
        let ack = ack.expect("facts of an ACK");
        let range = ack.ranges().first().copied().unwrap_or_default();
        writeln!(
            input,
            "{} {} {} {source} {destination} {tos} {kind} {} {} {} {} {}",
            header.arrival.as_nanos(),
            header.flow.0,
            header.len,
            ack.ack,
            header.flags,
            ack.timestamps.map_or(0, |(value, _)| value),
            range.start,
            range.end,
        )
        .unwrap();
    }
    let mut child = Command::new(format!("{folder}/{qdisc}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{qdisc}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

fn lines_with<'a>(events: &'a str, what: &'a str) -> usize {
    events.lines().filter(|line| line.contains(what)).count()
}

/// Checks that both implementations process a trace equally. All of `reasons` must occur, so that
/// the trace tests enough.
#[track_caller]
fn agree(
    qdisc: &str,
    given: &[(&str, &str)],
    settings: &str,
    link: &str,
    load: Load,
    reasons: &[&str],
) {
    let link: Rate = link.parse().unwrap();
    let packets = trace(load);
    let mut params = Params::new();
    for (name, value) in given {
        params.set(*name, *value);
    }
    let ours = ours(qdisc, &params, link, &packets);
    let program = match settings.contains("memlimit") {
        true => "cake_longest",
        false => qdisc.split('+').next().unwrap(),
    };
    let linux = linux(program, settings, link, &packets);
    let counts: Vec<String> = ["sent", "aqm", "over-limit", "ack-filtered", " ce"]
        .iter()
        .map(|what| format!("{what} {}", lines_with(&linux, what)))
        .collect();
    let differs = ours.lines().zip(linux.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or(linux.lines().count());
    println!(
        "{qdisc} {given:?} {settings} {link}: {}; equal up to line {at}",
        counts.join(", ")
    );
    for reason in reasons {
        assert!(
            lines_with(&linux, reason) > 0,
            "no {reason} in {qdisc} {settings}"
        );
    }
    if let Some(at) = differs {
        let show = |text: &str| {
            text.lines()
                .skip(at.saturating_sub(3))
                .take(8)
                .collect::<Vec<_>>()
                .join("\n")
        };
        panic!(
            "{qdisc} {settings} from line {at}\nours:\n{}\nLinux:\n{}",
            show(&ours),
            show(&linux)
        );
    }
    assert_eq!(ours.lines().count(), linux.lines().count());
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn codel_is_linuxs() {
    for seed in 1..4 {
        let load = Load { seed, ..USUAL };
        agree("codel", &[], "", "1mbit", load, &["aqm"]);
        agree(
            "codel",
            &[("ecn", "true")],
            "ecn=1",
            "1mbit",
            load,
            &["aqm", " ce"],
        );
        let given = [
            ("target", "20ms"),
            ("interval", "30ms"),
            ("data-limit", "25p"),
        ];
        agree(
            "codel",
            &given,
            "target=20000 interval=30000 limit=25",
            "1mbit",
            load,
            &["aqm", "over-limit"],
        );
        agree(
            "codel",
            &[("ce_threshold", "3ms")],
            "ce_threshold=3000",
            "2mbit",
            load,
            &[" ce"],
        );
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn fq_codel_is_linuxs() {
    for seed in 1..4 {
        let load = Load { seed, ..USUAL };
        let many = Load {
            flows: 3000,
            stride: 7,
            ..load
        };
        agree("fq_codel", &[], "ecn=1", "1mbit", load, &["aqm", " ce"]);
        agree("fq_codel", &[("ecn", "false")], "", "1mbit", many, &["aqm"]);
        agree(
            "fq_codel",
            &[("quantum", "300b")],
            "ecn=1 quantum=300",
            "900kbit",
            load,
            &["aqm"],
        );
        agree(
            "fq_codel",
            &[("data-limit", "60p")],
            "ecn=1 limit=60",
            "600kbit",
            load,
            &["over-limit"],
        );
        let given = [("memory_limit", "30000b"), ("drop_batch", "8")];
        agree(
            "fq_codel",
            &given,
            "ecn=1 memory_limit=30000 drop_batch=8",
            "600kbit",
            load,
            &["over-limit"],
        );
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn cake_is_linuxs() {
    for seed in 1..4 {
        let load = Load { seed, ..USUAL };
        agree("cake", &[], "", "1mbit", load, &["aqm", " ce"]);
        agree(
            "cake",
            &[("cake-rtt", "20ms")],
            "rtt=20000",
            "5mbit",
            Load {
                gap: 800_000,
                ..load
            },
            &["aqm"],
        );
        agree(
            "cake",
            &[("memlimit", "15000b")],
            "memlimit=15000",
            "600kbit",
            load,
            &["over-limit", "aqm"],
        );
        // Sixteen sets with eight queues each; forty flows collide in each set.
        let colliding = Load {
            flows: 640,
            stride: 64,
            ..load
        };
        agree("cake", &[], "", "1mbit", colliding, &["aqm"]);
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn cakes_isolation_is_linuxs() {
    let modes = [
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ];
    for (number, mode) in modes.into_iter().enumerate() {
        let load = Load {
            flows: 200,
            hosts: 30,
            ..USUAL
        };
        agree(
            "cake",
            &[("isolation", mode)],
            &format!("isolation={number}"),
            "1mbit",
            load,
            &["aqm"],
        );
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn cakes_tins_are_linuxs() {
    // Numbers of linux/pkt_sched.h.
    let modes = [
        "diffserv3",
        "diffserv4",
        "diffserv8",
        "besteffort",
        "precedence",
    ];
    for (number, mode) in modes.into_iter().enumerate() {
        let load = Load {
            dscp: 60,
            flows: 40,
            ..USUAL
        };
        agree(
            "cake",
            &[("diffserv", mode)],
            &format!("diffserv={number}"),
            "1mbit",
            load,
            &["aqm"],
        );
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn cakes_ack_filter_is_linuxs() {
    for seed in 1..4 {
        let load = Load {
            seed,
            acks: 75,
            ecn: 0,
            ..USUAL
        };
        agree(
            "cake+ack-filter",
            &[],
            "ack-filter=1",
            "400kbit",
            load,
            &["ack-filtered", "aqm"],
        );
        agree(
            "cake+ack-filter-aggressive",
            &[],
            "ack-filter=2",
            "400kbit",
            load,
            &["ack-filtered", "aqm"],
        );
    }
}

#[test]
#[ignore = "scripts/linux-qdisc/run compiles what it compares with"]
fn dualpi2_is_linuxs() {
    for seed in 1..4 {
        for scalable in [0, 5, 40, 70] {
            let load = Load {
                seed,
                scalable,
                ..USUAL
            };
            // From a light load to a constant overload.
            for (link, reasons) in [
                ("20mbit", &["sent"][..]),
                ("1400kbit", &["aqm", " ce"]),
                ("1mbit", &["aqm", " ce"]),
                ("800kbit", &["aqm", " ce"]),
            ] {
                agree("dualpi2", &[], "", link, load, reasons);
            }
        }
        let load = Load {
            seed,
            scalable: 40,
            ..USUAL
        };
        let settings: [(&[_], _); 7] = [
            (&[("any_ect", "true")], "any_ect=1"),
            (&[("drop_on_overload", "false")], "drop_on_overload=0"),
            (&[("drop_enqueue", "true")], "drop_enqueue=1"),
            (&[("classic_protection", "50")], "classic_protection=50"),
            (&[("data-limit", "20p")], "limit=20"),
            (
                &[
                    ("target", "5ms"),
                    ("tupdate", "5ms"),
                    ("step_thresh", "30ms"),
                ],
                "target=5000 tupdate=5000 step_thresh=30000",
            ),
            (
                &[("alpha", "1"), ("beta", "10"), ("coupling_factor", "5")],
                "alpha=256 beta=2560 coupling_factor=5",
            ),
        ];
        for (given, settings) in settings {
            agree("dualpi2", given, settings, "1mbit", load, &["aqm", " ce"]);
        }
    }
}
