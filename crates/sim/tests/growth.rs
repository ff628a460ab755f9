//! Traffic that comes and goes, links in a chain, and ACKs made again.

use asymq_scenario::{Defaults, Run, Scenario, ScenarioArgs};
use asymq_sim::RunOptions;
use clap::Parser;

/// A scenario from the flags of the command line.
fn scenario(flags: &str) -> Scenario {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        scenario: ScenarioArgs,
    }
    let flags = std::iter::once("asymq").chain(flags.split_whitespace());
    let args = Flags::parse_from(flags).scenario;
    args.resolve(&Defaults::paper()).unwrap()
}

fn run(flags: &str, seed: u64) -> Run {
    asymq_sim::run(&scenario(flags), seed, RunOptions::default()).unwrap()
}

fn mean(flags: &str, seeds: std::ops::Range<u64>, value: impl Fn(&Run) -> f64) -> f64 {
    let count = (seeds.end - seeds.start) as f64;
    seeds.map(|seed| value(&run(flags, seed))).sum::<f64>() / count
}

#[test]
fn web_transfers_bring_the_load_that_they_were_asked_for() {
    // 5 a second of 20 000 bytes: 0.8 Mbit/s of payload. Rounding up to segments of 1460 bytes adds
    // half of one, and headers 40 / 1460: 0.8 * (1 + 730 / 20 000) * (1 + 40 / 1460) = 0.852.
    let flags =
        "--flows-up 0 --flows-down 0 --qdisc droptail --web down:5:20000b:3 --duration 300s";
    let load = mean(flags, 1..6, |run| run.summary.down.data * 10.0);
    // 7375 transfers with a deviation of 0.58 of the mean each: 0.7 %.
    assert!((load - 0.852).abs() < 0.025, "{load}");
    assert!(run(flags, 1).summary.goodput.down.is_empty());
}

#[test]
fn ten_thousand_short_transfers_follow_each_other() {
    // 200 a second of one or two segments: far more in turn than places at once.
    let flags = "--flows-up 1 --flows-down 1 --web down:200:2000b:3 --web up:5:2000b:3";
    let run = run(flags, 1);
    assert!(run.summary.down.data > 0.2);
    assert!(run.summary.goodput.up[0] > 0.0 && run.summary.goodput.down[0] > 0.0);
}

#[test]
fn on_off_flows_deliver_what_their_applications_write() {
    // Half the time at 100 kbit/s, and no queue in the way.
    let flags =
        "--flows-up 0 --flows-down 4 --on-off 100kbit:500ms:500ms --rtt 50ms --duration 600s";
    let goodput = mean(flags, 1..6, |run| {
        run.summary.goodput.down.iter().sum::<f64>() / 4.0
    });
    // 20 flows, 595 s, about 595 cycles each: 1 % of deviation.
    assert!((goodput - 50_000.0).abs() < 2_000.0, "{goodput}");
}

#[test]
fn a_chain_of_idle_links_loses_nothing_and_keeps_the_round_trip() {
    // 10 segments of 1460 bytes per round-trip time, at links that could carry far more.
    let window = "--flows-up 1 --flows-down 1 --rtt 200ms --window 10p --up 50mbit --down 50mbit";
    for links in [1, 2, 5, 10] {
        let run = run(&format!("{window} --links {links}"), 1);
        assert_eq!((run.summary.up.drops, run.summary.down.drops), (0.0, 0.0));
        // Transmission at 50 Mbit/s takes 0.25 ms of each link.
        let round_trip = 0.2 + 0.0005 + 0.00025 * f64::from(links);
        for goodput in [run.summary.goodput.up[0], run.summary.goodput.down[0]] {
            let expected = 14_600.0 * 8.0 / round_trip;
            assert!(
                (goodput / expected - 1.0).abs() < 0.01,
                "{links}: {goodput}"
            );
        }
    }
}

#[test]
fn every_link_of_a_chain_is_filled_and_measured_by_its_own_discipline() {
    // Paper 002, section 5.3: VAQ's utility does not depend on the number of links.
    let utility = |links: u32| {
        let flags = format!("--qdisc vaq --credit segment --links {links}");
        mean(&flags, 1..4, |run| run.summary.utility)
    };
    let (one, five) = (utility(1), utility(5));
    assert!((one - five).abs() < 0.1, "{one} {five}");
}

#[test]
fn regenerated_acks_raise_the_throughput_over_a_thin_uplink() {
    // Paper 004's 8 Mbit/s over 64 kbit/s, the uplink shared with an upload.
    let link = "--up 64kbit --down 8mbit --flows-up 2 --flows-down 5 --qdisc sad";
    let down = |flags: &str| {
        mean(&format!("{link} {flags}"), 1..6, |run| {
            run.summary.down.data
        })
    };
    let (without, with) = (down("--regenerate 0"), down("--regenerate 1"));
    assert!(with > without + 0.02, "{with} {without}");
}
