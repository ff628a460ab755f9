//! What an experiment is and what it reports.
//!
//! One [`Scenario`] drives the simulator and the lab, and both answer with a [`Report`], so that a
//! claim can be shown twice: simulated, and over real kernel TCP.
//!
//! [`ScenarioArgs`] is a scenario as typed, on the command line or in a TOML file with the same
//! names and the same errors, everything optional. [`ScenarioArgs::resolve`] checks it and fills the defaults.

mod args;
mod bad_argument;
mod draw;
mod file;
mod qdisc_args;
mod qdisc_name;
mod qdisc_words;
mod report;
mod rtt;
mod scenario;
mod simulated_args;
mod traffic;
mod udp;

pub use args::{Defaults, ScenarioArgs, ScenarioError};
pub use bad_argument::BadArgument;
pub use draw::{Draw, uniform};
pub use file::{KeyError, parse_flags, read_flags};
pub use qdisc_args::QdiscArgs;
pub use qdisc_name::QdiscName;
pub use qdisc_words::{
    AckQueueName, BeyondLimitName, ClassifierName, ControllerName, CreditName, DataPerAckArg,
    ServiceName, Share, UtilityArg,
};
pub use report::{Direction, Goodput, Percentiles, Report, Run, Series, Summary, Tool};
pub use rtt::RttRange;
pub use scenario::{AckPolicy, Scenario, Tcp};
pub use simulated_args::SimulatedArgs;
pub use traffic::{OnOff, WebLoad};
pub use udp::{Toward, UdpBurst};
