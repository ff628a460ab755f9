//! Scenarios as a user types them.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_scenario::Scenario;
use clap::Parser;

/// A scenario from the flags of the command line.
pub(crate) fn scenario(flags: &str) -> Scenario {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        scenario: ScenarioArgs,
    }
    let flags = std::iter::once("asymq").chain(flags.split_whitespace());
    let args = Flags::parse_from(flags).scenario;
    args.resolve(&Defaults::paper()).unwrap()
}
