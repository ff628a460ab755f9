//! The laws of every discipline, as tests that any crate can run on its own catalog.
//!
//! - [`obey`]: applies steps to a discipline, and panics if a law is broken.
//! - [`choice`]: random configurations of a catalog, from a source of numbers.
//! - [`strategy`]: configurations and steps for proptest.
//! - [`fuzz`]: configurations and steps from a fuzzer's bytes.
//! - [`capture`]: reads frames of real links, and writes departures as a capture.
//! - [`frames`]: checks that results do not depend on the representation of packets.
//! - [`golden`]: traces of a discipline for a recorded input.
//!
//! All tests use the catalog's entries, so they cover every discipline, part and parameter:
//!
//! ```
//! use asymq_core::catalog::Standard;
//! use asymq_laws::{Step, golden, obey};
//!
//! let config = golden::config(&Standard, "aq").expect("a discipline of the catalog");
//! obey(&Standard, &config, &[Step::Dequeue, Step::DrainAll]);
//! ```

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod arrival;
pub mod capture;
#[cfg(feature = "std")]
pub mod choice;
pub mod frames;
#[cfg(feature = "std")]
pub mod fuzz;
pub mod golden;
#[cfg(feature = "std")]
mod law;
mod packet;
#[cfg(feature = "strategy")]
pub mod strategy;

#[cfg(feature = "std")]
pub use law::{Step, obey};
pub use packet::Numbered;
