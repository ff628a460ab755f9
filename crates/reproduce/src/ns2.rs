//! ns-2.35 beside our simulator: the plain DropTail cases, where `ns` is installed.

use crate::metrics::Metrics;
use crate::outcome::Outcome;
use asymq_core::units::Limit;
use asymq_scenario::{AckPolicy, QdiscName, Scenario, Tcp};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The scenario in ns-2's own language.
const SCRIPT: &str = include_str!("../../../scripts/ns2/dumbbell.tcl");

/// ns-2's settings for a scenario, if its parts are among ns-2's own: DropTail, Reno or NewReno,
/// long-lived flows only.
pub fn settings(scenario: &Scenario) -> Option<Vec<(&'static str, String)>> {
    // Whatever else a scenario sets, ns-2 would not do.
    let plain = Scenario {
        udp: Vec::new(),
        probe: None,
        qdisc_down: QdiscName::Droptail,
        sack: false,
        timestamps: false,
        byte_counting: false,
        regenerate: scenario.regenerate.filter(|factor| *factor == 0),
        web: Vec::new(),
        on_off: None,
        links: 1,
        header: 40,
        ..scenario.clone()
    };
    let packets = |limit: Limit| match limit {
        Limit::Packets(packets) => Some(packets.to_string()),
        Limit::Bytes(_) => None,
    };
    let tcp = match scenario.tcp {
        Tcp::Reno => "Reno",
        Tcp::Newreno => "Newreno",
        Tcp::Cubic | Tcp::Bbr => return None,
    };
    let sink = match scenario.ack_policy {
        AckPolicy::EveryPacket => "TCPSink",
        AckPolicy::Delayed(_) => "TCPSink/DelAck",
        AckPolicy::Every(..) => return None,
    };
    if scenario.qdisc != QdiscName::Droptail || plain != *scenario {
        return None;
    }
    let window = match scenario.window {
        None => "100000".to_owned(),
        Some(window) => packets(window)?,
    };
    let seconds = |time: asymq_core::units::Duration| time.as_secs_f64().to_string();
    Some(vec![
        ("up", scenario.up.bits_per_sec().to_string()),
        ("down", scenario.down.bits_per_sec().to_string()),
        ("flows-up", scenario.flows_up.to_string()),
        ("flows-down", scenario.flows_down.to_string()),
        ("rtt-least", seconds(scenario.rtt.least)),
        ("rtt-most", seconds(scenario.rtt.most)),
        ("buffer", packets(scenario.buffer)?),
        ("buffer-down", packets(scenario.buffer_down)?),
        ("mss", scenario.mss.to_string()),
        ("tcp", tcp.to_owned()),
        ("sink", sink.to_owned()),
        ("window", window),
        ("duration", seconds(scenario.duration)),
        ("warmup", seconds(scenario.warmup)),
    ])
}

/// Runs every case that ns-2 can do, and adds its points to the outcomes. Returns what is to be said
/// of it.
///
/// # Errors
/// ns-2 is there, but fails.
pub fn run_beside(
    outcomes: &mut [Outcome],
    folder: &Path,
    threads: usize,
    progress: &(impl Fn(usize, usize) + Sync),
) -> io::Result<String> {
    if Command::new("ns").arg("/dev/null").output().is_err() {
        return Ok(
            "ns-2 is not installed here (no `ns` on the PATH), so its points are absent.".into(),
        );
    }
    let script = folder.join("dumbbell.tcl");
    std::fs::File::create(&script)?.write_all(SCRIPT.as_bytes())?;
    let mut cases = BTreeMap::new();
    for outcome in outcomes.iter() {
        for scenario in outcome.experiment.series.iter().flat_map(|s| &s.scenarios) {
            if let Some(settings) = settings(scenario) {
                for seed in scenario.seeds() {
                    cases.insert((settings.clone(), seed), Metrics::new());
                }
            }
        }
    }
    let count = cases.len();
    let queue: Vec<Mutex<_>> = cases.iter_mut().map(Mutex::new).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failure = Mutex::new(None);
    let work = || {
        while let Some(case) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut case = case.lock().unwrap_or_else(|e| e.into_inner());
            let ((settings, seed), metrics) = &mut *case;
            match one(&script, settings, *seed) {
                Ok(found) => **metrics = found,
                Err(error) => {
                    failure
                        .lock()
                        .unwrap_or_else(|e| e.into_inner())
                        .get_or_insert(error);
                    return;
                }
            }
            progress(1 + done.fetch_add(1, Ordering::Relaxed), count);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    drop(queue);
    if let Some(error) = failure.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    for outcome in outcomes {
        for series in 0..outcome.experiment.series.len() {
            for point in 0..outcome.experiment.points.len() {
                let scenario = &outcome.experiment.series[series].scenarios[point];
                let Some(settings) = settings(scenario) else {
                    continue;
                };
                let run = |seed| cases.get(&(settings.clone(), seed)).cloned();
                let runs: Vec<Metrics> = scenario.seeds().filter_map(run).collect();
                outcome.add_ns2(series, point, &runs);
            }
        }
    }
    Ok(format!(
        "ns-2 ran {count} DropTail cases beside ours; its means are the crosses."
    ))
}

fn one(script: &Path, settings: &[(&'static str, String)], seed: u64) -> io::Result<Metrics> {
    let mut command = Command::new("ns");
    command.arg(script).args(["seed", &seed.to_string()]);
    for (key, value) in settings {
        command.args([key, value.as_str()]);
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|w| w.parse().ok())
        .collect();
    let &[up, down, data_up, data_down] = &numbers[..] else {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("ns-2 failed: {}", said.trim())));
    };
    let rate = |name: &str| {
        let rate = settings.iter().find(|(key, _)| *key == name);
        rate.and_then(|(_, value)| value.parse().ok())
            .unwrap_or(f64::NAN)
    };
    let metrics = [
        ("up.utilization", up),
        ("down.utilization", down),
        ("up.data", data_up),
        ("down.data", data_down),
        ("utility", data_up + data_down),
        ("up.throughput", data_up * rate("up")),
        ("down.throughput", data_down * rate("down")),
    ];
    Ok(metrics.map(|(name, value)| (name.to_owned(), value)).into())
}
