//! Examples of every ACK rule of `docs/notes/ack-rules.md`: arriving real frames, and the frames that leave under AF
//! and SAD. `ack_knowledge.rs` tests the same rules with generated histories.

use crate::acks::{ACK, AE, CWR, ECE, Extra, FLOW_RULES, PSH, Path, RULES, Said, URG};
use crate::sent::{Bytes, Frame};
use asymq_core::catalog::{Catalog, Params, Place, Standard, resolve};
use asymq_core::decide::frame::{FlowKey, ack_info, parse};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

struct OnlyFiltered;

impl Sink<Frame> for OnlyFiltered {
    fn dropped(&mut self, _: Instant, _: Frame, reason: Reason) {
        assert_eq!(reason, Reason::AckFiltered);
    }
}

/// Returns the indices of the frames that leave, in order. All frames arrive first, at intervals of 1 ms.
fn survivors(discipline: &str, classifier: &str, frames: &[Vec<u8>]) -> Vec<usize> {
    let place = Place {
        link: "1mbit".parse().unwrap(),
        reverse: Some("10mbit".parse().unwrap()),
        limit: Limit::Packets(1000),
    };
    let given = Params::new()
        .with("classifier", classifier)
        .with("max-gap", "10s");
    let config = resolve(&Standard, discipline, &given, &Params::new(), place).unwrap();
    let mut qdisc = Standard.build(&config).unwrap();
    let mut now = Instant::ZERO;
    for (index, bytes) in frames.iter().enumerate() {
        now += Duration::from_millis(1);
        let parsed = parse(bytes, &FlowKey::new([1, 2]));
        let bytes = bytes.clone();
        let bytes = Bytes { index, bytes };
        let frame = Frame::new(now, &parsed, parsed.header.len, bytes);
        qdisc.enqueue(now, frame, &mut OnlyFiltered);
    }
    let mut left = Vec::new();
    while let Dequeue::Packet(frame) = qdisc.dequeue(now, &mut OnlyFiltered) {
        let Bytes { index, bytes } = frame.bytes;
        assert_eq!(bytes, frames[index], "a frame was edited");
        left.push(index);
    }
    left
}

/// One example of a rule.
struct Row {
    rule: &'static str,
    name: &'static str,
    arrivals: Vec<Said>,
    /// Indices of the frames that leave under AF, and under SAD.
    leave: [Vec<usize>; 2],
}

fn row(rule: &'static str, name: &'static str, arrivals: &[Said], leave: &[usize]) -> Row {
    Row {
        rule,
        name,
        arrivals: arrivals.to_vec(),
        leave: [leave.to_vec(), leave.to_vec()],
    }
}

fn plain(ack: u32) -> Said {
    Said {
        port: 5000,
        host: 1,
        seq: 700,
        ack,
        window: 500,
        ..Said::default()
    }
}

fn with(ack: u32, change: impl FnOnce(&mut Said)) -> Said {
    let mut said = plain(ack);
    change(&mut said);
    said
}

fn seq(ack: u32, seq: u32) -> Said {
    with(ack, |said| said.seq = seq)
}

fn window(ack: u32, window: u16) -> Said {
    with(ack, |said| said.window = window)
}

fn flags(ack: u32, flags: u16) -> Said {
    with(ack, |said| said.flags = flags)
}

fn extra(ack: u32, extra: Extra) -> Said {
    with(ack, |said| said.extra = Some(extra))
}

fn stamped(ack: u32, val: u32, ecr: u32) -> Said {
    with(ack, |said| said.timestamps = Some((val, ecr)))
}

fn sack(ack: u32, ranges: &[(u32, u32)]) -> Said {
    with_ranges(plain(ack), ranges)
}

fn with_ranges(mut said: Said, ranges: &[(u32, u32)]) -> Said {
    said.sack[..ranges.len()].copy_from_slice(ranges);
    said.sacks = ranges.len();
    said
}

fn accecn(ack: u32, kind: u8, counters: &[u32]) -> Said {
    with(ack, |said| {
        let mut all = [0; 3];
        all[..counters.len()].copy_from_slice(counters);
        said.accecn = Some((kind, counters.len(), all));
    })
}

