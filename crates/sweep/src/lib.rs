//! Experiments: files of scenarios, measures and claims, which this crate runs and judges.
//!
//! An [`experiment::Experiment`] is a file with scenarios, measures, published values, and claims as conditions with a
//! tolerance. [`tasks`] lists the needed runs, [`runner`] simulates them, and [`store`] saves their results.
//! [`outcome`] holds the results by name, [`findings`] judges the claims, and [`report`] and [`data`] write them.

#![forbid(unsafe_code)]

mod bound;
pub mod convergence;
pub mod data;
pub mod experiment;
pub mod expression;
pub mod extent;
pub mod findings;
mod fnv;
pub mod folder;
pub mod metrics;
mod numbers;
pub mod outcome;
mod over_time;
mod prose;
pub mod report;
pub mod runner;
pub mod seeds;
pub mod statistics;
pub mod store;
pub mod tasks;
pub mod verdict;
pub mod verdicts;
