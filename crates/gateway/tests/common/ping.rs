//! ICMP echo requests without the program `ping`, which a minimal system lacks.

use socket2::{Domain, Protocol, Socket, Type};
use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::process;
use std::time::{Duration, Instant};

/// A socket for echo requests to one address. It always sends in the network namespace in which it was opened.
pub(crate) struct Ping {
    socket: Socket,
    is_ipv4: bool,
}

impl Ping {
    /// Opens the socket.
    ///
    /// # Errors
    /// The user is not root, or there is no route to `address`.
    pub(crate) fn open(address: IpAddr) -> io::Result<Self> {
        let is_ipv4 = address.is_ipv4();
        let (domain, protocol) = match is_ipv4 {
            true => (Domain::IPV4, Protocol::ICMPV4),
            false => (Domain::IPV6, Protocol::ICMPV6),
        };
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.connect(&SocketAddr::new(address, 0).into())?;
        Ok(Self { socket, is_ipv4 })
    }

    /// Sends `count` requests, one per `interval`. Returns the number of requests answered at most 2 s after the last
    /// one.
    pub(crate) fn answered(&self, count: u16, interval: Duration) -> usize {
        let start = Instant::now();
        let mut answered = HashSet::new();
        for sequence in 0..count {
            // Without a route or a carrier, the request is lost.
            let _ = self.socket.send(&self.request(sequence));
            self.receive(start + interval * (u32::from(sequence) + 1), &mut answered);
        }
        let end = Instant::now() + Duration::from_secs(2);
        while answered.len() < usize::from(count) && Instant::now() < end {
            self.receive(
                end.min(Instant::now() + Duration::from_millis(20)),
                &mut answered,
            );
        }
        answered.len()
    }

    fn request(&self, sequence: u16) -> [u8; 8] {
        let id = process::id() as u16;
        let kind = if self.is_ipv4 { 8 } else { 128 };
        let sum = (u32::from(kind) << 8) + u32::from(id) + u32::from(sequence);
        // The kernel computes the checksum of ICMPv6.
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        let mut request = [kind, 0, 0, 0, 0, 0, 0, 0];
        for (at, value) in [(2, sum), (4, id), (6, sequence)] {
            request[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        request
    }

    /// Adds the sequence numbers of the replies that arrive before `end`.
    fn receive(&self, end: Instant, answered: &mut HashSet<u16>) {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.socket.set_read_timeout(Some(left)).unwrap();
            let mut buffer = [MaybeUninit::uninit(); 128];
            let Ok(length) = self.socket.recv(&mut buffer) else {
                continue;
            };
            // SAFETY: `recv` has written these bytes.
            let packet: Vec<u8> = buffer[..length]
                .iter()
                .map(|it| unsafe { it.assume_init() })
                .collect();
            let header = if self.is_ipv4 {
                usize::from(packet[0] & 15) * 4
            } else {
                0
            };
            let reply = if self.is_ipv4 { 0 } else { 129 };
            let id = (process::id() as u16).to_be_bytes();
            if let [kind, _, _, _, a, b, c, d] = packet[header..]
                && kind == reply
                && [a, b] == id
            {
                answered.insert(u16::from_be_bytes([c, d]));
            }
        }
    }
}
