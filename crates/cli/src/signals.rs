//! Signals that end a command.

use anyhow::Context as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns a flag that these signals set.
pub(crate) fn stop_on(signals: &[i32]) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    Ok(stop)
}
