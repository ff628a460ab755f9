//! Short runs of the lab. Tests need root; without root they print a note and pass.
//!
//! If the machine is too busy to send packets in time, a run gives no valid throughput. Such runs are repeated. If no
//! attempt was in time, the checks of throughput are skipped with a note.

#[path = "../../gateway/tests/common/panicking.rs"]
mod panicking;
#[path = "../../gateway/tests/common/wait.rs"]
mod wait;

use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
use asymq_core::catalog::{Catalog as _, Role, Standard};
use asymq_core::units::Duration;
use asymq_gateway::STANDARD;
use asymq_lab::{LabError, Options, run_scenarios};
use asymq_scenario::{Direction, Report, Run, Scenario, Tcp};
use panicking::Panicking;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};
use wait::{DEADLINE, wait_for};

/// Maximum number of attempts until a run is in time.
const ATTEMPTS: usize = 4;

fn scenario(args: ScenarioArgs) -> Scenario {
    let common = ScenarioArgs {
        rtt: Some("20ms".parse().unwrap()),
        duration: Some(Duration::from_secs(6)),
        warmup: Some(Duration::from_secs(3)),
        ..args
    };
    common.resolve(&Defaults::lab()).unwrap()
}

fn options(jobs: NonZeroUsize) -> Options<'static> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    Options {
        stop: &NEVER,
        series: true,
        jobs,
    }
}

/// Returns the reports of the first `attempt` in which all runs were in time. Returns `None`, with a note, if networks
/// cannot be created, or if this machine is too busy in all attempts.
fn in_time(attempt: impl FnMut() -> Result<Vec<Report>, LabError>) -> Option<Vec<Report>> {
    in_time_if(attempt, |_| false)
}

