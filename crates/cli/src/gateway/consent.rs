//! Consent to take over the port that carries the user's own session.

use asymq_core::units::Duration;
use asymq_gateway::{GatewayError, SESSION, inspect_router};
use clap::Args;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

#[derive(Clone, Debug, Args)]
pub(crate) struct Consent {
    /// Restore the port after this time unless you press Enter.
    #[arg(long, value_name = "TIME", help_heading = "Host")]
    pub(super) confirm: Option<Duration>,
    /// Take over the port even if this login session uses it.
    #[arg(long, help_heading = "Host")]
    pub(super) yes: bool,
}

impl Consent {
    /// Fails if a finding about the port is a problem. With consent, ignores the finding about the session.
    pub(super) fn check(&self, wan: &str) -> Result<(), GatewayError> {
        let consents = self.yes || self.confirm.is_some();
        let findings = inspect_router(wan);
        let wrong = findings
            .iter()
            .filter(|of| of.wrong && !(consents && of.subject == SESSION));
        let lines: Vec<String> = wrong.map(ToString::to_string).collect();
        match lines.is_empty() {
            true => Ok(()),
            false => Err(GatewayError::Refused(lines.join("; "))),
        }
    }
}

/// Waits for a line of standard input. Returns false if no line arrives within `time`.
pub(super) fn is_confirmed(time: Duration) -> bool {
    let (read, confirmed) = mpsc::channel();
    thread::spawn(move || {
        let line = io::stdin().read_line(&mut String::new());
        line.is_ok_and(|length| length > 0).then(|| read.send(()))
    });
    match confirmed.recv_timeout(time.into()) {
        Ok(()) => true,
        // At the end of standard input, continues to wait: the end is no confirmation.
        Err(RecvTimeoutError::Disconnected) => {
            thread::sleep(time.into());
            false
        }
        Err(RecvTimeoutError::Timeout) => false,
    }
}
