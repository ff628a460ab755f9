//! `asymq reproduce`: the papers' figures and tables, with a verdict on each claim.

use super::sweep::{SweepOptions, run_plan};
use crate::catalogs::Catalogs;
use crate::output;
use asymq_args::BadArgument;
use asymq_papers::Files;
use asymq_scenario::count;
use asymq_sweep::verdicts;
use clap::Args;
use std::path::PathBuf;

/// Repeat the evaluations of five papers, and write a report with a verdict on each of their claims.
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq reproduce aq/figure-05")]
pub(crate) struct ReproduceArgs {
    /// Evaluation to run: all papers (all), one paper (aq, acq-vaq, dcbq, sad, afvq), another evaluation (beyond, senders, rates), or one figure (for example aq/figure-05).
    #[arg(value_name = "WHAT", default_value = "all")]
    what: String,
    /// Read experiment files from this folder, in place of the built-in ones.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Compare with the verdicts.toml of an earlier report. Exit with an error if a claim that held there now fails by more than chance explains, or has another tolerance.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Folder to which the report and all results are written.
    #[arg(long, value_name = "DIR", default_value = "asymq-reproduce")]
    out: PathBuf,
    #[command(flatten)]
    options: SweepOptions,
}

pub(crate) fn run(args: &ReproduceArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let expected = match &args.check {
        None => None,
        Some(path) => {
            let text = asymq_args::read_file(path)?;
            let bad =
                |message| BadArgument::new("--check", format!("{}:{message}", path.display()));
            let verdicts = verdicts::read(&text).map_err(bad)?;
            Some((path, verdicts))
        }
    };
    let files = match &args.from {
        Some(folder) => Files::of(folder)?,
        None => Files::built_in(),
    };
    let experiments = files.experiments(&args.what)?;
    let Some(outcomes) = run_plan(catalogs, &experiments, &args.out, &args.options)? else {
        return Ok(());
    };
    if let Some((path, expected)) = expected {
        let found = verdicts::compare(&expected, &outcomes, args.what != "all");
        let mut text = String::new();
        for (title, lines) in [
            ("Other seeds, other verdict, within chance", &found.notes),
            ("Beyond chance", &found.failures),
        ] {
            for line in lines {
                text.push_str(&format!("{title}: {line}\n"));
            }
        }
        output::print(&text)?;
        if !found.failures.is_empty() {
            anyhow::bail!(
                "results differ from {1} in {0}; if the new results are right, copy {2} there",
                count(found.failures.len(), "claim"),
                path.display(),
                args.out.join("verdicts.toml").display()
            );
        }
    }
    Ok(())
}
