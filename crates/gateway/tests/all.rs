//! Tests of the public interface.
//!
//! The tests are one program, because each program is linked with the whole crate, and tests within a program run in
//! parallel. Tests that need their own allocator, own processes, a kernel or real time are separate programs.

mod common;
#[path = "common/fake.rs"]
mod fake;
#[path = "common/panicking.rs"]
mod panicking;

mod control;
mod forwarder;
mod headend;
mod hosts;
mod live;
mod netns;
mod packaging;
mod panic;
mod passive;
