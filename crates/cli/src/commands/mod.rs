//! One file per command.

pub(crate) mod compare;
pub(crate) mod import;
#[cfg(unix)]
pub(crate) mod measure;
pub(crate) mod model;
pub(crate) mod reproduce;
pub(crate) mod sim;
pub(crate) mod sweep;
