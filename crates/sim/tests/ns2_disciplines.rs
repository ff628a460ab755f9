//! Every discipline to the letter of its paper, beside ns-2.35 with the disciplines added to it.
//!
//! `ns2/points.tsv` has ns-2's means and deviations and the same settings as flags, its flows' starts
//! among them. The mean of ten of our runs lies within twice ns-2's deviation of its mean, within what
//! chance explains (two standard errors of the difference, by the deviation of our runs: ns-2's are of
//! two to ten, and its random walks are long), or within 0.01, whichever is most. What does not is in
//! [`ELSEWHERE`] with the reason; "unexplained" stands where none was found.
//!
//! ns-2's AR is known by its effects only. Of the readings tried (over the latest interval, a smoothed
//! one, a segment's time, a smoothed time per ACK, at once; later ACKs waiting, overtaking, or replacing
//! what is left) one gives ns-2's figures to 0.003 wherever the classes borrow and nothing is lost, and
//! at most other settings: `--regenerate-smoothed`. So the settings with AR have that reading; ours, and
//! that of the experiments, is `--regenerate-paced`.
//!
//! A few minutes for all: `cargo test --release -p asymq-sim --test ns2_disciplines -- --ignored
//! --nocapture`, with `ASYMQ_NS2=vaq` for the settings that contain it. The quick ones run always.

#[path = "common/flags.rs"]
mod flags;

use asymq_sim::run_all;
use flags::scenario;

const POINTS: &str = include_str!("ns2/points.tsv");

/// Our seeds.
const RUNS: f64 = 10.0;

/// What a mean may differ by where ns-2's runs hardly differ.
const LEAST: f64 = 0.01;

/// Settings at which we differ: words of the setting, all of which it contains; why, and what shows it.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["004.table2AF_w10000", "--up 64kbit"],
        "ns-2's AF filters duplicate ACKs too, RFC 3449's does not. At the same link with windows that \
         lose nothing (004.table2AF_w100, 004.table2_AF_win20_rtt19, _win32_rtt30) both agree to 0.001",
    ),
    (
        &["--up 64kbit", "--regenerate 1", "--data-share 0.9", "_nwc_"],
        "an ACK waits 125 ms for a data packet, and ns-2's class makes up none of it: see the test below",
    ),
    (&["_nwc_win", "--regenerate 1"], AR_ORDER),
    (&["004.table5_w", "--regenerate 1"], AR_ORDER),
    (&["004.table5wc_w", "--regenerate 1"], AR_LOSSES),
    (&["004.table3_w10000", "--regenerate 1"], AR_LOSSES),
    (
        &["002.utility", "--regenerate 1"],
        "AF before AR: ns-2's AF filters duplicate ACKs too (004.table2AF_w10000), and AR fills that in",
    ),
    (
        &["003.table6_win20 ", "prr"],
        "a full ACK queue loses ACKs of windows of 20, and the timers of TCP decide; ns-2 had access \
         links of 10 Mbit/s, which give 0.132 ± 0.019. With unlimited windows (003.table6, \
         003.table6_seg1000) both agree",
    ),
    (
        &["003.table2", "--flows-up 1 ", "dcbq"],
        "one flow in each direction and nothing random: ns-2's three runs are one trajectory of the walk",
    ),
    (
        &["002.N", "--flows-up 1 ", "--qdisc cbq"],
        "a lone Reno flow waits for its timer after several losses. With NewReno ours has ns-2's 1.000 \
         and 1.499: see the test below",
    ),
    (
        &["002.N", "--flows-up 1 ", "--qdisc vaq"],
        "a lone Reno flow as above: one trajectory in either simulator. With ten flows (002.asym) the \
         credit by bytes agrees",
    ),
    (
        &["000.udp_up", "--udp up:900kbit"],
        "the ratio that the measured UDP makes invalid starves ACKs in ns-2. Where ns-2 keeps the last \
         valid one (000.udp_up_skip), as AQ's sec. 4.8 needs, both agree",
    ),
    (&["000.udp_up", "--udp up:700kbit"], UDP_SIZE),
    (&["000.udp_down", "--udp down:9000kbit"], UDP_SIZE),
    (
        &["002.", "--qdisc acq"],
        "a random walk; ns-2's two or three runs, whose own deviations hardly cover it. At the papers' T \
         and gamma (002.utility_0.1_1, 002.N, 002.long10000) both agree; with T of 5 s ns-2's walk climbs \
         and ours does not: how ns-2 takes a step of zero is not known",
    ),
    (
        &["002.", "--credit segment"],
        "0.012 to 0.019 more upload: an ACK of ours earns 150 bytes at 100 kbit/s, a tenth of a packet as \
         README's rule says, and ns-2's link carried 134 for each. How ns-2 rounds is not known; the \
         credit by bytes, which is the text's, agrees (002.asym, 002.chain)",
    ),
];

const AR_ORDER: &str = "where ACKs with data in between come at uneven intervals, ns-2 lies between two \
    readings: later ACKs wait for those regenerated before them (ours; 0.572 at 64 kbit/s, a tenth for \
    data, windows of 20), or overtake (0.592; tried, not kept). ns-2 has 0.588";

