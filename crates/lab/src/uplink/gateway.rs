//! The gateway in the middle.

use super::Seen;
use crate::error::{Context as _, LabError};
use crate::measure::QueueSeen;
use crate::topology::{LAN, WAN};
use crate::window::{INTERVAL, Window};
use crate::{Halt, clock, sys};
use asymq_core::Reason;
use asymq_core::catalog::Build;
use asymq_core::measure::Histogram;
use asymq_gateway::net::Netns;
use asymq_gateway::{
    ClassSnapshot, DirectionSnapshot, Frame, Gateway, GatewayConfig, GatewayError, LinkConfig,
    Losses, Snapshot, Stage, Stop,
};
use asymq_scenario::{Fates, Percentiles, Scenario};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

/// The real gateway, opened in its namespace.
pub(crate) struct GatewayUplink<'a> {
    gateway: Gateway,
    namespace: &'a Netns,
}

impl<'a> GatewayUplink<'a> {
    /// A gateway with the scenario's discipline, which counts IP bytes.
    pub(crate) fn open(
        catalog: &'static dyn Build<Frame>,
        scenario: &Scenario,
        namespace: &'a Netns,
    ) -> Result<Self, LabError> {
        let config = GatewayConfig {
            lan: LAN.into(),
            wan: WAN.into(),
            link: LinkConfig {
                up: scenario.up,
                down: scenario.uplink.reverse,
                auto: [None; 2],
                overhead: "overhead 0".parse().expect("a keyword with its number"),
                uplink: Stage::Queue(scenario.uplink.clone()),
                downlink: Stage::AtOnce,
            },
        };
        let opened = namespace
            .run(|| Ok(Gateway::open_with(catalog, &config)))
            .during("opening the gateway")?;
        let gateway = opened.map_err(|error| match error {
            GatewayError::Link(error) => LabError::Link(error),
            error => LabError::System {
                doing: "opening the gateway",
                source: io::Error::other(error),
            },
        })?;
        Ok(Self { gateway, namespace })
    }

    /// Runs the gateway until the window ends or the run is halted.
    pub(crate) fn run(self, window: Window, halt: &Halt) -> Result<Seen, LabError> {
        let Self {
            mut gateway,
            namespace,
        } = self;
        let waits = Arc::new(Mutex::new(Histogram::default()));
        let watched = Arc::clone(&waits);
        gateway.set_watch(move |_, sojourn| {
            if window.counts(clock::now()) {
                lock(&watched).record(sojourn);
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
        Ok(queue.seen(sojourn_ms))
    }
}

/// A panic elsewhere leaves the histogram whole.
fn lock(waits: &Mutex<Histogram>) -> std::sync::MutexGuard<'_, Histogram> {
    waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the gateway's snapshots.
struct QueueMeter {
    window: Window,
    before: DirectionSnapshot,
    after: DirectionSnapshot,
    backlog: Vec<u32>,
    losses: Losses,
}

impl QueueMeter {
    fn new(window: Window) -> Self {
        Self {
            window,
            before: DirectionSnapshot::default(),
            after: DirectionSnapshot::default(),
            backlog: Vec::new(),
            losses: Losses::default(),
        }
    }

    fn seen(self, sojourn_ms: Percentiles) -> Seen {
        let count = |of: &dyn Fn(&ClassSnapshot) -> u64| {
            let sum = |snapshot: &DirectionSnapshot| -> u64 {
                let classes = snapshot.classes();
                classes.iter().map(|(_, class)| of(class)).sum()
            };
            (sum(&self.after) - sum(&self.before)) as f64
        };
        let reasons = Reason::ALL.iter();
        let fates = Fates {
            dropped: count(&|class| class.dropped),
            filtered: count(&|class| class.filtered),
            marked: count(&|class| class.marked),
            reasons: reasons
                .map(|reason| {
                    let packets = count(&|class| class.reasons[*reason as usize]);
                    (reason.name().into(), packets)
                })
                .collect(),
        };
        Seen {
            queue: QueueSeen {
                fates,
                sojourn_ms,
                backlog: self.backlog,
            },
            losses: self.losses,
        }
    }

    fn read(&mut self, snapshot: &Snapshot) {
        let now = clock::now();
        if now <= self.window.warm {
            self.before = snapshot.up.clone();
        }
        self.after = snapshot.up.clone();
        self.losses = snapshot.losses.lan + snapshot.losses.wan;
        let intervals = self.window.intervals();
        if now > self.window.start && self.backlog.len() < intervals {
            self.backlog.push(snapshot.up.backlog_packets());
        }
    }
}
