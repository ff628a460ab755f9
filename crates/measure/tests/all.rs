//! Tests of the public interface. They are one program, since most tests wait and a program's tests run in parallel.

mod common;

mod attacks;
#[cfg(all(feature = "https", target_os = "linux"))]
mod attacks_https;
mod capacity;
mod hostile;
mod loopback;
#[cfg(feature = "https")]
mod responsiveness;

#[test]
fn every_file_of_tests_is_compiled() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs") else {
            continue;
        };
        let is_here = include_str!("all.rs").contains(&format!("\nmod {name};"));
        assert!(is_here || name == "all", "tests/{name}.rs is in no program");
    }
}
