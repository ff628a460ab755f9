//! Errors of the lab.

use asymq_gateway::LinkError;
use std::io;

/// Reason why the lab could not run a scenario. All resources are released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The kernel lacks the congestion control.
    #[error("--tcp {0}")]
    CongestionControl(String),
    /// The QUIC stack cannot be run: the flag's value, and the cause.
    #[error("--quic {0}: {1}")]
    Quic(String, String),
    /// A discipline of the scenario cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The caller may not create network namespaces.
    #[error(
        "making network namespaces is not permitted; run as root, or allow unprivileged user \
         namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
    )]
    NotPermitted,
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The action that failed.
        doing: &'static str,
        /// Cause of the error.
        source: io::Error,
    },
    /// Packets were lost outside of the scenario's queues: their number.
    #[error(
        "this machine could not keep up: {0} packets were lost between the lab's interfaces; use lower rates or fewer flows"
    )]
    TooSlow(u64),
    /// tc refused the uplink's qdisc: its arguments, and tc's message.
    #[error("--tc {0}: {1}; write it for tc qdisc, as in \"cake ack-filter\" or \"fq_codel\"")]
    Tc(String, String),
    /// With a kernel qdisc, packets left the emulated path late in every attempt.
    #[error(
        "seed {seed}: packets left {late_ms:.1} ms late at the 99th percentile in each of {attempts} attempts, so this run does not count; use lower rates, or an idle machine"
    )]
    Late {
        /// Seed of the run.
        seed: u64,
        /// Lateness of packets on the emulated path in the last attempt, in ms.
        late_ms: f64,
        /// Number of attempts.
        attempts: u32,
    },
    /// The guest, or the lab in it, failed.
    #[error("--kernel: {message}")]
    Guest {
        /// Message of the guest.
        message: String,
        /// True if the input is wrong.
        is_bad_input: bool,
    },
    /// The caller requested a stop.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    pub(crate) const fn system(doing: &'static str, source: io::Error) -> Self {
        Self::System { doing, source }
    }

    /// True if the input is wrong; false if the system failed.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::CongestionControl(_) | Self::Quic(..) | Self::Link(_) | Self::Tc(..) => true,
            Self::Guest { is_bad_input, .. } => *is_bad_input,
            _ => false,
        }
    }
}

pub(crate) trait Context<T> {
    fn during(self, doing: &'static str) -> Result<T, LabError>;
}

impl<T> Context<T> for io::Result<T> {
    fn during(self, doing: &'static str) -> Result<T, LabError> {
        self.map_err(|source| LabError::system(doing, source))
    }
}
