//! `asymq sim` and `asymq lab`: one scenario, simulated or over real TCP.

use crate::catalogs::Catalogs;
use crate::driver::{Driver, Tracks};
use crate::{output, report};
use asymq_args::ScenarioArgs;
use clap::Args;
use std::path::PathBuf;

/// Simulate a scenario.
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq sim --up 1mbit --down 10mbit --qdisc droptail")]
pub(crate) struct SimArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Write the uplink's packets of the first run as pcapng.
    #[arg(long, value_name = "FILE")]
    pcap_up: Option<PathBuf>,
    /// Write the downlink's packets of the first run as pcapng.
    #[arg(long, value_name = "FILE")]
    pcap_down: Option<PathBuf>,
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// Run a scenario over real kernel TCP, in network namespaces on this machine.
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq lab --up 1mbit --down 10mbit --tcp cubic")]
pub(crate) struct LabArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    scenario: ScenarioArgs,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Print JSON (docs/json.md).
    #[arg(long)]
    json: bool,
    /// Put time series of every run into the JSON.
    #[arg(long, requires = "json")]
    series: bool,
    /// Print a table of the flows; always if flows are listed.
    #[arg(long, conflicts_with = "json")]
    flows: bool,
}

/// Runs `asymq sim`.
pub(crate) fn sim(args: SimArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let tracks = Tracks {
        series: args.output.series,
        pcap_up: args.pcap_up,
        pcap_down: args.pcap_down,
    };
    run(Driver::Sim, args.scenario, &args.output, &tracks, catalogs)
}

/// Runs `asymq lab`.
pub(crate) fn lab(args: LabArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let tracks = Tracks {
        series: args.output.series,
        ..Tracks::default()
    };
    run(Driver::Lab, args.scenario, &args.output, &tracks, catalogs)
}

fn run(
    driver: Driver,
    scenario: ScenarioArgs,
    output: &OutputArgs,
    tracks: &Tracks,
    catalogs: Catalogs,
) -> anyhow::Result<()> {
    let defaults = driver.defaults();
    let scenario = scenario.resolve_in(catalogs.names, &defaults)?;
    for report in driver.run(&[scenario], tracks, catalogs)? {
        if output.json {
            output::print_json(&report)?;
        } else {
            output::print(&report::full(
                &report,
                output.flows,
                catalogs.names,
                &defaults,
            ))?;
        }
    }
    Ok(())
}
