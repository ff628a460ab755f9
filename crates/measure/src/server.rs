//! The server: sends, receives, counts and echoes, within limits that bound what a stranger can cost.
//!
//! A thread per TCP connection, of which there is a maximum; every wait has an end.

use crate::flows::{BLOCK, block};
use crate::session::{Limits, Session, Sessions};
use crate::wire::{Answer, MAX_FLOWS, MAX_OPENING, Opening, PORT, Probe};
use asymq_core::Direction;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that may be open without a session, waiting for their opening line.
const STRANGERS: usize = 32;
/// Time for the opening line.
pub(crate) const OPENING_TIME: Duration = Duration::from_secs(5);
/// Time in which a flow must move a byte.
pub(crate) const STALL: Duration = Duration::from_secs(15);
/// Interval of the counts that a session sends.
const COUNT_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a server notices that it shall stop.
const NOTICE: Duration = Duration::from_millis(250);
/// Stack of a connection's thread: a block and the calls around it.
const STACK: usize = BLOCK + 128 * 1024;

/// A server, listening.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    echo: UdpSocket,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    sessions: Sessions,
    limits: Limits,
    connections: AtomicUsize,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Listens at an address, TCP and UDP; at all of this host without one.
    ///
    /// # Errors
    /// The address is in use, or is not this host's.
    pub fn bind(
        address: Option<SocketAddr>,
        limits: Limits,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (listener, echo) = match address {
            Some(address) => listen(address)?,
            // A host without IPv6 has IPv4.
            None => listen((Ipv6Addr::UNSPECIFIED, PORT).into())
                .or_else(|_| listen((Ipv4Addr::UNSPECIFIED, PORT).into()))?,
        };
        Ok(Self {
            listener,
            echo,
            shared: Arc::new(Shared {
                sessions: Sessions::default(),
                limits,
                connections: AtomicUsize::new(0),
                stop,
            }),
        })
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the caller's flag says stop.
    ///
    /// # Errors
    /// The sockets fail.
    pub fn run(self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.echo.set_read_timeout(Some(NOTICE))?;
        let echo = self.echo;
        let echoing = thread::spawn(move || echo_probes(&echo, &shared));
        while !self.shared.stop.load(Relaxed) {
            match self.listener.accept() {
                Ok((stream, peer)) => admit(&self.shared, stream, peer.ip().to_canonical()),
                // The listener's timeout, or a connection that its client gave up.
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                // Too many descriptors: wait for some to close.
                Err(_) => thread::sleep(NOTICE),
            }
        }
        let _ = echoing.join();
        Ok(())
    }
}

pub(crate) fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let tcp = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    tcp.set_reuse_address(true)?;
    tcp.bind(&address.into())?;
    tcp.listen(64)?;
    // Linux lets `accept` wait no longer than the socket's read timeout.
    tcp.set_read_timeout(Some(NOTICE))?;
    Ok(tcp.into())
}

fn listen(address: SocketAddr) -> io::Result<(TcpListener, UdpSocket)> {
    let listener = listen_tcp(address)?;
    let echo = UdpSocket::bind((address.ip(), listener.local_addr()?.port()))?;
    Ok((listener, echo))
}

fn is_timeout(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Gives a connection a thread, unless there are as many as there may be.
fn admit(shared: &Arc<Shared>, stream: TcpStream, peer: IpAddr) {
    let maximum = shared.limits.clients * (2 * MAX_FLOWS + 1) + STRANGERS;
    if shared.connections.load(Relaxed) >= maximum {
        return;
    }
    shared.connections.fetch_add(1, Relaxed);
    let for_thread = Arc::clone(shared);
    let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
        // The end of a connection is nobody's error.
        let _ = serve(&for_thread, stream, peer);
        for_thread.connections.fetch_sub(1, Relaxed);
    });
    if spawned.is_err() {
        shared.connections.fetch_sub(1, Relaxed);
    }
}

