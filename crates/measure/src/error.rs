//! Reasons why a line could not be measured.

use std::io;

/// Reason why a line could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum MeasureError {
    /// A system call failed.
    System {
        /// The activity that failed.
        doing: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The server refuses to measure, or uses another protocol.
    Protocol {
        /// Address of the server.
        server: String,
        /// The server's message, or the mistake and its remedy.
        message: String,
    },
    /// The caller requested a stop.
    Interrupted,
}

asymq_core::error_texts!(MeasureError {
    Self::System { doing, source } => ("{doing}: {source}") from source,
    Self::Protocol { server, message } => ("{server}: {message}"),
    Self::Interrupted => ("interrupted"),
});

impl MeasureError {
    pub(crate) fn protocol(server: &str, message: &str) -> Self {
        Self::Protocol {
            server: server.into(),
            message: message.into(),
        }
    }
}

/// Adds a description of the activity to a system error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, MeasureError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, MeasureError> {
        self.map_err(|source| MeasureError::System {
            doing: what(),
            source,
        })
    }
}
