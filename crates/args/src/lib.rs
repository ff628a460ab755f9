//! Flags and files, and the one way from them to what runs.
//!
//! A command's flags are [`Words`] first ([`Given`]). Those of a TOML file with the same names are merged
//! with them, and [`Flags`] reads the whole once, with the same errors for both. [`ScenarioArgs`] is a
//! scenario as read, everything optional; [`ScenarioArgs::resolve`] checks it and fills the defaults.
//! [`with_disciplines`] makes the flags of disciplines from a [`Catalog`](asymq_core::catalog::Catalog).

mod bad_argument;
mod defaults;
mod file;
mod line_rate;
mod links;
mod qdisc;
mod replay;
mod scenario;
mod settings;
mod simulated;
mod words;

pub use bad_argument::BadArgument;
pub use defaults::Defaults;
pub use file::{KeyError, ScenarioError, read_bounded};
pub use line_rate::LineRate;
pub use qdisc::{QdiscParams, with_disciplines};
pub use scenario::{ScenarioArgs, ScenarioFlags};
pub use settings::{Field, Settings, flag, is_key, one_of, optional, read, within};
pub use simulated::SimulatedArgs;
pub use words::{Flags, Given, Words};
