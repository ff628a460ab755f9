//! `asymq gateway`: flags, settings files and the control socket.

mod args;
mod command;
mod settings;

pub(crate) use args::GatewayArgs;
pub(crate) use command::run;
