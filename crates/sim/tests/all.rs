//! Tests of the public interface.
//!
//! All tests are one program, because each program is linked with the whole crate. Tests with their own allocator are
//! separate programs.

#[path = "common/flags.rs"]
mod flags;

mod catalog;
mod congestion_from_outside;
mod determinism;
mod documentation;
mod flows;
mod growth;
mod l4s;
mod measures;
mod modems;
mod ns2;
mod ns2_disciplines;
mod paths;
mod rates;
mod rates_learnt;
mod references;
mod theory;
mod traffic;
