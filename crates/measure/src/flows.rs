//! Flows of the client, and the block of bytes that both ends send.

use crate::wire::{Opening, Token};
use asymq_core::Direction;
use socket2::SockRef;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of a read or a write.
pub(crate) const BLOCK: usize = 64 * 1024;

/// Time for a connection to be made.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Bytes that a link cannot compress.
pub(crate) fn block() -> Box<[u8]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = vec![0; BLOCK].into_boxed_slice();
    for word in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// A TCP flow that sends or receives on a thread of its own until it is dropped.
#[derive(Debug)]
pub(crate) struct Flow {
    stream: TcpStream,
    moved: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Flow {
    /// Opens a flow of a session of this project's server.
    pub(crate) fn open(
        server: SocketAddr,
        direction: Direction,
        session: Token,
        flow: usize,
    ) -> io::Result<Self> {
        let opening = Opening::Flow {
            direction,
            session,
            flow,
        };
        Self::start(connect(server, opening.to_string().as_bytes())?, direction)
    }

    /// Sends or receives on a connection that is ready for it.
    pub(crate) fn start(stream: TcpStream, direction: Direction) -> io::Result<Self> {
        let moved = Arc::new(AtomicU64::new(0));
        let (mut carrier, count) = (stream.try_clone()?, Arc::clone(&moved));
        let thread = thread::spawn(move || {
            let mut bytes = block();
            loop {
                let length = match direction {
                    Direction::Up => carrier.write(&bytes),
                    Direction::Down => carrier.read(&mut bytes),
                };
                match length {
                    Ok(0) | Err(_) => return,
                    Ok(length) => count.fetch_add(length as u64, Relaxed),
                };
            }
        });
        Ok(Self {
            stream,
            moved,
            thread: Some(thread),
        })
    }

    /// Bytes sent or received so far.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// True once it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Bytes of a full segment as an IP packet for each byte of its payload. Timestamps are taken for
    /// granted, as in Linux, macOS and Android.
    pub(crate) fn ip_bytes_per_payload(&self) -> f64 {
        const TCP_WITH_TIMESTAMPS: f64 = 32.0;
        let is_v4 = self
            .stream
            .peer_addr()
            .is_ok_and(|peer| peer.ip().to_canonical().is_ipv4());
        let headers = TCP_WITH_TIMESTAMPS + if is_v4 { 20.0 } else { 40.0 };
        let segment = SockRef::from(&self.stream).tcp_mss();
        let segment = f64::from(segment.ok().filter(|mss| *mss >= 500).unwrap_or(1448));
        1.0 + headers / segment
    }
}

/// Connects and sends the first bytes. Closing the connection discards what is unsent.
pub(crate) fn connect(server: SocketAddr, first: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&server, CONNECT)?;
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    stream.write_all(first)?;
    Ok(stream)
}

impl Drop for Flow {
    fn drop(&mut self) {
        // An error means that the other end was faster.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
