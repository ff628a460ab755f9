//! Sessions of the server, each with a budget of time, bytes and probes.

use crate::wire::{Counted, MAX_FLOWS, Token};
use asymq_core::Direction;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limits of the resources that clients take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sessions at a time.
    pub clients: usize,
    /// Sessions of one address at a time.
    pub clients_per_address: usize,
    /// Time of a session.
    pub time: Duration,
    /// Bytes of a session, both directions together.
    pub bytes: u64,
    /// Probes of a session.
    pub probes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 8,
            clients_per_address: 2,
            time: Duration::from_secs(180),
            bytes: 20_000_000_000,
            probes: 20_000,
        }
    }
}

/// A session: one client's control connection and its flows.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) token: Token,
    pub(crate) peer: IpAddr,
    started: Instant,
    deadline: Instant,
    bytes_left: AtomicU64,
    probes_left: AtomicU64,
    received: [AtomicU64; MAX_FLOWS],
    /// Sockets of its flows, by direction and number. `None` after its end.
    flows: Mutex<Option<HashMap<(usize, usize), TcpStream>>>,
}

/// All sessions by their tokens.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<Token, Arc<Session>>>);

impl Sessions {
    /// Opens a session; `None` if the server or the address has as many as it may.
    pub(crate) fn open(&self, peer: IpAddr, limits: &Limits) -> io::Result<Option<Arc<Session>>> {
        let token = random_token()?;
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = sessions.values().filter(|session| session.peer == peer);
        if sessions.len() >= limits.clients || of_peer.count() >= limits.clients_per_address {
            return Ok(None);
        }
        let now = Instant::now();
        let session = Arc::new(Session {
            token,
            peer,
            started: now,
            deadline: now + limits.time,
            bytes_left: AtomicU64::new(limits.bytes),
            probes_left: AtomicU64::new(limits.probes),
            received: Default::default(),
            flows: Mutex::new(Some(HashMap::new())),
        });
        sessions.insert(token, Arc::clone(&session));
        Ok(Some(session))
    }

    /// The session of this token, if the caller has the address that opened it.
    pub(crate) fn find(&self, token: Token, peer: IpAddr) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(&token)?;
        (session.peer == peer).then(|| Arc::clone(session))
    }

    /// Ends a session and its flows.
    pub(crate) fn close(&self, session: &Session) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&session.token);
        drop(sessions);
        let mut flows = session.flows.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in flows.take().into_iter().flatten() {
            // An error means that the flow has ended already.
            let _ = stream.1.shutdown(Shutdown::Both);
        }
    }
}

impl Session {
    /// Microseconds since the session's start.
    pub(crate) fn clock(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// Time until its end; zero afterwards.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Adds a flow; false if there is one of that direction and number, or the session has ended.
    pub(crate) fn add(&self, direction: Direction, flow: usize, stream: TcpStream) -> bool {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(flows) = flows.as_mut() else {
            return false;
        };
        let key = (direction as usize, flow);
        !flows.contains_key(&key) && flows.insert(key, stream).is_none()
    }

    /// Removes a flow that has ended.
    pub(crate) fn remove(&self, direction: Direction, flow: usize) {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flows) = flows.as_mut() {
            flows.remove(&(direction as usize, flow));
        }
    }

    /// True while an upload is open.
    pub(crate) fn has_uploads(&self) -> bool {
        let flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys = flows.iter().flat_map(HashMap::keys);
        keys.any(|(direction, _)| *direction == Direction::Up as usize)
    }

    /// Takes bytes from the budget; false if it is spent.
    pub(crate) fn spend(&self, bytes: usize) -> bool {
        take(&self.bytes_left, bytes as u64)
    }

    /// Takes a probe from the budget; false if it is spent.
    pub(crate) fn spend_probe(&self) -> bool {
        take(&self.probes_left, 1)
    }

    /// Counts bytes of an upload.
    pub(crate) fn count(&self, flow: usize, bytes: usize) {
        self.received[flow].fetch_add(bytes as u64, Relaxed);
    }

    /// Bytes received.
    pub(crate) fn counted(&self) -> Counted {
        let mut up: Vec<u64> = self
            .received
            .iter()
            .map(|flow| flow.load(Relaxed))
            .collect();
        while up.last() == Some(&0) {
            up.pop();
        }
        Counted {
            us: self.clock(),
            up,
        }
    }
}

fn take(budget: &AtomicU64, amount: u64) -> bool {
    let rest = |left: u64| left.checked_sub(amount);
    budget.fetch_update(Relaxed, Relaxed, rest).is_ok()
}

fn random_token() -> io::Result<Token> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token(u64::from_be_bytes(bytes)))
}
