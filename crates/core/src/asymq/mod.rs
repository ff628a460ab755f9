//! asymq's own discipline: `docs/notes/asymq.md` describes the algorithm.
//!
//! | part | file | layer |
//! | --- | --- | --- |
//! | ACK queue: a slot per flow, in which ACKs wait | `slots` | hold |
//! | data queue: a queue per flow, with a target that is learnt | `isolated` | hold |
//! | flows that send ahead of their share | `ahead` | hold |
//! | its drops at enqueue | `room` | hold |
//! | its signals and charges at dequeue | `departures` | hold |
//! | accounts of hosts: bounds of what one takes from its neighbours | `hosts` | decide |
//! | AQM of a flow queue | `target` | decide |
//! | the flows that have learnt a target | `targets` | hold |
//! | what else is known of a flow | `learnt` | decide |
//! | marks for scalable senders | `shallow` | decide |
//! | service: due packets first, data before ACKs | `decide::service::due_first` | decide |
//! | controller: length of the ACKs' wait | `controller` | control |
//! | names, parameters and construction | `catalog::asymq` | catalog |

mod ahead;
#[cfg(feature = "control")]
mod controller;
mod departures;
mod hosts;
mod isolated;
mod learnt;
mod room;
mod shallow;
mod slots;
mod target;
mod targets;

#[cfg(feature = "control")]
pub(crate) use controller::FIRST_RAMP;
#[cfg(feature = "control")]
pub use controller::{AckNeed, AckNeedParams, FIRST_WAIT};
#[cfg(feature = "control")]
pub(crate) use isolated::limit_in_time;
pub use isolated::{Isolated, IsolatedParams};
pub use slots::{SlotWait, Slots};
pub use target::TargetParams;