/// Like [`in_time`]. Also returns `None` if this machine `lacks` a program or a module.
fn in_time_if(
    mut attempt: impl FnMut() -> Result<Vec<Report>, LabError>,
    lacks: impl Fn(&LabError) -> bool,
) -> Option<Vec<Report>> {
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(reports) => {
                let mut runs = reports.iter().flat_map(|report| &report.runs);
                if !runs.any(Run::is_late) {
                    return Some(reports);
                }
            }
            Err(LabError::TooSlow { .. } | LabError::Late { .. }) => {}
            Err(LabError::NotPermitted) => {
                eprintln!("skipped: making network namespaces is not permitted; run as root");
                return None;
            }
            Err(error) if lacks(&error) => {
                eprintln!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    eprintln!("skipped: this machine was too busy in {ATTEMPTS} runs");
    None
}

/// Returns the only run of each scenario, if all were in time. The runs are simultaneous, because they mostly wait.
fn runs<const N: usize>(args: [ScenarioArgs; N]) -> Option<[Run; N]> {
    let all = args.map(scenario);
    let jobs = NonZeroUsize::new(N).unwrap();
    let attempt = || run_scenarios(STANDARD, &all, options(jobs), &mut |_| ());
    let runs = in_time(attempt)?
        .into_iter()
        .map(|mut report| report.runs.remove(0));
    runs.collect::<Vec<_>>().try_into().ok()
}

fn run(args: ScenarioArgs) -> Option<Run> {
    runs([args]).map(|[run]| run)
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
    assert!((0.7..=1.02).contains(&up.utilization), "{up:?}");
    assert!((0.7..=1.02).contains(&down.utilization), "{down:?}");
    assert!(up.data > 0.4 && up.ack > 0.0 && down.data > 0.7, "{run:?}");
    let sojourn = up.sojourn_ms.unwrap();
    assert!(sojourn.p50 > 0.0 && sojourn.p99 >= sojourn.p95);
    let goodput = &run.summary.goodput;
    assert_eq!((goodput.up.len(), goodput.down.len()), (1, 2));
    // The payload is less than the link's bytes, by 52 bytes of headers in 1500 and the data in flight.
    let sum: f64 = goodput.down.iter().sum();
    assert!((0.6e7..1.0e7).contains(&sum), "{goodput:?}");
    assert!(run.summary.probe_ms.is_some());
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
    let Some([solo, none]) = runs([flows(0, 1), flows(0, 0)]) else {
        return;
    };
    assert!(solo.summary.down.utilization > 0.7, "{solo:?}");
    assert!(solo.summary.up.data < 0.01);
    assert!(solo.summary.goodput.up.is_empty());
    // The probe alone builds no queue, and its round trip of 20 ms does not count as delay.
    assert!(none.summary.down.utilization < 0.01);
    assert!(none.summary.probe_ms.unwrap().p50 < 20.0, "{none:?}");
}

#[test]
fn every_congestion_control_of_the_kernel_carries_data_through_droptail() {
    let all = [Tcp::Reno, Tcp::Bbr];
    let args = all.map(|tcp| ScenarioArgs {
        qdisc: Some("droptail".into()),
        tcp: Some(tcp),
        ..flows(1, 1)
    });
    let Some(runs) = runs(args) else { return };
    for (tcp, run) in all.iter().zip(runs) {
        let up = &run.summary.up;
        assert!(up.utilization > 0.5, "{tcp:?} {up:?}");
    }
}

/// The qdisc is below HTB. Skipped if this kernel or tc lacks pfifo or HTB.
#[test]
fn a_qdisc_of_the_kernels_holds_the_uplink_and_its_waits_are_seen() {
    let args = ScenarioArgs {
        tc: Some("pfifo limit 20".into()),
        ..flows(1, 0)
    };
    // CUBIC fills the queue again within 4 s of a loss.
    let one = [Scenario {
        duration: Duration::from_secs(8),
        ..scenario(args)
    }];
    let run = || run_scenarios(STANDARD, &one, options(NonZeroUsize::MIN), &mut |_| ());
    let Some(mut reports) = in_time_if(run, |error| {
        // tc's first command is for HTB.
        matches!(error, LabError::Tc { .. } | LabError::System { .. })
    }) else {
        return;
    };
    let run = reports.remove(0).runs.remove(0);
    let up = &run.summary.up;
    assert!(up.utilization > 0.9 && up.dropped > 0.0, "{up:?}");
    // 20 packets of 12 ms each, and the backlog of the shaper itself.
    assert!(
        (150.0..300.0).contains(&up.sojourn_ms.unwrap().p99),
        "{up:?}"
    );
    let backlog = run.series.unwrap().backlog_up;
    assert!(backlog.iter().all(|packets| *packets <= 20), "{backlog:?}");
    // With one reading a second, the peak of a sawtooth is seen only by chance.
    assert!(backlog.iter().any(|packets| *packets > 15), "{backlog:?}");
}

#[test]
fn tcs_refusal_is_the_users_error() {
    let args = ScenarioArgs {
        tc: Some("no-such-qdisc".into()),
        ..flows(1, 0)
    };
    let one = [scenario(args)];
    match run_scenarios(STANDARD, &one, options(NonZeroUsize::MIN), &mut |_| ()) {
        Err(error @ LabError::Tc { .. }) => assert!(error.is_bad_input(), "{error}"),
        Err(LabError::NotPermitted) => eprintln!("skipped: not permitted; run as root"),
        Err(LabError::System { source, .. }) if source.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: {source}");
        }
        other => panic!("{other:?}"),
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
    // An uplink packet is 0.003; a late sender moves some packets over the ends of the interval.
    assert!((up - 0.205).abs() < 0.05, "{up}"); // the probe adds 0.005
    assert!((down - 0.1).abs() < 0.03, "{down}"); // half of the time after warm-up
    assert_eq!(run.summary.up.dropped, 0.0);
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
    assert!((1.0e6..6.0e6).contains(&goodput), "{goodput}");
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
    let scenarios = [solo(1, 0), solo(0, 1)];
    let attempt = || {
        let mut last = Duration::ZERO;
        let mut total = Duration::ZERO;
        let three = options(NonZeroUsize::new(3).unwrap());
        let reports = run_scenarios(STANDARD, &scenarios, three, &mut |progress| {
            assert!(progress.elapsed >= last);
            (last, total) = (progress.elapsed, progress.total);
        })?;
        // These checks also hold on a busy machine.
        assert_eq!(total, Duration::from_secs(8));
        let seeds = |report: &Report| report.runs.iter().map(|run| run.seed).collect::<Vec<_>>();
        let both: Vec<_> = reports.iter().map(seeds).collect();
        assert_eq!(both, [[7, 8], [7, 8]]);
        assert!(reports[0].mean.down.data < 0.01 && reports[1].mean.up.data < 0.01);
        Ok(reports)
    };
    let Some(reports) = in_time(attempt) else {
        return;
    };
    assert!(reports[0].mean.up.data > 0.1, "{:?}", reports[0].mean);
    assert!(reports[1].mean.down.data > 0.1, "{:?}", reports[1].mean);
}

#[test]
fn a_stop_ends_it_long_before_its_time() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let hour = Scenario {
        duration: Duration::from_secs(3600),
        ..scenario(flows(1, 1))
    };
    let lab = thread::spawn(move || {
        let options = Options {
            stop: &STOP,
            ..options(NonZeroUsize::MIN)
        };
        run_scenarios(
            STANDARD,
            std::slice::from_ref(&hour),
            options,
            &mut |progress| {
                if progress.elapsed > Duration::from_secs(1) {
                    STOP.store(true, Ordering::Relaxed);
                }
            },
        )
    });
    wait_for("the end of a stopped lab", DEADLINE, || lab.is_finished());
    match lab.join().unwrap() {
        Err(LabError::Interrupted) => {}
        Err(LabError::NotPermitted) => eprintln!("skipped: run as root"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_discipline_that_panics_at_either_link_ends_the_lab_with_its_panic() {
    let red = Some("red".into());
    let uplink = ScenarioArgs {
        qdisc: red.clone(),
        ..flows(1, 1)
    };
    let downlink = ScenarioArgs {
        qdisc: Some("droptail".into()),
        qdisc_down: red,
        ..flows(1, 1)
    };
    for args in [uplink, downlink] {
        let hour = [Scenario {
            duration: Duration::from_secs(3600),
            ..scenario(args)
        }];
        let lab = thread::spawn(move || {
            let options = options(NonZeroUsize::MIN);
            run_scenarios(&Panicking, &hour, options, &mut |_| ())
        });
        wait_for("the end of a lab that panics", DEADLINE, || {
            lab.is_finished()
        });
        match lab.join() {
            Err(_) => {}
            Ok(Err(LabError::NotPermitted)) => eprintln!("skipped: run as root"),
            Ok(other) => panic!("{other:?}"),
        }
    }
}

/// A QUIC stack with known results, which sends nothing.
struct Stack(tempfile::TempDir);

impl Stack {
    /// Creates a shell script that runs `answer` for each flow. `sends` is true if this side sends the flow's data.
    fn new(answer: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            r#"#!/bin/sh
side=$1
echo ready
read -r _ || exit 1
for word; do
    case $word in up:* | down:*) ;; *) continue ;; esac
    port=${{word#*:}}
    case $side:$word in home:up:* | servers:down:*) sends=true ;; *) sends=false ;; esac
    {answer}
done
"#
        );
        let path = folder.path().join("stack");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn flows(&self, flows: &str) -> ScenarioArgs {
        let stack = self.0.path().join("stack");
        ScenarioArgs {
            quic: Some(format!("{},{flows}", stack.display()).parse().unwrap()),
            ..ScenarioArgs::default()
        }
    }
}

#[test]
fn quic_flows_follow_tcp_flows_with_the_values_of_both_ends() {
    let stack = Stack::new(
        r#"echo "{\"port\":${port%:*},\"sends\":$sends,\"payload\":${port%:*},\"longest_stall_ns\":250000000,\
\"timeouts\":3,\"lost\":[2,7,9],\"received\":[[0,5]]}""#,
    );
    let args = ScenarioArgs {
        flows_down: Some(1),
        ..stack.flows("up=1,down=2,tcp=bbr")
    };
    let Some(run) = run(args) else { return };
    let flows = &run.summary.flows;
    let direction: Vec<_> = flows.iter().map(|flow| flow.direction).collect();
    assert_eq!(
        direction,
        [
            Direction::Down,
            Direction::Up,
            Direction::Down,
            Direction::Down
        ]
    );
    assert_eq!(flows[0].spurious, None);
    for (flow, port) in flows[1..].iter().zip([24_000.0, 25_000.0, 25_001.0]) {
        assert_eq!(flow.goodput, port * 8.0 / 3.0);
        assert_eq!((flow.longest_stall_s, flow.timeouts), (0.25, Some(3.0)));
        // One of three packets that were declared lost arrived.
        assert_eq!(
            (flow.retransmissions, flow.spurious),
            (Some(3.0), Some(1.0))
        );
    }
    // The first download over TCP and the first over QUIC have equal round-trip times and starts.
    assert_eq!(flows[0].start_s, flows[2].start_s);
}

#[test]
fn a_quic_stack_that_is_absent_ends_early_or_talks_otherwise_is_an_error() {
    let error = |args: ScenarioArgs| {
        let one = [scenario(args)];
        match run_scenarios(STANDARD, &one, options(NonZeroUsize::MIN), &mut |_| ()) {
            Err(LabError::NotPermitted) => None,
            Err(error) => Some((error.is_bad_input(), error.to_string())),
            Ok(_) => panic!("it ran"),
        }
    };
    let absent = ScenarioArgs {
        quic: Some("no-such,down=1".parse().unwrap()),
        ..ScenarioArgs::default()
    };
    let (is_bad_input, message) = error(absent).unwrap();
    assert!(is_bad_input);
    assert!(message.starts_with(
        "--quic no-such,up=0,down=1: no such program: asymq-quic-no-such in PATH or "
    ));
    assert!(
        message.contains("build it with scripts/quic/stacks no-such"),
        "{message}"
    );
    for (answer, expected) in [
        ("exit 0", "no report for port 25000"),
        ("echo well", "well: "),
    ] {
        let Some((is_bad_input, message)) = error(Stack::new(answer).flows("down=1")) else {
            return eprintln!("skipped: run as root");
        };
        assert!(!is_bad_input && message.contains(expected), "{message}");
    }
}

/// Needs stacks that scripts/quic/stacks has built on this machine.
#[test]
fn flows_of_a_real_quic_stack_carry_data_both_ways() {
    let args = ScenarioArgs {
        quic: Some("quinn,up=1,down=1".parse().unwrap()),
        ..ScenarioArgs::default()
    };
    let one = [scenario(args)];
    let run = || run_scenarios(STANDARD, &one, options(NonZeroUsize::MIN), &mut |_| ());
    let Some(mut reports) = in_time_if(run, |error| matches!(error, LabError::Quic { .. })) else {
        return;
    };
    let summary = reports.remove(0).runs.remove(0).summary;
    assert!(summary.up.utilization > 0.7, "{summary:?}");
    assert!(summary.down.delivered > 0.6, "{summary:?}");
    let spurious = summary.flows.iter().map(|flow| flow.spurious.unwrap());
    assert_eq!(spurious.sum::<f64>(), 0.0, "{summary:?}");
}

#[test]
fn newreno_is_refused_before_anything_is_made() {
    let scenario = Scenario {
        tcp: Tcp::Newreno,
        ..scenario(flows(1, 1))
    };
    let started = &mut |_| panic!("it started");
    let error = run_scenarios(
        STANDARD,
        std::slice::from_ref(&scenario),
        options(NonZeroUsize::MIN),
        started,
    )
    .unwrap_err();
    assert!(error.is_bad_input());
    assert_eq!(
        error.to_string(),
        "--tcp newreno: only the simulator has it; real TCP always recovers with SACK; use reno, cubic, linux or bbr"
    );
}

/// One discipline of each kind of queue and service; ASYMQ_LONG runs all.
const KINDS: [&str; 9] = [
    "droptail",
    "prr",
    "aq",
    "afvq",
    "vaq",
    "sad+ar+cbq",
    "cake+ack-filter",
    "dualpi2",
    "asymq",
];

#[test]
fn every_discipline_carries_kernel_tcp_both_ways() {
    let is_long = std::env::var_os("ASYMQ_LONG").is_some();
    let of = |name: &str| {
        let args = ScenarioArgs {
            qdisc: Some(name.into()),
            tcp: Some(Tcp::Cubic),
            rtt: Some("20ms..60ms".parse().unwrap()),
            duration: Some(Duration::from_secs(4)),
            warmup: Some(Duration::from_secs(1)),
            ..flows(2, 4)
        };
        args.resolve(&Defaults::lab()).unwrap()
    };
    let disciplines = Standard.of_role(Role::Qdisc);
    let names = disciplines.iter().map(|entry| entry.name);
    let names = names.filter(|name| is_long || KINDS.contains(name));
    let mut left: Vec<Scenario> = names.map(of).collect();
    assert!(left.len() >= KINDS.len(), "a name of KINDS is unknown");
    // The runs mostly wait.
    let jobs = thread::available_parallelism().map_or(3, |cores| cores.get().max(3));
    let jobs = NonZeroUsize::new(jobs).unwrap();
    for _ in 0..ATTEMPTS {
        let reports = match run_scenarios(STANDARD, &left, options(jobs), &mut |_| ()) {
            Err(LabError::NotPermitted) => return eprintln!("skipped: run as root"),
            Err(LabError::TooSlow { .. }) => continue,
            reports => reports.unwrap(),
        };
        left.clear();
        for report in reports {
            let (name, run) = (&report.scenario.uplink.qdisc, &report.runs[0]);
            let carried = (run.summary.up.data, run.summary.down.data);
            // One flow may wait for a timeout during the whole run, but not all flows of a direction.
            if carried.0 > 0.1 && carried.1 > 0.1 {
                continue;
            }
            assert!(run.is_late(), "{name}: {carried:?}");
            left.push(report.scenario);
        }
        if left.is_empty() {
            return;
        }
    }
    let names: Vec<String> = left.iter().map(|s| s.uplink.qdisc.to_string()).collect();
    eprintln!("skipped: this machine was too busy in {ATTEMPTS} runs of {names:?}");
}

#[test]
fn rates_of_both_modems_are_learnt_from_kernel_tcp_through_a_step() {
    let auto = || Some("auto".parse().unwrap());
    let Some(run) = run(ScenarioArgs {
        up: Some("40mbit".parse().unwrap()),
        down: Some("80mbit".parse().unwrap()),
        qdisc: Some("asymq".into()),
        qdisc_down: Some("cake".into()),
        buffer: Some("1000p".parse().unwrap()),
        buffer_down: Some("1000p".parse().unwrap()),
        probe: Some("20ms".parse().unwrap()),
        simulated: SimulatedArgs {
            modem_up: Some("10mbit,buffer=600ms".parse().unwrap()),
            modem_down: Some("30mbit,buffer=600ms".parse().unwrap()),
            steps_down: vec!["4500ms:15mbit".parse().unwrap()],
            steps_delay: vec!["2500ms:5ms".parse().unwrap()],
            shaper_up: auto(),
            shaper_down: auto(),
            ..SimulatedArgs::default()
        },
        ..flows(2, 4)
    }) else {
        return;
    };
    let (up, down) = (&run.summary.up, &run.summary.down);
    assert!((0.6..=1.01).contains(&up.utilization), "{up:?}");
    assert!((0.6..=1.01).contains(&down.utilization), "{down:?}");
    // Shapers fixed at 40 and 80 Mbit/s would leave 600 ms in each modem.
    let probe = run.summary.probe_ms.unwrap();
    assert!(probe.p50 < 100.0, "{probe:?}");
    assert!(
        down.sojourn_ms.unwrap().p50 > 0.0,
        "the queue is at home: {down:?}"
    );
    assert!(run.summary.probe_late.is_some());
}

#[test]
fn a_modem_without_a_shaper_before_it_fills_its_buffer() {
    let Some(run) = run(ScenarioArgs {
        up: Some("40mbit".parse().unwrap()),
        down: Some("80mbit".parse().unwrap()),
        simulated: SimulatedArgs {
            modem_up: Some("4mbit,buffer=100ms".parse().unwrap()),
            shaper_up: Some("none".parse().unwrap()),
            ..SimulatedArgs::default()
        },
        ..flows(4, 0)
    }) else {
        return;
    };
    let up = &run.summary.up;
    assert!((0.9..=1.01).contains(&up.utilization), "{up:?}");
    assert!(
        up.lost > 0.0 && up.dropped == 0.0,
        "the modem is full: {up:?}"
    );
    let probe = up.probe_ms.unwrap();
    assert!((50.0..130.0).contains(&probe.p95), "{probe:?}");
}
