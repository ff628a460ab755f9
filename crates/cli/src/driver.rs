//! Drivers of scenarios: the simulator and the lab.

#[cfg(target_os = "linux")]
pub(crate) mod lab;
#[cfg(not(target_os = "linux"))]
#[path = "driver/no_lab.rs"]
pub(crate) mod lab;

use crate::catalogs::Catalogs;
use crate::progress::ProgressBar;
use anyhow::Context;
use asymq_args::Defaults;
use asymq_scenario::{Report, Scenario};
use asymq_sim::RunOptions;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Driver {
    /// The simulator.
    Sim,
    /// Real kernel TCP in network namespaces.
    Lab,
}

/// Recordings in addition to the means.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    /// Time series in every run.
    pub(crate) series: bool,
    /// Trace of the uplink's packets, simulator only.
    pub(crate) pcap_up: Option<PathBuf>,
    /// Trace of the downlink's packets, simulator only.
    pub(crate) pcap_down: Option<PathBuf>,
}

impl Driver {
    /// Defaults of scenarios with this driver.
    pub(crate) const fn defaults(self, catalogs: Catalogs) -> Defaults {
        match self {
            Self::Sim => Defaults::sim().with(catalogs.outside),
            Self::Lab => Defaults::lab(),
        }
    }

    /// Runs the scenarios, with a progress bar if standard error is a terminal.
    pub(crate) fn run(
        self,
        scenarios: &[Scenario],
        tracks: &Tracks,
        catalogs: Catalogs,
    ) -> anyhow::Result<Vec<Report>> {
        match self {
            Self::Sim => simulate(scenarios, tracks, catalogs),
            Self::Lab => lab::run(scenarios, tracks, catalogs),
        }
    }
}

fn simulate(
    scenarios: &[Scenario],
    tracks: &Tracks,
    catalogs: Catalogs,
) -> anyhow::Result<Vec<Report>> {
    let runs = scenarios.iter().map(|scenario| u64::from(scenario.runs));
    let bar = ProgressBar::new(runs.sum());
    let mut reports = Vec::new();
    let warnings: BTreeSet<String> = scenarios.iter().flat_map(Scenario::warnings).collect();
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let mut before = 0;
    for scenario in scenarios {
        bar.set_message(scenario.uplink.qdisc.clone());
        reports.push(catalogs.sim.run_all(scenario, tracks.series, |done| {
            bar.set_position(before + done as u64);
        })?);
        before += u64::from(scenario.runs);
    }
    bar.finish_and_clear();
    if let Some(scenario) = scenarios.first() {
        capture(scenario, tracks, catalogs)?;
    }
    Ok(reports)
}

/// Repeats the first run to write its packets. The copy is exact, because a run depends only on scenario and seed.
fn capture(scenario: &Scenario, tracks: &Tracks, catalogs: Catalogs) -> anyhow::Result<()> {
    if tracks.pcap_up.is_none() && tracks.pcap_down.is_none() {
        return Ok(());
    }
    let mut up = tracks.pcap_up.as_deref().map(create).transpose()?;
    let mut down = tracks.pcap_down.as_deref().map(create).transpose()?;
    let options = RunOptions {
        capture_up: up.as_mut().map(|file| file as &mut dyn Write),
        capture_down: down.as_mut().map(|file| file as &mut dyn Write),
        ..RunOptions::default()
    };
    catalogs.sim.run(scenario, scenario.seed, options)?;
    for mut file in [up, down].into_iter().flatten() {
        file.flush().context("cannot write the trace")?;
    }
    Ok(())
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}
