//! Writes whole lines without the standard library's locks: a blocked writer does not block others.

use crate::sys::wait_ready;
use asymq_core::units::Duration;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;

/// Writes lines. After a failure within a line, the next write starts a new line.
pub(crate) struct LineWriter {
    file: File,
    torn: bool,
}

impl LineWriter {
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::new(&io::stdout())
    }

    pub(crate) fn stderr() -> io::Result<Self> {
        Self::new(&io::stderr())
    }

    fn new(stream: &impl AsFd) -> io::Result<Self> {
        Ok(Self {
            file: stream.as_fd().try_clone_to_owned()?.into(),
            torn: false,
        })
    }

    /// True if a write does not block.
    pub(crate) fn is_ready(&self) -> bool {
        let fds = [(self.file.as_fd(), libc::POLLOUT)];
        wait_ready(&fds, Some(Duration::ZERO)).is_ok_and(|ready| ready[0])
    }

    /// Writes all of `text`; may block.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.torn {
            self.write_bytes(b"\n")?;
        }
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.torn = rest[count - 1] != b'\n';
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another process set the stream to non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait_ready(&[(self.file.as_fd(), libc::POLLOUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_line_after_one_that_was_cut_off_begins_afresh() {
        let (mut reader, file) = io::pipe().unwrap();
        let mut writer = LineWriter {
            file: OwnedFd::from(file).into(),
            torn: false,
        };
        writer.write("whole\n").unwrap();
        writer.write("cut o").unwrap();
        writer.write("next\n").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "whole\ncut o\nnext\n");
    }
}
