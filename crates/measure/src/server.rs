//! The server: sends, receives, counts and echoes, within limits on each client's resources.
//!
//! One thread accepts connections and reads opening lines. Only sessions and their flows have their own threads.
//! Every wait has a time limit.

use crate::flows::{BLOCK, block};
use crate::place::{Network, Place, Places};
use crate::session::{Limits, Session, Sessions};
use crate::wire::{Answer, MAX_FLOWS, MAX_OPENING, Opening, PORT, Probe};
use asymq_core::Direction;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Limits for connections that have not sent an opening line.
const STRANGERS: Places = Places {
    total: 200,
    per_network: 2 * (2 * MAX_FLOWS + 1),
};
/// Time limit for the opening line and for TLS's handshake, whose packets a full queue may drop.
pub(crate) const OPENING_TIME: Duration = Duration::from_secs(15);
/// Interval at which opening lines are read.
const READ_EVERY: Duration = Duration::from_millis(10);
/// Idle time after which the server ends a session or a connection.
pub(crate) const STALL: Duration = Duration::from_secs(15);
/// Interval of the counts that a session sends.
const COUNT_EVERY: Duration = Duration::from_millis(200);
/// Maximum time until a server notices its stop flag.
const NOTICE: Duration = Duration::from_millis(250);
/// Stack size of a connection's thread: a block of data, and the calls around it.
const STACK: usize = BLOCK + 128 * 1024;

/// A listening server.
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
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Listens on an address with TCP and UDP; by default on all addresses.
    ///
    /// # Errors
    /// The address is in use, or does not belong to this host.
    pub fn bind(
        address: Option<SocketAddr>,
        limits: Limits,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let (listener, echo) = bind_or_all(address, PORT, listen)?;
        Ok(Self {
            listener,
            echo,
            shared: Arc::new(Shared {
                sessions: Sessions::default(),
                limits,
                stop,
            }),
        })
    }

    /// The listening address.
    ///
    /// # Errors
    /// The system call fails.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the stop flag is set.
    ///
    /// # Errors
    /// The sockets fail.
    pub fn run(self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.echo.set_read_timeout(Some(NOTICE))?;
        let echo = self.echo;
        let echoing = thread::spawn(move || echo_probes(&echo, &shared));
        let mut strangers: Vec<Stranger> = Vec::new();
        let mut last_read = Instant::now();
        while !self.shared.stop.load(Relaxed) {
            let wait = if strangers.is_empty() {
                NOTICE
            } else {
                READ_EVERY
            };
            // On Linux, `accept` waits at most for the socket's read timeout.
            SockRef::from(&self.listener).set_read_timeout(Some(wait))?;
            match self.listener.accept() {
                Ok((stream, peer)) => admit(&mut strangers, stream, peer.ip().to_canonical()),
                // The listener's timeout, or the client has already closed the connection.
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                // No free file descriptors: waits until some connections are closed.
                Err(_) => thread::sleep(NOTICE),
            }
            if last_read.elapsed() >= READ_EVERY {
                strangers.retain_mut(|stranger| stranger.stays(&self.shared));
                self.shared.sessions.end_idle(STALL);
                last_read = Instant::now();
            }
        }
        let _ = echoing.join();
        Ok(())
    }
}

/// Binds to an address, or to a port of all addresses.
pub(crate) fn bind_or_all<T>(
    address: Option<SocketAddr>,
    port: u16,
    bind: fn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    match address {
        Some(address) => bind(address),
        // Falls back to IPv4 on hosts without IPv6.
        None => bind((Ipv6Addr::UNSPECIFIED, port).into())
            .or_else(|_| bind((Ipv4Addr::UNSPECIFIED, port).into())),
    }
}

pub(crate) fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let tcp = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    tcp.set_reuse_address(true)?;
    tcp.bind(&address.into())?;
    tcp.listen(1024)?;
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

/// A connection that has not sent an opening line.
struct Stranger {
    /// The connection; `None` after it was served.
    stream: Option<TcpStream>,
    peer: IpAddr,
    since: Instant,
}

/// Adds a connection without an opening line, if a place is free.
fn admit(strangers: &mut Vec<Stranger>, stream: TcpStream, peer: IpAddr) {
    let holder = |of: &Stranger| (Network::from(of.peer), of.since.elapsed());
    let holders: Vec<_> = strangers.iter().map(holder).collect();
    match STRANGERS.find(&holders, peer.into()) {
        Place::Free => {}
        Place::Replace(index) => drop(strangers.swap_remove(index)),
        Place::Refused => return,
    }
    if stream.set_nonblocking(true).is_ok() {
        strangers.push(Stranger {
            stream: Some(stream),
            peer,
            since: Instant::now(),
        });
    }
}

