//! Values of parameters that several parts have.

use super::config::Config;
use crate::hold::BuildError;
use crate::units::Bytes;

/// A number of bytes, at most what 32 bits hold.
pub(crate) fn bytes(config: &Config, name: &str) -> Result<u32, BuildError> {
    let Bytes(bytes) = config.get(name)?;
    Ok(bytes.min(u64::from(u32::MAX)) as u32)
}

/// Bytes that filtering may leave between two ACKs.
pub(crate) fn max_stretch(config: &Config) -> Result<u32, BuildError> {
    match config.text("max-stretch")? {
        "none" => Ok(u32::MAX),
        _ => bytes(config, "max-stretch"),
    }
}
