//! A gateway with all that shows and changes it.

use crate::change::Changer;
use crate::config::LinkConfig;
use crate::control::Control;
use crate::exposition::MetricsServer;
use crate::gateway::{Gateway, GatewayError};
use crate::snapshot::Shared;
use crate::stop::{Bell, Stop};
use crate::table::table;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What runs beside a gateway.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Takes changes.
    pub control: Control,
    /// Where to serve Prometheus metrics.
    pub metrics: Option<SocketAddr>,
    /// What to print of every snapshot.
    pub show: Show,
}

/// What to print of every snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Nothing.
    #[default]
    Nothing,
    /// A table, on a terminal in the place of the one before.
    Table,
    /// A line of JSON. The gateway stops when nobody reads on.
    Json,
}

impl Outputs {
    /// Runs the gateway until asked to stop, and these beside it.
    ///
    /// # Errors
    /// Metrics cannot be served, or as [`Gateway::run`].
    pub fn run(self, mut gateway: Gateway, stop: &Stop) -> Result<(), GatewayError> {
        let Self {
            control,
            metrics,
            show,
        } = self;
        let quit = Bell::new().map_err(|source| GatewayError::System {
            action: "making a pipe",
            source,
        })?;
        let (stats, changer) = (gateway.stats(), gateway.changer());
        let _server = metrics
            .map(|address| MetricsServer::start(address, stats.clone()))
            .transpose()?;
        let log = Log::default();
        if show == Show::Table {
            let log = log.clone();
            gateway.set_log(move |line| log.add(line));
        }
        let (lan, wan) = (gateway.lan().to_owned(), gateway.wan().to_owned());
        let title = |link: &LinkConfig| format!("asymq gateway: {lan} -> {wan}, {link}");
        let title_now = Mutex::new(title(gateway.config()));
        let changed = |link: &LinkConfig| *lock(&title_now) = title(link);
        let log_change = |line: &str| match show {
            Show::Table => log.add(line),
            Show::Nothing | Show::Json => eprintln!("asymq gateway: {line}"),
        };
        thread::scope(|scope| {
            let _ring = RingOnDrop(&quit);
            let (changer, quit): (Changer, _) = (changer, &quit);
            scope.spawn(move || control.serve(&changer, quit, &changed, &log_change));
            match show {
                Show::Nothing => {}
                Show::Table => {
                    scope.spawn(|| watch(&title_now, &stats, &log));
                }
                Show::Json => {
                    scope.spawn(|| print_json(&stats, stop));
                }
            }
            gateway.run(stop)
        })
    }
}

/// Ends the control thread, even if the gateway panics.
struct RingOnDrop<'a>(&'a Bell);

impl Drop for RingOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// What the gateway logs, until it is shown.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: &str) {
        lock(&self.0).push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0))
    }
}

/// What is locked here is only ever replaced or appended to, so that a panic leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows every snapshot: on a terminal in the place of the one before, elsewhere one after another.
fn watch(title: &Mutex<String>, stats: &Shared, log: &Log) {
    let mut out = io::stdout().lock();
    let in_place = out.is_terminal();
    let mut seen = 0;
    let mut height = 0;
    while let Some(snapshot) = stats.next(&mut seen) {
        let text = table(&lock(title).clone(), &snapshot);
        let lines = log.take();
        let logged: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let shown = match in_place && height > 0 {
            // Up to where the table began, and clear from there.
            true => write!(out, "\x1b[{height}A\x1b[J{logged}{text}"),
            false => write!(out, "{logged}{text}"),
        };
        if shown.and_then(|()| out.flush()).is_err() {
            // The gateway goes on without its audience.
            return;
        }
        height = text.lines().count();
    }
    for line in log.take() {
        let _ = writeln!(out, "{line}");
    }
}

/// Prints every snapshot as a line of JSON; stops the gateway when nobody reads on.
fn print_json(stats: &Shared, stop: &Stop) {
    let mut out = io::stdout().lock();
    let mut seen = 0;
    while let Some(snapshot) = stats.next(&mut seen) {
        let Ok(line) = serde_json::to_string(&snapshot) else {
            continue;
        };
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            stop.request();
            return;
        }
    }
}
