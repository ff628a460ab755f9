//! `asymq reproduce fit`: the settings that a paper's text leaves open, searched.

use super::sweep::threads;
use crate::catalogs::Catalogs;
use crate::driver::progress_bar;
use crate::output;
use anyhow::Context;
use asymq_reproduce::Files;
use asymq_reproduce::fit::{Effort, Search};
use clap::Args;
use std::path::PathBuf;

/// Search the settings that a paper's text leaves open, by half of its claims.
///
/// The other half judges the result. Interrupted, it goes on where it was.
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The paper: aq, acq-vaq, dcbq, sad or afvq.
    #[arg(value_name = "PAPER")]
    paper: String,
    /// Read the experiments and the free settings from this folder instead of those built in.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Where to write found.toml and all evaluations.
    #[arg(long, value_name = "DIR", default_value = "asymq-fit")]
    out: PathBuf,
    /// Settings to try.
    #[arg(long, value_name = "N", default_value_t = 256)]
    settings: usize,
    /// Steps, 1 to 3: the best quarter of each goes on to the next, with more and longer runs.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=3))]
    steps: u8,
    /// Random settings to compare the result with; with 0, those of the first step serve as such.
    #[arg(long, value_name = "N", default_value_t = 64)]
    random: usize,
    /// A preview: few settings, short runs.
    #[arg(long)]
    quick: bool,
    /// Settings at a time [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// The experiment files of a folder, or those built in.
pub(super) fn files(from: Option<&PathBuf>) -> Result<Files, asymq_reproduce::SelectError> {
    from.map_or_else(|| Ok(Files::built_in()), |folder| Files::of(folder))
}

/// Runs the command.
pub(super) fn run(args: &FitArgs, catalogs: Catalogs) -> anyhow::Result<()> {
    let files = files(args.from.as_ref())?;
    let search = Search {
        files: &files,
        paper: &args.paper,
        defaults: &catalogs.of_experiments(),
        folder: &args.out,
        threads: threads(args.jobs),
        effort: match args.quick {
            true => Effort::quick(),
            false => Effort::whole(args.settings.max(1), args.random, args.steps.into()),
        },
    };
    let bar = progress_bar(1);
    let searched = search.run(catalogs.sim, &|done, all, step| {
        bar.set_message(step.to_owned());
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let found = searched?;
    let path = args.out.join("found.toml");
    std::fs::write(&path, found.to_toml())
        .with_context(|| format!("cannot write {}", path.display()))?;
    match args.json {
        true => output::print(&(serde_json::to_string_pretty(&found)? + "\n"))?,
        false => output::print(&format!("{found}\n"))?,
    }
    eprintln!("Settings: {}", path.display());
    Ok(())
}
