//! Links: the bottleneck with its discipline, further links, paths with loss, delay and reordering, and access links.

mod access;
mod autorate_ingress;
mod beyond;
mod cake_autorate;
mod line;
mod link;
mod losses;
mod regeneration;
mod topology;
mod tunnels;
mod wire;

pub(crate) use access::{Hop, Pipe};
pub(crate) use autorate_ingress::AutorateIngress;
pub(crate) use beyond::{Beyond, Step};
pub(crate) use cake_autorate::CakeAutorate;
pub(crate) use line::Line;
pub(crate) use link::Link;
pub(crate) use losses::DataLosses;
pub(crate) use regeneration::Regeneration;
pub(crate) use topology::{Dumbbell, access_rate};
pub(crate) use tunnels::Tunnels;
pub(crate) use wire::{Passage, Wire};
