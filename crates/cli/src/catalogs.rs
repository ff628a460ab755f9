//! Catalogs of disciplines: their names, and the code that builds each discipline.

#[cfg(feature = "research")]
use asymq_args::Defaults;
#[cfg(target_os = "linux")]
use asymq_core::catalog::Build;
use asymq_core::catalog::{Catalog, Standard};
#[cfg(target_os = "linux")]
use asymq_gateway::Frame;
#[cfg(feature = "research")]
use asymq_scenario::OutsideTcp;
#[cfg(feature = "research")]
use asymq_sim::{Simulator, congestion};

/// Names of all disciplines, and functions that build them for simulated packets and for frames.
#[derive(Clone, Copy)]
pub(crate) struct Catalogs {
    pub(crate) names: &'static dyn Catalog,
    #[cfg(feature = "research")]
    pub(crate) sim: Simulator<'static>,
    /// Congestion controls of other crates that the simulator runs.
    #[cfg(feature = "research")]
    pub(crate) outside: &'static [OutsideTcp],
    /// Builds disciplines for frames, in the gateway and the lab.
    #[cfg(target_os = "linux")]
    pub(crate) gateway: &'static dyn Build<Frame>,
}

impl Catalogs {
    /// The catalog of this project, whose disciplines are compiled into the simulator and the gateway.
    pub(crate) fn standard() -> Self {
        Self {
            names: &Standard,
            #[cfg(feature = "research")]
            sim: asymq_sim::STANDARD,
            #[cfg(feature = "research")]
            outside: &[],
            #[cfg(target_os = "linux")]
            gateway: asymq_gateway::STANDARD,
        }
    }

    /// A catalog of another crate, whose disciplines are compiled into that crate.
    pub(crate) fn of(catalog: &'static impl Catalog) -> Self {
        Self {
            names: catalog,
            #[cfg(feature = "research")]
            sim: catalog.into(),
            #[cfg(feature = "research")]
            outside: &[],
            #[cfg(target_os = "linux")]
            gateway: catalog,
        }
    }

    /// Returns catalogs with these congestion controls added to the simulator.
    #[cfg(feature = "research")]
    pub(crate) fn with(self, congestion: &'static congestion::Catalog) -> Self {
        Self {
            sim: self.sim.with(congestion),
            // Leaks this list once per process.
            outside: congestion.names().leak(),
            ..self
        }
    }

    #[cfg(feature = "research")]
    pub(crate) const fn of_experiments(self) -> Defaults {
        Defaults::paper().with(self.outside)
    }
}
