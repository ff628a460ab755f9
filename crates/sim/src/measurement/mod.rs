//! Measurement: the summary and the time series of a run, what waits in a queue now, traces of a link.

mod capture;
mod summary;
mod watch;

pub(crate) use capture::Capture;
pub(crate) use summary::{INTERVAL, Recorder, Snapshot, clear_measures, summary};
pub(crate) use watch::{Watch, Watching, look};
