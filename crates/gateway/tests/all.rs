//! Tests of the public interface.
//!
//! They are one program, because each program is linked with the whole crate, and tests within a program run in
//! parallel. Tests that need their own allocator or processes, a kernel or real time are separate programs.

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

/// Separate programs, and the modules that are compiled only there.
const SEPARATE: [&str; 10] = [
    "all",
    "allocation",
    "borrowed_port",
    "faults",
    "kernel",
    "kernel_senders",
    "kernel_tcp",
    "neighbours",
    "rates",
    "timing",
];

#[test]
fn every_file_of_tests_is_compiled() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs") else {
            continue;
        };
        let is_here = include_str!("all.rs").contains(&format!("\nmod {name};"));
        let is_separate = SEPARATE.contains(&name);
        assert!(is_here || is_separate, "tests/{name}.rs is in no program");
    }
}
