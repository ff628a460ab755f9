//! Flags and files, and their conversion to scenarios.
//!
//! The flags of a command are first stored as text: [`Words`] in [`Given`]. The keys of a TOML file have the names
//! of the flags, and are merged with them. [`Flags`] then parses the result once, so that both have equal errors. The
//! result, [`ScenarioArgs`], has only optional fields; [`ScenarioArgs::resolve`] adds the defaults and checks it.
//! [`with_disciplines`] adds the flags of disciplines from a [`Catalog`](asymq_core::catalog::Catalog).

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
