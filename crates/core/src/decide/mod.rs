//! Decisions about one packet, in integers.
//!
//! This module never allocates, uses no floats and cannot panic: it and [`hold`](crate::hold) run in a kernel's
//! softirq.
//!
//! | decision | module |
//! | --- | --- |
//! | facts of a frame | [`frame`] |
//! | what the link charges for it | [`overhead`] |
//! | which queue it joins | [`classify`] |
//! | whether a later ACK makes it redundant | [`ack`] |
//! | what a sender reads off AccECN then | `accecn` |
//! | whether an arrival is dropped or marked early | [`aqm`] |
//! | which queue is served next | [`service`] |
//! | what a controller reads and sets | [`control`] |

pub(crate) mod accecn;
pub mod ack;
pub mod aqm;
pub mod classify;
pub mod control;
pub mod frame;
pub mod overhead;
pub mod random;
pub mod service;
