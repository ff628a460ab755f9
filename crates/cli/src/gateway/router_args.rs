//! Settings of a router.

use super::args::{HostArgs, LinkArgs, SettingsArgs, bad};
use asymq_args::{BadArgument, settings};
use asymq_core::catalog::DEFAULT_QDISC;
use asymq_gateway::{INNER, SendBy};
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    /// Flags that a router's service may set.
    pub(crate) struct RouterHostArgs: "" {
        /// Port that leads to the modem.
        pub(crate) wan: Option<String> = "IF";
        pub(crate) link: LinkArgs;
        /// Folder for journals of changed interfaces [default: /run/asymq/state].
        pub(crate) state: Option<PathBuf> = "DIR", arg |arg| arg.help_heading("Host");
        /// Method of sending frames: auto, af-xdp or af-packet; auto uses AF_XDP if possible [default: auto].
        pub(crate) send: Option<SendBy> = "WAY", arg |arg| arg.help_heading("Host");
        /// Accept changes from `asymq router set` at this Unix socket.
        pub(crate) control: Option<PathBuf> = "PATH", arg |arg| arg.help_heading("Output");
        /// Serve Prometheus metrics at http://ADDR:PORT/metrics.
        pub(crate) metrics: Option<SocketAddr> = "ADDR:PORT", arg |arg| arg.help_heading("Output");
        /// Serve a read-only page for browsers at http://ADDR:PORT/.
        pub(crate) page: Option<SocketAddr> = "ADDR:PORT", arg |arg| arg.help_heading("Output");
    }
}

settings! {
    /// All settings of a router's settings file.
    pub(crate) struct RouterSettings: "" {
        pub(crate) host: RouterHostArgs;
        /// Show a live table.
        pub(crate) watch: Option<bool> = "true|false", arg |arg| arg.conflicts_with("json").help_heading("Output");
        /// Print a line of JSON every second.
        pub(crate) json: Option<bool> = "true|false", arg |arg| arg.help_heading("Output");
    }
}

impl RouterSettings {
    /// Settings that a router has unless others are given: both rates learnt, both directions shaped.
    pub(super) const DEFAULTS: [(&'static str, &'static str); 2] =
        [("down", "auto"), ("qdisc-down", DEFAULT_QDISC)];

    /// The settings of the gateway between the router and its port.
    pub(super) fn gateway(self) -> Result<SettingsArgs, BadArgument> {
        let Self { host, watch, json } = self;
        let RouterHostArgs {
            wan,
            link,
            state,
            send,
            control,
            metrics,
            page,
        } = host;
        let wan = wan.ok_or_else(|| bad("", "missing: --wan <IF>".into()))?;
        let host = HostArgs {
            lan: Some(INNER.into()),
            wan: Some(wan),
            link,
            state,
            fail_open: Some(true),
            send,
            control,
            metrics,
            page,
        };
        Ok(SettingsArgs { host, watch, json })
    }
}
