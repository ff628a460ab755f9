//! What the simulator builds disciplines from.

use crate::packets::SimPacket;
use crate::variant::{Full, Plain, Variant};
use asymq_core::catalog::{Build, Catalog, Standard};

type Builder<'a, V> = &'a dyn Build<SimPacket<<V as Variant>::Options>>;

/// The disciplines of a [`Catalog`], for the packets of this simulator. A reference to any catalog
/// turns into it.
#[derive(Clone, Copy)]
pub struct Disciplines<'a> {
    pub(crate) plain: Builder<'a, Plain>,
    pub(crate) full: Builder<'a, Full>,
}

/// The disciplines of [`Standard`], compiled in this crate: whoever turns `&Standard` into
/// [`Disciplines`] compiles them once more.
pub static STANDARD: Disciplines<'static> = Disciplines {
    plain: &Standard,
    full: &Standard,
};

impl<'a, C: Catalog> From<&'a C> for Disciplines<'a> {
    fn from(catalog: &'a C) -> Self {
        Self {
            plain: catalog,
            full: catalog,
        }
    }
}
