//! Files of results: one line of JSON each, so that an interrupted run loses at most one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

/// Reads the lines of a file; none if it does not exist. Incomplete lines are skipped.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut all = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        all.extend(serde_json::from_slice(&line?).ok());
    }
    Ok(all)
}

/// A file of results, open for appending.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Opens the file, and creates its folder if needed.
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
        let incomplete =
            fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|b| *b != b'\n'));
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if incomplete {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, path })
    }

    /// Appends a result.
    ///
    /// # Errors
    /// It cannot be written; the error names the file.
    pub fn append(&mut self, result: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(result)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }
}
