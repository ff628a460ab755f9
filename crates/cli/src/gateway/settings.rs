//! Current and requested settings of a running gateway.

use super::args::{LinkArgs, Read, SettingsArgs};
use super::trial::REPLACE;
use asymq_args::{Flags, Words};
use asymq_core::catalog::Catalog;
use asymq_gateway::LinkConfig;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(super) struct Settings {
    pub(super) read: Read,
    /// Flags of the command line, which override the file's settings.
    pub(super) typed: Words,
    pub(super) file: Option<PathBuf>,
    pub(super) in_force: Words,
    /// Settings sent to the gateway; the gateway may refuse them.
    pub(super) asked: Option<Words>,
    pub(super) catalog: &'static dyn Catalog,
}

impl Settings {
    /// Parser for the settings that may change while the gateway runs.
    fn link(&self) -> Flags<LinkArgs> {
        Flags::new(self.catalog)
    }

    fn ask(&mut self, words: Words) -> Result<LinkConfig, String> {
        let settings = Flags::<SettingsArgs>::new(self.catalog).read(&words);
        let config = settings.and_then(|settings| settings.host.link.config(self.catalog));
        let config = config.map_err(|error| error.to_string())?;
        self.asked = Some(words);
        Ok(config)
    }
}

impl asymq_gateway::Settings for Settings {
    /// Parses requested settings. Settings that the text omits remain, unless the text begins with [`REPLACE`].
    fn request(&mut self, text: &str) -> Result<LinkConfig, String> {
        let link = self.link();
        let whole = text.strip_prefix(REPLACE);
        let asked = link.text(Path::new("request"), whole.unwrap_or(text));
        let asked = asked.map_err(|error| error.to_string())?;
        let in_force = self.in_force.clone();
        let stays = in_force.filtered(|key| whole.is_none() || !link.has(key));
        self.ask(link.merge(&asked, &stays))
    }

    /// Reads the file again. The returned text lists the settings that need a restart.
    fn read_again(&mut self) -> Result<(LinkConfig, String), String> {
        let file = self.file.clone().unwrap_or_default();
        // Reading a pipe would block this thread, which also serves the control socket.
        if !file.metadata().is_ok_and(|of| of.is_file()) {
            let shown = file.display();
            return Err(format!(
                "{shown}: not a regular file; write the settings to one"
            ));
        }
        let new = (self.read)(&self.typed, Some(&file), self.catalog);
        let (_, new) = new.map_err(|error| error.to_string())?;
        let config = self.ask(new.clone())?;
        let (link, old) = (self.link(), &self.in_force);
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

    /// Keeps the old values of settings that only a restart can change.
    fn accept(&mut self, _: &LinkConfig) {
        let link = self.link();
        if let Some(asked) = self.asked.take() {
            let asked = asked.filtered(|key| link.has(key));
            let kept = self.in_force.clone().filtered(|key| !link.has(key));
            self.in_force = asked.or(&kept);
        }
    }

    fn in_force(&self) -> String {
        let link = self.link();
        let in_force = self.in_force.clone();
        in_force.filtered(|key| link.has(key)).to_toml()
    }
}
