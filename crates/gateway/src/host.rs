//! How a gateway treats the host that it runs on.

use std::path::PathBuf;

/// Where a gateway keeps its journals unless another folder is chosen.
pub const STATE: &str = "/run/asymq/state";

/// How a gateway treats its host. The default is for namespaces that end with the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// Folder for what it changes on interfaces, so that [`give_back`](crate::give_back) or the next
    /// gateway gives it back after a kill.
    pub state: Option<PathBuf>,
    /// Whether interfaces that are absent at the start are waited for, instead of an error.
    pub wait: bool,
}
