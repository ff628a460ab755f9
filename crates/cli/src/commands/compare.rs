//! `asymq compare`: several disciplines over one scenario, as a table and a chart.

use crate::catalogs::Catalogs;
use crate::comparison::Width;
use crate::driver::{Driver, Tracks};
use crate::heading::path;
use crate::{chart, comparison, help, output};
use asymq_args::{BadArgument, Defaults, ScenarioError, ScenarioFlags};
use asymq_core::catalog::Shown;
use asymq_scenario::{Report, Scenario, count};
use clap::{Arg, Args, Command};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Compare queue disciplines in one scenario, by default one upload and one download between Linux hosts.
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq compare --up 512kbit --down 8mbit --chart adsl.svg")]
pub(crate) struct CompareArgs {
    /// Use real kernel TCP in network namespaces instead of the simulator.
    #[arg(long)]
    real: bool,
    /// Compare only these disciplines, separated by commas [default: eight common ones; with --real: droptail, cake+ack-filter, asymq].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Use each discipline in both directions, as in a home that also shapes its downlink.
    #[arg(long)]
    both: bool,
    /// Compare all disciplines.
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// Show every column, each with its standard deviation.
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// Write a chart of rates over time to this SVG file.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Print JSON (docs/reference/json.md).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scenario: ScenarioFlags,
}

#[derive(Debug, Serialize)]
struct Comparison<'a> {
    format: u32,
    groups: BTreeMap<&'static str, Vec<&'a str>>,
    best: BTreeMap<&'static str, Vec<&'a str>>,
    reports: BTreeMap<&'a str, &'a Report>,
}

/// Shows this command's own defaults in the help; some differ from the defaults of `sim` and `lab`.
pub(crate) fn own_defaults(command: Command) -> Command {
    let [sim, lab] =
        [Driver::Sim, Driver::Lab].map(|driver| driver.defaults(Catalogs::standard()).headline());
    let default = |value: fn(&Defaults) -> String| match (value(&sim), value(&lab)) {
        (sim, lab) if sim == lab => sim,
        (sim, lab) => format!("{sim}; {lab} with --real"),
    };
    [
        ("flows_up", default(|d| d.flows.0.to_string())),
        ("flows_down", default(|d| d.flows.1.to_string())),
        ("rtt", default(|d| d.rtt.to_string())),
        ("buffer", default(|d| d.buffer.to_string())),
        ("buffer_down", default(|d| d.buffer.to_string())),
        ("runs", default(|d| d.runs.to_string())),
        ("tcp", default(|d| d.tcp.to_string())),
        (
            "probe",
            default(|d| d.probe.unwrap_or_default().to_string()),
        ),
    ]
    .into_iter()
    .fold(command, |command, (id, default)| {
        let help = |arg: &Arg| format!("{} [default: {default}]", help::without_default(arg));
        command.mut_arg(id, |arg| arg.clone().help(help(&arg)))
    })
    .mut_arg("qdisc", |arg| arg.hide(true))
}

pub(crate) fn run(args: CompareArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    if let Some(name) = args.scenario.given.words.get("qdisc") {
        let message =
            "compare runs several disciplines; select them with --only, or use sim or lab";
        return Err(BadArgument::new("--qdisc", message).of_value(name).into());
    }
    let driver = if args.real { Driver::Lab } else { Driver::Sim };
    // With a file, the defaults are those of sim and lab.
    let defaults = match args.scenario.file {
        Some(_) => driver.defaults(catalogs),
        None => driver.defaults(catalogs).headline(),
    };
    let extent = match (args.all, driver) {
        (true, _) => Shown::All,
        (false, Driver::Sim) => Shown::Usual,
        // Runs in real time are expensive: each takes a minute.
        (false, Driver::Lab) => Shown::Short,
    };
    let names: Vec<&str> = match args.only.as_slice() {
        [] => catalogs.names.compared(extent),
        only => only.iter().map(String::as_str).collect(),
    };
    let under = |name: &str| {
        let mut flags = args.scenario.clone();
        flags.given.words.set("qdisc", name);
        if args.both {
            flags.given.words.set("qdisc-down", name);
        }
        let scenario = flags.resolve(catalogs.names, &defaults);
        scenario.map_err(only_names)
    };
    let scenarios: Result<Vec<Scenario>, _> = names.into_iter().map(under).collect();
    let scenarios = scenarios?;
    let Some(scenario) = scenarios.first() else {
        return Ok(());
    };
    let tracks = Tracks {
        series: args.chart.is_some(),
        ..Tracks::default()
    };
    let width = match (args.wide, args.all) {
        (true, _) => Width::Wide,
        (_, true) => Width::All,
        _ => Width::Terminal,
    };
    let mut reports = driver.run(&scenarios, &tracks, catalogs)?;

    if let Some(path) = &args.chart {
        let svg = chart::comparison(&reports, &words(driver, scenario, &reports), catalogs.names)?;
        output::write_file(path, &svg)?;
        eprintln!("Picture: {}", path.display());
    }
    if args.json {
        let runs = reports.iter_mut().flat_map(|report| &mut report.runs);
        runs.for_each(|run| run.series = None);
        output::print_json(&Comparison {
            format: Report::FORMAT,
            groups: comparison::groups(&reports, catalogs.names),
            best: comparison::best(&reports),
            reports: reports
                .iter()
                .map(|report| (&*report.scenario.uplink.qdisc, report))
                .collect(),
        })?;
    } else {
        let mut text = comparison::table(&reports, catalogs.names, &defaults, width);
        if args.chart.is_none() {
            text += "\n--chart asymq-compare.svg draws them over time.";
            text += " More: --all, --only NAMES,\n--wide.\n";
        }
        output::print(&text)?;
    }
    Ok(())
}

/// Replaces `--qdisc` by `--only` in an error about a discipline's name.
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

fn words(driver: Driver, scenario: &Scenario, reports: &[Report]) -> chart::Words {
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
        title: flows,
        setting: match comparison::is_both(reports) {
            true => format!("{how}: {}; {}.", path(scenario), comparison::BOTH),
            false => format!("{how}: {}.", path(scenario)),
        },
        note: match scenario.runs {
            1 => "Numbers exclude the warm-up, which is pale.".to_owned(),
            runs => format!(
                "Means of {runs} runs without the warm-up, which is pale. Curves: the run nearest to the means."
            ),
        },
    }
}
