//! Compares every discipline, with its paper's values, with ns-2.35, to which we added the disciplines.
//!
//! `ns2/points.tsv` lists ns-2's means and deviations, and each setting as flags, with the start times of its flows.
//! The mean of ten of our runs must be within a tolerance of ns-2's mean. The tolerance is the largest of three: twice
//! ns-2's deviation; two standard errors of the difference, from the deviation of our runs (ns-2 has only two to ten
//! runs); 0.01. Settings that differ more are in [`ELSEWHERE`] with the reason, or with "unexplained".
//!
//! If that tolerance is wider than [`EFFECT`], the setting is *untested*: the runs of one simulator differ too much.
//! Such settings are in [`UNTESTED`], and never count as agreement.
//!
//! The code of the papers' AR in ns-2 is not known, only its results. We tried several spacings of regenerated ACKs:
//! the latest interval, a smoothed interval, the time of a segment, a smoothed time per ACK, and no spacing. With each,
//! later ACKs waited, overtook the regenerated ACKs, or replaced them. `--regenerate-spacing smoothed` reproduces
//! ns-2's values to 0.003 at all settings with borrowing classes and without loss, and at most others. The settings
//! with AR therefore use it. Our default and the experiments use `--regenerate-spacing paced`.
//!
//! If a class without borrowing was served late, ns-2 later makes up a part of the lost time. The part is between 4 and
//! 36 ms. The bounds follow from ACKs: two follow each data packet of 12.5 ms at 640 kbit/s, but one follows each data
//! packet of 125 ms at 64 kbit/s. We tried 12, 16, 20, 25 and 30 ms. The values from 20 ms on reproduce the settings
//! with single flows (002.N), and 25 ms reproduces most others: `--made-up 25ms`. In our experiments, classes make up
//! one packet.
//!
//! The comparison of all settings takes a few minutes: `cargo test --release -p asymq-sim --test all ns2_disciplines::
//! -- --ignored --nocapture`. `ASYMQ_NS2=vaq` selects the settings whose names contain `vaq`. The quick settings always
//! run.

use crate::flags::scenario;
use asymq_sim::STANDARD;

const POINTS: &str = include_str!("ns2/points.tsv");

/// Number of seeds of our runs.
const RUNS: f64 = 10.0;

/// Minimum tolerance of a mean.
const LEAST: f64 = 0.01;

/// Difference that a comparison must be able to detect: a tenth of a link. Two interpretations of one mechanism differ
/// by about this much.
const EFFECT: f64 = 0.1;

/// Settings with a difference: parts of the name or flags that select them, then the reason with evidence.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["004.table2AF_w10000", "--up 64kbit"],
        "ns-2's AF also filters duplicate ACKs; RFC 3449's does not. At the same link, with windows \
         without losses (004.table2AF_w100, 004.table2_AF_win20_rtt19, _win32_rtt30), both agree to 0.001",
    ),
    (
        &["_nwc_win", "--data-share 0.1", "--regenerate 1"],
        AR_ORDER,
    ),
    (&["004.table5_w", "--regenerate 1"], AR_ORDER),
    (&["004.table5wc_w", "--regenerate 1"], AR_LOSSES),
    (&["004.table3_w10000", "--regenerate 1"], AR_LOSSES),
    (
        &["002.utility", "--regenerate 1"],
        "AF before AR: ns-2's AF also filters duplicate ACKs (004.table2AF_w10000), and AR regenerates them",
    ),
    (
        &["003.table6_win20 ", "prr"],
        "a full ACK queue loses ACKs of windows of 20, so TCP's timers determine the result. With ns-2's access \
         links of 10 Mbit/s, we get 0.132 ± 0.019. With unlimited windows (003.table6, \
         003.table6_seg1000) both agree",
    ),
    (
        &["003.table2", "--flows-up 1 ", "--borrow true"],
        "one flow in each direction and nothing random: ns-2's three runs are one trajectory of the walk",
    ),
    (
        &["002.N", "--flows-up 1 ", "--qdisc vaq"],
        "a single Reno flow, so one trajectory in each simulator. With ten flows (002.asym) the credit \
         by bytes agrees",
    ),
    (
        &["000.udp_up", "--udp up:900kbit"],
        "in ns-2, the measured UDP makes the ratio invalid, and ACKs starve. If ns-2 keeps the last valid \
         ratio (000.udp_up_skip), as AQ's sec. 4.8 needs, both agree",
    ),
    (&["000.udp_up", "--udp up:700kbit"], UDP_LOSSES),
    (&["000.udp_down", "--udp down:9000kbit"], UDP_LOSSES),
    (
        &["002.", "--qdisc acq"],
        "a random walk: the deviations of ns-2's two or three runs hardly cover the difference. With T of 5 s \
         and gamma 50, the share rises in ns-2 but not here. Here it also rises if the data class is served at \
         once after each change of its share (0.347 ± 0.016, tried), but not with gamma 1000",
    ),
];