const AR_LOSSES: &str = "what is regenerated where windows of 100 and more are lost in bursts: unexplained. \
    At windows that lose nothing (_wrr_win20_rtt19, _win32_rtt30) both agree to 0.006";

const UDP_SIZE: &str = "the size of ns-2's UDP packets is not known, and TCP's part of the queue depends on \
    it: 0.09 of the uplink at 1500 bytes, 0.18 at 100";

struct Point {
    figure: &'static str,
    flags: &'static str,
    /// Means and deviations of the download and the utility.
    ns2: [(f64, f64); 2],
    /// ns-2's seeds.
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
    fn reason(&self) -> Option<&'static str> {
        let text = format!("{} {}", self.figure, self.flags);
        let mut elsewhere = ELSEWHERE.iter();
        let found = elsewhere.find(|(words, _)| words.iter().all(|word| text.contains(word)));
        found.map(|(_, reason)| *reason)
    }

    /// Says what both have; answers whether they agree.
    fn compare(&self) -> bool {
        let scenario = scenario(&format!("--readings papers --runs {RUNS} {}", self.flags));
        let report = run_all(&scenario, false, |_| {}).unwrap();
        let (mean, sd) = (&report.mean, &report.sd);
        let ours = [
            (mean.down.utilization, sd.down.utilization),
            (mean.utility, sd.utility),
        ];
        let mut agree = true;
        let mut text = String::new();
        for ((ours, own_sd), (ns2, sd)) in ours.into_iter().zip(self.ns2) {
            let chance = own_sd * (1.0 / RUNS + 1.0 / self.seeds).sqrt();
            agree &= (ours - ns2).abs() <= LEAST.max(2.0 * sd).max(2.0 * chance);
            text += &format!("{ours:.3} ± {own_sd:.3} ({ns2:.3} ± {sd:.3})  ");
        }
        let mark = match (agree, self.reason()) {
            (true, _) => "  ",
            (false, Some(_)) => "* ",
            (false, None) => "! ",
        };
        println!("{mark}{text}{} {}", self.figure, self.flags);
        agree
    }
}

/// Compares the chosen settings; what is said to differ may agree, as seeds are few.
fn agree(chosen: impl Fn(&Point) -> bool) {
    let mut wrong = Vec::new();
    for point in points().filter(chosen) {
        if !point.compare() && point.reason().is_none() {
            wrong.push(format!("{} {}", point.figure, point.flags));
        }
    }
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
    agree(|point| format!("{} {}", point.figure, point.flags).contains(&part));
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
        let text = |point: &Point| format!("{} {}", point.figure, point.flags);
        let chosen = |point: &Point| words.iter().all(|word| text(point).contains(word));
        assert!(points().any(|point| chosen(&point)), "{words:?}");
        agree(chosen);
    }
}

#[test]
fn without_timeouts_lone_flows_fill_paced_classes_as_in_ns2() {
    let flags = "--readings papers --runs 2 --qdisc cbq --up 100kbit --down 1mbit --rtt 70ms \
                 --flows-up 1 --flows-down 1 --buffer 41p --buffer-down 40p --duration 300s \
                 --warmup 100s --tcp newreno";
    let mean = run_all(&scenario(flags), false, |_| {}).unwrap().mean;
    assert!((mean.down.utilization - 1.0).abs() < 0.002);
    assert!((mean.utility - 1.499).abs() < 0.005, "{}", mean.utility);
}

#[test]
fn a_class_that_makes_up_nothing_sends_one_regenerated_round_for_each_long_packet_as_in_ns2() {
    // Without borrowing, 64 kbit/s of which a tenth is for ACKs: a data packet takes 125 ms.
    for (window, rtt, ns2) in [("20p", "19ms", 0.1219), ("32p", "30ms", 0.1858)] {
        let flags = format!(
            "--readings papers --runs 2 --up 64kbit --down 8mbit --flows-up 1 --flows-down 1 --rtt {rtt} \
             --window {window} --buffer 101p --buffer-down 100p --mss 960b --tcp reno --duration 60s \
             --warmup 0s --start-within 10ms --qdisc cbq --ack-queue sad --data-share 0.9 --regenerate 1 \
             --regenerate-smoothed --made-up nothing"
        );
        let mean = run_all(&scenario(&flags), false, |_| {}).unwrap().mean;
        let down = mean.down.utilization;
        assert!((down - ns2).abs() < 0.002, "{window}: {down} of {ns2}");
    }
}

#[test]
fn aq_at_equal_capacities_fills_both_directions_as_in_ns2() {
    // AQ, Fig. 5's last point. ns-2: download 0.963, ACKs 0.025 of the uplink.
    let flags = "--readings papers --runs 10 --qdisc aq --up 10mbit --buffer 51p";
    let mean = run_all(&scenario(flags), false, |_| {}).unwrap().mean;
    let (down, acks) = (mean.down.utilization, mean.up.ack);
    assert!((down - 0.963).abs() <= 0.02, "{down}");
    assert!((acks - 0.025).abs() <= 0.002, "{acks}");
}
