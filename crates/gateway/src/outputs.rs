//! Displays and controls of a gateway.
//!
//! Displays never block the forwarding loop: if a reader stalls, lines are lost.

use crate::config::LinkConfig;
use crate::control::Control;
use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::guard::Guard;
use crate::helper::Helpers;
use crate::history::History;
use crate::lock::lock;
use crate::log;
use crate::server::{PageOptions, listen, serve, serve_metrics};
use crate::snapshot::Shared;
use crate::stop::Stop;
use crate::table::table;
use crate::writer::LineWriter;
use std::io::{self, ErrorKind, IsTerminal};
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::{Arc, Mutex};

/// Displays and controls of a gateway.
#[derive(Default)]
pub struct Outputs {
    /// Control socket and SIGHUP, by which the gateway is changed.
    pub control: Option<Control>,
    /// Address of the Prometheus metrics.
    pub metrics: Option<SocketAddr>,
    /// Page for browsers.
    pub page: Option<PageOptions>,
    /// Format of snapshots on standard output.
    pub show: Show,
}

/// Format of a snapshot on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// No output.
    #[default]
    Nothing,
    /// A table; on a terminal it is updated in place.
    Table,
    /// JSON lines.
    Json,
}

impl Outputs {
    /// Runs the gateway with these outputs until a stop is requested.
    ///
    /// # Errors
    /// An address cannot be bound, or [`Gateway::run`] fails.
    ///
    /// # Panics
    /// A discipline or a helper panics. The panic stops the gateway.
    pub fn run(self, gateway: &mut Gateway, stop: &Stop) -> Result<(), GatewayError> {
        let stats = gateway.stats();
        let metrics = self.metrics.map(|address| listen("--metrics", address));
        let metrics = metrics.transpose()?;
        let page = self
            .page
            .map(|page| listen("--page", page.address).map(|clients| (clients, page)));
        let page = page.transpose()?;
        let (lan, wan) = (gateway.lan().to_owned(), gateway.wan().to_owned());
        let title = move |link: &LinkConfig| format!("asymq gateway: {lan} -> {wan}, {link}");
        let heading = Arc::new(Mutex::new(title(gateway.forwarder.config())));
        log::in_table(self.show == Show::Table);

        let mut helpers = Helpers::new(stop)?;
        if let Some(clients) = metrics {
            let stats = stats.clone();
            helpers.start("metrics", move |quit| serve_metrics(clients, &stats, quit))?;
        }
        if let Some((clients, page)) = page {
            let (stats, heading) = (stats.clone(), heading.clone());
            let history = Arc::new(History::default());
            let kept = history.clone();
            helpers.start("history", move |_| kept.keep(&stats))?;
            let (stats, requests) = (gateway.stats(), gateway.count_flows()?);
            helpers.start("page", move |quit| {
                let title = || lock(&heading).clone();
                let answers = page.answers(&history, &stats, &requests, title);
                serve(clients, quit, "the page is at /\n", answers);
            })?;
        }
        if let Some(nat) = gateway.nat.take() {
            helpers.start("conntrack", move |quit| nat.follow(quit))?;
        }
        if let Some(follower) = gateway.follower.take() {
            helpers.start("port", move |quit| follower.follow(quit))?;
        }
        let changer = gateway.changer();
        if let Some(control) = self.control {
            let (heading, stats) = (heading.clone(), stats.clone());
            helpers.start("control", move |quit| {
                let changed = |link: &LinkConfig| *lock(&heading) = title(link);
                control.serve(&changer, &stats, quit, &changed);
            })?;
        }
        match self.show {
            Show::Nothing => {}
            Show::Table => helpers.start("table", move |_| watch(&heading, &stats))?,
            Show::Json => helpers.start("json", move |_| print_json(&stats))?,
        }
        let answer = panic::catch_unwind(AssertUnwindSafe(|| gateway.run(stop)));
        // Restores first, since stopping the helpers may use up the remaining time.
        gateway.restore();
        if answer.is_ok() {
            helpers.end();
        }
        answer.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// Like [`run`](Self::run), for a process that only runs a gateway. `guard` ends the process if the gateway does
    /// not stop. Calls `end` after the interfaces are restored. Does not return after a panic.
    pub fn run_guarded(
        self,
        gateway: Gateway,
        stop: &Stop,
        guard: Guard,
        end: impl FnOnce(&mut Gateway),
    ) -> Result<(), GatewayError> {
        guard.enable_on_abort(gateway.disabled_offloads());
        // Skips the destructor: ending the process closes the sockets faster.
        let mut gateway = ManuallyDrop::new(gateway);
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.run(&mut gateway, stop)));
        // Restores again, in case the gateway did not run.
        gateway.restore();
        end(&mut gateway);
        drop(guard);
        answer.unwrap_or_else(|_| process::abort())
    }
}

/// Prints every snapshot and the log; on a terminal, updates the text in place.
fn watch(heading: &Mutex<String>, stats: &Shared) {
    let show = || {
        let in_place = io::stdout().is_terminal();
        let mut out = LineWriter::stdout()?;
        let (mut seen, mut height) = (0, 0);
        while let Some(snapshot) = stats.next(&mut seen) {
            let text = table(&lock(heading).clone(), &snapshot);
            let logged = log::take();
            match in_place && height > 0 {
                // Moves the cursor to the start of the table, and clears the screen from there.
                true => out.write(&format!("\x1b[{height}A\x1b[J{logged}{text}"))?,
                false => out.write(&format!("{logged}{text}"))?,
            }
            height = text.lines().count();
        }
        out.write(&log::take())
    };
    let shown: io::Result<()> = show();
    log::in_table(false);
    if let Err(why) = shown {
        log::line(&format!(
            "--watch: {why}; forwarding continues without the table"
        ));
    }
}

/// Prints snapshots as JSON lines until the reader closes the stream. A slow reader misses some snapshots.
fn print_json(stats: &Shared) {
    let fails = |error| log::line(&format!("--json: {error}; forwarding continues without it"));
    let mut out = match LineWriter::stdout() {
        Ok(out) => out,
        Err(error) => return fails(error),
    };
    let (mut seen, mut lost) = (0, 0u64);
    while let Some(snapshot) = stats.next(&mut seen) {
        let Ok(line) = serde_json::to_string(&*snapshot) else {
            continue;
        };
        let written = out.write(&(line + "\n"));
        let gone = written
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        lost = match written {
            Ok(()) if lost > 0 => {
                let text = format!("--json: writing again; {lost} lines were lost");
                log::line(&text);
                0
            }
            Ok(()) => 0,
            Err(error) => {
                if lost == 0 {
                    fails(error);
                }
                lost + 1
            }
        };
        if gone {
            return;
        }
    }
}
