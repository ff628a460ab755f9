//! Flows of the client, and the data that client and server send.

use crate::error::MeasureError;
use crate::limit::{Limit, Limited};
use crate::prober::Window;
use crate::tcp_info::Counter;
use asymq_core::Direction;
use socket2::SockRef;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of bytes per read or write.
pub(crate) const BLOCK: usize = 64 * 1024;

/// Time limit for connecting, and for a flow's first byte.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Returns random bytes, which a link cannot compress.
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

/// Bytes of each flow up to one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Time in seconds by the client's clock.
    pub(crate) at: f64,
    pub(crate) bytes: Vec<u64>,
}

/// A TCP flow that sends or receives on its own thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Flow {
    stream: TcpStream,
    moved: Arc<AtomicU64>,
    /// Counter of arriving bytes; absent if the kernel does not count them.
    arrived: Option<Counter>,
    thread: Option<JoinHandle<()>>,
}

impl Flow {
    /// Starts to send or receive on a connection. Call it after the opening line was sent.
    pub(crate) fn start(stream: TcpStream, direction: Direction) -> io::Result<Self> {
        let moved = Arc::new(AtomicU64::new(0));
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        let arrived = Counter::new(stream.as_fd(), direction);
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
            arrived,
            thread: Some(thread),
        })
    }

    /// Returns the bytes sent or received so far.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// Closes the connection, and waits for the thread. Afterwards, [`Self::moved`] includes an interrupted write.
    fn end(&mut self) {
        // An error means that the other end has already closed the connection.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// True if the flow has ended before it was closed here.
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ratio of a full segment's IP packet to its payload. Includes TCP timestamps, which Linux, macOS and Android
    /// send.
    fn ip_bytes_per_payload(&self) -> f64 {
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

impl Drop for Flow {
    fn drop(&mut self) {
        self.end();
    }
}

/// Flows of a load: uploads, then downloads.
#[derive(Debug, Default)]
pub(crate) struct Flows([Vec<Flow>; 2]);

impl Flows {
    /// Starts downloads and uploads on open connections. `first` returns the opening line of each flow. All opening
    /// lines are sent before uploads begin, because later lines would wait behind the uploads' data.
    pub(crate) fn start(
        mut streams: Vec<TcpStream>,
        downloads: usize,
        first: impl Fn(Direction, usize) -> String,
        limit: Limit<'_>,
    ) -> io::Result<Self> {
        let uploads = streams.split_off(downloads);
        for (direction, streams) in [(Direction::Down, &streams), (Direction::Up, &uploads)] {
            for (number, stream) in streams.iter().enumerate() {
                Limited(stream, limit).write_all(first(direction, number).as_bytes())?;
            }
        }
        let start = |streams: Vec<TcpStream>, direction| -> io::Result<Vec<Flow>> {
            let streams = streams.into_iter();
            streams
                .map(|stream| Flow::start(stream, direction))
                .collect()
        };
        let down = start(streams, Direction::Down)?;
        Ok(Self([start(uploads, Direction::Up)?, down]))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Flow> {
        self.0.iter().flatten()
    }

    /// Ends all flows and returns the bytes that each upload wrote.
    pub(crate) fn end(mut self) -> Vec<u64> {
        self.0.iter_mut().flatten().for_each(Flow::end);
        self.0[0].iter().map(Flow::moved).collect()
    }

    /// # Errors
    /// A flow ended before the end of the load.
    pub(crate) fn check(&self, server: &str) -> Result<(), MeasureError> {
        match self.all().any(Flow::has_ended) {
            false => Ok(()),
            true => Err(MeasureError::protocol(
                server,
                "the server ended a flow early; its limits may be too low (measure serve --time, --bytes)",
            )),
        }
    }

    /// Arrived bytes of a direction, including data after a lost segment. `None` if the kernel does not count them.
    pub(crate) fn arrived(&self, direction: Direction, at: f64) -> Option<Count> {
        let flows = self.0[direction as usize].iter();
        let bytes: Option<Vec<u64>> = flows
            .map(|flow| flow.arrived.as_ref().map(Counter::bytes))
            .collect();
        bytes.map(|bytes| Count { at, bytes })
    }

    /// Bytes written to or read from the sockets of a direction.
    pub(crate) fn moved(&self, direction: Direction, at: f64) -> Count {
        let flows = self.0[direction as usize].iter();
        Count {
            at,
            bytes: flows.map(Flow::moved).collect(),
        }
    }

    /// Runs a load, and calls `tick`, which records counts. The warm-up begins when all flows carry data, or after
    /// [`CONNECT`]. Returns the window after the warm-up, and the number of flows without data.
    pub(crate) fn run(
        &self,
        clock: Instant,
        [warmup, duration, tail]: [Duration; 3],
        mut tick: impl FnMut() -> Result<(), MeasureError>,
    ) -> Result<(Window, usize), MeasureError> {
        let latest = clock.elapsed() + CONNECT;
        while self.silent() > 0 && clock.elapsed() < latest {
            tick()?;
        }
        let silent = self.silent();
        let from = clock.elapsed() + warmup;
        while clock.elapsed() < from + duration + tail {
            tick()?;
        }
        let to = from + duration;
        Ok((Window::new(from.as_secs_f64(), to.as_secs_f64()), silent))
    }

    /// Number of flows that have not carried any data.
    fn silent(&self) -> usize {
        let of = |direction| {
            let arrived = self.arrived(direction, 0.0);
            let counts = arrived.unwrap_or_else(|| self.moved(direction, 0.0));
            counts.bytes.into_iter().filter(|bytes| *bytes == 0).count()
        };
        of(Direction::Up) + of(Direction::Down)
    }

    pub(crate) fn ip_bytes(&self) -> f64 {
        self.all().next().map_or(1.0, Flow::ip_bytes_per_payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_part_of_an_interrupted_write_that_was_sent_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut flows = Flows::default();
        flows.0[0].push(Flow::start(stream, Direction::Up).unwrap());
        // The server does not read: the sockets' buffers become full in the middle of a block.
        let moved = || flows.moved(Direction::Up, 0.0).bytes[0];
        let mut before = u64::MAX;
        while before != moved() {
            before = moved();
            thread::sleep(Duration::from_millis(100));
        }
        let written = flows.end()[0];
        let received = io::copy(&mut server, &mut io::sink()).unwrap();
        assert!(received > before, "no write was interrupted");
        assert_eq!(received, written);
    }
}
