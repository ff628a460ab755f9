//! Serves many clients of a socket on one thread, with limits on their number, time and request size.

use crate::sys::{to_core, wait_ready};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

pub(crate) struct Limits {
    /// Maximum number of simultaneous clients.
    pub(crate) clients: usize,
    /// Maximum length of a request in bytes.
    pub(crate) request: usize,
    /// Maximum duration of a connection.
    pub(crate) time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// More bytes may arrive.
    Partial,
    /// The client has closed its sending direction.
    Complete,
    /// The request is longer than the limit.
    TooLong,
    TimedOut,
}

/// Returns the answer to a request. `None` asks for more bytes; without more, the connection is closed.
pub(crate) type Answer<'a> = &'a mut dyn FnMut(&[u8], RequestState) -> Option<Vec<u8>>;

pub(crate) struct Clients {
    listener: Socket,
    limits: Limits,
    /// Clients, oldest first. If there are too many, a new client replaces the oldest.
    clients: VecDeque<Client>,
    /// Earliest time to accept again after `accept` failed (file descriptors exhausted).
    accept_at: Option<Instant>,
}

struct Client {
    stream: Socket,
    until: Instant,
    state: State,
}

enum State {
    Reading(Vec<u8>),
    /// The answer that is being sent, and the number of bytes sent.
    Writing(Vec<u8>, usize),
    /// Bytes discarded since the answer was sent. Unread bytes would cause a TCP reset, which could overtake the
    /// answer.
    Draining(usize),
}

/// Maximum number of bytes discarded after the answer.
const MAX_DRAINED: usize = 1 << 18;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Clients {
    pub(crate) fn new(listener: impl Into<Socket>, limits: Limits) -> io::Result<Self> {
        let listener = listener.into();
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            limits,
            clients: VecDeque::new(),
            accept_at: None,
        })
    }

    #[cfg(test)]
    pub(crate) const fn listener(&self) -> &Socket {
        &self.listener
    }

    /// Waits until a client or one of `others` is readable, and serves the clients. For each of `others`, returns true
    /// if it is readable.
    pub(crate) fn turn<const N: usize>(
        &mut self,
        others: [BorrowedFd<'_>; N],
        answer: Answer<'_>,
    ) -> io::Result<[bool; N]> {
        let now = Instant::now();
        if self.accept_at.is_some_and(|at| now >= at) {
            self.accept_at = None;
        }
        let mut fds: Vec<_> = others.map(|fd| (fd, libc::POLLIN)).into();
        fds.extend(self.clients.iter().map(|client| {
            let events = match client.state {
                State::Reading(_) | State::Draining(_) => libc::POLLIN,
                State::Writing(..) => libc::POLLOUT,
            };
            (client.stream.as_fd(), events)
        }));
        if self.accept_at.is_none() {
            fds.push((self.listener.as_fd(), libc::POLLIN));
        }
        let deadlines = self.clients.iter().map(|client| client.until);
        let wake = deadlines.chain(self.accept_at).min();
        let ready = wait_ready(
            &fds,
            wake.map(|at| to_core(at.saturating_duration_since(now))),
        )?;

        let (of_others, of_clients) = ready.split_at(N);
        let mut of_clients = of_clients.iter().copied();
        let now = Instant::now();
        let limit = self.limits.request;
        self.clients.retain_mut(|client| {
            let ready = of_clients.next().unwrap_or(false);
            let stays = !ready || client.step(limit, answer);
            let late = stays && now >= client.until;
            if late {
                client.answer_late(answer);
            }
            stays && !late
        });
        if of_clients.next() == Some(true) {
            self.accept(answer);
        }
        Ok(std::array::from_fn(|other| of_others[other]))
    }

    /// Accepts clients. A client whose request has already arrived is served at once, in addition to the limit.
    fn accept(&mut self, answer: Answer<'_>) {
        for _ in 0..self.limits.clients {
            let accepted = self.listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                Ok(stream)
            });
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    let is_no_fault = matches!(
                        error.kind(),
                        ErrorKind::WouldBlock
                            | ErrorKind::Interrupted
                            | ErrorKind::ConnectionAborted
                    );
                    self.accept_at = (!is_no_fault).then(|| Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            };
            let mut client = Client {
                stream,
                until: Instant::now() + self.limits.time,
                state: State::Reading(Vec::new()),
            };
            if client.step(self.limits.request, answer) {
                if self.clients.len() >= self.limits.clients {
                    self.clients.pop_front();
                }
                self.clients.push_back(client);
            }
        }
    }
}

impl Client {
    /// Advances the connection without blocking, by at most one read. Returns false if the connection is finished.
    fn step(&mut self, limit: usize, answer: Answer<'_>) -> bool {
        let mut chunk = [0; 4096];
        if let State::Draining(rest) = &mut self.state {
            return match self.stream.read(&mut chunk) {
                Ok(count) => {
                    *rest += count;
                    count > 0 && *rest < MAX_DRAINED
                }
                Err(error) => is_only_early(&error),
            };
        }
        if let State::Reading(request) = &mut self.state {
            let state = match self.stream.read(&mut chunk) {
                Ok(0) => RequestState::Complete,
                Ok(count) if request.len() + count > limit => RequestState::TooLong,
                Ok(count) => {
                    request.extend_from_slice(&chunk[..count]);
                    RequestState::Partial
                }
                Err(error) => return is_only_early(&error),
            };
            match answer(request, state) {
                Some(answer) => self.state = State::Writing(answer, 0),
                None => return state == RequestState::Partial,
            }
        }
        if let State::Writing(answer, sent) = &mut self.state {
            while *sent < answer.len() {
                match self.stream.write(&answer[*sent..]) {
                    Ok(0) => return false,
                    Ok(count) => *sent += count,
                    Err(error) => return is_only_early(&error),
                }
            }
            // The client may have closed already.
            let _ = self.stream.shutdown(Shutdown::Write);
            self.state = State::Draining(0);
        }
        true
    }

    /// Answers a client whose time limit has expired, if its socket accepts the answer without blocking.
    fn answer_late(&mut self, answer: Answer<'_>) {
        if let State::Reading(request) = &self.state
            && let Some(answer) = answer(request, RequestState::TimedOut)
        {
            // The connection is closed in any case.
            let _ = self.stream.write(&answer);
        }
    }
}

fn is_only_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
