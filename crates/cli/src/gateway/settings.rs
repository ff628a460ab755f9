//! The settings of a running gateway: what is in force, and what a change makes of it.

use super::args::{LinkArgs, SettingsArgs};
use asymq_args::{parse_flags, read_flags};
use asymq_core::catalog::Catalog;
use asymq_gateway::LinkConfig;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by those who read changes; one change at a time is under way.
#[derive(Debug)]
pub(super) struct Settings {
    /// As on the command line, which overrides the file.
    typed: SettingsArgs,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    in_force: SettingsArgs,
    /// Read, and handed to the gateway, which may refuse it.
    asked: Option<LinkArgs>,
}

impl Settings {
    pub(super) fn new(typed: SettingsArgs, in_force: SettingsArgs) -> Self {
        Self {
            typed,
            state: Mutex::new(State {
                in_force,
                asked: None,
            }),
        }
    }

    /// What a request to the control socket asks for; what it does not name stays as it is.
    pub(super) fn request(&self, text: &str, catalog: &dyn Catalog) -> Result<LinkConfig, String> {
        let asked: LinkArgs =
            parse_flags(Path::new("request"), text).map_err(|error| error.to_string())?;
        let link = asked.or(self.lock().in_force.link.clone());
        self.ask(link, catalog)
    }

    /// What the settings file asks for now, and what of it takes a restart.
    pub(super) fn read_again(
        &self,
        file: &Path,
        catalog: &dyn Catalog,
    ) -> Result<(LinkConfig, String), String> {
        let in_file: SettingsArgs = read_flags(file).map_err(|error| error.to_string())?;
        let new = self.typed.clone().or(in_file);
        let old = self.lock().in_force.clone();
        let config = self.ask(new.link.clone(), catalog)?;
        let later = [
            (new.lan != old.lan, "lan"),
            (new.wan != old.wan, "wan"),
            (new.state != old.state, "state"),
            (new.control != old.control, "control"),
            (new.metrics != old.metrics, "metrics"),
            (new.watch != old.watch, "watch"),
            (new.json != old.json, "json"),
        ];
        let later: Vec<&str> = later
            .iter()
            .filter_map(|(is, key)| is.then_some(*key))
            .collect();
        let words = match later.is_empty() {
            true => String::new(),
            false => format!("; restart for: {}", later.join(", ")),
        };
        Ok((config, words))
    }

    /// The gateway runs what was asked for last.
    pub(super) fn accepted(&self) {
        let mut state = self.lock();
        if let Some(link) = state.asked.take() {
            state.in_force.link = link;
        }
    }

    fn ask(&self, link: LinkArgs, catalog: &dyn Catalog) -> Result<LinkConfig, String> {
        let config = link.config(catalog).map_err(|error| error.to_string())?;
        self.lock().asked = Some(link);
        Ok(config)
    }

    /// The state is only ever replaced, so that a panic elsewhere leaves it whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
