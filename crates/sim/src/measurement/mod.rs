//! Measurement: the summary and the time series of a run, traces of a link.

mod capture;
mod summary;

pub(crate) use capture::Capture;
pub(crate) use summary::{INTERVAL, Recorder, Snapshot, clear_measures, summary};
