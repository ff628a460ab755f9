//! Optional records of a run, and the errors of runs.

use asymq_core::hold::BuildError;
use asymq_scenario::Tcp;
use std::io::{self, Write};

/// Records of a run in addition to its summary.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// True for time series with intervals of 0.2 s.
    pub series: bool,
    /// Output for a pcapng trace of the uplink.
    pub capture_up: Option<&'a mut dyn Write>,
    /// Output for a pcapng trace of the downlink.
    pub capture_down: Option<&'a mut dyn Write>,
    /// Function that is called after each simulated second. It may unwind, to end the run early.
    pub pulse: Option<&'a dyn Fn()>,
}

/// A scenario that the simulator cannot run, or a trace that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The simulator does not implement this congestion control.
    #[error(
        "--tcp {_0}: not available in the simulator; use {}",
        Tcp::either(Tcp::simulated())
    )]
    Tcp(Tcp),
    /// A discipline cannot be built.
    #[error("cannot build the scenario's disciplines: {0}")]
    Build(#[from] BuildError),
    /// A trace could not be written.
    #[error("cannot write the trace: {0}")]
    Capture(#[from] io::Error),
}
