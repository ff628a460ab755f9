//! Queues and per-flow state, in integers.
//!
//! All memory is bounded and allocated at construction, which may fail with a [`BuildError`]. After that nothing
//! allocates, and the work per packet is bounded by a constant.
//!
//! | part | module |
//! | --- | --- |
//! | queues of one class: FIFO, ACK filtering, flow queues, CoDel, FQ-CoDel, CAKE, DualPI2 | [`Queue`] and its implementations |
//! | a discipline made of queues, a service and a controller | [`Machine`] |
//! | one FIFO for all packets | [`DropTail`] |
//! | hosts at home, as opposed to forged addresses | [`Answered`] |
//! | encrypted ACKs, recognized by size and direction | [`OpaqueAcks`] |
//! | a discipline, its transmitter and its counters | [`Egress`] |
//! | ACK regeneration after the slow link | [`Regenerator`] |

pub(crate) mod ack_chains;
mod ack_flow;
mod acked_bytes;
mod answered;
mod cake;
mod capacity;
mod codel;
mod drop_tail;
pub(crate) mod drr;
mod dualpi2;
mod egress;
mod fifo;
mod filtered;
mod flow_queues;
mod flow_table;
mod fq_codel;
mod longest;
mod machine;
mod meters;
mod numbered;
mod opaque_acks;
mod queue;
mod queues;
mod regenerator;
mod ring;
mod room;
mod rounds;
mod slab;
mod transmitter;

use ack_chains::{AckChains, Arrival};
use ack_flow::{FlowState, KEPT_DUPLICATES, Past};
pub use acked_bytes::AckedBytes;
pub use answered::{Answered, Host};
pub use cake::{Cake, CakeAckFilter, CakeParams, Diffserv};
pub use capacity::{BuildError, MAX_PACKETS, array, boxed, capacity, slots};
pub use codel::CodelQueue;
use codel::MAX_DROPS;
pub use drop_tail::DropTail;
pub use drr::Isolation;
use drr::{FirstTurn, FlowRounds, NEW, OLD, OWN};
pub use dualpi2::{DualPi2, DualPi2Params};
pub use egress::{Egress, Handover};
pub use fifo::Fifo;
pub use filtered::{AckFilter, FilterBounds, Survivor};
pub use flow_queues::FlowQueues;
pub use flow_table::{FlowTable, Slot};
pub use fq_codel::{FqCodel, FqCodelParams};
use longest::{Lengths, Longest};
pub use machine::{Buffer, Machine, Parts, split_buffer};
pub use meters::{Meters, PerClass};
use numbered::NumberedQueues;
pub use opaque_acks::{OpaqueAck, OpaqueAcks};
use queue::forward;
#[cfg(test)]
pub(crate) use queue::within;
pub use queue::{Admission, Queue};
pub use queues::{Fifos, Pair, Queues};
pub use regenerator::{Regenerator, RegeneratorParams, Spacing};
use ring::Ring;
use room::Room;
pub(crate) use rounds::Rounds;
pub(crate) use slab::List;
use slab::{Forward, Place, Slab};
pub use transmitter::{Transmitter, TxTime};
