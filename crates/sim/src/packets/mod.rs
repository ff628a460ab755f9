//! Segments as endpoints exchange them, and packets as links queue them.

mod options;
mod packet;

pub(crate) use options::{CLOCK_TICK, Options, TcpOptions, clock};
pub(crate) use packet::{Kind, Layout, Outbox, PerKind, Segment, SimPacket, flood_number};
