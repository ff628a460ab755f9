//! The errors of a gateway.

use crate::config::LinkError;
use crate::port::PortError;
use std::io;

/// The reason for which a gateway cannot start or go on. Each is one line that names the flag or the direction.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Both ports would be one.
    #[error("--wan {0}: the same interface as --lan; a bridge needs two")]
    SameInterface(String),
    /// An interface cannot be opened.
    #[error("{flag} {source}")]
    Port {
        /// The flag that names it.
        flag: &'static str,
        /// The cause.
        source: PortError,
    },
    /// A discipline cannot be built.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Metrics or the control socket cannot be served, or no gateway listens at the socket.
    #[error("{flag}: {source}")]
    Output {
        /// The flag, with its value.
        flag: String,
        /// The cause.
        source: io::Error,
    },
    /// The running gateway refused a change.
    #[error("{0}")]
    Refused(String),
    /// A system call failed while forwarding.
    #[error("{action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl GatewayError {
    /// The error of a system call while `action` was attempted.
    pub fn during(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }

    /// True if other flags would help: nothing was wrong at run time.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::SameInterface(_) | Self::Link(_) | Self::Refused(_) => true,
            // A gateway is there, and does not answer.
            Self::Output { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof
            ),
            Self::Port { source, .. } => source.is_bad_input(),
            Self::System { .. } => false,
        }
    }
}