/// The `n`-th ACK of a receiver that acknowledges segments of 1460 bytes. Segments in `marked` arrived with CE, all
/// others with ECT(1). ACE starts at 5; the option's counters start at their initial values.
fn counting(n: u32, marked: &[u32]) -> Said {
    let marks = marked.iter().filter(|at| **at <= n).count() as u32;
    let mut said = accecn(n * 1460, 174, &[1 + (n - marks) * 1460, marks * 1460, 1]);
    let ace = (5 + marks) % 8;
    for (bit, flag) in [(4, AE), (2, CWR), (1, ECE)] {
        said.flags |= if ace & bit > 0 { flag } else { 0 };
    }
    said
}

fn path(ack: u32, change: impl FnOnce(&mut Path)) -> Said {
    with(ack, |said| change(&mut said.path))
}

/// Adds rows with two ACKs in both orders. Neither ACK may replace the other.
fn both_ways(rows: &mut Vec<Row>, rule: &'static str, name: &'static str, odd: fn(u32) -> Said) {
    rows.push(row(rule, name, &[odd(1000), plain(2000)], &[0, 1]));
    rows.push(row(rule, name, &[plain(1000), odd(2000)], &[0, 1]));
}

/// Adds a row in which only the first two ACKs report a range, and the sender may reject the first ACK.
fn untaken(rows: &mut Vec<Row>, name: &'static str, first: Said) {
    let sacked = |newest| {
        sack(
            1000,
            &[(newest, newest + 500), (newest - 1000, newest - 500)],
        )
    };
    let first = with_ranges(first, &[(5000, 5500)]);
    rows.push(row(
        "sack",
        name,
        &[first, sacked(6000), sacked(7000)],
        &[0, 1, 2],
    ));
}

