//! `asymq gateway restore`: interfaces that a killed gateway left changed.

use crate::output;
use anyhow::Context as _;
use asymq_gateway::restore as restore_interfaces;
use std::fmt::Write as _;
use std::path::Path;

/// Restores interfaces and prints their names.
pub(super) fn restore(state: &Path) -> anyhow::Result<()> {
    let restored = restore_interfaces(state).with_context(|| state.display().to_string())?;
    let mut text = String::new();
    for of in &restored {
        writeln!(text, "{of}")?;
    }
    output::print(&text)
}
