//! One file per command.

#[cfg(feature = "research")]
pub(crate) mod compare;
pub(crate) mod import;
#[cfg(unix)]
pub(crate) mod measure;
pub(crate) mod model;
#[cfg(feature = "research")]
pub(crate) mod reproduce;
#[cfg(feature = "research")]
pub(crate) mod sim;
#[cfg(feature = "research")]
pub(crate) mod sweep;