fn rows() -> Vec<Row> {
    let mut rows = vec![
        row(
            "number",
            "the last of a run stays",
            &[plain(1000), plain(2000), plain(3000)],
            &[2],
        ),
        row(
            "number",
            "numbers wrap",
            &[plain(u32::MAX - 999), plain(u32::MAX), plain(500)],
            &[2],
        ),
        row(
            "number",
            "an overtaken ACK",
            &[plain(2000), plain(1000)],
            &[0, 1],
        ),
        Row {
            rule: "number",
            name: "AF's survivor joins the tail, SAD's keeps the slot",
            arrivals: vec![plain(1000), with(7, |said| said.port = 6000), plain(2000)],
            leave: [vec![1, 2], vec![2, 1]],
        },
        row(
            "pure",
            "data carries the newer number",
            &[
                plain(1000),
                with(2000, |said| said.payload = 5),
                plain(3000),
            ],
            &[0, 1, 2],
        ),
        row(
            "window",
            "a window update",
            &[plain(1000), window(1000, 900)],
            &[0, 1],
        ),
        row(
            "window",
            "a window that shrinks",
            &[window(1000, 900), plain(2000)],
            &[0, 1],
        ),
        row(
            "window",
            "a window that grows",
            &[plain(1000), window(2000, 900)],
            &[1],
        ),
        row(
            "window",
            "a window that closes",
            &[plain(1000), window(2000, 0)],
            &[0, 1],
        ),
        row("urgency", "PSH", &[flags(1000, PSH), plain(2000)], &[0, 1]),
        row("urgency", "URG", &[flags(1000, URG), plain(2000)], &[0, 1]),
        row(
            "sequence",
            "a keepalive probe among ACKs",
            &[plain(1000), seq(1000, 699), plain(2000)],
            &[0, 1, 2],
        ),
        row(
            "sequence",
            "a keepalive probe that acknowledges more",
            &[plain(1000), seq(2000, 699)],
            &[0, 1],
        ),
        row(
            "sequence",
            "the first that is seen is a probe",
            &[seq(1000, 699), plain(2000)],
            &[0, 1],
        ),
        row(
            "sequence",
            "a segment was sent between",
            &[plain(1000), seq(2000, 700 + 1448), seq(3000, 700 + 1448)],
            &[0, 2],
        ),
        row(
            "sequence",
            "an ACK from before it",
            &[seq(1000, 700 + 1448), plain(2000)],
            &[0, 1],
        ),
        row(
            "signature",
            "a signed run",
            &[extra(1000, Extra::Md5), extra(2000, Extra::Md5)],
            &[1],
        ),
        row(
            "timestamps",
            "that go back",
            &[
                stamped(1000, 10, 10),
                stamped(2000, 9, 10),
                stamped(3000, 11, 8),
            ],
            &[0, 1, 2],
        ),
        row(
            "timestamps",
            "that go on across the wrap",
            &[stamped(1000, u32::MAX, 10), stamped(2000, 3, 10)],
            &[1],
        ),
        row(
            "timestamps",
            "that vanish",
            &[stamped(1000, 1, 1), plain(2000)],
            &[0, 1],
        ),
        row(
            "sack",
            "ranges that the later ACK lacks (sch_cake 8e41bf0)",
            &[sack(1000, &[(5000, 6000)]), sack(1000, &[(8000, 9000)])],
            &[0, 1],
        ),
        row(
            "sack",
            "ranges that the later ACK has",
            &[
                sack(1000, &[(5000, 6000)]),
                sack(1000, &[(5000, 7000)]),
                sack(1000, &[(8000, 9000), (5000, 7000)]),
            ],
            &[2],
        ),
        row(
            "sack",
            "ranges below a later number (sch_cake 9a5d593)",
            &[sack(1000, &[(5000, 6000)]), plain(6000)],
            &[1],
        ),
        row(
            "sack",
            "ranges above a later number",
            &[sack(1000, &[(5000, 6000)]), plain(5999)],
            &[0, 1],
        ),
        row(
            "sack",
            "a range that ends before it starts",
            &[sack(1000, &[(6000, 5000)]), plain(7000)],
            &[0, 1],
        ),
        row(
            "sack",
            "ranges of which three fit: what the ACK before said needs no other",
            &[
                sack(1000, &[(3000, 4000)]),
                sack(1000, &[(5000, 6000), (3000, 4000)]),
                sack(1000, &[(7000, 8000), (5000, 6000), (3000, 4000)]),
                sack(1000, &[(9000, 9500), (7000, 8000), (5000, 6000)]),
                sack(1000, &[(10000, 10500), (9000, 9500), (7000, 8000)]),
                sack(1000, &[(11000, 11500), (10000, 10500), (9000, 9500)]),
                sack(1000, &[(12000, 12500), (11000, 11500), (10000, 10500)]),
            ],
            &[2, 5, 6],
        ),
        row(
            "sack",
            "ranges that the ACK before has, but the sender refuses it",
            &[
                stamped(1000, 10, 10),
                with_ranges(stamped(1000, 9, 10), &[(5000, 6000), (3000, 4000)]),
                with_ranges(stamped(1000, 11, 10), &[(7000, 8000), (5000, 6000)]),
                with_ranges(stamped(1000, 12, 10), &[(9000, 9500), (7000, 8000)]),
            ],
            &[0, 1, 2, 3],
        ),
        row(
            "dsack",
            "below the number (sch_cake 28b4560)",
            &[sack(3000, &[(1000, 2000)]), plain(9000)],
            &[0, 1],
        ),
        row(
            "dsack",
            "inside the second range",
            &[sack(1000, &[(5000, 6000), (4000, 7000)]), plain(9000)],
            &[0, 1],
        ),
        row(
            "dsack",
            "of a tail loss probe that was not needed (RFC 8985, sec. 7.4.2)",
            &[plain(9000), sack(9000, &[(8000, 9000)]), plain(10_000)],
            &[0, 1, 2],
        ),
        row(
            "dsack",
            "is not more at an equal number",
            &[
                sack(1000, &[(5000, 6000)]),
                sack(1000, &[(500, 900), (5000, 6000)]),
            ],
            &[0, 1],
        ),
        row(
            "ecn-echo",
            "every edge (sch_cake f2ea091)",
            &[
                plain(1000),
                flags(2000, ECE),
                flags(3000, ECE),
                flags(4000, ECE),
                plain(5000),
                plain(6000),
            ],
            &[0, 3, 5],
        ),
        row("ecn-echo", "CWR", &[flags(1000, CWR), plain(2000)], &[0, 1]),
        row(
            "ecn-echo",
            "a step of ACE",
            &[flags(1000, AE | ECE), flags(2000, AE | CWR)],
            &[0, 1],
        ),
        row(
            "ecn-echo",
            "steps of ACE beside the option, up to its cycle",
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map(|n| {
                let mut said = counting(n, &[5]);
                let ace = (5 + 2 * n.saturating_sub(4)) % 8;
                said.flags = (ace as u16) << 6;
                said
            }),
            &[0, 1, 2, 4, 7, 10, 12],
        ),
        row(
            "accecn",
            "counters that go on, after three by which the sender's state is known",
            &[1, 2, 3, 4, 5, 6].map(|n| accecn(n * 1000, 172, &[n, 2, 3])),
            &[0, 1, 2, 5],
        ),
        row(
            "accecn",
            "counters that wrap",
            &[1, 2, 3, 4, 5, 6]
                .map(|n| accecn(n * 1000, 174, &[(0x00ff_ffff - 4 + n) & 0x00ff_ffff])),
            &[0, 1, 2, 5],
        ),
        row(
            "accecn",
            "two counters that change in turns leave the sender in another state",
            &[(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)]
                .map(|(n, ce)| accecn(n * 1000, 172, &[n, ce, 3])),
            &[0, 1, 2, 3, 5],
        ),
        row(
            "accecn",
            "a counter that goes back",
            &[accecn(1000, 172, &[1, 2, 3]), accecn(2000, 172, &[1, 1, 3])],
            &[0, 1],
        ),
        row(
            "accecn",
            "fewer counters",
            &[accecn(1000, 172, &[1, 2, 3]), accecn(2000, 172, &[1, 2])],
            &[0, 1],
        ),
        row(
            "accecn",
            "the other order",
            &[
                accecn(1000, 172, &[1, 2, 3]),
                accecn(2000, 174, &[1, 2, 3]),
                accecn(3000, 172, &[1, 2, 3]),
            ],
            &[0, 1, 2],
        ),
        row(
            "accecn",
            "no option",
            &[
                accecn(1000, 172, &[1]),
                plain(2000),
                accecn(3000, 172, &[2]),
            ],
            &[0, 1, 2],
        ),
        row(
            "duplicates",
            "the first and three",
            &[
                plain(1000),
                plain(1000),
                plain(1000),
                plain(1000),
                plain(1000),
                plain(9000),
            ],
            &[0, 1, 2, 3, 5],
        ),
        row(
            "duplicates",
            "a probe does not count",
            &[
                plain(1000),
                plain(1000),
                seq(1000, 699),
                plain(1000),
                plain(1000),
                plain(9000),
            ],
            &[0, 1, 2, 3, 4, 5],
        ),
        row(
            "duplicates",
            "an overtaken ACK does not end the run",
            &[
                plain(1000),
                plain(1000),
                plain(800),
                plain(1000),
                plain(9000),
            ],
            &[0, 1, 2, 3, 4],
        ),
    ];
    both_ways(
        &mut rows,
        "checksum",
        "a bit of the segment is wrong",
        |ack| with(ack, |said| said.flipped = Some(40)),
    );
    for (name, first) in [
        ("a range that only a probe has", seq(1000, 699)),
        ("one that only a signed ACK has", extra(1000, Extra::Md5)),
        (
            "one that only an unknown option's ACK has",
            extra(1000, Extra::Unknown),
        ),
        (
            "one that only an ACK of another path has",
            path(1000, |path| path.traffic_class = 8),
        ),
    ] {
        untaken(&mut rows, name, first);
    }
    both_ways(&mut rows, "checksum", "the IPv4 header's is wrong", |ack| {
        with(ack, |said| said.ip_checksum_wrong = true)
    });
    both_ways(&mut rows, "ip-options", "IPv4 options", |ack| {
        path(ack, |path| path.ip_options = true)
    });
    both_ways(&mut rows, "signature", "MD5", |ack| extra(ack, Extra::Md5));
    both_ways(&mut rows, "options", "MPTCP", |ack| {
        extra(ack, Extra::Mptcp)
    });
    both_ways(&mut rows, "options", "TCP-AO", |ack| {
        extra(ack, Extra::TcpAo)
    });
    both_ways(&mut rows, "options", "an unknown option", |ack| {
        extra(ack, Extra::Unknown)
    });
    both_ways(
        &mut rows,
        "options",
        "a length that lies (sch_cake d9e1398)",
        |ack| extra(ack, Extra::LyingLength),
    );
    for (name, odd) in [
        (
            "the first reserved bit",
            (|ack| flags(ack, 0x200)) as fn(u32) -> Said,
        ),
        ("the second", |ack| flags(ack, 0x400)),
        ("the third", |ack| flags(ack, 0x800)),
    ] {
        both_ways(&mut rows, "reserved", name, odd);
    }
    for (name, odd) in [
        (
            "source MAC",
            (|ack| path(ack, |path| path.source_mac = 9)) as fn(u32) -> Said,
        ),
        ("destination MAC", |ack| {
            path(ack, |path| path.destination_mac = 9)
        }),
        ("DSCP", |ack| path(ack, |path| path.traffic_class = 0xb8)),
        ("a CE mark", |ack| path(ack, |path| path.traffic_class = 3)),
    ] {
        both_ways(&mut rows, "context", name, odd);
    }
    let tagged = |ack, tag| path(ack, |path| path.vlan = Some(tag));
    let hop_by_hop = |ack, options| path(ack, |path| (path.v6, path.ip_options) = (true, options));
    let tunnel = |ack, host| path(ack, |path| (path.v6, path.tunnel) = (true, Some(host)));
    let inside = |ack, class| {
        path(ack, |path| {
            (path.tunnel, path.traffic_class, path.outer_class) = (Some(1), class, class);
        })
    };
    let outer_options = |ack, v6, options| {
        path(ack, |path| {
            (path.v6, path.tunnel, path.outer_options) = (v6, Some(1), options);
        })
    };
    let dslite = |ack, wrong: bool| {
        with(ack, |said| {
            (said.path.tunnel, said.ip_checksum_wrong) = (Some(1), wrong)
        })
    };
    rows.extend([
        row(
            "context",
            "VLAN priority",
            &[tagged(1000, 5), tagged(2000, 0x6005), tagged(3000, 0x6005)],
            &[0, 2],
        ),
        row(
            "context",
            "another tunnel",
            &[tunnel(1000, 1), tunnel(2000, 2), tunnel(3000, 2)],
            &[0, 2],
        ),
        row(
            "context",
            "a CE mark inside a tunnel alone",
            &[inside(1000, 0), inside(2000, 3), inside(3000, 3)],
            &[0, 2],
        ),
        row(
            "ip-options",
            "IPv4 options around a tunnel",
            &[
                outer_options(1000, true, true),
                outer_options(2000, true, true),
                outer_options(3000, true, false),
            ],
            &[0, 1, 2],
        ),
        row(
            "ip-options",
            "IPv6 options around a tunnel",
            &[
                outer_options(1000, false, true),
                outer_options(2000, false, true),
                outer_options(3000, false, false),
            ],
            &[0, 1, 2],
        ),
        row(
            "context",
            "PPPoE lengths may differ",
            &[
                path(1000, |path| path.pppoe = true),
                with(2000, |said| {
                    said.path.pppoe = true;
                    said.timestamps = Some((1, 1));
                }),
            ],
            &[1],
        ),
        row(
            "ip-options",
            "IPv6 hop-by-hop options",
            &[
                hop_by_hop(1000, true),
                hop_by_hop(2000, true),
                hop_by_hop(3000, false),
            ],
            &[0, 1, 2],
        ),
        row(
            "checksum",
            "in a 4in6 tunnel",
            &[
                dslite(1000, false),
                dslite(2000, true),
                dslite(3000, false),
                dslite(4000, false),
                dslite(5000, false),
            ],
            &[0, 1, 2, 4],
        ),
    ]);
    rows.extend(bounds());
    rows.extend(after_a_probe());
    rows
}

