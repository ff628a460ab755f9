//! The kernel's counters of a TCP connection's bytes that crossed the line. All `unsafe` of the crate is in this
//! module, because neither the standard library nor `socket2` offers the call.

use asymq_core::Direction;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Counts the bytes of one direction as they arrive. Uploads count when the other end acknowledges them, cumulatively
/// or by SACK. Downloads count when segments arrive.
#[derive(Debug)]
pub(crate) struct Counter {
    socket: OwnedFd,
    direction: Direction,
    before: u64,
}

impl Counter {
    /// Creates a counter that starts at 0. `None` if the kernel does not count.
    pub(crate) fn new(socket: BorrowedFd<'_>, direction: Direction) -> Option<Self> {
        let before = bytes(socket, direction)?;
        let socket = socket.try_clone_to_owned().ok()?;
        Some(Self {
            socket,
            direction,
            before,
        })
    }

    /// Bytes of TCP payload so far.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(self.socket.as_fd(), self.direction).map_or(0, |now| now.saturating_sub(self.before))
    }

    /// Estimates the arrived bytes of the body, by the body's share of the bytes delivered in order.
    #[cfg(feature = "https")]
    pub(crate) fn body_bytes(&self, delivered: u64) -> u64 {
        const BYTES_RECEIVED: usize = 128;
        let in_order = || long(&tcp_info(self.socket.as_fd())?, BYTES_RECEIVED);
        let share = in_order().map_or(0.0, |bytes| delivered as f64 / bytes.max(1) as f64);
        (self.bytes() as f64 * share) as u64
    }

    /// Returns [`packets`] of this connection since it was opened.
    #[cfg(feature = "https")]
    pub(crate) fn packets(&self, headers: u64) -> [u64; 3] {
        let count = || packets(&tcp_info(self.socket.as_fd())?, self.direction, headers);
        count().unwrap_or_default()
    }
}

/// Returns three counts in bytes. The first counts segments that crossed the line; in downloads, each as a full
/// segment. The second counts bytes delivered in order; in uploads, it equals the first. The third counts headers,
/// `headers` bytes per packet.
#[cfg(feature = "https")]
fn packets(info: &[u8], direction: Direction, headers: u64) -> Option<[u64; 3]> {
    const BYTES_RECEIVED: usize = 128;
    const SEGS_OUT: usize = 136;
    const SEGS_IN: usize = 140;
    const BYTES_SENT: usize = 200;
    let crossed = bytes_of(info, direction)?;
    Some(match direction {
        Direction::Up => {
            let sent = (headers * word(info, SEGS_OUT)?) as f64;
            let share = sent / long(info, BYTES_SENT)?.max(1) as f64;
            [crossed, crossed, (crossed as f64 * share) as u64]
        }
        Direction::Down => {
            let in_order = long(info, BYTES_RECEIVED)?;
            [crossed, in_order, headers * word(info, SEGS_IN)?]
        }
    })
}

fn bytes(socket: BorrowedFd<'_>, direction: Direction) -> Option<u64> {
    bytes_of(&tcp_info(socket)?, direction)
}

fn bytes_of(info: &[u8], direction: Direction) -> Option<u64> {
    match direction {
        Direction::Up => acknowledged(info),
        Direction::Down => received(info),
    }
}

/// The kernel's `struct tcp_info` of a socket; `None` if the socket has none.
#[cfg(any(target_os = "android", target_os = "linux"))]
#[expect(unsafe_code, reason = "`TCP_INFO` is a system call")]
pub fn tcp_info(socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    use std::os::fd::AsRawFd as _;
    let mut info = vec![0_u8; 256];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: buffer and length are valid for the call, which writes at most `length` bytes.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    info.truncate(length as usize);
    (answer == 0).then_some(info)
}

/// Always `None`: implemented only on Linux and Android.
#[cfg(not(any(target_os = "android", target_os = "linux")))]
pub fn tcp_info(_socket: BorrowedFd<'_>) -> Option<Vec<u8>> {
    None
}

/// Reads a `u32` of a `struct tcp_info` (linux/tcp.h); `None` if an older kernel lacks it.
pub fn word(info: &[u8], at: usize) -> Option<u64> {
    let bytes = info.get(at..at + 4)?;
    Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)))
}

/// Reads a `u64` of a `struct tcp_info`; `None` if an older kernel lacks it.
fn long(info: &[u8], at: usize) -> Option<u64> {
    let bytes = info.get(at..at + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Bytes that the other end acknowledged. Segments beyond a loss are counted with the mean segment size; otherwise the
/// count would jump by whole windows.
fn acknowledged(info: &[u8]) -> Option<u64> {
    const SACKED: usize = 28;
    const BYTES_ACKED: usize = 120;
    const DATA_SEGS_OUT: usize = 156;
    const BYTES_SENT: usize = 200;
    const DSACK_DUPS: usize = 216;
    let acknowledged = long(info, BYTES_ACKED)?;
    let beyond = || {
        let segments = word(info, SACKED)? + word(info, DSACK_DUPS)?;
        segments
            .saturating_mul(long(info, BYTES_SENT)?)
            .checked_div(word(info, DATA_SEGS_OUT)?)
    };
    // `beyond` needs Linux 4.19.
    Some(acknowledged + beyond().unwrap_or(0))
}

/// Bytes of received segments, in order or not; available since Linux 4.6.
fn received(info: &[u8]) -> Option<u64> {
    const RCV_MSS: usize = 20;
    const DATA_SEGS_IN: usize = 152;
    Some(word(info, DATA_SEGS_IN)? * word(info, RCV_MSS)?)
}

#[cfg(all(test, any(target_os = "android", target_os = "linux")))]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn bytes_in_the_socket_do_not_count_and_arrived_bytes_do() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let counter = Counter::new(client.as_fd(), Direction::Up).unwrap();
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        assert_eq!(counter.bytes(), 5000);
        // The receiver does not read, so bytes beyond its window remain unsent.
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
        // Three segments after a loss; 1000 segments had carried a million bytes.
        info[28..32].copy_from_slice(&3_u32.to_ne_bytes());
        info[156..160].copy_from_slice(&1000_u32.to_ne_bytes());
        info[200..208].copy_from_slice(&1_000_000_u64.to_ne_bytes());
        assert_eq!(acknowledged(&info), Some(126_456));
        // One segment arrived twice.
        info[216..220].copy_from_slice(&1_u32.to_ne_bytes());
        assert_eq!(acknowledged(&info), Some(127_456));
        assert_eq!(acknowledged(&info[..192]), Some(123_456));
        assert_eq!(acknowledged(&info[..104]), None);
        info[20..24].copy_from_slice(&1448_u32.to_ne_bytes());
        info[152..156].copy_from_slice(&10_u32.to_ne_bytes());
        assert_eq!(received(&info), Some(14_480));
        #[cfg(feature = "https")]
        {
            // 10 segments with data and 2 without data. 14 000 bytes arrived in order.
            info[128..136].copy_from_slice(&14_000_u64.to_ne_bytes());
            info[140..144].copy_from_slice(&12_u32.to_ne_bytes());
            info[136..140].copy_from_slice(&1100_u32.to_ne_bytes());
            let down = packets(&info, Direction::Down, 52);
            assert_eq!(down, Some([14_480, 14_000, 624]));
            // 57.2 bytes of headers per 1000 bytes of payload.
            let up = packets(&info, Direction::Up, 52);
            assert_eq!(up, Some([127_456, 127_456, 7290]));
        }
        assert_eq!(received(&info[..104]), None);
    }
}
