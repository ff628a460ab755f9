//! Tests of the public interface.
//!
//! They are one program, since each program is linked with the whole crate. Tests with their own allocator are
//! separate.

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

#[test]
fn every_file_of_tests_is_compiled() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs") else {
            continue;
        };
        let is_here = include_str!("all.rs").contains(&format!("\nmod {name};"));
        let is_separate = ["all"].contains(&name);
        assert!(is_here || is_separate, "tests/{name}.rs is in no program");
    }
}
