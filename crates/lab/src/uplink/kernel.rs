//! A kernel qdisc on a router as the uplink's queue.

use super::tap::Tap;
use super::tc;
use crate::clock::{self, Window};
use crate::error::{Context as _, LabError};
use crate::halt::{Halt, joined};
use crate::measure::{QueueResults, UplinkResults};
use crate::topology::{LAN, WAN};
use asymq_gateway::net::Netns;
use asymq_gateway::{Losses, Port};
use asymq_scenario::{Fates, Scenario};
use std::collections::BTreeMap;
use std::{io, thread};

pub(crate) struct KernelUplink<'a> {
    kind: String,
    namespace: &'a Netns,
    /// Receives frames from home.
    port: Port,
    pub(super) tap: Tap,
}

impl<'a> KernelUplink<'a> {
    pub(super) fn open(
        words: &str,
        scenario: &Scenario,
        namespace: &'a Netns,
    ) -> Result<Self, LabError> {
        let kind = words.split_whitespace().next().unwrap_or_default();
        for command in tc::commands(words, scenario, WAN) {
            let outcome = namespace.run(|| tc::run(&command)).during("running tc")?;
            outcome.map_err(|message| LabError::Tc(words.to_owned(), message))?;
        }
        // Checks tc early, and loads it into memory.
        let counters = namespace.run(|| tc::counters(kind, WAN));
        counters.during("reading tc's counters")?;
        let port = namespace
            .run(|| Port::open(LAN).map_err(io::Error::other))
            .during("opening the router's interface")?;
        Ok(Self {
            kind: kind.to_owned(),
            namespace,
            port,
            tap: Tap::default(),
        })
    }

    /// Reads the qdisc's counters until the window ends or the run is halted.
    pub(super) fn run(mut self, window: Window, halt: &Halt) -> Result<UplinkResults, LabError> {
        let read = || {
            let read = self.namespace.run(|| tc::counters(&self.kind, WAN));
            read.during("reading tc's counters")
        };
        thread::scope(|scope| {
            let watching =
                scope.spawn(|| halt.guard(|| self.tap.watch(&mut self.port, window, halt)));
            let (mut before, mut after) = Default::default();
            let mut backlog = Vec::new();
            let mut at = window.start;
            while let Some(next) = window.reading_after(at).filter(|_| !halt.is_set()) {
                thread::sleep(next.saturating_since(clock::now()).into());
                after = read()?;
                if next <= window.warm {
                    before = after;
                }
                if window.ends_interval(next) {
                    backlog.push(after.backlog);
                }
                at = next;
            }
            joined(watching).during("watching the router's interface")?;
            let count =
                |of: fn(&tc::Counters) -> u64| of(&after).saturating_sub(of(&before)) as f64;
            let fates = Fates {
                dropped: count(|counters| counters.dropped),
                filtered: count(|counters| counters.filtered),
                marked: count(|counters| counters.marked),
                // tc reports no reasons.
                reasons: BTreeMap::new(),
            };
            Ok(UplinkResults {
                queue: QueueResults {
                    fates,
                    sojourn_ms: self.tap.sojourn_ms(),
                    sojourn_by_class_ms: None,
                    // tc reports no rules of ACK filters.
                    unfiltered: BTreeMap::new(),
                    backlog,
                },
                downlink: None,
                losses: Losses::default(),
            })
        })
    }
}
