//! Blocking calls that end at a deadline, or soon after the caller stops the measurement.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time until a blocked call checks the stop flag.
pub(crate) const NOTICE: Duration = Duration::from_millis(100);

/// Deadline and stop flag of a measurement, or of a part of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit<'a> {
    stop: &'a AtomicBool,
    end: Instant,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(stop: &'a AtomicBool, time: Duration) -> Self {
        Self {
            stop,
            end: Instant::now() + time,
        }
    }

    /// Returns a limit for a part of the measurement that lasts at most `time`.
    pub(crate) fn part(self, time: Duration) -> Self {
        Self {
            end: self.end.min(Instant::now() + time),
            ..self
        }
    }

    /// # Errors
    /// The time limit has expired, or the caller stops the measurement.
    pub(crate) fn check(self) -> io::Result<()> {
        match () {
            () if self.stop.load(Relaxed) => Err(io::Error::other("interrupted")),
            () if Instant::now() >= self.end => {
                Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"))
            }
            () => Ok(()),
        }
    }

    pub(crate) fn wait(self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => thread::sleep(left.min(NOTICE)),
            }
        }
    }

    /// Runs an uninterruptible call on its own thread. Abandons the thread at the limit.
    pub(crate) fn call<T: Send + 'static>(
        self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(work()));
        loop {
            match receiver.recv_timeout(NOTICE) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the thread of the call panicked"));
                }
            }
        }
    }

    /// Looks up the first address of a host: `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`, with or without a zone.
    pub(crate) fn resolve(self, host: &str, default_port: u16) -> io::Result<SocketAddr> {
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, port.strip_prefix(':')),
            None => match host.split_once(':') {
                Some((name, port)) if !port.contains(':') => (name, Some(port)),
                _ => (host, None),
            },
        };
        let port = port.map_or(Ok(default_port), str::parse);
        let port = port.map_err(|_| io::Error::other("no port; write HOST or HOST:PORT"))?;
        let name = name.to_owned();
        let found = self.call(move || (name, port).to_socket_addrs())?.next();
        found.ok_or_else(|| io::Error::other("no such host"))
    }

    /// Opens `number` connections at the same time. Closing one of them discards its unsent data.
    pub(crate) fn connect(self, server: SocketAddr, number: usize) -> io::Result<Vec<TcpStream>> {
        let time = self.end.saturating_duration_since(Instant::now());
        self.check()?;
        self.call(move || {
            let connect = |_| {
                thread::spawn(move || {
                    let stream = TcpStream::connect_timeout(&server, time)?;
                    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                    stream.set_read_timeout(Some(NOTICE))?;
                    stream.set_write_timeout(Some(NOTICE))?;
                    io::Result::Ok(stream)
                })
            };
            let connecting: Vec<_> = (0..number).map(connect).collect();
            let panicked = |_| io::Error::other("the thread of a connection panicked");
            let connected = connecting.into_iter();
            connected
                .map(|thread| thread.join().map_err(panicked)?)
                .collect()
        })
    }
}

/// A connection of [`Limit::connect`] whose reads and writes obey a limit.
pub(crate) struct Limited<'a>(pub(crate) &'a TcpStream, pub(crate) Limit<'a>);

impl Limited<'_> {
    fn until(&self, mut call: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            self.1.check()?;
            match call(self.0) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                result => return result,
            }
        }
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.until(|mut stream| stream.read(bytes))
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_brackets_and_zones() {
        let stop = AtomicBool::new(false);
        let limit = Limit::new(&stop, Duration::from_secs(5));
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1:7"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("::1", "[::1]:7"),
            ("[::1]", "[::1]:7"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(
                limit.resolve(host, 7).unwrap().to_string(),
                address,
                "{host}"
            );
        }
        let zone = limit.resolve("[fe80::1%lo]:9802", 7).unwrap();
        assert_eq!(zone.port(), 9802);
        assert!(
            matches!(zone, SocketAddr::V6(address) if address.scope_id() > 0),
            "{zone}"
        );
        assert!(
            limit
                .resolve("127.0.0.1:x", 7)
                .unwrap_err()
                .to_string()
                .contains("no port")
        );
    }

    #[test]
    fn a_stop_and_a_deadline_end_every_call() {
        let stop = AtomicBool::new(true);
        let stopped = Limit::new(&stop, Duration::from_secs(60));
        let forever = || -> io::Result<()> {
            thread::sleep(Duration::from_secs(60));
            Ok(())
        };
        let begin = Instant::now();
        assert!(stopped.call(forever).is_err() && stopped.wait(Duration::from_secs(60)).is_err());
        let running = AtomicBool::new(false);
        let late = Limit::new(&running, Duration::from_millis(200));
        assert_eq!(late.call(forever).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
}
