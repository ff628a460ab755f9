//! What queues at the uplink: the gateway, or a qdisc of the kernel's.

mod gateway;
mod kernel;
mod tap;
mod tc;

pub(crate) use tap::Tap;

use crate::Halt;
use crate::error::LabError;
use crate::window::Window;
use asymq_core::catalog::Build;
use asymq_gateway::net::Netns;
use asymq_gateway::{Frame, Losses};
use asymq_scenario::{Direction, Percentiles, Scenario};
use gateway::GatewayUplink;
use kernel::KernelUplink;
use std::collections::BTreeMap;

/// The uplink's queue, opened in its namespace.
pub(crate) enum Uplink<'a> {
    Gateway(Box<GatewayUplink<'a>>),
    Kernel(Box<KernelUplink<'a>>),
}

/// What it did with packets after warm-up.
pub(crate) struct Seen {
    dropped: f64,
    filtered: f64,
    marked: f64,
    /// Packets by the name of the reason; a qdisc of the kernel's names none.
    reasons: BTreeMap<String, f64>,
    sojourn_ms: Percentiles,
    /// Packets that waited at the end of every interval of the run.
    pub(crate) backlog: Vec<u32>,
    /// Frames lost at its interfaces.
    pub(crate) losses: Losses,
}

impl Seen {
    /// The uplink: its queue is this; what it carries is counted where it leaves the modem.
    pub(crate) fn direction(&self, modem: Direction) -> Direction {
        Direction {
            dropped: self.dropped,
            filtered: self.filtered,
            marked: self.marked,
            reasons: self.reasons.clone(),
            sojourn_ms: self.sojourn_ms,
            ..modem
        }
    }
}

impl<'a> Uplink<'a> {
    /// The scenario's queue, which counts IP bytes.
    pub(crate) fn open(
        catalog: &'static dyn Build<Frame>,
        scenario: &Scenario,
        namespace: &'a Netns,
    ) -> Result<Self, LabError> {
        match &scenario.tc {
            None => GatewayUplink::open(catalog, scenario, namespace)
                .map(|gateway| Self::Gateway(Box::new(gateway))),
            Some(words) => KernelUplink::open(words, scenario, namespace)
                .map(|kernel| Self::Kernel(Box::new(kernel))),
        }
    }

    /// What measures how long packets wait there, if it does not itself.
    pub(crate) fn tap(&self) -> Option<Tap> {
        match self {
            Self::Gateway(_) => None,
            Self::Kernel(kernel) => Some(kernel.tap()),
        }
    }

    /// Runs it until the window ends or the run is halted.
    pub(crate) fn run(self, window: Window, halt: &Halt) -> Result<Seen, LabError> {
        match self {
            Self::Gateway(gateway) => gateway.run(window, halt),
            Self::Kernel(kernel) => kernel.run(window, halt),
        }
    }
}