fn serve(shared: &Shared, mut stream: TcpStream, peer: IpAddr) -> io::Result<()> {
    let Some(opening) = read_opening(&mut stream)? else {
        return Ok(());
    };
    match opening {
        Opening::Start => control(shared, stream, peer),
        Opening::Flow {
            direction,
            session,
            flow,
        } => {
            let Some(session) = shared.sessions.find(session, peer) else {
                return Ok(());
            };
            if !session.add(direction, flow, stream.try_clone()?) {
                return Ok(());
            }
            let moved = carry(&session, &mut stream, direction, flow);
            session.remove(direction, flow);
            moved
        }
    }
}

/// Reads the opening line byte by byte: an upload's data follows at once.
fn read_opening(stream: &mut TcpStream) -> io::Result<Option<Opening>> {
    let end = Instant::now() + OPENING_TIME;
    let mut line = Vec::with_capacity(MAX_OPENING);
    while line.len() < MAX_OPENING {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        if byte == [b'\n'] {
            return Ok(Opening::read(&line));
        }
        line.push(byte[0]);
    }
    Ok(None)
}

/// A session's control connection: the answer, then counts, until the client goes or the time is over.
fn control(shared: &Shared, mut stream: TcpStream, peer: IpAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(STALL))?;
    let Some(session) = shared.sessions.open(peer, &shared.limits)? else {
        let limits = &shared.limits;
        return write_line(
            &mut stream,
            &Answer::Refused(format!(
                "busy: at most {} clients at a time, {} of one address; try again in a minute",
                limits.clients, limits.clients_per_address
            )),
        );
    };
    let outcome = report(shared, &session, &mut stream);
    shared.sessions.close(&session);
    outcome
}

fn report(shared: &Shared, session: &Session, stream: &mut TcpStream) -> io::Result<()> {
    let welcome = Answer::Welcome {
        session: session.token.to_string(),
        seconds: shared.limits.time.as_secs(),
    };
    write_line(stream, &welcome)?;
    stream.set_read_timeout(Some(COUNT_EVERY))?;
    while !session.time_left().is_zero() && !shared.stop.load(Relaxed) {
        match stream.read(&mut [0]) {
            // The client has nothing to say; it went, or is none.
            Ok(_) => return Ok(()),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        if session.has_uploads() {
            write_line(stream, &session.counted())?;
        }
    }
    Ok(())
}

fn write_line(stream: &mut TcpStream, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Moves a flow's bytes until the client, the time or the budget ends it.
fn carry(
    session: &Session,
    stream: &mut TcpStream,
    direction: Direction,
    flow: usize,
) -> io::Result<()> {
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))?;
    let mut bytes = block();
    while !session.time_left().is_zero() {
        let length = match direction {
            Direction::Down => stream.write(&bytes)?,
            Direction::Up => stream.read(&mut bytes)?,
        };
        if length == 0 || !session.spend(length) {
            break;
        }
        if direction == Direction::Up {
            session.count(flow, length);
        }
    }
    Ok(())
}

/// Echoes probes of open sessions that come from the address that opened them.
fn echo_probes(socket: &UdpSocket, shared: &Shared) {
    let mut bytes = [0; 64];
    while !shared.stop.load(Relaxed) {
        // Errors are timeouts, and refusals of earlier answers.
        let Ok((length, peer)) = socket.recv_from(&mut bytes) else {
            continue;
        };
        let Some(probe) = bytes.get(..length).and_then(Probe::read) else {
            continue;
        };
        let from = peer.ip().to_canonical();
        let Some(session) = shared.sessions.find(probe.session, from) else {
            continue;
        };
        if session.spend_probe() {
            let now = session.clock();
            let answer = Probe {
                arrived: now,
                left: session.clock(),
                ..probe
            };
            let _ = socket.send_to(&answer.write(), peer);
        }
    }
}
