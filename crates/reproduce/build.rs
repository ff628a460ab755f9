//! Embeds the experiment files, and a fingerprint of the sources that decide what a run shows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let mut list = String::from("[\n");
    for file in files(&root.join("experiments"), "toml")? {
        let folder = file.parent().and_then(Path::file_name);
        if let (Some(folder), Some(stem)) = (folder, file.file_stem()) {
            let name = format!("{}/{}", folder.display(), stem.display());
            writeln!(list, "({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
        }
    }
    list.push(']');

    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for part in ["core", "scenario", "sim"] {
        for file in files(&root.join("crates").join(part).join("src"), "rs")? {
            hash.write(&fs::read(file)?);
        }
    }
    hash.write(env::var("CARGO_PKG_VERSION").unwrap_or_default().as_bytes());

    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("experiments.rs"), list)?;
    println!("cargo::rustc-env=ASYMQ_FINGERPRINT={:016x}", hash.0);
    Ok(())
}

/// The files below `folder` with this extension, in the order of their paths; cargo watches them.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                println!("cargo::rerun-if-changed={}", path.display());
                found.push(path.canonicalize()?);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// FNV-1a, 64 bits.
struct Fnv(u64);

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
