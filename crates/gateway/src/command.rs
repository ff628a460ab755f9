//! `asymq gateway` from flags to the end.

use crate::args::{GatewayArgs, GatewayCommand, LinkArgs, SettingsArgs};
use crate::control::Control;
use crate::exposition::MetricsServer;
use crate::gateway::{Gateway, GatewayConfig, GatewayError};
use crate::snapshot::Shared;
use crate::stop::{Bell, Stop};
use crate::table::table;
use asymq_scenario::read_flags;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

impl GatewayArgs {
    /// Runs the gateway until SIGINT or SIGTERM, and shows it as these flags ask; or tells a running
    /// one.
    ///
    /// # Errors
    /// A flag or the file is wrong, an interface is not fit, or a privilege is missing; a running
    /// gateway is not there, or refuses.
    pub fn run(&self) -> Result<(), GatewayError> {
        if let Some(GatewayCommand::Set(args)) = &self.command {
            return args.run();
        }
        let settings = match &self.config {
            None => self.settings.clone(),
            Some(file) => self.settings.clone().or(read_flags(file)?),
        };
        self.run_with(&settings)
    }

    fn run_with(&self, settings: &SettingsArgs) -> Result<(), GatewayError> {
        let config = settings.config()?;
        let mut gateway = Gateway::open(&config)?;
        let stats = gateway.stats();
        let system = |action| move |source| GatewayError::System { action, source };
        let stop = Stop::new().map_err(system("making a pipe"))?;
        stop.on_signals().map_err(system("handling signals"))?;
        let mut control = Control::open(self, settings)?;
        let (changer, quit) = (
            gateway.changer(),
            Bell::new().map_err(system("making a pipe"))?,
        );
        let _server = settings
            .metrics
            .map(|address| {
                MetricsServer::start(address, stats.clone())
                    .map_err(|source| GatewayError::Metrics { address, source })
            })
            .transpose()?;
        let (watched, json) = (settings.watch == Some(true), settings.json == Some(true));
        let words = Words::default();
        if watched {
            let words = words.clone();
            gateway.set_log(move |line| words.add(line));
        }
        let log = |line: &str| match watched {
            true => words.add(line),
            false => eprintln!("asymq gateway: {line}"),
        };
        let shown = Mutex::new(title(&config, &settings.link));
        let changed = |link: &LinkArgs| {
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = title(&config, link);
        };
        thread::scope(|scope| {
            scope.spawn(|| control.serve(&changer, &quit, &changed, &log));
            if watched {
                scope.spawn(|| watch(&shown, &stats, &words));
            } else if json {
                scope.spawn(|| print_json(&stats, &stop));
            }
            let answer = gateway.run(&stop);
            quit.ring();
            answer
        })
    }
}

fn title(config: &GatewayConfig, link: &LinkArgs) -> String {
    let GatewayConfig { lan, wan, .. } = config;
    let what = link.title();
    let rate = |rate: Option<_>| rate.unwrap_or(config.link.up);
    let (up, down) = (rate(link.up), rate(link.down));
    let overhead = link.config().unwrap_or(config.link).overhead;
    format!("asymq gateway: {lan} -> {wan}, {what}, {up} up, {down} down, {overhead}")
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
fn watch(title: &Mutex<String>, stats: &Shared, words: &Words) {
    let mut out = io::stdout().lock();
    let in_place = out.is_terminal();
    let mut seen = 0;
    let mut height = 0;
    while let Some(snapshot) = stats.next(&mut seen) {
        let title = title.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = table(&title, &snapshot);
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