/// Settings whose runs differ too much for [`EFFECT`]: parts of the name or flags that select them.
///
/// DCBQ's share varies more in our simulator than in ns-2. 14 of 17 means agree. At 8 settings, however, ns-2's seeds
/// lie closer together than 95 % of random draws from our 30 runs. ns-2's seeds are dependent: random number k of seed
/// s is s times number k of seed 1, modulo 1. This may explain the settings with one flow in each direction, but not
/// those with ten. If a step uses the set rate instead of the measured rate, 7 of the 8 remain. The cause is unknown.
const UNTESTED: &[&[&str]] = &[
    &["000.fig6 ", "--mss 370b"],
    &["000.fig6 ", "--mss 400b"],
    &["000.fig6 ", "--mss 560b"],
    &["000.fig11", "--up 750kbit"],
    &["000.other ", "--qdisc prr"],
    &["000.other_cu.256", "--qdisc acq"],
    &["002.asym", "--qdisc acq"],
    &["002.long10000", "--qdisc acq"],
    &["003.", "--qdisc dcbq"],
    &["003.table6", "--qdisc prr"],
];

const AR_ORDER: &str = "if data between ACKs makes their intervals uneven, ns-2 lies between two readings. At \
    64 kbit/s with a tenth for data and windows of 20, ns-2 has 0.588. If later ACKs wait for the regenerated \
    ones before them (ours), the value is 0.572. If they overtake (tried, not kept), it is 0.592";

const AR_LOSSES: &str = "regenerated ACKs if windows of 100 and more lose packets in bursts: unexplained. With \
    windows without losses (_wrr_win20_rtt19, _win32_rtt30) both agree to 0.006";

const UDP_LOSSES: &str = "the small share of TCP beside UDP at nearly the link's rate: unexplained. The size of UDP \
    packets is not the cause. Under DropTail, beside 0.7 Mbit/s of UDP, our data has 0.265 of the uplink with packets \
    of 1500 bytes, 0.225 with 210 and 0.239 with 100. ns-2's data has 0.259, so its packets have 1500 bytes, like ours";

/// The papers' values of parameters whose defaults differ.
const TO_THE_LETTER: [&str; 7] = [
    "--max-stretch none",
    "--max-gap none",
    "--made-up own",
    "--max-credit none",
    "--beyond-limit starve-acks",
    "--min-share 0",
    "--unused-share follow",
];

/// The papers' values of single disciplines.
const OF_DISCIPLINES: [(&str, &str); 14] = [
    ("--qdisc aq ", "--classifier size<=40"),
    ("--qdisc acq ", "--borrow false"),
    ("--qdisc acq+af/ar ", "--borrow false"),
    ("--qdisc dcbq ", "--borrow false"),
    ("--qdisc e-dcbq ", "--borrow false"),
    ("--qdisc acq ", "--gamma 50"),
    ("--qdisc acq+af/ar ", "--gamma 50"),
    ("--qdisc dcbq ", "--gamma 10"),
    ("--qdisc e-dcbq ", "--gamma 10"),
    ("--qdisc acq ", "--ack-queue fifo"),
    ("--qdisc dcbq ", "--ack-queue fifo"),
    ("--qdisc e-dcbq ", "--ack-queue fifo"),
    ("--qdisc vaq ", "--ack-queue fifo"),
    ("--qdisc vaq ", "--ack-limit 10p"),
];

/// Returns the flags, with the papers' values for all omitted parameters.
fn to_the_letter(flags: &str) -> String {
    let mut flags = flags.to_owned();
    let given = format!("{flags} ");
    let of_discipline = OF_DISCIPLINES
        .into_iter()
        .filter(|(qdisc, _)| given.contains(qdisc))
        .map(|(_, words)| words);
    for words in TO_THE_LETTER.into_iter().chain(of_discipline) {
        let name = words.split(' ').next().unwrap();
        if !flags.contains(&format!("{name} ")) {
            flags = format!("{words} {flags}");
        }
    }
    flags
}

struct Point {
    figure: &'static str,
    flags: &'static str,
    /// Means and deviations of ns-2's download and utility.
    ns2: [(f64, f64); 2],
    /// Number of seeds of ns-2's runs.
    seeds: f64,
}

fn points() -> impl Iterator<Item = Point> {
    let lines = POINTS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let words: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap();
        Point {
            figure: words[0],
            flags: words[1],
            ns2: [(number(2), number(3)), (number(4), number(5))],
            seeds: number(6),
        }
    })
}

impl Point {
    fn contains(&self, words: &[&str]) -> bool {
        let text = format!("{} {}", self.figure, self.flags);
        words.iter().all(|word| text.contains(word))
    }

