//! Writes the list of golden traces for the test build.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_SELFTEST").is_none() {
        return;
    }
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../crates/core/tests/golden");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of golden traces")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for path in names {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        writeln!(
            list,
            "({stem:?}, include_str!({:?})),",
            path.canonicalize().expect("it exists")
        )
        .expect("text grows");
    }
    list.push_str("]\n");
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("golden.rs");
    fs::write(&out, list).expect("the build's folder is writable");
    println!("cargo::rustc-env=ASYMQ_GOLDEN_LIST={}", out.display());
}
