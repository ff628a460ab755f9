//! Flags and files, and their conversion to scenarios.
//!
//! A command's flags are first stored as text: [`Words`] in [`Given`]. The keys of a TOML file have the flags' names,
//! and are merged with the flags. [`Flags`] parses the merged text, so that flags and keys report equal errors. It
//! returns [`ScenarioArgs`], whose fields are all optional. [`ScenarioArgs::resolve`] adds the defaults and checks the
//! scenario. [`with_disciplines`] adds the flags of disciplines from a [`Catalog`](asymq_core::catalog::Catalog).

mod bad_argument;
mod check;
mod defaults;
mod file;
mod line_rate;
mod links;
mod qdisc;
mod replay;
mod scenario;
mod settings;
mod words;

pub use bad_argument::BadArgument;
pub use defaults::Defaults;
pub use file::{KeyError, ScenarioError, read_bounded, read_file};
pub use line_rate::LineRate;
pub use qdisc::{downlink_params, with_disciplines};
pub use scenario::{ScenarioArgs, ScenarioFlags, SimulatedArgs};
pub use settings::{Field, Settings, flag, is_key, optional, read, within};
pub use words::{Flags, Given, Words};
