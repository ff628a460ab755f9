//! Segments as endpoints exchange them, and packets as links queue them.

mod options;
mod packet;
mod ranges;

pub(crate) use options::{HostClock, Options, TcpOptions};
pub(crate) use packet::{Kind, Layout, Outbox, PerKind, Segment, SimPacket, flood_number};
pub(crate) use ranges::RangeSet;
