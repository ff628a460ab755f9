//! asymq's own discipline, whole: `docs/asymq.md` describes the algorithm.
//!
//! | part | file | storey |
//! | --- | --- | --- |
//! | service: due packets first, data before ACKs | `service` | decide |
//! | controller: length of the ACKs' wait | `controller` | control |
//! | names, parameters and construction | `entries` | catalog |

#[cfg(feature = "control")]
mod controller;
#[cfg(feature = "control")]
pub(crate) mod entries;
mod service;

#[cfg(feature = "control")]
pub use controller::{AckNeed, AckNeedParams, FIRST_WAIT};
pub use service::DueFirst;
