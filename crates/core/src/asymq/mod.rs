//! asymq's own discipline: `docs/notes/asymq.md` describes the algorithm.
//!
//! | part | file | layer |
//! | --- | --- | --- |
//! | ACK queue: a slot per flow, in which ACKs wait | `slots` | hold |
//! | data queue: a queue per flow, with a learnt target | `isolated` | hold |
//! | flows that send ahead of their share | `ahead` | hold |
//! | drops of the data queue at enqueue | `room` | hold |
//! | signals and charges of the data queue at dequeue | `departures` | hold |
//! | accounts of hosts: bounds on the share of each host | `hosts` | decide |
//! | AQM of a flow queue | `target` | decide |
//! | pool of learnt targets | `targets` | hold |
//! | other state of a flow | `learnt` | decide |
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