/// ACKs to a sender that may have rejected the previous ACK as a probe: the sequence number advances after that ACK.
fn after_a_probe() -> [Row; 4] {
    let probe_of = |ack, window| Said {
        window,
        ..seq(ack, 799)
    };
    let segments = |count: u32| flags(count * 1460, AE | ECE);
    let corrupt = Said {
        flipped: Some(0),
        ..segments(2)
    };
    let probe = Said {
        seq: 699,
        ..segments(4)
    };
    let step = |said| Said { seq: 800, ..said };
    let marked = |n| counting(n, &[5]);
    let probe_with_option = Said {
        seq: 799,
        ..marked(5)
    };
    let without = |n| Said {
        accecn: None,
        ..step(marked(n))
    };
    [
        row(
            "ace",
            "eight segments, counted from what a probe cannot say",
            &[corrupt, probe, segments(6), segments(8)],
            &[0, 1, 2, 3],
        ),
        row(
            "ace",
            "a probe does not tell to which counter bytes are attributed",
            &[
                marked(1),
                marked(2),
                marked(3),
                probe_with_option,
                step(marked(6)),
                without(10),
                without(14),
            ],
            &[0, 1, 2, 3, 4, 5, 6],
        ),
        row(
            "duplicates",
            "a probe's window ends no run",
            &[
                plain(1000),
                plain(1000),
                probe_of(1000, 600),
                step(plain(1000)),
                step(plain(2000)),
            ],
            &[0, 1, 2, 3, 4],
        ),
        row(
            "duplicates",
            "a probe's number ends no run",
            &[
                plain(1000),
                plain(1000),
                probe_of(2000, 500),
                step(plain(1000)),
                step(plain(3000)),
            ],
            &[0, 1, 2, 3, 4],
        ),
    ]
}

