//! Replaces the lab on systems without network namespaces.

use super::Tracks;
use crate::catalogs::Catalogs;
use anyhow::bail;
use asymq_scenario::{Report, Scenario};
use std::path::PathBuf;

const NEEDS_LINUX: &str =
    "real kernel TCP needs Linux and its network namespaces; asymq sim and asymq compare run here";

/// # Errors
/// Always fails.
pub(crate) fn run(_: &[Scenario], _: &Tracks, _: Catalogs) -> anyhow::Result<Vec<Report>> {
    bail!(NEEDS_LINUX)
}

/// # Errors
/// Always fails.
pub(crate) fn run_in_guest(
    _: PathBuf,
    _: Vec<PathBuf>,
    _: &Scenario,
    _: bool,
) -> anyhow::Result<Report> {
    bail!(NEEDS_LINUX)
}
