//! Bytes that the other end of a connection has, as the kernel counts them. All `unsafe` of this crate is here, as
//! neither the standard library nor `socket2` offers the call.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Counts bytes that the other end acknowledges from a time on.
#[derive(Debug)]
pub(super) struct Acknowledged {
    socket: OwnedFd,
    before: u64,
}

impl Acknowledged {
    /// Counts from now on; `None` where the kernel does not count.
    pub(super) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let before = acknowledged(socket)?;
        let socket = socket.try_clone_to_owned().ok()?;
        Some(Self { socket, before })
    }

    /// Bytes of TCP's payload so far.
    pub(super) fn bytes(&self) -> u64 {
        acknowledged(self.socket.as_fd()).map_or(0, |now| now.saturating_sub(self.before))
    }
}

/// Bytes that the other end of a TCP connection has acknowledged, also selectively: Linux 4.1 and later.
#[cfg(any(target_os = "android", target_os = "linux"))]
#[expect(unsafe_code, reason = "`TCP_INFO` is a system call")]
fn acknowledged(socket: BorrowedFd<'_>) -> Option<u64> {
    use std::os::fd::AsRawFd as _;
    let mut info = [0_u8; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: buffer and length are valid for the call, which writes no more than `length` bytes.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (answer == 0).then(|| read(info.get(..length as usize)?))?
}

/// The bytes in a `struct tcp_info` (linux/tcp.h), of which older kernels know less. Segments beyond a loss are
/// counted, and not their bytes: they have the mean of all segments. Without them the count would rise in
/// jumps of whole windows.
#[cfg(any(target_os = "android", target_os = "linux"))]
fn read(info: &[u8]) -> Option<u64> {
    const SACKED: usize = 28;
    const BYTES_ACKED: usize = 120;
    const DATA_SEGS_OUT: usize = 156;
    const BYTES_SENT: usize = 200;
    let word = |at: usize| {
        let bytes = info.get(at..at + 4)?;
        Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let long = |at: usize| {
        let bytes = info.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let acknowledged = long(BYTES_ACKED)?;
    let beyond = || (word(SACKED)? * long(BYTES_SENT)?).checked_div(word(DATA_SEGS_OUT)?);
    // Linux 4.19 and later.
    Some(acknowledged + beyond().unwrap_or(0))
}

/// Other systems do not count them, or not in a way that was tried.
#[cfg(not(any(target_os = "android", target_os = "linux")))]
fn acknowledged(_socket: BorrowedFd<'_>) -> Option<u64> {
    None
}

#[cfg(all(test, any(target_os = "android", target_os = "linux")))]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_the_socket_holds_is_not_counted_and_what_arrived_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let counter = Acknowledged::of(client.as_fd()).unwrap();
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        assert_eq!(counter.bytes(), 5000);
        // Nobody reads: what the receiver's window does not take waits here.
        client.set_nonblocking(true).unwrap();
        let mut written = 5000;
        while let Ok(length) = client.write(&[7; 1 << 16]) {
            written += length as u64;
        }
        let acknowledged = counter.bytes();
        assert!(
            (5001..written).contains(&acknowledged),
            "{acknowledged} of {written}"
        );
        drop((client, counter));
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len() as u64, written - 5000);
    }

    #[test]
    fn counts_are_where_the_kernel_puts_them_and_absent_where_it_has_none() {
        let mut info = [0; 232];
        info[120..128].copy_from_slice(&123_456_u64.to_ne_bytes());
        // Three segments beyond a loss; 1000 segments had a million bytes.
        info[28..32].copy_from_slice(&3_u32.to_ne_bytes());
        info[156..160].copy_from_slice(&1000_u32.to_ne_bytes());
        info[200..208].copy_from_slice(&1_000_000_u64.to_ne_bytes());
        assert_eq!(read(&info), Some(126_456));
        assert_eq!(read(&info[..192]), Some(123_456));
        assert_eq!(read(&info[..104]), None);
    }
}
