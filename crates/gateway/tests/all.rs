//! Tests of the public interface.
//!
//! One program, because each is linked with the whole crate. Those with an allocator or a command of their own are
//! separate, and so are those that measure real time or hold locks, which other tests would disturb.

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
mod panic;
mod passive;

const SEPARATE: [&str; 9] = [
    "all",
    "allocation",
    "faults",
    "kernel_senders",
    "kernel_tcp",
    "neighbours",
    "packaging",
    "rates",
    "router",
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
