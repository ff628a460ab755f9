use crate::sender::SendBy;
use std::path::PathBuf;

/// Default folder of journals.
pub const STATE: &str = "/run/asymq/state";

/// Options of the host. The default suits namespaces that end with the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// Folder for the journals of changed interfaces, from which [`restore`](crate::restore()) or the next gateway
    /// restores.
    pub state: Option<PathBuf>,
    /// Waits for missing interfaces at the start instead of failing.
    pub wait: bool,
    /// Lets the kernel bridge the interfaces while no gateway runs. Requires `state`.
    pub fail_open: bool,
    /// Method of sending frames.
    pub send: SendBy,
}
