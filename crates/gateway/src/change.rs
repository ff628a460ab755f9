//! Changing what a running gateway does.

use crate::forwarder::{LinkConfig, Moved};
use crate::stop::Bell;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};

/// Hands changes to a gateway, from any thread.
#[derive(Clone, Debug)]
pub struct Changer {
    requests: Sender<(LinkConfig, Sender<Moved>)>,
    bell: Bell,
}

impl Changer {
    /// Asks the gateway to go on as `config` says, and waits until it does; `None` if it has
    /// stopped.
    pub fn change(&self, config: LinkConfig) -> Option<Moved> {
        let (done, answer) = mpsc::channel();
        self.requests.send((config, done)).ok()?;
        self.bell.ring();
        answer.recv().ok()
    }
}

/// The gateway's end.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) bell: Bell,
    pub(crate) requests: Receiver<(LinkConfig, Sender<Moved>)>,
    requester: Sender<(LinkConfig, Sender<Moved>)>,
}

impl Changes {
    pub(crate) fn new() -> io::Result<Self> {
        let (requester, requests) = mpsc::channel();
        Ok(Self {
            bell: Bell::new()?,
            requests,
            requester,
        })
    }

    pub(crate) fn changer(&self) -> Changer {
        Changer {
            requests: self.requester.clone(),
            bell: self.bell.clone(),
        }
    }

    /// Lets no change wait any more: the gateway has stopped.
    pub(crate) fn close(&mut self) {
        let (requester, requests) = mpsc::channel();
        self.requester = requester;
        self.requests = requests;
    }
}