/// Examples of bounds that only a series of ACKs reaches.
fn bounds() -> [Row; 8] {
    let run = |said: &dyn Fn(u32) -> Said, count| (1..=count).map(said).collect::<Vec<_>>();
    // ACKs of a receiver that lacks the fourth and the fifth segment; the last segment is marked.
    let lacking = |n: u32, number: u32| {
        let said = Said {
            ack: n.min(number) * 1460,
            ..counting(n, &[24])
        };
        match n > number {
            true => with_ranges(said, &[(5 * 1460, (5 + n - number) * 1460)]),
            false => said,
        }
    };
    let left = |numbers: Vec<usize>| [numbers.clone(), numbers];
    [
        Row {
            rule: "stretch",
            name: "64 segments acknowledged",
            arrivals: run(&|n| plain(n * 1460), 150),
            leave: left(vec![64, 128, 149]),
        },
        Row {
            rule: "stretch",
            name: "64 segments SACKed at one number",
            arrivals: run(&|n| sack(1000, &[(9000, 9000 + n * 1460)]), 150),
            leave: left(vec![64, 128, 149]),
        },
        Row {
            rule: "ace",
            name: "six segments where AE shows AccECN",
            arrivals: run(&|n| flags(n * 1460, AE | ECE), 14),
            leave: left(vec![0, 6, 12, 13]),
        },
        Row {
            rule: "ace",
            name: "six segments of ACKs that are ECN-capable",
            arrivals: run(&|n| path(n * 1460, |path| path.traffic_class = 2), 14),
            leave: left(vec![0, 6, 12, 13]),
        },
        Row {
            rule: "ace",
            name: "no such bound where the option tells of no marks",
            arrivals: run(&|n| counting(n, &[]), 80),
            leave: left(vec![0, 1, 2, 66, 79]),
        },
        Row {
            rule: "ace",
            name: "three marks beyond six segments",
            arrivals: run(&|n| counting(n, &[10, 11, 12, 13]), 60),
            leave: left(vec![0, 1, 2, 11, 59]),
        },
        Row {
            rule: "ace",
            name: "a mark among those SACKed at one number, whose bytes Linux need not count",
            arrivals: run(&|n| lacking(n, 3), 24),
            leave: left(vec![0, 1, 2, 22, 23]),
        },
        Row {
            rule: "ace",
            name: "a mark among those SACKed beside a step of the number, by which Linux counts bytes",
            arrivals: run(&|n| lacking(n, if n < 24 { 3 } else { 4 }), 24),
            leave: left(vec![0, 1, 2, 22, 23]),
        },
    ]
}

