//! The forwarding loop.

use crate::change::{Changer, Changes};
use crate::config::{LinkConfig, LinkError, STANDARD};
use crate::error::GatewayError;
use crate::fail_open::FailOpen;
use crate::flows::{FlowCounters, FlowRequests};
use crate::forwarder::Forwarder;
use crate::frame::Frame;
use crate::guard::DisabledOffloads;
use crate::host::HostOptions;
use crate::io::PacketIo;
use crate::link::Link;
use crate::log;
use crate::notify::Notify;
use crate::port::PortErrorKind;
use crate::restore::restore;
use crate::snapshot::{Observer, PortLosses, PortSending, Shared, Snapshot};
use crate::stop::{DRAIN, Stop};
use crate::sys::{poll, precise_timers, prefer_this_thread};
use asymq_core::Direction;
use asymq_core::Header;
use asymq_core::catalog::Build;
use asymq_core::frame::FlowKey;
use asymq_core::units::{Duration, Instant};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

/// Frames that one direction receives or sends before the other's turn.
const BATCH: usize = 64;
/// Default interval of snapshots.
const REPORT: Duration = Duration::from_secs(1);
/// Minimum time between wake-ups: a wake-up costs as much as several frames.
const REST: Duration = Duration::from_micros(100);

/// Configuration of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Interface towards home.
    pub lan: String,
    /// Interface towards the Internet.
    pub wan: String,
    /// The link between them.
    pub link: LinkConfig,
}

impl GatewayConfig {
    /// Checks that the interfaces differ.
    ///
    /// # Errors
    /// Both names are equal.
    pub fn check_interfaces(&self) -> Result<(), GatewayError> {
        if self.lan == self.wan {
            return Err(GatewayError::SameInterface(self.wan.clone()));
        }
        Ok(())
    }
}

/// A transparent bridge between two interfaces that queues frames in disciplines.
pub struct Gateway {
    /// Outgoing links up and down: WAN and LAN.
    links: [Link; 2],
    fail_open: FailOpen,
    forwarder: Forwarder,
    changes: Changes,
    shared: Shared,
    report_interval: Duration,
    log: Box<dyn FnMut(&str) + Send>,
    notify: Notify,
}

impl Gateway {
    /// Opens a gateway with asymq's disciplines, as [`open_with`](Self::open_with).
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub fn open(config: &GatewayConfig) -> Result<Self, GatewayError> {
        Self::open_with(STANDARD, config)
    }

    /// Builds the disciplines of `config` and opens both interfaces in the calling thread's network namespace.
    /// Received frames wait in the interfaces' rings until [`run`](Self::run).
    ///
    /// # Errors
    /// A discipline cannot be built, an interface is missing or unfit, or a privilege is missing.
    pub fn open_with(
        catalog: &'static dyn Build<Frame>,
        config: &GatewayConfig,
    ) -> Result<Self, GatewayError> {
        Self::open_on(catalog, config, &HostOptions::default())
    }

    /// Like [`open_with`](Self::open_with), with options of the host. Restores interfaces that killed gateways left
    /// changed.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with); a missing interface only without `host.wait`.
    pub fn open_on(
        catalog: &'static dyn Build<Frame>,
        config: &GatewayConfig,
        host: &HostOptions,
    ) -> Result<Self, GatewayError> {
        let link = config.link.build(catalog)?;
        config.check_interfaces()?;
        let links = Self::open_links(config, host);
        let restored = host.state.as_deref().map(restore_killed);
        // An error is one log line.
        let links = links?;
        restored
            .unwrap_or_default()
            .iter()
            .for_each(|line| log::line(line));
        // The standard library seeds its keys from the system's random source.
        let secret = || RandomState::new().build_hasher().finish();
        let key = FlowKey::new([secret(), secret()]);
        Ok(Self {
            links,
            fail_open: FailOpen::new(host.fail_open),
            forwarder: Forwarder::new(link, key),
            changes: Changes::new(catalog).map_err(GatewayError::during("making a pipe"))?,
            shared: Shared::default(),
            report_interval: REPORT,
            log: Box::new(log::line),
            notify: Notify::default(),
        })
    }

    fn open_links(config: &GatewayConfig, host: &HostOptions) -> Result<[Link; 2], GatewayError> {
        let open = |flag, name| {
            Link::open(flag, name, host).map_err(|source| GatewayError::Port { flag, source })
        };
        let lan = open("--lan", &config.lan)?;
        match open("--wan", &config.wan) {
            // One interface may have several names.
            Err(GatewayError::Port { source, .. })
                if source.is(PortErrorKind::Held) && lan.is_called(&config.wan) =>
            {
                Err(GatewayError::SameInterface(config.wan.clone()))
            }
            wan => Ok([wan?, lan]),
        }
    }

    /// Name of the interface towards home.
    pub fn lan(&self) -> &str {
        self.links[Direction::Down as usize].name()
    }

    /// Name of the interface towards the Internet.
    pub fn wan(&self) -> &str {
        self.links[Direction::Up as usize].name()
    }

