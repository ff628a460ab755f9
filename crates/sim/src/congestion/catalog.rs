//! Congestion controls from outside of asymq, and the facts that they may know and ask for.

use super::CongestionControl;
use asymq_scenario::OutsideTcp;
use std::fmt;
use std::sync::Arc;

/// Facts of a connection that its congestion control may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Payload bytes of a full segment.
    pub payload: u32,
    /// Differs from connection to connection and from run to run, and is the same in each repetition: all
    /// that is random must come from it.
    pub seed: u64,
}

impl Connection {
    /// TCP's largest receive window (RFC 7323, section 2.3) in segments, at least one: no flight exceeds it.
    pub fn largest_window(&self) -> f64 {
        (f64::from(1 << 30) / f64::from(self.payload)).max(1.0)
    }
}

/// Makes the congestion control of a connection.
pub(crate) type Make = dyn Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync;

/// Needs of a congestion control from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A pacer that sends at [`CongestionControl::pacing_rate`].
    pub paces: bool,
    /// Calls of [`CongestionControl::on_sample`] and [`CongestionControl::on_lost`].
    pub measures_deliveries: bool,
}

/// Congestion controls from outside of asymq, by name.
#[derive(Clone, Default)]
pub struct Catalog(Vec<(OutsideTcp, About, Arc<Make>)>);

impl Catalog {
    /// An empty catalog.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a congestion control; one that had the name gives way. A run calls `make` for each connection,
    /// in any thread.
    ///
    /// # Errors
    /// The name is taken by one of asymq's own, or is not one.
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

    /// The names.
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
