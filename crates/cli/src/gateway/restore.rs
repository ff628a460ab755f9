//! `asymq gateway restore`: interfaces that a killed gateway left changed.

use crate::output;
use anyhow::Context as _;
use asymq_gateway::restore as restore_interfaces;
use std::fmt::Write as _;
use std::path::Path;

/// Gives interfaces back and says which; nothing to give back is fine.
pub(super) fn restore(state: &Path) -> anyhow::Result<()> {
    let restored = restore_interfaces(state).with_context(|| state.display().to_string())?;
    let mut text = String::new();
    for of in &restored {
        writeln!(text, "{of}")?;
    }
    output::print(&text)
}
