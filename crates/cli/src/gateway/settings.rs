//! Settings of a running gateway: those in force, and requested ones.

use super::args::{LinkArgs, Read, SettingsArgs};
use super::trial::REPLACE;
use asymq_args::{Flags, Words};
use asymq_core::catalog::Catalog;
use asymq_gateway::LinkConfig;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by the sources of changes; one change at a time is in progress.
#[derive(Debug)]
pub(super) struct Settings {
    read: Read,
    /// Words of the command line, which override the file's.
    typed: Words,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    in_force: Words,
    /// Settings sent to the gateway, which may refuse them.
    asked: Option<Words>,
}

impl Settings {
    pub(super) fn new(read: Read, typed: Words, in_force: Words) -> Self {
        Self {
            read,
            typed,
            state: Mutex::new(State {
                in_force,
                asked: None,
            }),
        }
    }

    /// Parses a request to the control socket. Settings that it does not name stay, unless it begins with [`REPLACE`].
    pub(super) fn request(&self, text: &str, catalog: &dyn Catalog) -> Result<LinkConfig, String> {
        let link = Flags::<LinkArgs>::new(catalog);
        let whole = text.strip_prefix(REPLACE);
        let asked = link.text(Path::new("request"), whole.unwrap_or(text));
        let asked = asked.map_err(|error| error.to_string())?;
        let in_force = self.lock().in_force.clone();
        let stays = in_force.filtered(|key| whole.is_none() || !link.has(key));
        self.ask(link.merge(&asked, &stays), catalog)
    }

    /// Returns the changeable settings in force as the text of a file.
    pub(super) fn in_force(&self, catalog: &dyn Catalog) -> String {
        let link = Flags::<LinkArgs>::new(catalog);
        let in_force = self.lock().in_force.clone();
        in_force.filtered(|key| link.has(key)).to_toml()
    }

    /// Reads the settings file again. Also returns a note about settings that need a restart.
    pub(super) fn read_again(
        &self,
        file: &Path,
        catalog: &dyn Catalog,
    ) -> Result<(LinkConfig, String), String> {
        // Reading a pipe would block this thread, and with it the control socket.
        if !file.metadata().is_ok_and(|of| of.is_file()) {
            let shown = file.display();
            return Err(format!(
                "{shown}: not a regular file; write the settings to one"
            ));
        }
        let new = (self.read)(&self.typed, Some(file), catalog);
        let (_, new) = new.map_err(|error| error.to_string())?;
        let old = self.lock().in_force.clone();
        let config = self.ask(new.clone(), catalog)?;
        let link = Flags::<LinkArgs>::new(catalog);
        let differs = |key: &&str| !link.has(key) && new.get(key) != old.get(key);
        let later: BTreeSet<&str> = new.keys().chain(old.keys()).filter(differs).collect();
        let words = match later.is_empty() {
            true => String::new(),
            false => {
                let later: Vec<&str> = later.into_iter().collect();
                format!("; restart for: {}", later.join(", "))
            }
        };
        Ok((config, words))
    }

    /// Records that the gateway runs the requested settings; others need a restart.
    pub(super) fn accepted(&self, catalog: &dyn Catalog) {
        let link = Flags::<LinkArgs>::new(catalog);
        let mut state = self.lock();
        if let Some(asked) = state.asked.take() {
            let asked = asked.filtered(|key| link.has(key));
            let kept = state.in_force.clone().filtered(|key| !link.has(key));
            state.in_force = asked.or(&kept);
        }
    }

    fn ask(&self, words: Words, catalog: &dyn Catalog) -> Result<LinkConfig, String> {
        let settings = Flags::<SettingsArgs>::new(catalog).read(&words);
        let config = settings.and_then(|settings| settings.host.link.config(catalog));
        let config = config.map_err(|error| error.to_string())?;
        self.lock().asked = Some(words);
        Ok(config)
    }

    /// The state is only replaced, so a poisoned lock is harmless.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
