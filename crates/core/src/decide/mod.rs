//! Decisions about one packet, in integers.
//!
//! This module never allocates, uses no floats and cannot panic, because this module and [`hold`](crate::hold)
//! run in a kernel's softirq.
//!
//! | decision | module |
//! | --- | --- |
//! | header fields of a frame | [`frame`] |
//! | bytes that the link charges for a packet | [`overhead`] |
//! | queue that a packet joins | [`classify`] |
//! | redundancy of an ACK if a later ACK is queued | [`ack`] |
//! | marks that a sender counts by AccECN after filtering | `accecn` |
//! | early drops and marks | [`aqm`] |
//! | queue that is served next | [`service`] |
//! | input and output of a controller | [`control`] |

pub(crate) mod accecn;
pub mod ack;
pub mod aqm;
pub mod classify;
pub mod control;
pub mod frame;
pub mod overhead;
pub mod random;
pub mod service;
