//! Sessions of the server, each with a budget of time, bytes and probes.

use crate::lock::lock;
use crate::place::{Activity, Network, Place, Places};
use crate::wire::{Counted, MAX_FLOWS, Probe, Token};
use asymq_core::Direction;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Limits on the resources of clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of simultaneous sessions. HTTPS permits 32 connections for each of them.
    pub clients: usize,
    /// Maximum number of simultaneous sessions of one IPv4 address or IPv6 /64.
    pub clients_per_network: usize,
    /// Maximum duration of a session or of an HTTPS connection.
    pub time: Duration,
    /// Maximum number of bytes of a session or an HTTPS connection, up plus down.
    pub bytes: u64,
    /// Maximum number of probes in a session.
    pub probes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 8,
            clients_per_network: 2,
            time: Duration::from_secs(180),
            bytes: 20_000_000_000,
            probes: 20_000,
        }
    }
}

/// Sockets of flows by direction and number.
type Flows = HashMap<(usize, usize), Arc<TcpStream>>;

/// A session: one client's control connection and its flows.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) token: Token,
    pub(crate) peer: IpAddr,
    started: Instant,
    deadline: Instant,
    bytes_left: AtomicU64,
    probes_left: AtomicU64,
    /// Total bytes of flows and probes.
    moved: AtomicU64,
    received: [AtomicU64; MAX_FLOWS],
    /// `None` after the session has ended.
    flows: Mutex<Option<Flows>>,
}

/// All open sessions, with their activity.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Vec<(Arc<Session>, Activity)>>);

impl Sessions {
    /// Opens a session; if necessary, replaces an idle one. `None` if no place is free for the client's network.
    pub(crate) fn open(&self, peer: IpAddr, limits: &Limits) -> io::Result<Option<Arc<Session>>> {
        let places = Places {
            total: limits.clients,
            per_network: limits.clients_per_network,
        };
        let token = random_token()?;
        let mut sessions = lock(&self.0);
        let holder = |(session, activity): &mut (Arc<Session>, Activity)| {
            let network = Network::from(session.peer);
            (network, activity.idle(session.moved.load(Relaxed)))
        };
        let holders: Vec<_> = sessions.iter_mut().map(holder).collect();
        match places.find(&holders, peer.into()) {
            Place::Free => {}
            Place::Replace(index) => sessions.swap_remove(index).0.end(),
            Place::Refused => return Ok(None),
        }
        let now = Instant::now();
        let session = Arc::new(Session {
            token,
            peer,
            started: now,
            deadline: now + limits.time,
            bytes_left: AtomicU64::new(limits.bytes),
            probes_left: AtomicU64::new(limits.probes),
            moved: AtomicU64::new(0),
            received: Default::default(),
            flows: Mutex::new(Some(HashMap::new())),
        });
        sessions.push((Arc::clone(&session), Activity::new()));
        Ok(Some(session))
    }

    /// Ends sessions that have been idle for this long.
    pub(crate) fn end_idle(&self, longest: Duration) {
        lock(&self.0).retain_mut(|(session, activity)| {
            let stays = activity.idle(session.moved.load(Relaxed)) < longest;
            if !stays {
                session.end();
            }
            stays
        });
    }

    /// Returns the session with this token, if `peer` is the address that opened it.
    pub(crate) fn find(&self, token: Token, peer: IpAddr) -> Option<Arc<Session>> {
        let sessions = lock(&self.0);
        let mut sessions = sessions.iter().map(|(session, _)| session);
        sessions
            .find(|session| session.token == token && session.peer == peer)
            .map(Arc::clone)
    }

    /// Ends a session and its flows.
    pub(crate) fn close(&self, session: &Session) {
        lock(&self.0).retain(|(of, _)| of.token != session.token);
        session.end();
    }
}

impl Session {
    /// Ends all flows, and rejects later ones.
    fn end(&self) {
        for stream in lock(&self.flows).take().into_iter().flatten() {
            // An error means that the flow has already ended.
            let _ = stream.1.shutdown(Shutdown::Both);
        }
    }

    /// True until the session ends or its time limit expires.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.flows).is_some() && Instant::now() < self.deadline
    }

    pub(crate) fn clock(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }

    /// Adds a flow. Ends an earlier flow with this number, whose reset may have been lost in a full queue. Returns
    /// false if the session has ended.
    pub(crate) fn add(&self, direction: Direction, flow: usize, stream: Arc<TcpStream>) -> bool {
        let mut flows = lock(&self.flows);
        let Some(flows) = flows.as_mut() else {
            return false;
        };
        if let Some(earlier) = flows.insert((direction as usize, flow), stream) {
            // An error means that the other end has already closed the connection.
            let _ = earlier.shutdown(Shutdown::Both);
        }
        true
    }

    /// Removes a flow, unless a later flow has replaced it.
    pub(crate) fn remove(&self, direction: Direction, flow: usize, stream: &Arc<TcpStream>) {
        if let Some(flows) = lock(&self.flows).as_mut() {
            let key = (direction as usize, flow);
            if flows.get(&key).is_some_and(|of| Arc::ptr_eq(of, stream)) {
                flows.remove(&key);
            }
        }
    }

    pub(crate) fn has_uploads(&self) -> bool {
        let flows = lock(&self.flows);
        let mut keys = flows.iter().flat_map(HashMap::keys);
        keys.any(|(direction, _)| *direction == Direction::Up as usize)
    }

    /// Reserves up to `most` bytes of the budget; 0 if it is used up. Call [`Self::settle`] afterwards.
    pub(crate) fn reserve(&self, most: usize) -> usize {
        take_up_to(&self.bytes_left, most as u64) as usize
    }

    /// Counts `moved` bytes of a reservation, and returns its other bytes to the budget.
    pub(crate) fn settle(&self, reserved: usize, moved: usize) {
        self.bytes_left
            .fetch_add(reserved.saturating_sub(moved) as u64, Relaxed);
        self.moved.fetch_add(moved as u64, Relaxed);
    }

    /// Takes a probe from the budget. Returns false if the budget is used up.
    pub(crate) fn spend_probe(&self) -> bool {
        self.moved.fetch_add(2 * Probe::LEN as u64, Relaxed);
        take_up_to(&self.probes_left, 1) == 1
    }

    pub(crate) fn count(&self, flow: usize, bytes: usize) {
        self.received[flow].fetch_add(bytes as u64, Relaxed);
    }

    /// Returns the bytes received from each upload so far.
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

fn take_up_to(budget: &AtomicU64, most: u64) -> u64 {
    let mut taken = 0;
    let rest = |left: u64| {
        taken = left.min(most);
        Some(left - taken)
    };
    // The update always succeeds.
    let _ = budget.fetch_update(Relaxed, Relaxed, rest);
    taken
}

fn random_token() -> io::Result<Token> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token(u64::from_be_bytes(bytes)))
}
