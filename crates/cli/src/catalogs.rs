//! One catalog, as the parts of the command see it.

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

/// The names in a catalog, and what builds its disciplines for simulated packets and for frames.
#[derive(Clone, Copy)]
pub(crate) struct Catalogs {
    pub(crate) names: &'static dyn Catalog,
    #[cfg(feature = "research")]
    pub(crate) sim: Simulator<'static>,
    /// Congestion controls from outside of asymq that the simulator runs.
    #[cfg(feature = "research")]
    pub(crate) outside: &'static [OutsideTcp],
    /// For the lab too, whose frames are the gateway's.
    #[cfg(target_os = "linux")]
    pub(crate) gateway: &'static dyn Build<Frame>,
}

impl Catalogs {
    /// The catalog of this project, as compiled with simulator and gateway.
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

    /// Another catalog, whose disciplines are compiled where this is called.
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

    /// The same catalog with these congestion controls in its simulator.
    #[cfg(feature = "research")]
    pub(crate) fn with(self, congestion: &'static congestion::Catalog) -> Self {
        Self {
            sim: self.sim.with(congestion),
            // Once in a process.
            outside: congestion.names().leak(),
            ..self
        }
    }

    /// The defaults of experiments, which are the papers'.
    #[cfg(feature = "research")]
    pub(crate) const fn of_experiments(self) -> Defaults {
        Defaults::paper().with(self.outside)
    }
}
