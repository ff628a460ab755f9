//! `asymq sweep` and `asymq merge`: run a user's experiment on one machine or on many.

use crate::catalogs::Catalogs;
use crate::output;
use crate::progress::ProgressBar;
use anyhow::Context;
use asymq_args::BadArgument;
use asymq_papers::COLLECTION;
use asymq_scenario::count;
use asymq_sweep::experiment::Experiment;
use asymq_sweep::folder::{self, Plan};
use asymq_sweep::outcome::{self, Outcome};
use asymq_sweep::report::Origin;
use asymq_sweep::runner;
use asymq_sweep::seeds::Decided;
use asymq_sweep::store::Results;
use asymq_sweep::tasks::{self, Shard};
use asymq_sweep::verdict::Verdict;
use clap::Args;
use std::path::{Path, PathBuf};

/// Run an experiment from a file (docs/research/experiments.md), and write its report.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Experiment file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder to which the report and all results are written.
    #[arg(long, value_name = "DIR", default_value = "asymq-sweep")]
    out: PathBuf,
    #[command(flatten)]
    options: SweepOptions,
}

/// Merge the parts of a sweep that ran with --shard, and write its report.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The parts' --out folders.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Folder to which the report and all results are written.
    #[arg(long, value_name = "DIR", default_value = "asymq-merge")]
    out: PathBuf,
    /// Maximum number of simultaneous runs; `asymq merge` runs only further seeds of undecided claims [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

/// Options of the runs.
#[derive(Debug, Args)]
pub(crate) struct SweepOptions {
    /// Preview: run fewer seeds and points, and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Seed of the first run of each scenario [default: the experiment file's].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Maximum number of simultaneous runs [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Run only part I of N of all runs, for example 3/16; `asymq merge` joins the parts.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

pub(super) fn threads(jobs: Option<u32>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(cores, |jobs| jobs as usize)
}

pub(crate) fn sweep(args: &SweepArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let experiment = asymq_sweep::experiment::read(&args.file, &catalogs.of_experiments())?;
    run_plan(catalogs, &[experiment], &args.out, &args.options)?;
    Ok(())
}

pub(crate) fn merge(args: &MergeArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let load = |folder: &PathBuf| {
        Plan::load(folder).map_err(|error| BadArgument::new("merge", format!("{error:#}")))
    };
    let mut plans = args.folders.iter().map(|folder| (folder, load(folder)));
    let (first, plan) = plans.next().context("no folder given")?;
    let plan = plan?;
    for (folder, other) in plans {
        if other? != plan {
            let first = first.display();
            let message = format!("a different sweep from {first}; merge shards of one sweep");
            return Err(BadArgument::new(folder.display().to_string(), message).into());
        }
    }
    let mut results = Results::default();
    for folder in &args.folders {
        results.extend(Results::load(folder).with_context(|| format!("{}", folder.display()))?);
    }
    let experiments = plan.experiments(&catalogs.of_experiments())?;
    // A run that a shard omitted is an error. Further seeds for undecided claims run on this machine.
    outcome::judge(&experiments, &results)?;
    tasks::keep(&mut Results::open(&args.out)?, &experiments, &results)?;
    let decided = decide(catalogs, &plan, &args.out, threads(args.jobs))?;
    publish(&args.out, &decided, &plan)
}

/// Simulates the runs that are missing in `out`, and further seeds for undecided claims.
fn decide(catalogs: Catalogs, plan: &Plan, out: &Path, threads: usize) -> anyhow::Result<Decided> {
    let bar = ProgressBar::new(1);
    let defaults = catalogs.of_experiments();
    let decided = plan.run(catalogs.sim, &defaults, out, threads, &|look, done, all| {
        if look > 1 {
            bar.set_message("further seeds for undecided claims");
        }
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    decided
}

/// Simulates the runs of experiments that are missing in `out`, and writes the report. Returns `None` for a shard, without a
/// report.
pub(crate) fn run_plan(
    catalogs: Catalogs,
    experiments: &[Experiment],
    out: &Path,
    options: &SweepOptions,
) -> anyhow::Result<Option<Vec<Outcome>>> {
    let plan = Plan::new(experiments, options.quick, options.seed);
    let threads = threads(options.jobs);
    if let Some(shard) = options.shard.filter(|shard| !shard.is_whole()) {
        plan.save(out)?;
        let experiments = plan.experiments(&catalogs.of_experiments())?;
        run_shard(catalogs, &experiments, shard, out, threads)?;
        return Ok(None);
    }
    let decided = decide(catalogs, &plan, out, threads)?;
    publish(out, &decided, &plan)?;
    Ok(Some(decided.outcomes))
}

fn run_shard(
    catalogs: Catalogs,
    experiments: &[Experiment],
    shard: Shard,
    out: &Path,
    threads: usize,
) -> anyhow::Result<()> {
    let part = tasks::single_runs(experiments).part(shard);
    let bar = ProgressBar::new(1);
    let known = Results::open(out)?;
    runner::run(catalogs.sim, &part, known, threads, &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    eprintln!(
        "Shard {shard}: {} runs in {}",
        part.jobs().count(),
        out.display()
    );
    Ok(())
}

fn publish(out: &Path, decided: &Decided, plan: &Plan) -> anyhow::Result<()> {
    let origin = Origin {
        collection: &COLLECTION,
        ..Origin::of_this_build(plan.quick)
    };
    let page = folder::publish(out, decided, &origin)?;
    output::print(&verdict_lines(&decided.outcomes))?;
    eprintln!("Report: {}", page.display());
    Ok(())
}

/// Counts the claims by verdict, and lists each claim that was not reproduced.
fn verdict_lines(outcomes: &[Outcome]) -> String {
    let text = outcomes.iter().filter(|o| !o.experiment.is_found());
    let findings: Vec<_> = text.flat_map(Outcome::findings).collect();
    if findings.is_empty() {
        return String::new();
    }
    let counts = Verdict::ALL.map(|verdict| {
        let count = findings.iter().filter(|f| f.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let claims = count(findings.len(), "claim");
    let counts = format!("{claims}: {}", counts.join(", "));
    let mut text = output::wrapped(&counts, output::WIDTH);
    for verdict in Verdict::ALL
        .into_iter()
        .filter(|v| *v != Verdict::Reproduced)
    {
        for finding in findings.iter().filter(|f| f.verdict == verdict) {
            let claim = format!("{}: {}", finding.claim.id, finding.claim.says);
            let mut head = format!("{verdict:19}  ");
            for line in output::wrapped(&claim, output::WIDTH - head.len()).lines() {
                text += &format!("{head}{line}\n");
                head = " ".repeat(head.len());
            }
        }
    }
    text
}
