//! The errors of the lab.

use asymq_gateway::LinkError;
use std::io;

/// A scenario that the lab could not run. Whatever it had made is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The kernel lacks the congestion control. Nothing was made.
    #[error("--tcp {name}: {why}; use {instead}")]
    CongestionControl {
        /// Its name.
        name: String,
        /// The cause.
        why: &'static str,
        /// Values to write instead.
        instead: String,
    },
    /// The QUIC stack cannot be run. Nothing was made, or it did not start.
    #[error("--quic {flows}: {message}")]
    Quic {
        /// As given.
        flows: String,
        /// The error, and a remedy.
        message: String,
    },
    /// A discipline of the scenario cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The caller may not make network namespaces. Nothing was made.
    #[error(
        "making network namespaces is not permitted; run as root, or allow unprivileged user \
         namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
    )]
    NotPermitted,
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The lab's activity.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Packets were lost elsewhere than in the scenario's queues, so that a run would show too little.
    #[error(
        "this machine could not keep up: {packets} packets were lost between the lab's interfaces; use lower rates or fewer flows"
    )]
    TooSlow {
        /// Their number.
        packets: u64,
    },
    /// tc refuses the uplink's qdisc.
    #[error(
        "--tc {words}: {message}; words as for tc qdisc, like \"cake ack-filter\" or \"fq_codel\""
    )]
    Tc {
        /// As given.
        words: String,
        /// tc's message.
        message: String,
    },
    /// A run of a qdisc of the kernel's whose clock was late however often it was repeated.
    #[error(
        "seed {seed}: packets left {late_ms:.1} ms late at the 99th percentile, {attempts} times: not counted; use lower rates, or run on an idle machine"
    )]
    Late {
        /// The run's.
        seed: u64,
        /// Lateness of packets on the emulated path in the last attempt, in ms.
        late_ms: f64,
        /// Number of attempts.
        attempts: u32,
    },
    /// The guest, or the lab in it.
    #[error("--kernel: {message}")]
    Guest {
        /// The guest's message.
        message: String,
        /// True if the input is wrong.
        is_bad_input: bool,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// True if the input is wrong, false if the system failed.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::CongestionControl { .. }
            | Self::Quic { .. }
            | Self::Link(_)
            | Self::Tc { .. } => true,
            Self::Guest { is_bad_input, .. } => *is_bad_input,
            _ => false,
        }
    }
}

/// Says what was being done when the system failed.
pub(crate) trait Context<T> {
    fn during(self, doing: &'static str) -> Result<T, LabError>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, doing: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::System { doing, source })
    }
}
