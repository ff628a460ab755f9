//! Flags and files, and the one way from them to what runs.
//!
//! [`ScenarioArgs`] is a scenario as typed, on the command line or in a TOML file with the same names
//! and the same errors, everything optional; [`ScenarioArgs::resolve`] checks it and fills the
//! defaults. The flags of disciplines are made from the
//! [`Catalog`](asymq_core::catalog::Catalog) that [`install`] was given.

mod bad_argument;
mod defaults;
mod file;
mod listing;
mod qdisc;
mod replay;
mod scenario;
mod simulated;
mod words;

pub use bad_argument::BadArgument;
pub use defaults::Defaults;
pub use file::{KeyError, ScenarioError, parse_flags, read_flags};
pub use listing::{install, qdisc_choice, qdisc_names, title};
pub use qdisc::{QdiscParams, downlink_parameter};
pub use scenario::ScenarioArgs;
pub use simulated::SimulatedArgs;
pub use words::{text_of_words, words_of_text};
