//! Notifies the service manager (`sd_notify(3)`).

use asymq_core::units::{Duration, Instant};
use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Delay before an undelivered message is sent again.
const AGAIN: Duration = Duration::from_millis(100);

/// Notifies a service manager of start, stop and liveness. The default value sends nothing.
#[derive(Debug, Default)]
pub struct Notify {
    manager: Option<(UnixDatagram, SocketAddr)>,
    /// Interval of watchdog messages: half the manager's timeout.
    interval: Option<Duration>,
    beat_at: Option<Instant>,
    pending: Option<&'static str>,
}

impl Notify {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`. Without `NOTIFY_SOCKET`, the value sends nothing.
    pub fn from_environment() -> io::Result<Self> {
        let Some(name) = env::var_os("NOTIFY_SOCKET") else {
            return Ok(Self::default());
        };
        let name = name.as_encoded_bytes();
        let manager = match name.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => {
                let name = std::str::from_utf8(name).map_err(io::Error::other)?;
                SocketAddr::from_pathname(Path::new(name))?
            }
        };
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_meant = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let timeout = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            manager: Some((socket, manager)),
            interval: timeout.map(|micros| Duration::from_micros((micros / 2).max(1))),
            beat_at: None,
            pending: None,
        })
    }

    /// Sends a change of state; retries later if the manager is busy.
    pub(crate) fn set_state(&mut self, now: Instant, state: &'static str) {
        self.beat_at = Some(now);
        self.pending = Some(state);
        self.beat(now);
    }

    /// Sets the status line of `systemctl status`; drops it if the manager is busy.
    pub(crate) fn status(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// Time of the next [`beat`](Self::beat).
    pub(crate) const fn beat_at(&self) -> Option<Instant> {
        self.beat_at
    }

    /// Sends the scheduled message, if its time has come, without blocking.
    pub(crate) fn beat(&mut self, now: Instant) {
        if self.beat_at.is_none_or(|at| now < at) {
            return;
        }
        if let Some(state) = self.pending
            && !self.send(state)
        {
            self.beat_at = Some(now + AGAIN);
            return;
        }
        self.pending = None;
        if self.interval.is_some() {
            self.send("WATCHDOG=1");
        }
        self.beat_at = self.interval.map(|interval| now + interval);
    }

    fn send(&self, message: &str) -> bool {
        let send = |(socket, manager): &(UnixDatagram, SocketAddr)| {
            socket.send_to_addr(message.as_bytes(), manager).is_ok()
        };
        self.manager.as_ref().is_none_or(send)
    }
}
