//! Repeats a sample of a report's runs and prints their lines of `runs.jsonl`, to compare machines: `sample-runs
//! FOLDER [EVERY [PACKETS]]`.
//!
//! `FOLDER` is the folder of a report. The sample contains one of `EVERY` (64) runs, chosen by the scenario's hash.
//! Only runs with at most `PACKETS` (1000000) data packets can be chosen.

use asymq_args::Defaults;
use asymq_sweep::folder::Plan;
use asymq_sweep::tasks::tasks;
use std::io::Write;
use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().map(PathBuf::from).unwrap_or_default();
    let mut number = |default: u64| words.next().map_or(Ok(default), |word| word.parse());
    let (every, packets) = (number(64)?, number(1_000_000)?);
    let experiments = Plan::load(&folder)?.experiments(&Defaults::paper())?;
    let mut out = std::io::stdout().lock();
    for task in tasks(&experiments, None, 1, 0) {
        for job in task.jobs(&experiments) {
            let hash = u64::from_str_radix(&job.key[..16], 16)?;
            if task.packets <= packets && hash % every == 0 {
                let stored = job.simulate(asymq_sim::STANDARD)?;
                writeln!(out, "{}", serde_json::to_string(&stored)?)?;
            }
        }
    }
    Ok(())
}