impl Stranger {
    /// Serves the connection once it has sent its opening line. Returns false if the connection is finished here.
    fn stays(&mut self, shared: &Arc<Shared>) -> bool {
        let Some(stream) = &self.stream else {
            return false;
        };
        let mut bytes = [0; MAX_OPENING];
        let line = match stream.peek(&mut bytes) {
            Ok(length) => match bytes[..length].iter().position(|byte| *byte == b'\n') {
                None if length == 0 || length == MAX_OPENING => return false,
                end => end,
            },
            Err(error) if is_timeout(&error) => None,
            Err(_) => return false,
        };
        let Some(end) = line else {
            return self.since.elapsed() < OPENING_TIME;
        };
        if let Some(mut stream) = self.stream.take()
            && let Some(opening) = Opening::read(&bytes[..end])
            // Reads only the line; an upload's data stays in the socket.
            && stream.read_exact(&mut bytes[..=end]).is_ok()
            && stream.set_nonblocking(false).is_ok()
        {
            // A failure ends only this connection.
            let _ = serve(shared, opening, stream, self.peer);
        }
        false
    }
}

/// Starts a session or a flow on its own thread.
fn serve(
    shared: &Arc<Shared>,
    opening: Opening,
    mut stream: TcpStream,
    peer: IpAddr,
) -> io::Result<()> {
    let limits = &shared.limits;
    let thread = thread::Builder::new().stack_size(STACK);
    let (direction, token, flow) = match opening {
        Opening::Start => {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(STALL))?;
            let Some(session) = shared.sessions.open(peer, limits)? else {
                // The socket's buffer has room for the line.
                return write_line(
                    &mut stream,
                    &Answer::Refused(format!(
                        "busy: at most {} clients at a time, {} from one network; try again in a minute",
                        limits.clients, limits.clients_per_network
                    )),
                );
            };
            let for_thread = (Arc::clone(shared), Arc::clone(&session));
            let spawned = thread.spawn(move || {
                let (shared, session) = for_thread;
                // A failure ends only this connection.
                let _ = report(&shared, &session, &mut stream);
                shared.sessions.close(&session);
            });
            if spawned.is_err() {
                shared.sessions.close(&session);
            }
            return Ok(());
        }
        Opening::Flow {
            direction,
            session,
            flow,
        } => (direction, session, flow),
    };
    let Some(session) = shared.sessions.find(token, peer) else {
        return Ok(());
    };
    let stream = Arc::new(stream);
    if !session.add(direction, flow, Arc::clone(&stream)) {
        return Ok(());
    }
    let for_thread = (Arc::clone(&session), Arc::clone(&stream));
    let spawned = thread.spawn(move || {
        let (session, stream) = for_thread;
        // A failure ends only this flow.
        let _ = carry(&session, &stream, direction, flow);
        session.remove(direction, flow, &stream);
    });
    if spawned.is_err() {
        session.remove(direction, flow, &stream);
    }
    Ok(())
}

/// Serves the control connection of a session. Sends the answer and then counts, until the client leaves or the
/// session ends.
fn report(shared: &Shared, session: &Session, stream: &mut TcpStream) -> io::Result<()> {
    let welcome = Answer::Welcome {
        session: session.token.to_string(),
        seconds: shared.limits.time.as_secs(),
    };
    write_line(stream, &welcome)?;
    stream.set_read_timeout(Some(COUNT_EVERY))?;
    while session.is_open() && !shared.stop.load(Relaxed) {
        match stream.read(&mut [0]) {
            // A valid client sends no more data: the client has left, or is invalid.
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

/// Transfers a flow's bytes until the client, the session or its budget ends.
fn carry(
    session: &Session,
    mut stream: &TcpStream,
    direction: Direction,
    flow: usize,
) -> io::Result<()> {
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))?;
    let mut bytes = block();
    while session.is_open() {
        let reserved = session.reserve(BLOCK);
        let part = &mut bytes[..reserved];
        let length = match direction {
            _ if part.is_empty() => break,
            Direction::Down => stream.write(part),
            Direction::Up => stream.read(part),
        };
        session.settle(reserved, *length.as_ref().unwrap_or(&0));
        match length {
            Ok(0) => break,
            Ok(length) if direction == Direction::Up => session.count(flow, length),
            Ok(_) => {}
            // Other flows of the client may starve this one. `Sessions::end_idle` ends the session of an idle client.
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Echoes probes of open sessions, if they come from the address that opened the session.
fn echo_probes(socket: &UdpSocket, shared: &Shared) {
    let mut bytes = [0; 64];
    while !shared.stop.load(Relaxed) {
        // Errors are timeouts, or reports that an earlier answer was refused.
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