    /// Configuration in force.
    pub const fn config(&self) -> &LinkConfig {
        self.forwarder.config()
    }

    /// Its snapshots while it runs.
    pub fn stats(&self) -> Shared {
        self.shared.clone()
    }

    /// Allocates counters of flows, which count when the result requests it.
    pub(crate) fn count_flows(&mut self) -> Result<FlowRequests, GatewayError> {
        let requests = FlowRequests::default();
        let flows = FlowCounters::new(requests.clone()).map_err(|source| LinkError {
            direction: "flows",
            source,
        })?;
        self.forwarder.set_flows(flows);
        Ok(requests)
    }

    /// A handle that changes the gateway while it runs.
    pub fn changer(&self) -> Changer {
        self.changes.changer()
    }

    /// Sets the interval of snapshots (default: one second).
    pub fn set_report_interval(&mut self, interval: Duration) {
        self.report_interval = interval;
    }

    /// Sets a callback for every sent frame: direction, header, sojourn time.
    pub fn set_watch(&mut self, watch: impl FnMut(Direction, &Header, Duration) + Send + 'static) {
        self.forwarder.set_watch(watch);
    }

    /// Sets the service manager to notify.
    pub fn set_notify(&mut self, notify: Notify) {
        self.notify = notify;
    }

    /// Replaces the log on standard error. The forwarding loop calls `log`, which must not block.
    pub fn set_log(&mut self, log: impl FnMut(&str) + Send + 'static) {
        self.log = Box::new(log);
    }

