//! Traffic: the conversations of a scenario, their endpoints, and the applications that write to them.

mod agent;
mod applications;
mod conversation;
mod conversations;
mod transfers;

pub(crate) use agent::{Agent, Probe, Side, TcpFlow};
pub(crate) use conversation::{AccessLosses, Conversation, Events};
pub(crate) use conversations::{Models, conversations};
pub(crate) use transfers::{Delivered, Transfers};
