//! The uplink's queue: the gateway, or a kernel qdisc.

mod gateway;
mod kernel;
mod tap;
mod tc;

pub(crate) use tap::Tap;

use crate::clock::Window;
use crate::error::LabError;
use crate::halt::Halt;
use crate::measure::UplinkResults;
use asymq_core::catalog::Build;
use asymq_gateway::Frame;
use asymq_gateway::net::Netns;
use asymq_scenario::Scenario;
use gateway::GatewayUplink;
use kernel::KernelUplink;

pub(crate) enum Uplink<'a> {
    Gateway(Box<GatewayUplink<'a>>),
    Kernel(Box<KernelUplink<'a>>),
}

impl<'a> Uplink<'a> {
    /// Opens the scenario's queue, which charges IP bytes.
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

    /// Meter of sojourn times, if the queue has none.
    pub(crate) fn tap(&self) -> Option<Tap> {
        match self {
            Self::Gateway(_) => None,
            Self::Kernel(kernel) => Some(kernel.tap.clone()),
        }
    }

    /// Runs the queue until the window ends or the run is stopped.
    pub(crate) fn run(self, window: Window, halt: &Halt) -> Result<UplinkResults, LabError> {
        match self {
            Self::Gateway(gateway) => gateway.run(window, halt),
            Self::Kernel(kernel) => kernel.run(window, halt),
        }
    }
}
