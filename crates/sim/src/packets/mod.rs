//! Segments as endpoints exchange them, and packets as links queue them.

mod options;
mod packet;

pub(crate) use options::{HostClock, Options, TcpOptions};
pub(crate) use packet::{Kind, Layout, Outbox, PerKind, Segment, SimPacket, flood_number};
