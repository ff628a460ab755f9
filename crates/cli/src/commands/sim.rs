//! `asymq sim` and `asymq lab`: one scenario, simulated or over real TCP.

use crate::catalogs::Catalogs;
use crate::driver::{Driver, Tracks, lab};
use crate::{output, report};
use asymq_args::{Defaults, ScenarioFlags};
use asymq_scenario::Report;
use clap::Args;
use std::path::PathBuf;

/// Simulate a scenario, by default asymq with the link and flows of the Asymmetric Queueing paper.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: asymq sim --flows-up 1 --flows-down 1 --rtt 100ms --qdisc droptail"
)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Write the uplink's packets in the first run to this pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap_up: Option<PathBuf>,
    /// Write the downlink's packets in the first run to this pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap_down: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioFlags,
}

/// Run a scenario over real kernel TCP in network namespaces, by default the scenario of `asymq sim`.
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq lab --up 1mbit --down 10mbit --tcp cubic")]
pub(crate) struct LabArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Run in a QEMU guest with this kernel, for example DIR/boot/vmlinuz-VERSION. The kernel's modules must be in DIR/lib/modules/VERSION [default: this host's kernel].
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Load this kernel module in the guest of --kernel, for example sch_asymq.ko; repeatable. The guest's tc uses the plugin q_asymq.so in the module's folder.
    #[arg(long, value_name = "FILE", requires = "kernel")]
    insmod: Vec<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioFlags,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Print JSON (docs/reference/json.md).
    #[arg(long)]
    json: bool,
    /// Include the time series of every run in the JSON output.
    #[arg(long, requires = "json")]
    series: bool,
    /// Print a table with one row per flow; implied by --flow (see --help-all).
    #[arg(long, conflicts_with = "json")]
    flows: bool,
}

pub(crate) fn sim(args: SimArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let tracks = Tracks {
        series: args.output.series,
        pcap_up: args.pcap_up,
        pcap_down: args.pcap_down,
    };
    run(Driver::Sim, args.scenario, &args.output, &tracks, catalogs)
}

pub(crate) fn real(args: LabArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let tracks = Tracks {
        series: args.output.series,
        ..Tracks::default()
    };
    let Some(kernel) = args.kernel else {
        return run(Driver::Lab, args.scenario, &args.output, &tracks, catalogs);
    };
    let defaults = Driver::Lab.defaults(catalogs);
    let scenario = args.scenario.resolve(catalogs.names, &defaults)?;
    let report = lab::run_in_guest(kernel, args.insmod, &scenario, tracks.series)?;
    print(&report, &args.output, catalogs, &defaults)
}

fn run(
    driver: Driver,
    scenario: ScenarioFlags,
    output: &OutputArgs,
    tracks: &Tracks,
    catalogs: Catalogs,
) -> anyhow::Result<()> {
    let defaults = driver.defaults(catalogs);
    let scenario = scenario.resolve(catalogs.names, &defaults)?;
    for report in driver.run(&[scenario], tracks, catalogs)? {
        print(&report, output, catalogs, &defaults)?;
    }
    Ok(())
}

fn print(
    report: &Report,
    output: &OutputArgs,
    catalogs: Catalogs,
    defaults: &Defaults,
) -> anyhow::Result<()> {
    if output.json {
        return output::print_json(report);
    }
    output::print(&report::full(
        report,
        output.flows,
        catalogs.names,
        defaults,
    ))
}
