//! Embeds the experiment files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=experiments");
    let mut files = Vec::new();
    for folder in
        fs::read_dir("experiments")?.filter_map(|entry| fs::read_dir(entry.ok()?.path()).ok())
    {
        for file in folder {
            files.push(file?.path().canonicalize()?);
        }
    }
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        if let (Some(folder), Some(stem)) =
            (file.parent().and_then(Path::file_name), file.file_stem())
        {
            let name = format!("{}/{}", folder.display(), stem.display());
            writeln!(list, "({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
        }
    }
    list.push(']');
    fs::write(
        PathBuf::from(env::var("OUT_DIR").unwrap_or_default()).join("experiments.rs"),
        list,
    )
}
