//! Long-lived flows over the kernel's TCP, served by one thread.

mod quic;
mod socket;
mod tcp_counts;

pub(crate) use quic::QuicFlows;

use crate::clock::{self, Window};
use crate::error::{Context as _, LabError};
use crate::halt::Halt;
use crate::plan::{Conversation, DOWNLOAD_PORT, HOME, Plan, SERVER, UPLOAD_PORT};
use asymq_core::units::{Duration, Instant};
use asymq_gateway::net::Netns;
use asymq_scenario::{Direction, Scenario};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use socket::{clamp_window, receive_window, reset_on_close, tcp_socket};
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use tcp_counts::TcpCounts;

pub(crate) struct BulkFlows {
    /// Epoll instance; level-triggered. Closed sockets are removed.
    epoll: OwnedFd,
    /// The servers' sockets for uploads and downloads.
    listeners: [Socket; 2],
    flows: Vec<Flow>,
    uploads: usize,
    mss: u32,
    server: [SocketAddrV4; 2],
    receive_window: Option<u64>,
}

#[derive(Default)]
struct Flow {
    direction: Direction,
    start: Duration,
    home: Option<Socket>,
    server: Option<Socket>,
    received: u64,
    received_at_warmup: u64,
    /// Time at which the reader last received data.
    delivered_at: Instant,
    longest_stall: Duration,
    counts_at_warmup: TcpCounts,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowResults {
    /// Bytes of payload delivered.
    pub(crate) payload: u64,
    /// Bytes of payload and of the headers of full segments.
    pub(crate) wire: f64,
    /// Longest time without delivered data.
    pub(crate) longest_stall: Duration,
    /// Retransmissions of the sender; for QUIC, packets declared lost. `None` if the connection failed.
    pub(crate) retransmissions: Option<u32>,
    pub(crate) timeouts: Option<u16>,
    /// QUIC packets that were declared lost but arrived.
    pub(crate) spurious: Option<u32>,
}

/// Checks the kernel's congestion control and the QUIC stack.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    socket::check(scenario.tcp)?;
    quic::check(scenario)
}

impl Flow {
    /// Counters of the sender; `None` if the connection failed.
    fn counts(&self) -> Option<TcpCounts> {
        let sender = self.direction.pick(&self.home, &self.server);
        TcpCounts::of(sender.as_ref()?)
    }

    /// Starts the measurement at the end of the warm-up.
    fn warm_up(&mut self, window: Window) {
        self.received_at_warmup = self.received;
        self.delivered_at = (window.start + self.start).max(window.warm);
        self.longest_stall = Duration::ZERO;
        self.counts_at_warmup = self.counts().unwrap_or_default();
    }

    /// Records that data was delivered.
    fn deliver(&mut self, now: Instant) {
        let longest_stall = now.saturating_since(self.delivered_at);
        self.longest_stall = self.longest_stall.max(longest_stall);
        self.delivered_at = now;
    }

    fn results(&self, window: Window, mss: u32) -> FlowResults {
        let payload = self.received - self.received_at_warmup;
        let (counts, before) = (self.counts(), self.counts_at_warmup);
        // Headers of IP and TCP; with timestamps if the segments carry them.
        let segment = counts.map_or(0, |counts| counts.segment);
        let segment = if segment > 0 { segment } else { mss };
        let headers = match counts {
            Some(counts) if !counts.timestamps => 40,
            _ => 52,
        };
        let timeouts = counts.and_then(|counts| counts.timeouts);
        FlowResults {
            payload,
            wire: payload as f64 * f64::from(segment + headers) / f64::from(segment),
            longest_stall: self
                .longest_stall
                .max(window.end.saturating_since(self.delivered_at)),
            retransmissions: counts.map(|counts| {
                counts
                    .retransmissions
                    .saturating_sub(before.retransmissions)
            }),
            timeouts: timeouts.map(|all| all.saturating_sub(before.timeouts.unwrap_or(0))),
            spurious: None,
        }
    }
}

/// Number of listeners. In epoll events, a listener has the number of its direction.
const LISTENERS: u64 = 2;

/// Number of one end of a flow in epoll events: `end` is 0 at home and 1 at the server.
const fn end_of(flow: usize, end: u64) -> u64 {
    LISTENERS + 2 * flow as u64 + end
}

