//! The forwarding loop.

use crate::change::{Changer, Request};
use crate::config::{LinkConfig, LinkError};
use crate::conntrack::NatTracker;
use crate::error::GatewayError;
use crate::fail_open::FailOpen;
use crate::flows::{FlowCounters, FlowRequests};
use crate::forwarder::Forwarder;
use crate::guard::DisabledOffloads;
use crate::host::HostOptions;
use crate::io::{Frame, PacketIo};
use crate::link::Link;
use crate::log;
use crate::net::Netns;
use crate::notify::Notify;
use crate::port::PortErrorKind;
use crate::rest::{MIN_WAKE_INTERVAL, Rest, Wait};
use crate::restore::restore_killed;
use crate::router_follow::PortFollower;
use crate::snapshot::{Observer, Ports, Shared, Snapshot};
use crate::stop::{DRAIN, Stop};
use crate::sys::{poll, precise_timers, raise_priority, start_clock};
use asymq_core::catalog::Build;
use asymq_core::decide::frame::FlowKey;
use asymq_core::{Direction, Duration, Header, Instant};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver};

/// Maximum number of frames that one direction receives or sends before it is the other direction's turn.
const BATCH: usize = 64;
/// Default interval of snapshots.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Configuration of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Interface towards home.
    pub lan: String,
    /// Interface towards the Internet.
    pub wan: String,
    /// The link between `lan` and `wan`.
    pub link: LinkConfig,
}

impl GatewayConfig {
    /// Checks that the interfaces differ.
    pub fn check_interfaces(&self) -> Result<(), GatewayError> {
        if self.lan == self.wan {
            return Err(GatewayError::SameInterface(self.wan.clone()));
        }
        Ok(())
    }
}

/// Maximum pause of the loop (SIGSTOP, suspended machine). After a longer pause, queued frames are dropped, because
/// their senders have already retransmitted them.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Shutdown of a gateway. The gateway sends its queue while the kernel may already forward new frames.
#[derive(Default)]
struct Drain {
    /// End of the shutdown; `None` until a stop is requested.
    until: Option<Instant>,
    /// True if the kernel already forwards frames.
    handed_over: bool,
}

impl Drain {
    fn is_over(&self, now: Instant, next: Option<Instant>) -> bool {
        self.until
            .is_some_and(|until| next.is_none() || now >= until)
    }
}

/// A transparent bridge between two interfaces that queues frames in disciplines.
pub struct Gateway {
    /// Outgoing interfaces of uplink and downlink: WAN and LAN.
    links: [Link; 2],
    fail_open: FailOpen,
    pub(crate) forwarder: Forwarder,
    changer: Changer,
    requests: Receiver<Request>,
    shared: Shared,
    report_interval: Duration,
    log: Box<dyn FnMut(&str) + Send>,
    notify: Notify,
    /// Network namespace of the interfaces; `None` for the caller's namespace.
    pub(crate) namespace: Option<Netns>,
    /// Hosts behind the router's NAT.
    pub(crate) nat: Option<NatTracker>,
    pub(crate) follower: Option<PortFollower>,
}

impl Gateway {
    /// Builds the disciplines of `config` and opens its interfaces in the calling thread's network namespace. Received
    /// frames wait in the interfaces' rings until [`run`](Self::run). If `host` names a folder of journals, also
    /// restores the interfaces of killed gateways.
    ///
    /// # Errors
    /// A discipline cannot be built, an interface is missing or unsuitable, or a privilege is missing.
    pub fn open(
        catalog: &'static dyn Build<Frame>,
        config: &GatewayConfig,
        host: &HostOptions,
    ) -> Result<Self, GatewayError> {
        let link = config.link.build(catalog).map_err(GatewayError::Link)?;
        config.check_interfaces()?;
        let links = Self::open_links(config, host);
        let restored = host.state.as_deref().map(restore_killed);
        // If the start fails, its error is the only line.
        let links = links?;
        restored
            .unwrap_or_default()
            .iter()
            .for_each(|line| log::line(line));
        // The standard library seeds its keys from the system's random source.
        let secret = || RandomState::new().build_hasher().finish();
        let key = FlowKey::new([secret(), secret()]);
        let changes = Changer::new(catalog).map_err(GatewayError::during("making a pipe"));
        let (changer, requests) = changes?;
        Ok(Self {
            links,
            fail_open: FailOpen::new(host.fail_open),
            forwarder: Forwarder::new(link, key),
            changer,
            requests,
            shared: Shared::default(),
            report_interval: REPORT_INTERVAL,
            log: Box::new(log::line),
            notify: Notify::default(),
            namespace: None,
            nat: None,
            follower: None,
        })
    }