/// Runs all rows of a rule, and reports all failures.
fn check(rule: &str) {
    let mut wrong = Vec::new();
    for row in rows().iter().filter(|row| row.rule == rule) {
        let frames: Vec<_> = row.arrivals.iter().map(Said::frame).collect();
        for (discipline, leave) in ["af", "sad"].into_iter().zip(&row.leave) {
            // Data joins the ACK queue too, so that the filter is tested with data.
            let left = survivors(discipline, "size<=1500", &frames);
            if left != *leave {
                wrong.push(format!(
                    "{discipline}, {}: {left:?} leave, not {leave:?}",
                    row.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

/// A test for each rule, with its name.
macro_rules! rows_leave_what_the_rule_says {
    ($($test:ident $rule:literal,)*) => {
        mod rows_leave_what_the_rule_says {
            $(#[test] fn $test() { super::check($rule); })*
        }
        const TESTED: &[&str] = &[$($rule),*];
    };
}

rows_leave_what_the_rule_says! {
    pure "pure",
    checksum "checksum",
    context "context",
    ip_options "ip-options",
    number "number",
    sequence "sequence",
    window "window",
    urgency "urgency",
    reserved "reserved",
    options "options",
    signature "signature",
    timestamps "timestamps",
    dsack "dsack",
    ecn_echo "ecn-echo",
    accecn "accecn",
    sack "sack",
    duplicates "duplicates",
    stretch "stretch",
    ace "ace",
}

#[test]
fn every_rule_has_a_row_and_a_line_in_both_documents() {
    let documents = [
        include_str!("../../../docs/notes/ack-rules.md"),
        include_str!("../src/decide/ack.rs"),
    ];
    let rows = rows();
    let rules = RULES.iter().map(|rule| (rule.name, rule.source));
    let rules: Vec<_> = rules.chain(FLOW_RULES.iter().copied()).collect();
    assert!(rules.iter().map(|(name, _)| name).eq(TESTED));
    for (name, source) in &rules {
        assert!(rows.iter().any(|row| row.rule == *name), "no row of {name}");
        for document in documents {
            let line = document
                .lines()
                .find(|line| line.contains(&format!("| {name} |")))
                .unwrap_or_else(|| panic!("{name} is in no table"));
            assert!(line.contains(source), "{name} names other sources: {line}");
        }
    }
    for row in &rows {
        let known = rules.iter().any(|(name, _)| *name == row.rule);
        assert!(known, "{} is no rule", row.rule);
    }
}

/// A short control segment that `size<=40` puts into the ACK queue is not an ACK.
#[test]
fn short_control_segments_in_the_ack_queue_are_not_filtered() {
    const SYN: u16 = 0x02;
    const RST: u16 = 0x04;
    const FIN: u16 = 0x01;
    // TCP Fast Open: data in a SYN, which the peer's SYN acknowledges.
    for (flag, payload) in [(SYN, 0), (SYN, 500), (RST, 0), (FIN, 0)] {
        let control = |ack| with(ack, |said| (said.flags, said.payload) = (flag, payload));
        let frames = [control(1000), plain(2000), plain(3000), control(4000)];
        let frames: Vec<_> = frames.iter().map(Said::frame).collect();
        for discipline in ["af", "sad"] {
            let mut left = survivors(discipline, "size<=40", &frames);
            // Segments with data wait in the data queue.
            if payload > 0 {
                left.sort_unstable();
            }
            assert_eq!(left, [0, 2, 3], "{discipline}, {flag:#x}, {payload}");
        }
    }
}

/// The parser returns the values from which a frame was built.
#[test]
fn an_ack_parses_as_written() {
    let said = with(77_000, |said| {
        said.seq = 0xfedc_ba98;
        said.window = 123;
        said.flags = ECE;
        said.timestamps = Some((7, 8));
        said.accecn = Some((174, 1, [0x00ab_cdef, 0, 0]));
    });
    let frame = said.frame();
    let info = ack_info(&frame, parse(&frame, &FlowKey::new([1, 2])).transport).unwrap();
    assert_eq!(
        (info.seq, info.ack, info.window),
        (said.seq, said.ack, said.window)
    );
    assert_eq!(info.flags, ACK | ECE);
    assert_eq!(info.timestamps, Some((7, 8)));
    let option = info.accecn.unwrap();
    assert_eq!((option.fields, option.counters), (1, [0x00ab_cdef, 0, 0]));
    assert!(!info.keep && !info.signed);
}

/// A flipped bit anywhere in an ACK makes its checksum wrong, or changes its parsed fields.
#[test]
fn a_flipped_bit_of_a_segment_or_ipv4_header_is_detected() {
    for path in [
        Path::default(),
        Path {
            v6: true,
            ..Path::default()
        },
        Path {
            v6: true,
            tunnel: Some(1),
            ..Path::default()
        },
        Path {
            tunnel: Some(1),
            ..Path::default()
        },
    ] {
        let whole = with(1000, |said| {
            said.path = path;
            said.timestamps = Some((7, 8));
        })
        .frame();
        let read = |frame: &[u8]| ack_info(frame, parse(frame, &FlowKey::new([1, 2])).transport);
        assert!(read(&whole).is_some());
        let transport = parse(&whole, &FlowKey::new([1, 2])).transport;
        for bit in usize::from(transport) * 8..whole.len() * 8 {
            let mut frame = whole.clone();
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&frame), None, "bit {bit} of {path:?}");
        }
    }
}
