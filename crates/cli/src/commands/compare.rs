//! `asymq compare`: every discipline over one scenario, as a table and a picture.

use crate::catalogs::Catalogs;
use crate::driver::{Driver, Tracks};
use crate::words::{count, path};
use crate::{chart, comparison, output};
use asymq_args::{BadArgument, ScenarioArgs, ScenarioError};
use asymq_core::catalog::{Entry, Group, Role};
use asymq_scenario::{Report, Scenario};
use clap::{Args, Command};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Run one scenario under every discipline; show a table and draw a picture.
///
/// Without arguments: one upload and one download share an access link of 1 Mbit/s up and 10 Mbit/s
/// down with an RTT of 100 ms and buffers of 100 packets, simulated.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Over real kernel TCP in network namespaces, not simulated.
    #[arg(long)]
    real: bool,
    /// Only these disciplines, separated by commas [default: what people run today, the papers' and
    /// asymq; droptail,cake+ack-filter,asymq with --real].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Where to write the picture [default: asymq-compare.svg].
    #[arg(long, value_name = "FILE", conflicts_with = "no_chart")]
    chart: Option<PathBuf>,
    /// Write no picture.
    #[arg(long)]
    no_chart: bool,
    /// Print JSON (docs/json.md), and write a picture only where --chart says so.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Comparison<'a> {
    format: u32,
    groups: BTreeMap<&'static str, Vec<&'a str>>,
    best: BTreeMap<&'static str, Vec<&'a str>>,
    reports: BTreeMap<&'a str, &'a Report>,
}

/// Tells this command's defaults where they are not those of `sim` and `lab`.
pub(crate) fn own_defaults(command: Command) -> Command {
    let with_help = |command: Command, id: &'static str, help: &'static str| {
        command.mut_arg(id, |arg| arg.help(help).long_help(None::<&str>))
    };
    let command = command.mut_arg("qdisc", |arg| arg.hide(true));
    [
        ("flows_up", "Long-lived uploads, 0 to 1000 [default: 1]"),
        ("flows_down", "Long-lived downloads, 0 to 1000 [default: 1]"),
        (
            "rtt",
            "Propagation round-trip time, one or a range [default: 100ms]",
        ),
        (
            "buffer",
            "Uplink buffer, in packets or bytes [default: 100p; 50p with --real]",
        ),
        (
            "buffer_down",
            "Downlink buffer [default: 100p; 50p with --real]",
        ),
        (
            "runs",
            "Number of runs with consecutive seeds, 1 to 10000 [default: 20; 3 with --real]",
        ),
        (
            "probe",
            "Send a probe, a small UDP echo, this often and report its delay; 0 sends none [default: 100ms]",
        ),
    ]
    .into_iter()
    .fold(command, |command, (id, help)| with_help(command, id, help))
}

/// Runs the command.
pub(crate) fn run(args: CompareArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    if let Some(name) = args.scenario.qdisc {
        return Err(BadArgument {
            argument: "--qdisc".into(),
            value: Some(name),
            message: "compare runs every discipline; choose with --only, or use sim or lab".into(),
        }
        .into());
    }
    let driver = if args.real { Driver::Lab } else { Driver::Sim };
    let picture = match (args.chart, args.no_chart || args.json) {
        (Some(path), _) => Some(path),
        (None, true) => None,
        (None, false) => Some(PathBuf::from("asymq-compare.svg")),
    };
    let defaults = driver.defaults().headline();
    let named = |such: &dyn Fn(&Entry) -> bool| {
        let all = catalogs.names.of_role(Role::Qdisc).into_iter();
        all.filter(|entry| such(entry))
            .map(|entry| entry.name)
            .collect()
    };
    let names: Vec<&str> = match (args.only.as_slice(), driver) {
        ([], Driver::Sim) => named(&|entry| entry.group != Group::Variant && !entry.repeats),
        // Real time is dear: a minute for each run.
        ([], Driver::Lab) => named(&|entry| entry.in_short),
        (only, _) => only.iter().map(String::as_str).collect(),
    };
    let under = |name: &str| {
        let args = ScenarioArgs {
            qdisc: Some(name.to_owned()),
            ..args.scenario.clone()
        };
        args.resolve_in(catalogs.names, &defaults)
            .map_err(only_names)
    };
    let scenarios: Result<Vec<Scenario>, _> = names.into_iter().map(under).collect();
    let scenarios = scenarios?;
    let Some(scenario) = scenarios.first() else {
        return Ok(());
    };
    let tracks = Tracks {
        series: true,
        ..Tracks::default()
    };
    let mut reports = driver.run(&scenarios, &tracks, catalogs)?;

    let svg = match picture {
        Some(path) => Some((chart::comparison(&reports, &words(driver, scenario))?, path)),
        None => None,
    };
    if args.json {
        drop_series(&mut reports);
        output::print_json(&Comparison {
            format: Report::FORMAT,
            groups: comparison::camps(&reports, catalogs.names),
            best: comparison::best(&reports),
            reports: reports
                .iter()
                .map(|report| (report.scenario.uplink.qdisc.as_str(), report))
                .collect(),
        })?;
    } else {
        output::print(&comparison::table(&reports, catalogs.names, &defaults))?;
    }
    if let Some((svg, path)) = svg {
        output::write_file(&path, &svg)?;
        eprintln!("Picture: {}", path.display());
    }
    Ok(())
}

/// A name that was given by --only, not by --qdisc.
fn only_names(error: ScenarioError) -> ScenarioError {
    match error {
        ScenarioError::Value(bad) if bad.argument == "--qdisc" => {
            ScenarioError::Value(BadArgument {
                argument: "--only".into(),
                ..bad
            })
        }
        other => other,
    }
}

fn drop_series(reports: &mut [Report]) {
    for run in reports.iter_mut().flat_map(|report| &mut report.runs) {
        run.series = None;
    }
}

fn words(driver: Driver, scenario: &Scenario) -> chart::Words {
    let how = match driver {
        Driver::Sim => "Simulated",
        Driver::Lab => "Real kernel TCP",
    };
    let flows = match (scenario.flows_up, scenario.flows_down) {
        (up, 0) => count(up, "upload"),
        (0, down) => count(down, "download"),
        (up, down) => format!(
            "{} and {} at once",
            count(up, "upload"),
            count(down, "download")
        ),
    };
    chart::Words {
        title: format!("{flows}, under each discipline"),
        setting: format!("{how}: {}.", path(scenario)),
        note: match scenario.runs {
            1 => "The mean leaves out the pale start.".to_owned(),
            runs => format!(
                "Means of {runs} runs, which leave out the pale start; drawn is the run nearest to them."
            ),
        },
    }
}
