//! Runs of the lab, short ones. They need root; without it they say so and pass.

use asymq_core::units::Duration;
use asymq_lab::{LabError, Options, run_all, run_scenarios};
use asymq_scenario::{Defaults, QdiscName, Report, Run, Scenario, ScenarioArgs, Tcp};
use clap::ValueEnum as _;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn scenario(args: ScenarioArgs) -> Scenario {
    let common = ScenarioArgs {
        rtt: Some("20ms".parse().unwrap()),
        duration: Some(Duration::from_secs(6)),
        warmup: Some(Duration::from_secs(3)),
        ..args
    };
    common.resolve(&Defaults::lab()).unwrap()
}

/// The scenario's only run; `None`, with a word, where networks cannot be made.
fn run(args: ScenarioArgs) -> Option<Run> {
    let options = Options {
        stop: &AtomicBool::new(false),
        series: true,
        jobs: NonZeroUsize::MIN,
    };
    let scenario = scenario(args);
    // A machine too busy to let packets leave in time says nothing about the lab: twice more then.
    for last in [false, false, true] {
        match run_all(&scenario, options, &mut |_| ()) {
            Ok(mut report) => {
                let run = report.runs.remove(0);
                if last || !run.is_late() {
                    return Some(run);
                }
            }
            Err(LabError::NotPermitted) => {
                eprintln!("skipped: making network namespaces is not permitted; run as root");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the last attempt answers")
}

fn flows(up: u32, down: u32) -> ScenarioArgs {
    ScenarioArgs {
        flows_up: Some(up),
        flows_down: Some(down),
        ..ScenarioArgs::default()
    }
}

#[test]
fn aq_carries_both_directions_and_reports_every_quantity() {
    let Some(run) = run(flows(1, 2)) else { return };
    let (up, down) = (&run.summary.up, &run.summary.down);
    assert!((0.9..=1.02).contains(&up.utilization), "{up:?}");
    assert!((0.9..=1.02).contains(&down.utilization), "{down:?}");
    assert!(up.data > 0.5 && up.ack > 0.05 && down.data > 0.9, "{run:?}");
    assert!(up.sojourn_ms.p50 > 0.0 && up.sojourn_ms.p99 >= up.sojourn_ms.p95);
    let goodput = &run.summary.goodput;
    assert_eq!((goodput.up.len(), goodput.down.len()), (1, 2));
    // Payload is less than what the link carried, by 52 bytes of headers in 1500 and what was in flight.
    let sum: f64 = goodput.down.iter().sum();
    assert!((0.8e7..1.0e7).contains(&sum), "{goodput:?}");
    assert!(run.summary.sparse_ms.is_some());
    let series = run.series.unwrap();
    assert_eq!((series.up.len(), series.down.len()), (30, 30));
    assert_eq!(
        (series.backlog_up.len(), series.backlog_down.len()),
        (30, 30)
    );
    assert!(run.lateness_ms.is_some());
}

#[test]
fn no_flow_in_a_direction_is_a_solo_run() {
    let Some(solo) = run(flows(0, 1)) else { return };
    assert!(solo.summary.down.utilization > 0.9, "{solo:?}");
    assert!(solo.summary.up.data < 0.01);
    assert!(solo.summary.goodput.up.is_empty());
    let none = run(flows(0, 0)).unwrap();
    // Only the echo, and nothing that it would have to wait for.
    assert!(none.summary.down.utilization < 0.01);
    assert!(none.summary.sparse_ms.unwrap().p95 < 20.0, "{none:?}");
}

#[test]
fn every_congestion_control_of_the_kernel_carries_data_through_droptail() {
    for tcp in [Tcp::Reno, Tcp::Bbr] {
        let args = ScenarioArgs {
            qdisc: Some(QdiscName::Droptail),
            tcp: Some(tcp),
            ..flows(1, 1)
        };
        let Some(run) = run(args) else { return };
        let up = &run.summary.up;
        assert!(up.utilization > 0.7, "{tcp:?} {up:?}");
    }
}

#[test]
fn udp_has_its_rate_and_its_schedule() {
    let args = ScenarioArgs {
        udp: vec![
            "up:200kbit".parse().unwrap(),
            "down:2mbit@3s..4500ms".parse().unwrap(),
        ],
        ..flows(0, 0)
    };
    let Some(run) = run(args) else { return };
    let (up, down) = (run.summary.up.utilization, run.summary.down.utilization);
    assert!((up - 0.205).abs() < 0.01, "{up}"); // the echo adds 0.005
    assert!((down - 0.1).abs() < 0.01, "{down}"); // half of the time after warm-up
    assert_eq!(run.summary.up.drops, 0.0);
}

#[test]
fn the_receive_window_bounds_a_flow() {
    let args = ScenarioArgs {
        window: Some("10p".parse().unwrap()),
        ..flows(0, 1)
    };
    let Some(run) = run(args) else { return };
    // 10 segments of 1460 bytes every round trip of 20 ms are 5.8 Mbit/s at most.
    let goodput = run.summary.goodput.down[0];
    assert!((3.0e6..6.0e6).contains(&goodput), "{goodput}");
}

#[test]
fn runs_at_a_time_come_back_in_order_each_with_its_seed_and_scenario() {
    let solo = |up, down| Scenario {
        seed: 7,
        runs: 2,
        duration: Duration::from_secs(2),
        warmup: Duration::from_secs(1),
        ..scenario(flows(up, down))
    };
    let options = Options {
        stop: &AtomicBool::new(false),
        series: false,
        jobs: NonZeroUsize::new(3).unwrap(),
    };
    let mut last = Duration::ZERO;
    let mut total = Duration::ZERO;
    let reports = run_scenarios(&[solo(1, 0), solo(0, 1)], options, &mut |progress| {
        assert!(progress.elapsed >= last);
        (last, total) = (progress.elapsed, progress.total);
    });
    let reports = match reports {
        Err(LabError::NotPermitted) => return eprintln!("skipped: run as root"),
        reports => reports.unwrap(),
    };
    assert_eq!(total, Duration::from_secs(8));
    let seeds = |report: &Report| report.runs.iter().map(|run| run.seed).collect::<Vec<_>>();
    assert_eq!(
        reports.iter().map(seeds).collect::<Vec<_>>(),
        [[7, 8], [7, 8]]
    );
    assert!(reports[0].mean.up.data > 0.3 && reports[0].mean.down.data < 0.01);
    assert!(reports[1].mean.down.data > 0.3 && reports[1].mean.up.data < 0.01);
}

#[test]
fn a_stop_ends_it_promptly() {
    let stop = AtomicBool::new(false);
    let options = Options {
        stop: &stop,
        series: false,
        jobs: NonZeroUsize::MIN,
    };
    let mut asked = None;
    let outcome = run_all(&scenario(flows(1, 1)), options, &mut |progress| {
        if progress.elapsed > Duration::from_secs(1) {
            stop.store(true, Ordering::Relaxed);
            asked.get_or_insert_with(Instant::now);
        }
    });
    match outcome {
        Err(LabError::Interrupted) => {}
        Err(LabError::NotPermitted) => return eprintln!("skipped: run as root"),
        other => panic!("{other:?}"),
    }
    assert!(asked.unwrap().elapsed().as_secs_f64() < 1.0);
}

#[test]
fn newreno_is_refused_before_anything_is_made() {
    let scenario = Scenario {
        tcp: Tcp::Newreno,
        ..scenario(flows(1, 1))
    };
    let options = Options {
        stop: &AtomicBool::new(false),
        series: false,
        jobs: NonZeroUsize::MIN,
    };
    let error = run_all(&scenario, options, &mut |_| panic!("it started")).unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(
        error.to_string(),
        "--tcp newreno: only the simulator has it; use reno (which recovers by SACK in kernels), cubic or bbr"
    );
}

#[test]
fn every_discipline_carries_kernel_tcp_both_ways() {
    let of = |name: &QdiscName| {
        let args = ScenarioArgs {
            qdisc: Some(*name),
            tcp: Some(Tcp::Cubic),
            rtt: Some("20ms..60ms".parse().unwrap()),
            duration: Some(Duration::from_secs(4)),
            warmup: Some(Duration::from_secs(1)),
            ..flows(2, 4)
        };
        args.resolve(&Defaults::lab()).unwrap()
    };
    let scenarios: Vec<Scenario> = QdiscName::value_variants().iter().map(of).collect();
    let options = Options {
        stop: &AtomicBool::new(false),
        series: false,
        jobs: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    };
    let reports = match run_scenarios(&scenarios, options, &mut |_| ()) {
        Err(LabError::NotPermitted) => return eprintln!("skipped: run as root"),
        reports => reports.unwrap(),
    };
    // Single flows may wait for a timeout that long; the directions may not.
    for report in reports {
        let (name, summary) = (report.scenario.qdisc, &report.runs[0].summary);
        let carried = (summary.up.data, summary.down.data);
        assert!(carried.0 > 0.2 && carried.1 > 0.2, "{name}: {carried:?}");
    }
}
