//! `asymq gateway` from flags to the end.

use crate::args::GatewayArgs;
use crate::exposition::MetricsServer;
use crate::gateway::{Gateway, GatewayConfig, GatewayError};
use crate::snapshot::Shared;
use crate::stop::Stop;
use crate::table::table;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

impl GatewayArgs {
    /// Runs the gateway until SIGINT or SIGTERM, and shows it as these flags ask.
    ///
    /// # Errors
    /// A flag is wrong, an interface is not fit, or a privilege is missing.
    pub fn run(&self) -> Result<(), GatewayError> {
        let config = self.config()?;
        let mut gateway = Gateway::open(&config)?;
        let stats = gateway.stats();
        let system = |action| move |source| GatewayError::System { action, source };
        let stop = Stop::new().map_err(system("making a pipe"))?;
        stop.on_signals().map_err(system("handling signals"))?;
        let _server = self
            .metrics
            .map(|address| {
                MetricsServer::start(address, stats.clone())
                    .map_err(|source| GatewayError::Metrics { address, source })
            })
            .transpose()?;
        let words = Words::default();
        if self.watch {
            let words = words.clone();
            gateway.set_log(move |line| words.add(line));
        }
        let title = self.title(&config);
        thread::scope(|scope| {
            if self.watch {
                scope.spawn(|| watch(&title, &stats, &words));
            } else if self.json {
                scope.spawn(|| print_json(&stats, &stop));
            }
            gateway.run(&stop)
        })
    }

    fn title(&self, config: &GatewayConfig) -> String {
        let Self {
            lan,
            wan,
            up,
            down,
            qdisc,
            ..
        } = self;
        let overhead = config.overhead.to_string();
        format!("asymq gateway: {lan} -> {wan}, {qdisc}, {up} up, {down} down, {overhead}")
    }
}

/// What the gateway said, until it is shown.
#[derive(Clone, Debug, Default)]
struct Words(Arc<Mutex<Vec<String>>>);

impl Words {
    fn add(&self, line: &str) {
        self.lock().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows every snapshot: on a terminal in the place of the one before, elsewhere one after another.
fn watch(title: &str, stats: &Shared, words: &Words) {
    let mut out = io::stdout().lock();
    let in_place = out.is_terminal();
    let mut seen = 0;
    let mut height = 0;
    while let Some(snapshot) = stats.next(&mut seen) {
        let text = table(title, &snapshot);
        let said: String = words
            .take()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        let shown = match in_place && height > 0 {
            // Up to where the table began, and clear from there.
            true => write!(out, "\x1b[{height}A\x1b[J{said}{text}"),
            false => write!(out, "{said}{text}"),
        };
        if shown.and_then(|()| out.flush()).is_err() {
            // The gateway goes on without its audience.
            return;
        }
        height = text.lines().count();
    }
    for line in words.take() {
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
