use crate::config::LinkError;
use crate::port::PortError;
use std::io;

/// Reason why a gateway cannot start or continue. The text is one line that names the flag or the direction.
#[derive(Debug)]
pub enum GatewayError {
    /// `--lan` and `--wan` name one interface.
    SameInterface(String),
    /// An interface cannot be opened.
    Port {
        /// Flag that names the interface.
        flag: &'static str,
        /// Cause of the error.
        source: PortError,
    },
    /// A discipline cannot be built.
    Link(LinkError),
    /// An output (metrics, page, control socket) cannot be served, or no gateway answers at the socket.
    Output {
        /// The flag with its value.
        flag: String,
        /// Cause of the error.
        source: io::Error,
    },
    /// The running gateway refused a change.
    Refused(String),
    /// A system call failed.
    System {
        /// Action that failed.
        action: &'static str,
        /// Cause of the error.
        source: io::Error,
    },
}

asymq_core::error_texts!(GatewayError {
    Self::SameInterface(name) => ("--wan {name}: the same interface as --lan; a bridge needs two"),
    Self::Port { flag, source } => ("{flag} {source}") from source,
    Self::Link(error) => ("{error}") from error,
    Self::Output { flag, source } => ("{flag}: {source}") from source,
    Self::Refused(text) => ("{text}"),
    Self::System { action, source } => ("{action}: {source}") from source,
});

impl GatewayError {
    /// Returns a function that adds `action` to the error of a system call.
    pub fn during(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }

    /// True if the user can avoid the error with other flags.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::SameInterface(_) | Self::Link(_) | Self::Refused(_) => true,
            // These errors mean that the gateway exists but does not answer.
            Self::Output { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::TimedOut | io::ErrorKind::UnexpectedEof
            ),
            Self::Port { source, .. } => source.is_bad_input(),
            Self::System { .. } => false,
        }
    }
}
