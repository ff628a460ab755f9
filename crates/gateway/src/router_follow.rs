//! Follows changes of a router's port while asymq runs: carrier, MTU, and return after the port was unplugged.

use crate::log;
use crate::net::{LinkInfo, Netns, Network};
use crate::stop::Waker;
use crate::sys::poll;
use asymq_core::units::Duration;
use std::io;
use std::os::fd::AsFd as _;

/// Name of the veth pair's end in the port's namespace.
pub const INNER: &str = "asymq-home";
const INTERVAL: Duration = Duration::from_millis(500);
/// Kinds of ports that can be unplugged: hardware (empty), or a veth pair in a container.
const KINDS: [&str; 2] = ["", "veth"];

/// State of a taken-over port, with connections to the router's namespace (`outer`) and the port's (`inner`).
pub(crate) struct PortFollower {
    pub(crate) outer: Network,
    pub(crate) inner: Network,
    pub(crate) namespace: Netns,
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) mac: [u8; 6],
}

impl PortFollower {
    /// Follows the port until `quit` wakes.
    pub(crate) fn follow(mut self, quit: &Waker) {
        let mut last = None;
        while let Ok([false]) = poll([Some(quit.as_fd())], Some(INTERVAL)) {
            let error = self.step().err().map(|error| error.to_string());
            if let Some(error) = error.as_ref().filter(|_| error != last) {
                log::line(&format!("--wan {}: {error}", self.name));
            }
            last = error;
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let pair = self.outer.link(self.index)?;
        let (Some(pair), Some(home)) = (pair, self.inner.link_named(INNER)?) else {
            return Ok(());
        };
        let port = self.inner.link_named(&self.name)?;
        // The router's end of the pair has a carrier while the other end is up.
        let carrier = port.as_ref().is_some_and(|port| !port.up || port.carrier);
        match (carrier, home.up) {
            (true, false) => self.inner.set_up(home.index)?,
            (false, true) => self.inner.set_down(home.index)?,
            _ => {}
        }
        match port {
            None => self.fetch(),
            Some(port) if port.mtu != pair.mtu => {
                self.inner.set_mtu(port.index, pair.mtu)?;
                self.inner.set_mtu(home.index, pair.mtu)
            }
            Some(_) => Ok(()),
        }
    }

    /// Moves a port that was plugged in again, under any name, into the namespace.
    fn fetch(&mut self) -> io::Result<()> {
        let is_port = |of: &LinkInfo| {
            of.mac == self.mac && of.index != self.index && KINDS.contains(&of.kind.as_str())
        };
        let Some(port) = self.outer.links()?.into_iter().find(is_port) else {
            return Ok(());
        };
        let to = (self.index, self.name.as_str());
        self.outer.move_to(port.index, self.namespace.as_fd(), to)?;
        log::line(&format!(
            "--wan {}: plugged in again as {}",
            self.name, port.name
        ));
        Ok(())
    }
}
