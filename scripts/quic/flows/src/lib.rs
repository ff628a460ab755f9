//! One side of the lab's QUIC flows.
//!
//! The lab starts a stack's program twice, at home and at the servers, with the same arguments:
//!
//! ```text
//! PROGRAM home|servers HOME SERVER:PORT congestion=cubic|bbr ack-every=N warm=NS end=NS up|down:PORT:START...
//! ```
//!
//! A flow is a connection from home's UDP port. It starts START ns after the start of the run. The program prints
//! `ready` after opening its sockets, and starts the run when it reads a line from standard input. The program ends
//! `end` ns later, or when standard input is closed, and then prints a line of JSON per flow. After the warm-up, a
//! reader counts the data that its application reads, and a sender counts packets and timeouts. Both report packet
//! numbers, so that the lab can find spurious losses.

mod qlog;

pub use qlog::{Counts, Reader, Seen};

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Application protocol of the flows in the TLS handshake.
pub const ALPN: &[u8] = b"asymq-bulk";
/// Flow-control window in bytes; never limits a flow.
pub const WINDOW: u32 = 64 << 20;

/// Arguments from the lab.
pub struct Plan {
    pub is_home: bool,
    pub home: IpAddr,
    pub server: SocketAddr,
    pub is_bbr: bool,
    /// Packets per ACK that senders request by ACK_FREQUENCY; 0 for no request.
    pub ack_every: u64,
    pub warm: Duration,
    pub end: Duration,
    pub flows: Vec<Flow>,
}

/// A flow, and the measurements of this side.
pub struct Flow {
    pub is_upload: bool,
    pub port: u16,
    pub start: Duration,
    pub seen: Arc<Mutex<Seen>>,
}

impl Plan {
    /// Parses the command line that the lab wrote.
    ///
    /// # Panics
    /// The arguments are not from the lab.
    pub fn from_args() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str| {
            let found = words
                .iter()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found
                .unwrap_or_else(|| panic!("{name}= is missing"))
                .to_owned()
        };
        let nanos = |name: &str| Duration::from_nanos(value(name).parse().expect("nanoseconds"));
        let flow = |word: &String| {
            let mut parts = word.split(':');
            let direction = parts.next().filter(|word| ["up", "down"].contains(word))?;
            Some(Flow {
                is_upload: direction == "up",
                port: parts.next()?.parse().ok()?,
                start: Duration::from_nanos(parts.next()?.parse().ok()?),
                seen: Arc::default(),
            })
        };
        Self {
            is_home: words[0] == "home",
            home: words[1].parse().expect("home's address"),
            server: words[2].parse().expect("the server's address and port"),
            is_bbr: value("congestion") == "bbr",
            ack_every: value("ack-every").parse().expect("packets"),
            warm: nanos("warm"),
            end: nanos("end"),
            flows: words.iter().filter_map(flow).collect(),
        }
    }

    pub fn flow(&self, port: u16) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.port == port)
    }

    /// True if this side sends the flow's data.
    pub fn sends(&self, flow: &Flow) -> bool {
        flow.is_upload == self.is_home
    }

    /// Reports that the sockets are open, and waits for the start of the run. Afterwards, the end of standard input
    /// ends the program.
    pub fn start(&self) -> Instant {
        println!("ready");
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            std::process::exit(1);
        }
        std::thread::spawn(|| {
            let mut rest = String::new();
            while std::io::stdin().lock().read_line(&mut rest).unwrap_or(0) > 0 {}
            std::process::exit(1);
        });
        let start = Instant::now();
        for flow in &self.flows {
            let mut seen = flow.seen.lock().expect("no panic");
            seen.delivered_at = Some(start + self.warm.max(flow.start));
            seen.counts.warm = Some(start + self.warm);
        }
        start
    }

    /// Prints the measurements.
    pub fn report(&self, start: Instant) {
        let mut out = String::new();
        for flow in &self.flows {
            let mut seen = flow.seen.lock().expect("no panic");
            let last = seen.delivered_at.unwrap_or(start);
            let longest_stall = seen
                .longest_stall
                .max((start + self.end).saturating_duration_since(last));
            let counts = std::mem::take(&mut seen.counts);
            let _ = write!(
                out,
                "{{\"port\":{},\"sends\":{}",
                flow.port,
                self.sends(flow)
            );
            let _ = write!(
                out,
                ",\"payload\":{},\"longest_stall_ns\":{}",
                seen.received,
                longest_stall.as_nanos()
            );
            let (timeouts, sent) = (counts.timeouts, counts.sent);
            let _ = write!(out, ",\"timeouts\":{timeouts},\"sent\":{sent}");
            let (lost, received) = (&counts.lost, &counts.received);
            let _ = writeln!(out, ",\"lost\":{lost:?},\"received\":{received:?}}}");
        }
        let _ = std::io::stdout().write_all(out.as_bytes());
    }
}

/// Opens a socket with a buffer for data that arrive while this process is not scheduled.
pub fn socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let bytes: libc::c_int = 4 << 20;
    // SAFETY: the value outlives the call, and its length is correct.
    let done = unsafe {
        let length = size_of_val(&bytes) as libc::socklen_t;
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            length,
        )
    };
    if done != 0 {
        return Err(std::io::Error::last_os_error());
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}
