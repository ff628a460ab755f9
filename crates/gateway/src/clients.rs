//! Clients of a socket, bounded: how many there are, how long each stays, how much it may send.
//!
//! One thread serves all of them and waits for none. Where there are too many, the oldest goes.

use crate::sys::{Interest, wait_ready, whole};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

/// Limits on clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of clients at once.
    pub(crate) clients: usize,
    /// Bytes of a request.
    pub(crate) request: usize,
    /// From when a client comes until it is gone.
    pub(crate) time: Duration,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// More may come.
    Part,
    /// The client has ended it.
    All,
    /// More than the limit.
    TooMuch,
    /// Time is up.
    TooLate,
}

/// From a request to its answer; `None` to wait for more, or to go without one.
pub(crate) type Answer<'a> = &'a mut dyn FnMut(&[u8], Arrived) -> Option<Vec<u8>>;

/// A listener with its clients.
pub(crate) struct Clients {
    listener: Socket,
    limits: Limits,
    /// The oldest first.
    clients: VecDeque<Client>,
    /// Not before this, after the system refused one: its descriptors may be used up.
    accept_at: Option<Instant>,
}

struct Client {
    stream: Socket,
    until: Instant,
    state: State,
}

enum State {
    Asks(Vec<u8>),
    /// The answer, and how much of it is sent.
    Answered(Vec<u8>, usize),
    /// All is sent; some of what the client still sends is thrown away, so that no reset overtakes
    /// the answer. How much was.
    Ends(usize),
}

/// Bytes to throw away of a client that has its answer.
const MAX_REST: usize = 1 << 18;
/// Rest of a listener after the system refused a client.
const REST: Duration = Duration::from_millis(100);

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

    /// Waits until there is something to do for a client or one of `others` is readable, and does
    /// it; returns which of the others are.
    pub(crate) fn turn<const N: usize>(
        &mut self,
        others: [BorrowedFd<'_>; N],
        answer: Answer<'_>,
    ) -> io::Result<[bool; N]> {
        let now = Instant::now();
        if self.accept_at.is_some_and(|at| now >= at) {
            self.accept_at = None;
        }
        let mut fds: Vec<_> = others.map(|fd| (fd, Interest::Read)).into();
        fds.extend(self.clients.iter().map(|client| {
            let interest = match client.state {
                State::Asks(_) | State::Ends(_) => Interest::Read,
                State::Answered(..) => Interest::Write,
            };
            (client.stream.as_fd(), interest)
        }));
        if self.accept_at.is_none() {
            fds.push((self.listener.as_fd(), Interest::Read));
        }
        let deadlines = self.clients.iter().map(|client| client.until);
        let wake = deadlines.chain(self.accept_at).min();
        let ready = wait_ready(
            &fds,
            wake.map(|at| whole(at.saturating_duration_since(now))),
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
                client.last_words(answer);
            }
            stays && !late
        });
        if of_clients.next() == Some(true) {
            self.accept(answer);
        }
        Ok(std::array::from_fn(|other| of_others[other]))
    }

    /// Takes new clients, and answers those whose request is already there: only clients that keep
    /// it waiting can be too many.
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
                    self.accept_at = (!is_no_fault).then(|| Instant::now() + REST);
                    return;
                }
            };
            let mut client = Client {
                stream,
                until: Instant::now() + self.limits.time,
                state: State::Asks(Vec::new()),
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
    /// Does what can be done at once; whether the client stays. One read, so that a client that
    /// never stops sending delays no other.
    fn step(&mut self, limit: usize, answer: Answer<'_>) -> bool {
        let mut chunk = [0; 4096];
        if let State::Ends(rest) = &mut self.state {
            return match self.stream.read(&mut chunk) {
                Ok(count) => {
                    *rest += count;
                    count > 0 && *rest < MAX_REST
                }
                Err(error) => is_only_early(&error),
            };
        }
        if let State::Asks(request) = &mut self.state {
            let arrived = match self.stream.read(&mut chunk) {
                Ok(0) => Arrived::All,
                Ok(count) if request.len() + count > limit => Arrived::TooMuch,
                Ok(count) => {
                    request.extend_from_slice(&chunk[..count]);
                    Arrived::Part
                }
                Err(error) => return is_only_early(&error),
            };
            match answer(request, arrived) {
                Some(answer) => self.state = State::Answered(answer, 0),
                None => return arrived == Arrived::Part,
            }
        }
        if let State::Answered(answer, sent) = &mut self.state {
            while *sent < answer.len() {
                match self.stream.write(&answer[*sent..]) {
                    Ok(0) => return false,
                    Ok(count) => *sent += count,
                    Err(error) => return is_only_early(&error),
                }
            }
            // A client that has gone needs no end.
            let _ = self.stream.shutdown(Shutdown::Write);
            self.state = State::Ends(0);
        }
        true
    }

    /// Says why it is sent away, if it can hear that at once.
    fn last_words(&mut self, answer: Answer<'_>) {
        if let State::Asks(request) = &self.state
            && let Some(answer) = answer(request, Arrived::TooLate)
        {
            // It has had its time.
            let _ = self.stream.write(&answer);
        }
    }
}

fn is_only_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
