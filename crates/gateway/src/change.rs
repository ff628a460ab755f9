//! Changes of a running gateway's settings.

use crate::config::{BuiltLink, LinkConfig, LinkError};
use crate::io::Frame;
use crate::stop::Waker;
use asymq_core::catalog::Build;
use asymq_core::hold::Handover;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};

/// A new link, and a channel for the handover and the replaced link.
pub(crate) type Request = (BuiltLink, Sender<(Handover, BuiltLink)>);

/// Sends changes to a gateway from any thread.
#[derive(Clone)]
pub struct Changer {
    pub(crate) requests: Sender<Request>,
    pub(crate) waker: Waker,
    catalog: &'static dyn Build<Frame>,
}

/// Reason why a change failed. The gateway keeps its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The new disciplines cannot be built.
    Link(LinkError),
    /// The gateway has stopped.
    Stopped,
}

asymq_core::error_texts!(ChangeError {
    Self::Link(error) => ("{error}") from error,
    Self::Stopped => ("the gateway has stopped"),
});

impl Changer {
    /// Returns a handle and the receiving end of its channel, for the gateway.
    pub(crate) fn new(catalog: &'static dyn Build<Frame>) -> io::Result<(Self, Receiver<Request>)> {
        let (requester, requests) = mpsc::channel();
        let changer = Self {
            requests: requester,
            waker: Waker::new()?,
            catalog,
        };
        Ok((changer, requests))
    }

    /// Builds `config` on the calling thread, and waits until the gateway uses it. Then frees the replaced parts.
    pub fn change(&self, config: &LinkConfig) -> Result<Handover, ChangeError> {
        let link = config.build(self.catalog).map_err(ChangeError::Link)?;
        let (done, answer) = mpsc::channel();
        let sent = self.requests.send((link, done));
        sent.map_err(|_| ChangeError::Stopped)?;
        self.waker.wake();
        let (handover, _replaced) = answer.recv().map_err(|_| ChangeError::Stopped)?;
        Ok(handover)
    }
}