    /// Forwards until a stop is requested. Then stops receiving and sends the queue for at most two seconds, or until
    /// a second request. Run it on a thread in the network namespace of [`open`](Self::open).
    ///
    /// # Errors
    /// `poll` fails.
    ///
    /// # Panics
    /// A discipline panics.
    pub fn run(&mut self, stop: &Stop) -> Result<(), GatewayError> {
        precise_timers();
        prefer_this_thread();
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.forward(stop)));
        self.changes.close();
        self.shared.end();
        answer.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Restores the interfaces after a run. Dropping the gateway does too, but also closes sockets, which takes
    /// seconds on a busy machine.
    pub(crate) fn restore(&mut self) {
        for link in &mut self.links {
            if let Some(failed) = link.restore() {
                (self.log)(&failed);
            }
        }
    }

    fn forward(&mut self, stop: &Stop) -> Result<(), GatewayError> {
        let clock = start_clock();
        let mut observer = Observer::new(clock());
        let mut report_at = clock() + self.report_interval;
        let mut drain_until: Option<Instant> = None;
        let mut rest_until = Instant::ZERO;
        let mut handed_over = false;
        for link in &self.links {
            link.remarks().iter().for_each(|line| (self.log)(line));
        }
        self.take_over();
        self.notify.ready(clock());
        self.notify.status(&self.status());
        loop {
            let now = clock();
            self.notify.beat(now);
            let mut next: Option<Instant> = None;
            for direction in Direction::ALL {
                let out = &mut self.links[direction as usize];
                let at = self.forwarder.transmit(now, direction, BATCH, out);
                next = next.into_iter().chain(at).min();
            }
            for direction in Direction::ALL {
                self.check(direction, Link::flush);
            }
            if now >= report_at {
                self.report(now, &mut observer);
                report_at = now + self.report_interval;
            }
            for direction in Direction::ALL {
                let lines = self.links[direction as usize].retry(now);
                self.announce(&lines);
                if !lines.is_empty() && drain_until.is_none() {
                    self.take_over();
                }
            }
            let drained = drain_until.is_some_and(|until| next.is_none() || now >= until);
            if drained {
                break;
            }

            let rest = rest_until.saturating_since(clock());
            if rest > Duration::ZERO && next.is_none_or(|next| next > now) {
                std::thread::sleep(rest.into());
            }
            let [wan_at, lan_at] = self.links.each_ref().map(Link::retry_at);
            let waits = self.links.iter().any(Link::is_waiting);
            let room_at = waits.then(|| now + REST);
            let beat_at = self.notify.beat_at();
            let wake = [next, lan_at, wan_at, room_at, drain_until, beat_at]
                .into_iter()
                .flatten()
                .fold(report_at, Instant::min);
            // Frames that never wait are forwarded until the process ends.
            let takes = |direction| {
                drain_until.is_none() || !handed_over && self.forwarder.is_direct(direction)
            };
            let [wan, lan] = &self.links;
            let waits = [
                lan.fd().filter(|_| takes(Direction::Up)),
                wan.fd().filter(|_| takes(Direction::Down)),
                Some(stop.0.as_fd()),
                Some(self.changes.waker().as_fd()),
            ];
            let [up, down, stopped, changed] = poll(waits, Some(wake.saturating_since(clock())))
                .map_err(GatewayError::during("waiting for frames"))?;
            if stopped {
                let asked = stop.0.take();
                if asked > 1 || asked > 0 && drain_until.is_some() {
                    break;
                }
                if asked > 0 {
                    drain_until = Some(clock() + DRAIN);
                    self.notify.stopping(clock());
                    // Frames that the kernel did not forward.
                    for direction in Direction::ALL {
                        while self.take(clock(), direction) >= BATCH {}
                    }
                    handed_over = self.fail_open.hand_over();
                }
            }
            let now = clock();
            if changed {
                self.change(now);
            }
            let taken_up = if up { self.take(now, Direction::Up) } else { 0 };
            let taken_down = if down {
                self.take(now, Direction::Down)
            } else {
                0
            };
            rest_until = match taken_up.max(taken_down) < BATCH {
                true => now + REST,
                // More frames are waiting.
                false => now,
            };
        }
        self.report(clock(), &mut observer);
        let left = Direction::ALL.map(|direction| self.forwarder.backlog(direction).packets);
        match left.iter().sum() {
            0u32 => (self.log)("stopped, the queue is empty"),
            left => (self.log)(&format!("stopped with {left} packets left in the queue")),
        }
        Ok(())
    }

    /// Takes over from the kernel's bridge, which has already forwarded the frames waiting here.
    fn take_over(&mut self) {
        const AT_ONCE: usize = 1 << 14;
        match self.fail_open.take_over(&self.links) {
            Ok(false) => {}
            Ok(true) => {
                for direction in Direction::ALL {
                    self.check(direction, |link| {
                        link.receive(AT_ONCE, &mut |_| {}).map(drop)
                    });
                }
            }
            Err(error) => (self.log)(&format!(
                "--fail-open: the kernel cannot bridge ({error}); nothing passes while the gateway is stopped"
            )),
        }
    }

    /// Receives frames that travel in `direction`. Sends those that need no queue. Returns their number.
    fn take(&mut self, now: Instant, direction: Direction) -> usize {
        let [wan, lan] = &mut self.links;
        let (from, to, reverse) = match direction {
            Direction::Up => (lan, wan, Direction::Down),
            Direction::Down => (wan, lan, Direction::Up),
        };
        let forwarder = &mut self.forwarder;
        let taken = from.receive(BATCH, &mut |frame| {
            forwarder.take(now, direction, frame, to)
        });
        let count = *taken.as_ref().unwrap_or(&0);
        self.check(reverse, |_| taken.map(drop));
        self.check(direction, Link::flush);
        count
    }

    fn change(&mut self, now: Instant) {
        self.changes.waker().take();
        while let Ok((link, done)) = self.changes.requests.try_recv() {
            let [wan, lan] = &mut self.links;
            let handover = self.forwarder.change(now, link, lan, wan);
            // The client may be gone.
            let _ = done.send(handover);
        }
    }

    /// Closes the interface until it is back, if `work` fails.
    fn check(&mut self, direction: Direction, work: impl FnOnce(&mut Link) -> io::Result<()>) {
        let link = &mut self.links[direction as usize];
        if let Err(error) = work(link) {
            let line = link.close(&error);
            self.announce(line.as_slice());
        }
    }

    /// Logs events of an interface, and updates the service manager's status.
    fn announce(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            lines.iter().for_each(|line| (self.log)(line));
            self.notify.status(&self.status());
        }
    }

    fn report(&mut self, now: Instant, observer: &mut Observer) {
        let [wan, lan] = self.links.each_mut().map(Link::losses);
        let losses = PortLosses { lan, wan };
        let [wan, lan] = self.links.each_ref().map(Link::sending);
        let snapshot = Snapshot {
            sending: PortSending { lan, wan },
            ..observer.observe(now, &mut self.forwarder, losses)
        };
        let flows = self.forwarder.flow_snapshot(snapshot.interval);
        self.shared.publish(snapshot, flows);
    }

    /// Offloads that are off while it runs, by interface.
    pub(crate) fn disabled_offloads(&self) -> DisabledOffloads {
        let links = self.links.iter();
        let offloads =
            links.flat_map(|link| link.disabled_offloads().map(|of| (link.name().into(), of)));
        offloads.collect()
    }

    /// Status line for the service manager.
    fn status(&self) -> String {
        let [wan, lan] = self.links.each_ref();
        let away: Vec<_> = [lan, wan]
            .into_iter()
            .filter(|link| link.is_away())
            .map(Link::name)
            .collect();
        match away.is_empty() {
            true => format!("forwarding between {} and {}", lan.name(), wan.name()),
            false => format!("waiting for {}", away.join(" and ")),
        }
    }
}

/// Restores the interfaces of killed gateways that no gateway holds now. Returns log lines.
fn restore_killed(folder: &Path) -> Vec<String> {
    match restore(folder) {
        Err(error) => vec![format!("{}: {error}", folder.display())],
        Ok(left) => left
            .iter()
            .filter(|of| !of.is_held())
            .map(|of| format!("killed gateway: {of}"))
            .collect(),
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("links", &self.links)
            .field("forwarder", &self.forwarder)
            .finish_non_exhaustive()
    }
}

/// Starts a monotonic clock.
fn start_clock() -> impl Fn() -> Instant {
    let start = std::time::Instant::now();
    move || {
        // Zero means "never": AQ's first interval starts with its first packet.
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos.max(1))
    }
}
