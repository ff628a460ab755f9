//! Running: the world of one run and its event loop, a run in steps, and all runs of a scenario.

mod events;
mod options;
mod route;
mod simulator;
mod stepping;
mod steps;
mod world;

pub(crate) use events::{EventSet, NEVER};
pub use options::{RunOptions, SimError};
pub use simulator::{STANDARD, Simulator, report};
pub(crate) use stepping::{Stepping, stepping};
pub use steps::Steps;
pub(crate) use world::World;

#[cfg(test)]
mod tests;
