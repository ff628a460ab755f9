//! Traffic: the conversations of a scenario, their endpoints, and the applications that write to them.

mod agent;
mod applications;
pub(crate) mod cast;
mod conversation;
mod transfers;

pub(crate) use agent::{Agent, Side, TcpFlow};
pub(crate) use cast::Models;
pub(crate) use conversation::{AccessLosses, Conversation, Events};
pub(crate) use transfers::{Delivered, Past};
