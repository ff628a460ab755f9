//! Experiments and their reports.
//!
//! The simulator and the lab run the same [`Scenario`], and both return a [`Report`]. A claim can therefore be tested
//! twice: in simulation, and over the kernel's TCP. A scenario contains every parameter of its disciplines.
//! `asymq-args` makes a scenario from flags and files.

mod ack_policy;
mod check;
mod derived;
mod draw;
mod encapsulation;
mod flow;
mod fold;
mod grade;
mod link_rate;
mod links;
mod modem;
mod netem;
mod quic;
mod rate_profile;
mod report;
mod rtt;
mod scenario;
mod tcp;
mod text;
mod traffic;
mod udp;

// Types of fields.
pub use ack_policy::AckPolicy;
pub use asymq_core::{Direction, measure::Percentiles};
pub use draw::{Draw, Source, fraction, uniform};
pub use encapsulation::{Encapsulation, Tunnel};
pub use flow::ListedFlow;
pub use fold::{mean, standard_deviation};
pub use grade::Grade;
pub use link_rate::{DelayStep, RateStep, RateTrace, Step};
pub use links::Links;
pub use modem::{Modem, ModemBuffer, RateSource};
pub use netem::{Delay, Loss, Netem, Percent, Reorder};
pub use quic::{QuicFlows, QuicStack};
pub use rate_profile::RateProfile;
pub use report::{
    DirectionReport, Extent, Fates, FlowResult, Goodput, Report, Run, Series, SojournByClass,
    Summary, Tool,
};
pub use rtt::RttRange;
pub use scenario::Scenario;
pub use tcp::{OutsideTcp, Tcp, TcpEcn};
pub use text::{count, escaped, quoted};
pub use traffic::{OnOff, WebLoad};
pub use udp::{Aim, Flood, UdpBurst};
