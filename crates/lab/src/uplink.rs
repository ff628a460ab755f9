//! The gateway in the middle.

use crate::error::{Context as _, LabError};
use crate::measure::{Delays, INTERVAL, Window};
use crate::topology::{LAN, WAN};
use crate::{Halt, clock, sys};
use asymq_core::config::Config;
use asymq_gateway::net::Netns;
use asymq_gateway::{Gateway, GatewayConfig, LinkConfig, Losses, Snapshot, Stage, Stop};
use asymq_scenario::{Percentiles, Scenario};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

/// The real gateway, opened in its namespace.
pub(crate) struct Uplink<'a> {
    gateway: Gateway,
    namespace: &'a Netns,
}

/// What the gateway's queue saw after warm-up.
pub(crate) struct Seen {
    pub(crate) drops: f64,
    pub(crate) sojourn_ms: Percentiles,
    /// Packets that waited at the end of every interval of the run.
    pub(crate) backlog: Vec<u32>,
    /// Frames lost at the gateway's interfaces.
    pub(crate) losses: Losses,
}

/// The scenario's discipline as the gateway would run it.
fn discipline(scenario: &Scenario) -> Config {
    let params = scenario.qdisc_params.clone();
    let limit = Scenario::waiting_limit(scenario.buffer);
    scenario.qdisc.config(
        &params.on_real_packets(scenario.qdisc),
        scenario.up,
        scenario.down,
        limit,
    )
}

impl<'a> Uplink<'a> {
    /// A gateway with the scenario's discipline, which counts IP bytes.
    pub(crate) fn open(scenario: &Scenario, namespace: &'a Netns) -> Result<Self, LabError> {
        let config = GatewayConfig {
            lan: LAN.into(),
            wan: WAN.into(),
            link: LinkConfig {
                up: scenario.up,
                down: scenario.down,
                overhead: "overhead 0".parse().expect("a keyword with its number"),
                uplink: Stage::Queue(discipline(scenario)),
                downlink: Stage::AtOnce,
            },
        };
        let gateway = namespace
            .run(|| Gateway::open(&config).map_err(io::Error::other))
            .during("opening the gateway")?;
        Ok(Self { gateway, namespace })
    }

    /// Runs the gateway until the window ends or the run is halted.
    pub(crate) fn run(self, window: Window, halt: &Halt) -> Result<Seen, LabError> {
        let Self {
            mut gateway,
            namespace,
        } = self;
        let waits = Arc::new(Mutex::new(Delays::default()));
        let watched = Arc::clone(&waits);
        gateway.set_watch(move |_, sojourn| {
            if window.counts(clock::now()) {
                lock(&watched).add(sojourn);
            }
        });
        gateway.set_report_interval(INTERVAL);
        gateway.set_log(|_| ());
        let stop = Stop::new().during("making a pipe")?;
        let snapshots = gateway.stats();
        let mut queue = QueueMeter::new(window);
        thread::scope(|scope| {
            let forwarding = scope.spawn(|| {
                sys::go_first();
                namespace.enter()?;
                gateway.run(&stop).map_err(io::Error::other)
            });
            let mut seen = 0;
            while let Some(snapshot) = snapshots.next(&mut seen) {
                queue.read(&snapshot);
                if clock::now() >= window.end || halt.is_set() {
                    // Asked twice, it does not wait until its queue has left.
                    stop.request();
                    stop.request();
                    break;
                }
            }
            forwarding
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
        .during("forwarding")?;
        let sojourn_ms = lock(&waits).percentiles_ms();
        Ok(Seen {
            drops: queue.drops as f64,
            sojourn_ms,
            backlog: queue.backlog,
            losses: queue.losses,
        })
    }
}

/// A panic elsewhere leaves the delays whole.
fn lock(waits: &Mutex<Delays>) -> std::sync::MutexGuard<'_, Delays> {
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the gateway's snapshots.
struct QueueMeter {
    window: Window,
    drops_before: u64,
    drops: u64,
    backlog: Vec<u32>,
    losses: Losses,
}

impl QueueMeter {
    fn new(window: Window) -> Self {
        Self {
            window,
            drops_before: 0,
            drops: 0,
            backlog: Vec::new(),
            losses: Losses::default(),
        }
    }

    fn read(&mut self, snapshot: &Snapshot) {
        let now = clock::now();
        let (ack, data) = (&snapshot.queue.ack, &snapshot.queue.data);
        let drops = ack.drops + ack.filtered + data.drops + data.filtered;
        if now <= self.window.warm {
            self.drops_before = drops;
        } else {
            self.drops = drops - self.drops_before;
        }
        self.losses = snapshot.losses.lan + snapshot.losses.wan;
        let intervals = self.window.intervals();
        if now > self.window.start && self.backlog.len() < intervals {
            self.backlog
                .push(ack.backlog_packets + data.backlog_packets);
        }
    }
}
