//! An interface that may disappear and return.

use crate::host::HostOptions;
use crate::interface_hold::InterfaceHold;
use crate::io::{Losses, PacketIo};
use crate::net::{Feature, LinkInfo, Network, remove_bypass};
use crate::port::{Port, PortError, PortErrorKind, check_unused, find};
use crate::sender::{SendBy, Sending};
use crate::setting::Setting;
use crate::sys::PacketSocket;
use asymq_core::units::{Duration, Instant};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// Interval between attempts to find and reopen an interface that is down or missing.
const RETRY: Duration = Duration::from_millis(100);

/// An interface, found by its name and then followed by its index. Frames are lost while the interface is down or
/// missing. It is reopened when it returns.
#[derive(Debug)]
pub(crate) struct Link {
    /// Flag that names the interface, for the log.
    flag: &'static str,
    name: String,
    state: Option<PathBuf>,
    /// True if the kernel bridges the interfaces while no gateway runs.
    bypass: bool,
    send: SendBy,
    network: Network,
    /// The hold. It continues while the interface is down, so that the interface stays silent.
    hold: Option<InterfaceHold>,
    port: Option<Port>,
    retry_at: Instant,
    /// Last logged reason why the interface cannot be held.
    obstacle: Option<String>,
    /// Losses of closed ports, and frames that were lost because no port was open.
    losses: Losses,
}

impl Link {
    /// Holds and opens the interface, which may be down. If it is missing, waits (with `host.wait`) or fails.
    pub(crate) fn open(
        flag: &'static str,
        name: &str,
        host: &HostOptions,
    ) -> Result<Self, PortError> {
        let system = |action| PortError::system(name, action);
        // Reports a missing privilege before a missing interface.
        drop(PacketSocket::new().map_err(system("open a packet socket"))?);
        let mut link = Self {
            flag,
            name: name.into(),
            state: host.state.clone(),
            bypass: host.fail_open,
            send: host.send,
            network: Network::open().map_err(system("list interfaces"))?,
            hold: None,
            port: None,
            retry_at: Instant::ZERO,
            obstacle: None,
            losses: Losses::default(),
        };
        match link.hold() {
            Err(error) if error.is(PortErrorKind::Absent) && host.wait => {
                link.obstacle = Some(error.to_string());
            }
            Err(error) => return Err(error),
            Ok(found) => link.port = Some(Port::open_link(&found, host.send)?),
        }
        Ok(link)
    }

    /// Current name; the configured name while the interface is away.
    pub(crate) fn name(&self) -> &str {
        self.port.as_ref().map_or(&self.name, Port::name)
    }

