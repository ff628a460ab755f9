//! User namespaces, to create networks without root.

use crate::error::{Context as _, LabError};
use crate::sys;
use rustix::process::{getegid, geteuid};
use std::fs;

/// Makes the caller root of a new user namespace, in which the caller may create networks. The process must not have
/// started a thread.
///
/// # Errors
/// The kernel does not permit user namespaces, or the process has threads.
pub fn enter_user_namespace() -> Result<(), LabError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    sys::new_user_namespace().map_err(|source| match source.raw_os_error() {
        // User namespaces are disabled, or their limit is reached.
        Some(libc::EPERM | libc::ENOSPC) => LabError::NotPermitted,
        _ => LabError::System {
            doing: "making a user namespace",
            source,
        },
    })?;
    for (file, map) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), map).during("becoming root of a user namespace")?;
    }
    Ok(())
}
