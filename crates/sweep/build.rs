//! Computes the fingerprint of the sources that determine a simulated run's result. A published crate does not contain
//! its sibling crates' sources; their version is used instead.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for sibling in ["core", "rates", "scenario", "links", "sim"] {
        let sources = Path::new("..").join(sibling).join("src");
        if sources.is_dir() {
            println!("cargo::rerun-if-changed={}", sources.display());
            add(&sources, &mut hash)?;
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=ASYMQ_SOURCES={hash:016x}");
    Ok(())
}

/// Adds a file to the hash (FNV-1a, 64 bits), or the files of a folder in the order of their paths.
fn add(path: &Path, hash: &mut u64) -> io::Result<()> {
    if path.is_dir() {
        let paths = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        return paths.iter().try_for_each(|path| add(path, hash));
    }
    for byte in fs::read(path)? {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Ok(())
}
