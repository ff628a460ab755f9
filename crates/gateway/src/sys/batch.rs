//! Sends many frames with one system call.

use super::socket::PacketSocket;
use crate::io::Losses;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Frames to send together, and their socket.
#[derive(Debug)]
pub(crate) struct SendBatch {
    socket: PacketSocket,
    bytes: Vec<u8>,
    /// Offset of the end of each frame in `bytes`.
    ends: Vec<usize>,
}

impl SendBatch {
    /// Maximum number of frames in one batch.
    const FRAMES: usize = 64;

    pub(crate) fn new(socket: PacketSocket) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a copy of the frame; returns false if the batch is full.
    pub(crate) fn push(&mut self, frame: &[u8]) -> bool {
        if self.ends.len() == Self::FRAMES {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        true
    }

    /// Sends all frames and empties the batch. Frames for which the driver has no room are counted as lost.
    pub(crate) fn send(&mut self, losses: &mut Losses) -> io::Result<()> {
        let (mut answer, mut done) = (Ok(()), 0);
        while done < self.ends.len() {
            let error = match self.send_after(done) {
                Ok(count) => {
                    done += count;
                    continue;
                }
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EMSGSIZE) => {
                    losses.too_long += 1;
                    done += 1;
                }
                Some(libc::ENOBUFS | libc::EAGAIN) => {
                    losses.not_sent += 1;
                    done += 1;
                }
                _ => {
                    losses.not_sent += (self.ends.len() - done) as u64;
                    done = self.ends.len();
                    answer = Err(error);
                }
            }
        }
        self.bytes.clear();
        self.ends.clear();
        answer
    }

    /// Sends all frames except the first `done`; returns the number sent.
    fn send_after(&self, done: usize) -> io::Result<usize> {
        let mut start = done.checked_sub(1).map_or(0, |last| self.ends[last]);
        let mut parts = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; Self::FRAMES];
        // SAFETY: all-zero is a valid msghdr: null pointers with zero lengths.
        let mut messages: [libc::mmsghdr; Self::FRAMES] = unsafe { std::mem::zeroed() };
        let ends = &self.ends[done..];
        for ((part, message), &end) in parts.iter_mut().zip(&mut messages).zip(ends) {
            let frame = &self.bytes[start..end];
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            start = end;
        }
        // SAFETY: the messages point to parts, and those to bytes of `self`; all outlive the call,
        // which only reads them and writes the messages' lengths.
        let answer = unsafe {
            libc::sendmmsg(
                self.socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                ends.len() as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(answer).map_err(|_| io::Error::last_os_error())
    }
}
