//! Scenarios from the flags that a user types.

use asymq_args::{Defaults, ScenarioArgs};
use asymq_scenario::Scenario;

/// Returns the scenario of these command-line flags.
pub(crate) fn scenario(flags: &str) -> Scenario {
    let flags = flags.split_whitespace().map(str::to_owned);
    let args = ScenarioArgs::from_words(flags).unwrap();
    args.resolve(&Defaults::paper()).unwrap()
}
