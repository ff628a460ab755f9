//! Congestion controls of other crates, and the data that they get about their connections.

use super::CongestionControl;
use asymq_scenario::OutsideTcp;
use std::fmt;
use std::sync::Arc;

/// Properties of a connection, for its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Payload of a full segment in bytes.
    pub payload: u32,
    /// Seed for all random decisions. It differs between connections and between runs; a repeated run has equal seeds.
    pub seed: u64,
}

impl Connection {
    /// TCP's maximum receive window (RFC 7323, section 2.3) in segments, at least one; an upper bound of the flight.
    pub fn largest_window(&self) -> f64 {
        (f64::from(1 << 30) / f64::from(self.payload)).max(1.0)
    }
}

pub(crate) type Make = dyn Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync;

/// Calls and pacing that another crate's congestion control requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// True if segments must be paced at [`CongestionControl::pacing_rate`]. Deliveries are then measured too.
    pub paces: bool,
    /// True if [`CongestionControl::on_sample`] and [`CongestionControl::on_lost`] must be called.
    pub measures_deliveries: bool,
}

/// Congestion controls of other crates, by name.
#[derive(Clone, Default)]
pub struct Catalog(Vec<(OutsideTcp, About, Arc<Make>)>);

impl Catalog {
    /// An empty catalog.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a congestion control, or replaces the one of this name. `make` is called for each connection, in any
    /// thread.
    ///
    /// # Errors
    /// asymq has a congestion control of this name, or the name is invalid.
    pub fn add(
        &mut self,
        name: &str,
        about: About,
        make: impl Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Result<OutsideTcp, String> {
        let name = OutsideTcp::new(name)?;
        self.0.retain(|(known, ..)| *known != name);
        self.0.push((name, about, Arc::new(make)));
        Ok(name)
    }

    /// Names of the congestion controls.
    pub fn names(&self) -> Vec<OutsideTcp> {
        self.0.iter().map(|(name, ..)| *name).collect()
    }

    pub(super) fn get(&self, name: OutsideTcp) -> Option<(About, Arc<Make>)> {
        let (_, about, make) = self.0.iter().find(|(known, ..)| *known == name)?;
        Some((*about, Arc::clone(make)))
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