    fn open_links(config: &GatewayConfig, host: &HostOptions) -> Result<[Link; 2], GatewayError> {
        let open = |flag, name| {
            Link::open(flag, name, host).map_err(|source| GatewayError::Port { flag, source })
        };
        let lan = open("--lan", &config.lan)?;
        match open("--wan", &config.wan) {
            // Two names can belong to one interface.
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

    /// Returns a handle to the snapshots of the running gateway.
    pub fn stats(&self) -> Shared {
        self.shared.clone()
    }

    /// Allocates flow counters. They count only when the returned handle requests it.
    pub(crate) fn count_flows(&mut self) -> Result<FlowRequests, GatewayError> {
        let requests = FlowRequests::default();
        let flows = FlowCounters::new(requests.clone()).map_err(LinkError::of("flows"));
        let flows = flows.map_err(GatewayError::Link)?;
        self.forwarder.flows = Some(flows);
        Ok(requests)
    }

    /// Returns a handle that changes the gateway while it runs.
    pub fn changer(&self) -> Changer {
        self.changer.clone()
    }

    /// Sets the interval of snapshots (default: one second).
    pub fn set_report_interval(&mut self, interval: Duration) {
        self.report_interval = interval;
    }

    /// Sets a callback that gets direction, header and sojourn time of every sent frame.
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

    /// Forwards until a stop is requested. Then sends the queue for at most two seconds or until a second request, and
    /// only directions without a queue receive. Call it in the network namespace of [`open`](Self::open).
    ///
    /// # Panics
    /// A discipline panics.
    pub fn run(&mut self, stop: &Stop) -> Result<(), GatewayError> {
        precise_timers();
        raise_priority();
        self.enter()?;
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.forward(stop)));
        // Rejects pending and later changes.
        (self.changer.requests, self.requests) = mpsc::channel();
        self.shared.end();
        answer.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Restores the interfaces after a run. Dropping the gateway also restores them, but closes sockets as well, which
    /// takes seconds on a busy machine.
    pub(crate) fn restore(&mut self) {
        if let Err(error) = self.enter() {
            (self.log)(&error.to_string());
        }
        for link in &mut self.links {
            if let Some(failed) = link.restore() {
                (self.log)(&failed);
            }
        }
    }

    /// Removes the kernel's bridge and releases the interfaces, so that they can leave the namespace.
    pub fn release(&mut self) {
        self.fail_open.hand_over();
        for link in &mut self.links {
            if let Err(error) = link.release() {
                (self.log)(&format!("{}: not released ({error})", link.name()));
            }
        }
    }

    fn forward(&mut self, stop: &Stop) -> Result<(), GatewayError> {
        let clock = start_clock();
        let mut observer = Observer::new(clock());
        let mut report_at = clock() + self.report_interval;
        let mut drain = Drain::default();
        let mut rest = Rest::default();
        // Last time at which the loop certainly ran; a long time since then is a pause.
        let mut due = clock();
        for link in &self.links {
            link.log_lines().iter().for_each(|line| (self.log)(line));
        }
        self.take_over();
        self.notify.set_state(clock(), "READY=1");
        self.notify.status(&self.status());
        loop {
            let now = clock();
            self.drop_stale(now.saturating_since(due));
            self.notify.beat(now);
            let next = self.transmit(now);
            if now >= report_at {
                self.report(now, &mut observer);
                report_at = now + self.report_interval;
            }
            self.reopen(now, &drain);
            if drain.is_over(now, next) {
                break;
            }
            let wake = self.wake_at(now, [next, drain.until], report_at);
            let wait = rest.plan(clock(), next, wake);
            let ready = self.wait(stop, &drain, wait);
            let [up, down, stopped, changed] =
                ready.map_err(GatewayError::during("waiting for frames"))?;
            if stopped && self.stop(stop, &mut drain, &clock) {
                break;
            }
            let now = clock();
            self.drop_stale(now.saturating_since(wait.until));
            due = now;
            if changed {
                self.change(now);
            }
            let mut most = 0;
            for (is_ready, direction) in [up, down].into_iter().zip(Direction::ALL) {
                if is_ready {
                    most = most.max(self.take(now, direction));
                }
            }
            rest.woke(now, most, BATCH);
        }
        self.report(clock(), &mut observer);
        let left = Direction::ALL.map(|direction| self.forwarder.backlog(direction).packets);
        match left.iter().sum() {
            0u32 => (self.log)("stopped, the queue is empty"),
            left => (self.log)(&format!("stopped with {left} packets left in the queue")),
        }
        Ok(())
    }

    /// Sends frames whose time has come. Returns the time of the next frame.
    fn transmit(&mut self, now: Instant) -> Option<Instant> {
        let next = Direction::ALL.map(|direction| {
            let out = &mut self.links[direction as usize];
            self.forwarder.transmit(now, direction, BATCH, out)
        });
        for direction in Direction::ALL {
            self.check(direction, Link::flush);
        }
        next.into_iter().flatten().min()
    }

    /// Reopens interfaces that were away and have returned.
    fn reopen(&mut self, now: Instant, drain: &Drain) {
        for direction in Direction::ALL {
            let lines = self.links[direction as usize].retry(now);
            self.announce(&lines);
            if !lines.is_empty() && drain.until.is_none() {
                self.take_over();
            }
        }
    }

    fn wake_at(&self, now: Instant, due: [Option<Instant>; 2], report_at: Instant) -> Instant {
        let waits = self.links.iter().any(Link::is_waiting);
        let room_at = waits.then(|| now + MIN_WAKE_INTERVAL);
        let times = due.into_iter().chain([room_at, self.notify.beat_at()]);
        let retries = self.links.iter().map(Link::retry_at);
        times.chain(retries).flatten().fold(report_at, Instant::min)
    }

    /// Waits for an uplink frame, a downlink frame, a stop request or a change. Returns which occurred, in this order.
    fn wait(&self, stop: &Stop, drain: &Drain, wait: Wait) -> io::Result<[bool; 4]> {
        // During a shutdown, only directions without a queue still receive, until the kernel forwards.
        let takes = |direction| {
            drain.until.is_none() || !drain.handed_over && self.forwarder.is_direct(direction)
        };
        let [wan, lan] = &self.links;
        let fds = [
            lan.fd().filter(|_| !wait.rests && takes(Direction::Up)),
            wan.fd().filter(|_| !wait.rests && takes(Direction::Down)),
            Some(stop.0.as_fd()),
            Some(self.changer.waker.as_fd()),
        ];
        let [up, down, stopped, changed] = poll(fds, Some(wait.timeout))?;
        let pending = |link: &Link| wait.rests && drain.until.is_none() && link.is_pending();
        Ok([up || pending(lan), down || pending(wan), stopped, changed])
    }

    /// Starts the shutdown at the first request. Returns true at the second request.
    fn stop(&mut self, stop: &Stop, drain: &mut Drain, clock: &impl Fn() -> Instant) -> bool {
        let requests = stop.0.take();
        if requests > 1 || requests > 0 && drain.until.is_some() {
            return true;
        }
        if requests > 0 {
            drain.until = Some(clock() + DRAIN);
            self.notify.set_state(clock(), "STOPPING=1");
            // Sends the frames that arrived before the kernel starts to forward.
            for direction in Direction::ALL {
                while self.take(clock(), direction) >= BATCH {}
            }
            drain.handed_over = self.fail_open.hand_over();
        }
        false
    }

    /// Blocks the kernel's bridge, and discards the frames that it has already forwarded.
    fn take_over(&mut self) {
        match self.fail_open.take_over(&self.links) {
            Ok(false) => {}
            Ok(true) => {
                for direction in Direction::ALL {
                    self.check(direction, |link| link.discard().map(drop));
                }
            }
            Err(error) => (self.log)(&format!(
                "--fail-open: the kernel cannot bridge ({error}); no frame passes while the gateway is stopped"
            )),
        }
    }

    /// Drops and counts all queued frames after a pause of more than [`MAX_PAUSE`].
    fn drop_stale(&mut self, pause: Duration) {
        if pause <= MAX_PAUSE {
            return;
        }
        let mut sum = 0;
        for direction in Direction::ALL {
            let mut stale = self.forwarder.state(direction).take_waiting().len() as u64;
            let from = direction.reverse();
            self.check(from, |link| link.discard().map(|count| stale += count));
            self.links[from as usize].lose_stale(stale);
            sum += stale;
        }
        (self.log)(&format!(
            "did not run for {pause}; {sum} packets from before the pause are dropped"
        ));
    }

    /// Receives frames that travel in `direction`, and sends the frames that need no queue. Returns the number
    /// received.
    fn take(&mut self, now: Instant, direction: Direction) -> usize {
        let [wan, lan] = &mut self.links;
        let [from, to] = match direction {
            Direction::Up => [lan, wan],
            Direction::Down => [wan, lan],
        };
        let forwarder = &mut self.forwarder;
        let taken = from.receive(BATCH, &mut |frame| {
            forwarder.take(now, direction, frame, to)
        });
        let count = *taken.as_ref().unwrap_or(&0);
        self.check(direction.reverse(), |_| taken.map(drop));
        self.check(direction, Link::flush);
        count
    }

    fn change(&mut self, now: Instant) {
        self.changer.waker.take();
        while let Ok((link, done)) = self.requests.try_recv() {
            let [wan, lan] = &mut self.links;
            let handover = self.forwarder.change(now, link, lan, wan);
            // The client may have disconnected.
            let _ = done.send(handover);
        }
    }

    /// Runs `work`. If it fails, closes the interface until the interface is available again.
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
        let losses = Ports { lan, wan };
        let [wan, lan] = self.links.each_ref().map(Link::sending);
        let snapshot = Snapshot {
            sending: Ports { lan, wan },
            ..observer.observe(now, &mut self.forwarder, losses)
        };
        let flows = self.forwarder.flow_snapshot(snapshot.interval);
        self.shared.publish(snapshot, flows);
    }

    /// Offloads that are disabled while the gateway runs, with the interface of each.
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
