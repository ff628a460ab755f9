//! `asymq gateway restore`: restores interfaces after gateways were killed.

use crate::output;
use anyhow::Context as _;
use asymq_gateway::{STATES, restore as restore_interfaces, restore_router};
use std::fmt::Write as _;
use std::path::Path;

/// Restores interfaces from the journals in `state`, or in the default folders, and prints their names.
pub(super) fn restore(state: Option<&Path>) -> anyhow::Result<()> {
    let folders = state.map_or(STATES.map(Path::new).to_vec(), |state| vec![state]);
    let mut text = String::new();
    for folder in folders {
        let named = || folder.display().to_string();
        // Restoring a port also restores the interfaces in its namespace.
        let mut restored = restore_router(folder).with_context(named)?;
        restored.extend(restore_interfaces(folder).with_context(named)?);
        for of in &restored {
            writeln!(text, "{of}")?;
        }
    }
    output::print(&text)
}