    fn reason(&self) -> Option<&'static str> {
        let mut elsewhere = ELSEWHERE.iter();
        let found = elsewhere.find(|(words, _)| self.contains(words));
        found.map(|(_, reason)| *reason)
    }

    /// Compares the means of both simulators.
    fn compare(&self) -> Finding {
        let scenario = scenario(&to_the_letter(&format!("--runs {RUNS} {}", self.flags)));
        let report = STANDARD.run_all(&scenario, false, |_| {}).unwrap();
        let (mean, sd) = (&report.mean, &report.sd);
        let ours = [
            (mean.down.utilization, sd.down.utilization),
            (mean.utility, sd.utility),
        ];
        let (mut agree, mut widest) = (true, 0.0_f64);
        let mut text = String::new();
        for ((ours, own_sd), (ns2, sd)) in ours.into_iter().zip(self.ns2) {
            let chance = own_sd * (1.0 / RUNS + 1.0 / self.seeds).sqrt();
            let tolerance = LEAST.max(2.0 * sd).max(2.0 * chance);
            agree &= (ours - ns2).abs() <= tolerance;
            widest = widest.max(tolerance);
            text += &format!("{ours:.3} ± {own_sd:.3} ({ns2:.3} ± {sd:.3})  ");
        }
        let finding = match (agree, widest <= EFFECT, self.reason()) {
            (true, true, _) => Finding::Agrees,
            (true, false, _) => Finding::Untested,
            (false, _, Some(_)) => Finding::Elsewhere,
            (false, _, None) => Finding::Wrong,
        };
        println!("{finding:?} {text}{} {}", self.figure, self.flags);
        finding
    }
}

/// Result of comparing both simulators.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    Agrees,
    /// The runs of one simulator differ too much for [`EFFECT`].
    Untested,
    /// The means differ for the reason in [`ELSEWHERE`].
    Elsewhere,
    Wrong,
}

/// Compares the chosen settings. Settings in [`ELSEWHERE`] may also agree, because there are few seeds.
fn agree(chosen: impl Fn(&Point) -> bool) {
    let mut wrong = Vec::new();
    let mut counts = [0; 4];
    for point in points().filter(chosen) {
        let finding = point.compare();
        counts[finding as usize] += 1;
        let listed = UNTESTED.iter().any(|words| point.contains(words));
        if finding == Finding::Wrong || finding == Finding::Untested && !listed {
            wrong.push(format!("{finding:?}: {} {}", point.figure, point.flags));
        }
    }
    println!("{counts:?}: agree, untested, elsewhere, wrong");
    assert!(
        wrong.is_empty(),
        "{} settings:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
#[ignore = "a few minutes in release mode"]
fn all_settings_agree_with_ns2() {
    let part = std::env::var("ASYMQ_NS2").unwrap_or_default();
    agree(|point| point.contains(&[&part]));
}

#[test]
fn settings_of_every_kind_agree_with_ns2() {
    let quick: [&[&str]; 4] = [
        &["000.fig1_3 ", "--rtt 20ms"],
        &["004.table2_win20_rtt19", "--up 64kbit"],
        &["004.table2_AF_win20_rtt19", "--up 64kbit"],
        &["004.table3_win20_rtt19"],
    ];
    for words in quick {
        assert!(points().any(|point| point.contains(words)), "{words:?}");
        agree(|point| point.contains(words));
    }
}

#[test]
fn cbq_with_bounded_made_up_time_agrees_with_ns2() {
    // Two flows without randomness. Data packets of 125 ms and 12.5 ms distinguish the bounds.
    let agrees = |made_up: &str, words: &[&str]| {
        let point = points().find(|point| point.contains(words)).unwrap();
        let flags = point.flags.replace("--made-up 25ms", made_up);
        let scenario = scenario(&to_the_letter(&format!("--runs 1 {flags}")));
        let down = STANDARD
            .run_all(&scenario, false, |_| {})
            .unwrap()
            .mean
            .down;
        (down.utilization - point.ns2[0].0).abs() < 0.002
    };
    let slow = ["nwc_win20_rtt19", "--up 64kbit", "0.9"];
    let fast = ["nwc_win20_rtt19", "--up 640kbit", "0.9"];
    for (made_up, at_slow, at_fast) in [
        ("--made-up 25ms", true, true),
        ("--made-up own", false, true),
        ("--made-up other", false, true),
        ("--made-up 0s", true, false),
    ] {
        assert_eq!(agrees(made_up, &slow), at_slow, "{made_up}, 64 kbit/s");
        assert_eq!(agrees(made_up, &fast), at_fast, "{made_up}, 640 kbit/s");
    }
}

#[test]
fn aq_at_equal_capacities_fills_both_directions_as_in_ns2() {
    // The last point of AQ's Fig. 5. ns-2: download 0.963, ACKs 0.025 of the uplink.
    let flags = to_the_letter("--runs 10 --qdisc aq --up 10mbit --buffer 51p");
    let mean = STANDARD
        .run_all(&scenario(&flags), false, |_| {})
        .unwrap()
        .mean;
    let (down, acks) = (mean.down.utilization, mean.up.ack);
    assert!((down - 0.963).abs() <= 0.02, "{down}");
    assert!((acks - 0.025).abs() <= 0.002, "{acks}");
}
