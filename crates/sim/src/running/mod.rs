//! Runs: the world of one run with its event loop; summary, series and traces; stepwise runs; all runs of a scenario.

mod capture;
mod options;
mod route;
mod simulator;
mod steps;
mod summary;
mod world;

pub(crate) use capture::Capture;
pub use options::{RunOptions, SimError};
pub use simulator::{STANDARD, Simulator, report};
pub(crate) use steps::Stepped;
pub use steps::Steps;
pub(crate) use world::World;

#[cfg(test)]
mod tests;
