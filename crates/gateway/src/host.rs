use crate::journal::private_folder;
use crate::sender::SendBy;
use crate::sys::effective_user;
use std::path::{Path, PathBuf};

/// Default folders of journals for the service and for root. Root uses the second if others could change the first.
pub const STATES: [&str; 2] = ["/run/asymq/state", "/run/asymq-root/state"];

/// Default folder of journals for this process.
pub fn default_state() -> PathBuf {
    state_for(effective_user(), STATES.map(Path::new)).into()
}

/// Returns the default folder for this user. Only root may use the second folder.
fn state_for(user: u32, [service, own]: [&Path; 2]) -> &Path {
    match user == 0 && private_folder(service).is_err() {
        true => own,
        false => service,
    }
}

/// Use of the host by a gateway. The default keeps no journals, for namespaces that are deleted with the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// Folder for the journals of changed interfaces. The next gateway, or [`restore`](crate::restore()), uses them to
    /// restore the interfaces.
    pub state: Option<PathBuf>,
    /// If true, waits for missing interfaces at the start; otherwise fails.
    pub wait: bool,
    /// If true, the kernel bridges the interfaces while no gateway runs. Requires `state`.
    pub fail_open: bool,
    /// Method by which frames are sent.
    pub send: SendBy,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    #[test]
    fn root_does_not_write_where_the_services_user_may() {
        let folder = tempfile::tempdir().unwrap();
        let (service, own) = (folder.path().join("asymq/state"), folder.path().join("own"));
        let state = |user| state_for(user, [&service, &own]).to_owned();
        assert_eq!(state(effective_user()), service);
        if chown(service.parent().unwrap(), Some(1), None).is_ok() {
            assert_eq!((state(0), state(1)), (own.clone(), service.clone()));
        }
    }
}
