//! The laws of every discipline, as tests that any crate can run on its own catalog.
//!
//! - [`obey`]: carries out steps on a discipline and panics where a law is broken.
//! - [`choice`]: any configuration that a catalog can describe, from a source of numbers.
//! - [`strategy`]: the same, and steps, for proptest.
//! - [`fuzz`]: the same from a fuzzer's bytes.
//! - [`capture`]: reads frames of real links, and writes departures as a capture.
//! - [`frames`]: the same frames through every holder of packets, with the same verdicts.
//! - [`golden`]: what a discipline does with a recorded input, packet by packet.
//!
//! All of it is made from the catalog's entries, so that no discipline, part or parameter can be
//! forgotten:
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
