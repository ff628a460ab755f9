//! Runs a scenario given with the flags of `asymq sim` and prints the report as JSON.
use asymq_scenario::{Defaults, ScenarioArgs};
use clap::Parser;

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[arg(long)]
    json: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Args::parse().scenario.resolve(&Defaults::paper())?;
    let report = asymq_sim::run_all(&scenario, false, |_| {})?;
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
