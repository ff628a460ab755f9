//! Scenarios over real kernel TCP.

use super::Tracks;
use crate::catalogs::Catalogs;
use crate::progress::ProgressBar;
use crate::signals::stop_on;
use asymq_lab::Guest;
use asymq_scenario::{Report, Scenario};
use libc::{SIGINT, SIGTERM};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Runs the scenarios over real TCP until all are done or the user interrupts.
pub(crate) fn run(
    scenarios: &[Scenario],
    tracks: &Tracks,
    catalogs: Catalogs,
) -> anyhow::Result<Vec<Report>> {
    // Root needs no user namespace; every other user does.
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() != 0) {
        asymq_lab::enter_user_namespace()?;
    }
    let stop = stop_on(&[SIGINT, SIGTERM])?;
    let options = asymq_lab::Options {
        stop: &stop,
        series: tracks.series,
        jobs: lab_jobs(scenarios),
    };
    let bar = ProgressBar::new(100);
    let reports = asymq_lab::run_scenarios(catalogs.gateway, scenarios, options, &mut |progress| {
        let done = progress.elapsed.as_secs_f64() / progress.total.as_secs_f64();
        bar.set_position((done * 100.0) as u64);
    });
    bar.finish_and_clear();
    let reports = reports?;
    for report in &reports {
        for run in report.runs.iter().filter(|run| run.is_late()) {
            let (qdisc, seed) = (&report.scenario.uplink.qdisc, run.seed);
            eprintln!(
                "{qdisc}, seed {seed}: this machine was busy, and packets left late; do not trust this run"
            );
        }
    }
    Ok(reports)
}

/// Number of simultaneous labs. At a home's rates, one lab uses a tenth of a core. A lab must send packets in time;
/// every report contains its lateness.
fn lab_jobs(scenarios: &[Scenario]) -> NonZeroUsize {
    const HOME_BITS_PER_SEC: u64 = 50_000_000;
    let capacity = |scenario: &Scenario| scenario.up.bits_per_sec() + scenario.down.bits_per_sec();
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    if scenarios
        .iter()
        .all(|scenario| capacity(scenario) <= HOME_BITS_PER_SEC)
    {
        cores.saturating_mul(NonZeroUsize::MIN.saturating_add(1))
    } else {
        cores
    }
}

/// Runs the scenario in a guest of qemu with this kernel and these modules.
pub(crate) fn run_in_guest(
    kernel: PathBuf,
    modules: Vec<PathBuf>,
    scenario: &Scenario,
    series: bool,
) -> anyhow::Result<Report> {
    Ok(asymq_lab::run_in_guest(
        &Guest { kernel, modules },
        scenario,
        series,
    )?)
}
