//! `asymq gateway`: flags, settings files, control socket, and changes to the host.

mod args;
mod check;
mod command;
mod consent;
mod install;
mod router;
mod router_args;
mod router_install;
mod router_qdisc;
mod settings;
mod trial;

pub(crate) use args::GatewayArgs;
#[cfg(test)]
pub(crate) use args::LinkArgs;
pub(crate) use command::run;
pub(crate) use router::run as run_router;
pub(crate) use router_args::RouterArgs;
