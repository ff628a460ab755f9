//! A gateway with all that shows and changes it.
//!
//! What shows it is best effort: the forwarding loop waits for nothing here, and what is stalled or
//! gone costs what it would have shown.

use crate::config::LinkConfig;
use crate::control::Control;
use crate::gateway::{Gateway, GatewayError};
use crate::guard::Guard;
use crate::helper::Helpers;
use crate::log;
use crate::metrics::MetricsServer;
use crate::snapshot::Shared;
use crate::stop::Stop;
use crate::table::table;
use crate::writer::LineWriter;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal};
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines that a table which is not shown keeps.
const LOG_LINES: usize = 64;

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
    /// A line of JSON.
    Json,
}

impl Outputs {
    /// Runs the gateway until asked to stop, and these beside it.
    ///
    /// # Errors
    /// Metrics cannot be served, or as [`Gateway::run`].
    ///
    /// # Panics
    /// A discipline or something beside the gateway panics, which stops it.
    pub fn run(self, mut gateway: Gateway, stop: &Stop) -> Result<(), GatewayError> {
        self.run_on(&mut gateway, stop)
    }

    fn run_on(self, gateway: &mut Gateway, stop: &Stop) -> Result<(), GatewayError> {
        let Self {
            control,
            metrics,
            show,
        } = self;
        let stats = gateway.stats();
        let server = metrics.map(MetricsServer::open).transpose()?;
        let (lan, wan) = (gateway.lan().to_owned(), gateway.wan().to_owned());
        let title = move |link: &LinkConfig| format!("asymq gateway: {lan} -> {wan}, {link}");
        let screen = Arc::new(Screen::new(title(gateway.config())));
        if show == Show::Table {
            let screen = screen.clone();
            gateway.set_log(move |line| screen.log(line));
        }

        let mut helpers = Helpers::new(stop)?;
        if let Some(server) = server {
            let stats = stats.clone();
            helpers.start("metrics", move |quit| server.serve(&stats, quit))?;
        }
        let changer = gateway.changer();
        helpers.start("control", {
            let screen = screen.clone();
            move |quit| {
                let changed = |link: &LinkConfig| *lock(&screen.title) = title(link);
                let log = |line: &str| match show {
                    Show::Table => screen.log(line),
                    Show::Nothing | Show::Json => log::line(line),
                };
                control.serve(&changer, quit, &changed, &log);
            }
        })?;
        match show {
            Show::Nothing => {}
            Show::Table => helpers.start("table", move |_| watch(&screen, &stats))?,
            Show::Json => helpers.start("json", move |_| print_json(&stats))?,
        }
        let answer = panic::catch_unwind(AssertUnwindSafe(|| gateway.run(stop)));
        // First: what follows may use up the time that is left.
        gateway.give_back();
        if answer.is_ok() {
            helpers.end();
        }
        answer.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }

    /// As [`run`](Self::run), for a process that does nothing else, under a guard that ends it when
    /// the gateway has to end and does not. After a panic it does not return.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_guarded(
        self,
        gateway: Gateway,
        stop: &Stop,
        guard: Guard,
    ) -> Result<(), GatewayError> {
        guard.gives_back(gateway.switched_off());
        // Its sockets are closed by the end of the process, for which nobody waits.
        let mut gateway = ManuallyDrop::new(gateway);
        let answer = panic::catch_unwind(AssertUnwindSafe(|| self.run_on(&mut gateway, stop)));
        // It may not have come so far as to run.
        gateway.give_back();
        drop(guard);
        answer.unwrap_or_else(|_| process::abort())
    }
}

/// What a table shows beside the latest snapshot.
#[derive(Debug)]
struct Screen {
    title: Mutex<String>,
    log: Mutex<ScreenLog>,
}

#[derive(Debug, Default)]
struct ScreenLog {
    lines: VecDeque<String>,
    lost: u64,
    /// Nobody shows it any more.
    gone: bool,
}

impl Screen {
    fn new(title: String) -> Self {
        Self {
            title: Mutex::new(title),
            log: Mutex::default(),
        }
    }

    /// Keeps a line until it is shown.
    fn log(&self, line: &str) {
        let mut log = lock(&self.log);
        if log.gone {
            log::line(line);
            return;
        }
        if log.lines.len() == LOG_LINES {
            log.lines.pop_front();
            log.lost += 1;
        }
        log.lines.push_back(line.into());
    }

    fn take_log(&self) -> String {
        let mut log = lock(&self.log);
        let mut text = match std::mem::take(&mut log.lost) {
            0 => String::new(),
            lost => format!("{lost} lines of this log were lost\n"),
        };
        for line in log.lines.drain(..) {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Logs on standard error from now on.
    fn give_up(&self, why: &io::Error) {
        lock(&self.log).gone = true;
        log::line(&format!(
            "--watch: {why}; forwarding goes on without the table"
        ));
        self.take_log().lines().for_each(log::line);
    }
}

/// What is locked here is only ever replaced or appended to, so that a panic leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows every snapshot: on a terminal in the place of the one before, elsewhere one after another.
fn watch(screen: &Screen, stats: &Shared) {
    let in_place = io::stdout().is_terminal();
    let mut out = match LineWriter::stdout() {
        Ok(out) => out,
        Err(error) => return screen.give_up(&error),
    };
    let (mut seen, mut height) = (0, 0);
    while let Some(snapshot) = stats.next(&mut seen) {
        let text = table(&lock(&screen.title).clone(), &snapshot);
        let logged = screen.take_log();
        let shown = match in_place && height > 0 {
            // Up to where the table began, and clear from there.
            true => out.write(&format!("\x1b[{height}A\x1b[J{logged}{text}")),
            false => out.write(&format!("{logged}{text}")),
        };
        if let Err(error) = shown {
            return screen.give_up(&error);
        }
        height = text.lines().count();
    }
    if let Err(error) = out.write(&screen.take_log()) {
        screen.give_up(&error);
    }
}

/// Prints every snapshot as a line of JSON. Whoever does not read misses some; where they cannot be
/// written, the next is tried, until nobody is left to read.
fn print_json(stats: &Shared) {
    let mut out = match LineWriter::stdout() {
        Ok(out) => out,
        Err(error) => return log::line(&format!("--json: {error}; forwarding goes on without it")),
    };
    let (mut seen, mut lost) = (0, 0u64);
    while let Some(snapshot) = stats.next(&mut seen) {
        let Ok(line) = serde_json::to_string(&*snapshot) else {
            continue;
        };
        match out.write(&(line + "\n")) {
            Ok(()) if lost > 0 => {
                log::line(&format!(
                    "--json: can be written again; {lost} lines were lost"
                ));
                lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if lost == 0 {
                    log::line(&format!("--json: {error}; forwarding goes on without it"));
                }
                lost += 1;
                if error.kind() == ErrorKind::BrokenPipe {
                    return;
                }
            }
        }
    }
}
