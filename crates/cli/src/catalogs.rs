//! One catalog, as the parts of the command see it.

use asymq_core::catalog::{Build, Catalog, Standard};
use asymq_gateway::Frame;
use asymq_sim::Disciplines;

/// The names in a catalog, and what builds its disciplines for simulated packets and for frames.
#[derive(Clone, Copy)]
pub(crate) struct Catalogs {
    pub(crate) names: &'static dyn Catalog,
    pub(crate) sim: Disciplines<'static>,
    /// For the lab too, whose frames are the gateway's.
    pub(crate) gateway: &'static dyn Build<Frame>,
}

impl Catalogs {
    /// The catalog of this project, as compiled with simulator and gateway.
    pub(crate) fn standard() -> Self {
        Self {
            names: &Standard,
            sim: asymq_sim::STANDARD,
            gateway: asymq_gateway::STANDARD,
        }
    }

    /// Another catalog, whose disciplines are compiled where this is called.
    pub(crate) fn of(catalog: &'static impl Catalog) -> Self {
        Self {
            names: catalog,
            sim: catalog.into(),
            gateway: catalog,
        }
    }
}
