//! Options about the host that a gateway runs on.

use crate::sender::SendBy;
use std::path::PathBuf;

/// Default folder of journals.
pub const STATE: &str = "/run/asymq/state";

/// Options about the host. The default is for namespaces that end with the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    /// Folder for what it changes on interfaces, so that [`give_back`](crate::give_back) or the next
    /// gateway gives it back after a kill.
    pub state: Option<PathBuf>,
    /// Waits for interfaces that are absent at the start, instead of an error.
    pub wait: bool,
    /// Lets the kernel forward between the interfaces whenever no gateway does: before, after, and
    /// when it is killed. They stay held between gateways, so `state` is needed.
    pub fail_open: bool,
    /// The way by which frames leave the interfaces.
    pub send: SendBy,
}