impl BulkFlows {
    /// Opens each socket in its namespace, without sending.
    pub(crate) fn open(
        scenario: &Scenario,
        plan: &Plan,
        home: &Netns,
        servers: &Netns,
    ) -> Result<Self, LabError> {
        let listen = |port| {
            let socket = tcp_socket(scenario)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddrV4::new(SERVER, port).into())?;
            socket.listen(1024)?;
            Ok::<_, io::Error>(socket)
        };
        let listeners = servers
            .run(|| Ok([listen(UPLOAD_PORT)?, listen(DOWNLOAD_PORT)?]))
            .during("opening the servers' TCP sockets")?;
        let open = |direction, conversation: &Conversation| {
            let socket = tcp_socket(scenario)?;
            socket.bind(&SocketAddrV4::new(HOME, conversation.home_port).into())?;
            Ok::<_, io::Error>(Flow {
                direction,
                start: conversation.start,
                home: Some(socket),
                ..Flow::default()
            })
        };
        let uploads = plan.uploads.iter().map(|flow| (Direction::Up, flow));
        let downloads = plan.downloads.iter().map(|flow| (Direction::Down, flow));
        let flows = home
            .run(|| {
                uploads
                    .chain(downloads)
                    .map(|(direction, flow)| open(direction, flow))
                    .collect()
            })
            .during("opening home's TCP sockets")?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from);
        let epoll = epoll.during("creating an epoll instance")?;
        for (socket, direction) in listeners.iter().zip(Direction::ALL) {
            watch(&epoll, socket, EventFlags::IN, direction as u64)
                .during("watching a listener")?;
        }
        Ok(Self {
            epoll,
            listeners,
            flows,
            uploads: plan.uploads.len(),
            mss: scenario.mss,
            receive_window: receive_window(scenario),
            server: [UPLOAD_PORT, DOWNLOAD_PORT].map(|port| SocketAddrV4::new(SERVER, port)),
        })
    }

    /// Serves the flows until the window ends or the run is halted. Returns results: uploads, then downloads.
    pub(crate) fn run(mut self, window: Window, halt: &Halt) -> Result<Vec<FlowResults>, LabError> {
        const LONGEST_WAIT: Duration = Duration::from_millis(50);
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&flow| self.flows[flow].start);
        let mut unstarted = order.into_iter().peekable();
        let mut warm = false;
        let mut buffer = vec![0; 256 * 1024];
        let mut events = Vec::with_capacity(64);
        loop {
            let now = clock::now();
            if now >= window.end || halt.is_set() {
                break;
            }
            if !warm && now >= window.warm {
                warm = true;
                for flow in &mut self.flows {
                    flow.warm_up(window);
                }
            }
            while let Some(flow) =
                unstarted.next_if(|&flow| window.start + self.flows[flow].start <= now)
            {
                self.connect(flow).during("connecting a flow")?;
            }
            let next_start = unstarted
                .peek()
                .map(|&flow| window.start + self.flows[flow].start);
            let boundary = if warm { window.end } else { window.warm };
            let until = next_start.map_or(boundary, |start| start.min(boundary));
            let wait = until.saturating_since(now).min(LONGEST_WAIT);
            events.clear();
            let wait = Timespec::try_from(std::time::Duration::from(wait)).ok();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => Err(error.into()).during("waiting for TCP")?,
            }
            for event in &events {
                self.serve(event.data.u64(), &mut buffer)
                    .during("serving TCP")?;
            }
        }
        let flows = self.flows.iter();
        Ok(flows.map(|flow| flow.results(window, self.mss)).collect())
    }

    fn connect(&mut self, index: usize) -> io::Result<()> {
        let flow = &self.flows[index];
        let Some(socket) = &flow.home else {
            return Ok(());
        };
        let interest = flow.direction.pick(EventFlags::OUT, EventFlags::IN);
        let server = self.server[flow.direction as usize];
        match socket.connect(&server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        watch(&self.epoll, socket, interest, end_of(index, 0))
    }

    fn serve(&mut self, number: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some(number) = number.checked_sub(LISTENERS) else {
            return self.accept(Direction::ALL[number as usize]);
        };
        let (flow, at_home) = (
            &mut self.flows[number as usize / 2],
            number.is_multiple_of(2),
        );
        let end = match at_home {
            true => &mut flow.home,
            false => &mut flow.server,
        };
        if at_home == (flow.direction == Direction::Up) {
            send(end, buffer);
        } else {
            let before = flow.received;
            receive(end, buffer, &mut flow.received, self.receive_window);
            if flow.received > before {
                flow.deliver(clock::now());
            }
        }
        Ok(())
    }

    fn accept(&mut self, direction: Direction) -> io::Result<()> {
        let interest = direction.pick(EventFlags::IN, EventFlags::OUT);
        let first = direction.pick(0, self.uploads);
        loop {
            let (socket, peer) = match self.listeners[direction as usize].accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The peer closed the connection before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let port = peer.as_socket_ipv4().map_or(0, |peer| peer.port());
            let Some(index) = Plan::flow_of_port(port, direction).map(|flow| first + flow) else {
                continue;
            };
            socket.set_nonblocking(true)?;
            reset_on_close(&socket)?;
            watch(&self.epoll, &socket, interest, end_of(index, 1))?;
            self.flows[index].server = Some(socket);
        }
    }
}

fn watch(epoll: &OwnedFd, socket: &Socket, interest: EventFlags, number: u64) -> io::Result<()> {
    Ok(epoll::add(
        epoll,
        socket,
        EventData::new_u64(number),
        interest,
    )?)
}

/// Writes until the socket is full. Closes a failed socket, which ends its flow.
fn send(socket: &mut Option<Socket>, buffer: &[u8]) {
    while let Some(open) = socket {
        match open.write(buffer) {
            Ok(written) if written > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => *socket = None,
        }
    }
}

/// Reads waiting data. Closes a failed socket, which ends its flow.
fn receive(
    socket: &mut Option<Socket>,
    buffer: &mut [u8],
    received: &mut u64,
    window: Option<u64>,
) {
    while let Some(open) = socket {
        match open.read(buffer) {
            Ok(read) if read > 0 => {
                *received += read as u64;
                if let Some(bytes) = window {
                    // This call succeeded when the socket was created.
                    let _ = clamp_window(open, bytes);
                }
                if read < buffer.len() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => *socket = None,
        }
    }
}
