//! Counters of a TCP connection.

use asymq_measure::{tcp_info, word};
use socket2::Socket;
use std::os::fd::AsFd as _;

/// Counters of `struct tcp_info` (linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpCounts {
    /// Bytes of payload in a full segment.
    pub(crate) segment: u32,
    /// True if segments carry timestamps.
    pub(crate) timestamps: bool,
    pub(crate) retransmissions: u32,
    /// Number of retransmission timeouts; `None` before Linux 6.7.
    pub(crate) timeouts: Option<u16>,
}

impl TcpCounts {
    /// Returns the counters of a connection; `None` if they cannot be read.
    pub(crate) fn of(socket: &Socket) -> Option<Self> {
        Some(Self::read(&tcp_info(socket.as_fd())?))
    }

    /// Reads a `struct tcp_info`, which is shorter on old kernels.
    fn read(info: &[u8]) -> Self {
        const OPTIONS: usize = 5;
        const TIMESTAMPS: u8 = 1;
        const SND_MSS: usize = 16;
        const TOTAL_RETRANS: usize = 100;
        const TOTAL_RTO: usize = 240;
        let word = |at: usize| word(info, at).unwrap_or(0) as u32;
        let timeouts = info.get(TOTAL_RTO..TOTAL_RTO + 2);
        Self {
            segment: word(SND_MSS),
            timestamps: info.get(OPTIONS).is_some_and(|bits| bits & TIMESTAMPS != 0),
            retransmissions: word(TOTAL_RETRANS),
            timeouts: timeouts.map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_over_the_loopback_has_segments_and_sends_nothing_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 5000]).unwrap();
        server.read_exact(&mut [0; 5000]).unwrap();
        let counts = TcpCounts::of(&client.into()).unwrap();
        assert!(counts.segment > 500, "{counts:?}");
        assert_eq!(counts.retransmissions, 0);
        assert_eq!(counts.timeouts.unwrap_or(0), 0);
    }

    #[test]
    fn counters_are_where_the_kernel_puts_them_and_absent_where_it_has_none() {
        let mut info = [0; 248];
        info[5] = 7;
        info[16..20].copy_from_slice(&1448_u32.to_ne_bytes());
        info[100..104].copy_from_slice(&12_u32.to_ne_bytes());
        info[240..242].copy_from_slice(&3_u16.to_ne_bytes());
        let counts = TcpCounts {
            segment: 1448,
            timestamps: true,
            retransmissions: 12,
            timeouts: Some(3),
        };
        assert_eq!(TcpCounts::read(&info), counts);
        let older = TcpCounts {
            timeouts: None,
            ..counts
        };
        assert_eq!(TcpCounts::read(&info[..232]), older);
    }
}