    /// True if `name` also belongs to the held interface.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let mut network = Network::open();
        let found = network.as_mut().map(|network| network.link_named(name));
        matches!(found, Ok(Ok(Some(link))) if Some(link.index) == self.index())
    }

    /// True while the interface is away: down or missing. Its frames are then lost.
    pub(crate) const fn is_away(&self) -> bool {
        self.port.is_none()
    }

    /// Method of sending; `None` while the interface is away.
    pub(crate) fn sending(&self) -> Option<Sending> {
        self.port.as_ref().map(|port| port.sender().sending())
    }

    /// True if frames are queued until the next flush because the socket had no room.
    pub(crate) fn is_waiting(&self) -> bool {
        let port = self.port.as_ref();
        port.is_some_and(|port| port.sender().is_waiting())
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.port.as_ref().is_some_and(Port::is_pending)
    }

    pub(crate) fn index(&self) -> Option<u32> {
        self.hold.as_ref().map(InterfaceHold::index)
    }

    /// Offloads that the hold disabled.
    pub(crate) fn disabled_offloads(&self) -> impl Iterator<Item = Feature> {
        let changed = self.hold.iter().flat_map(InterfaceHold::changed);
        changed.filter_map(Setting::feature)
    }

    /// Log lines about an interface that is held, or that is missing.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        let (flag, name) = (self.flag, self.name());
        let Some(hold) = &self.hold else {
            let obstacle = self.obstacle.iter();
            return obstacle
                .map(|why| format!("{flag} {why}; waiting for it"))
                .collect();
        };
        let mut lines = hold.log_lines();
        if let Some(sender) = self.port.as_ref().map(Port::sender) {
            let sending = sender.sending();
            lines.push(match sender.fallback() {
                None => format!("sends by {sending}"),
                Some(why) => format!("sends by {sending} (af-xdp: {why})"),
            });
        }
        let lines = lines.iter().map(|line| format!("{flag} {name}: {line}"));
        lines.collect()
    }

    /// Restores the interface, unless the kernel bridges it. Returns a log line on failure.
    pub(crate) fn restore(&mut self) -> Option<String> {
        let error = self.hold.as_mut()?.end().err()?;
        let name = self.name();
        let flag = self.flag;
        Some(format!(
            "{flag} {name}: not restored ({error}); retry with 'asymq gateway restore'"
        ))
    }

    /// Removes the kernel's bridge, then restores the interface.
    pub(crate) fn release(&mut self) -> io::Result<()> {
        self.port = None;
        match self.hold.take() {
            None => Ok(()),
            Some(mut hold) => {
                remove_bypass(hold.index())?;
                hold.end()
            }
        }
    }

    /// Descriptor to poll; `None` while the interface is away.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.as_ref().map(AsFd::as_fd)
    }

    /// Time of the next [`retry`](Self::retry), if the interface is away.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.port.is_none().then_some(self.retry_at)
    }

    /// Tries to reopen an interface that is away, if the time of the next attempt has come. Returns log lines.
    pub(crate) fn retry(&mut self, now: Instant) -> Vec<String> {
        if self.port.is_some() || now < self.retry_at {
            return Vec::new();
        }
        self.retry_at = now + RETRY;
        match self.reopen() {
            Ok(lines) => lines,
            Err(error) if error.is(PortErrorKind::Absent) => Vec::new(),
            Err(error) => {
                let error = format!("{} {error}", self.flag);
                if self.obstacle.as_ref() == Some(&error) {
                    return Vec::new();
                }
                self.obstacle = Some(error.clone());
                vec![error]
            }
        }
    }

    fn reopen(&mut self) -> Result<Vec<String>, PortError> {
        let held = match self.index() {
            None => None,
            Some(index) => self
                .network
                .link(index)
                .map_err(PortError::system(&self.name, "look it up"))?,
        };
        let is_other = |link: &LinkInfo| {
            let hold = self.hold.as_ref();
            hold.is_some_and(|hold| hold.is_other_interface(link))
        };
        let (found, is_new) = match held {
            Some(link) if !is_other(&link) => (link, false),
            _ => {
                if let Some(gone) = self.hold.take() {
                    gone.forget();
                }
                (self.hold()?, true)
            }
        };
        // Holding sets the interface up, so `found.up` does not matter for a new hold.
        if !found.up && !is_new {
            return Ok(Vec::new());
        }
        let mut port = Port::open_link(&found, self.send)?;
        // `receive` fails at once on a socket that is bound to an interface that is down.
        if port.receive(0, &mut |_| {}).is_err() {
            return Ok(Vec::new());
        }
        self.port = Some(port);
        self.obstacle = None;
        let back = format!("{} {} is back", self.flag, self.name);
        let mut lines = vec![match found.name == self.name {
            true => back,
            false => format!("{back} as {}", found.name),
        }];
        if is_new {
            lines.extend(self.log_lines());
        }
        Ok(lines)
    }

    /// Holds the interface of the configured name.
    fn hold(&mut self) -> Result<LinkInfo, PortError> {
        let found = find(&mut self.network, &self.name)?;
        check_unused(&mut self.network, &found)?;
        let (network, state) = (&mut self.network, self.state.as_deref());
        let hold = InterfaceHold::take(network, &found, state, self.bypass);
        self.hold = Some(hold.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => PortError::new(
                &self.name,
                PortErrorKind::Held,
                "another gateway holds it; stop that gateway first, or choose another interface",
            ),
            _ => PortError::system(&self.name, "hold it")(error),
        })?);
        Ok(found)
    }

    /// Closes the port after `error`. Returns a log line if the port was open.
    pub(crate) fn close(&mut self, error: &io::Error) -> Option<String> {
        let mut port = self.port.take()?;
        self.losses = self.losses + port.losses();
        self.retry_at = Instant::ZERO;
        Some(format!(
            "{} {} is down ({error}); frames for it are lost until it is up again",
            self.flag,
            port.name()
        ))
    }

    /// Discards the frames in the ring. Returns their number.
    pub(crate) fn discard(&mut self) -> io::Result<u64> {
        const AT_ONCE: usize = 1 << 14;
        let mut count = 0;
        self.receive(AT_ONCE, &mut |_| count += 1)?;
        Ok(count)
    }

    /// Counts frames that this interface received and that were dropped after a pause.
    pub(crate) const fn lose_stale(&mut self, frames: u64) {
        self.losses.stale += frames;
    }
}

impl PacketIo for Link {
    fn receive(&mut self, max: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        match &mut self.port {
            Some(port) => port.receive(max, each),
            None => Ok(0),
        }
    }

    fn send(&mut self, frame: &[u8]) {
        match &mut self.port {
            Some(port) => port.send(frame),
            None => self.losses.not_sent += 1,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.port {
            Some(port) => port.flush(),
            None => Ok(()),
        }
    }

    fn losses(&mut self) -> Losses {
        let port = self.port.as_mut().map(Port::losses).unwrap_or_default();
        self.losses + port
    }
}
