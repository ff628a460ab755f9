//! Running: the world of one run and its event loop, a run in steps, and all runs of a scenario.

mod disciplines;
mod events;
mod options;
mod runs;
mod stepping;
mod steps;
mod world;

pub use disciplines::{Disciplines, STANDARD};
pub(crate) use events::{EventSet, NEVER};
pub use options::{RunOptions, SimError};
pub(crate) use runs::begin;
pub use runs::{report, run, run_all, run_all_in, run_in};
pub(crate) use stepping::{Stepping, stepping};
pub use steps::Steps;
pub(crate) use world::World;

#[cfg(test)]
mod tests;
