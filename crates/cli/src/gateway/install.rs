//! `asymq gateway install` and `uninstall`: a systemd service.

use super::args::{HostArgs, InstallArgs, SettingsArgs, UninstallArgs};
use super::restore::restore;
use crate::output;
use anyhow::{Context as _, anyhow, bail};
use asymq_args::{Flags, Words};
use asymq_core::catalog::Catalog;
use asymq_gateway::{GatewayError, STATES, check_interface_name};
use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETTINGS: &str = "/etc/asymq.toml";
/// Previous settings that were replaced.
const OLD_SETTINGS: &str = "/etc/asymq.toml.old";
/// Runtime folder of the service, which systemd creates and leaves for journals.
pub(super) const RUN: &str = "/run/asymq";
const UNIT: &str = "/etc/systemd/system/asymq.service";
/// Unit of a package, which also has the user and the program.
const PACKAGED: &str = "/usr/lib/systemd/system/asymq.service";
const USER: &str = "/etc/sysusers.d/asymq.conf";
const NETWORKD: &str = "/etc/systemd/network/10-asymq.network";
const NETWORK_MANAGER: &str = "/etc/NetworkManager/conf.d/asymq.conf";
/// Copy of a program that the service could not see or a build would replace.
pub(super) const BINARY: &str = "/usr/local/bin/asymq";

/// All files that are written, renamed or removed.
const WRITTEN: [&str; 7] = [
    SETTINGS,
    OLD_SETTINGS,
    UNIT,
    USER,
    NETWORKD,
    NETWORK_MANAGER,
    BINARY,
];

/// First line of written files. Other files are never overwritten or removed.
const MARK: &str = "# Written by asymq gateway install";

/// Begin of the first line of the files of both services.
const OURS: &str = "# Written by asymq ";

/// Mark in the unit that [`BINARY`] was copied and is to be removed with it.
const COPIED: &str = "# The program in /usr/local/bin was copied there by the same command.";

/// Writes the service and its settings, without starting it.
pub(super) fn install(args: &InstallArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, words) = args.planned.settings(catalog)?;
    let settings = settings.host;
    let config = settings.config(catalog)?;
    for (flag, name) in [
        ("--lan", name(&settings.lan)),
        ("--wan", name(&settings.wan)),
    ] {
        // Names go into configuration files, where a line break would add a line.
        check_interface_name(name).map_err(|source| GatewayError::Port { flag, source })?;
    }
    config.check_interfaces()?;
    let target = Target::new(args.root.as_deref(), args.dry_run);
    target.check_links(&WRITTEN)?;
    let is_packaged = target.has(PACKAGED);
    let binary = target.place(is_packaged, UNIT)?;
    let mut files = files(&settings, &words, &binary)?;
    if is_packaged {
        files.retain(|(path, _)| ![UNIT, USER].contains(path));
    }
    // Checks all files before the first one is written.
    for (path, _) in &files {
        target.check_ours(path)?;
    }
    binary.copy(&target)?;
    for (path, text) in &files {
        if *path == SETTINGS {
            target.keep_old(path, text)?;
        }
        target.write(path, text)?;
    }
    if !is_packaged {
        target.run(&["systemd-sysusers", USER])?;
        target.run(&["systemctl", "daemon-reload"])?;
    }
    target.finish()?;
    match target.runs() {
        true => output::print("start it with: systemctl enable --now asymq\n"),
        false => Ok(()),
    }
}

/// Stops the service, removes the files of [`install`], and restores interfaces.
pub(super) fn uninstall(args: &UninstallArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let target = Target::new(args.root.as_deref(), args.dry_run);
    target.check_links(&WRITTEN)?;
    let unit = target.text(UNIT);
    let copied = target.copied(UNIT);
    // An invalid file names no folder.
    let words = Flags::<SettingsArgs>::new(catalog).file(&target.path(SETTINGS));
    let state = words
        .ok()
        .and_then(|words| Some(PathBuf::from(words.get("state")?)));
    if unit.starts_with(MARK) {
        target.run(&["systemctl", "disable", "--now", "asymq"])?;
    }
    let settings = match args.keep_settings {
        true => &[][..],
        false => &[SETTINGS, OLD_SETTINGS],
    };
    let had_user = target.has(USER);
    for path in [UNIT, USER, NETWORKD, NETWORK_MANAGER]
        .iter()
        .chain(settings)
    {
        target.remove(path)?;
    }
    target.remove_copy(copied)?;
    if target.runs() {
        restore(state.as_deref())?;
        // The folder stays if journals could not be applied.
        let state = state.as_deref().unwrap_or(Path::new(STATES[0]));
        let _ = fs::remove_dir(state).and_then(|()| fs::remove_dir(RUN));
    }
    if had_user {
        target.run(&["userdel", "asymq"])?;
    }
    target.run(&["systemctl", "daemon-reload"])?;
    target.finish()
}

/// Paths and contents of all files.
fn files(
    settings: &HostArgs,
    words: &Words,
    binary: &Binary,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let (lan, wan) = (name(&settings.lan), name(&settings.wan));
    let unit = include_str!("files/asymq.service");
    Ok(vec![
        (
            UNIT,
            binary.marked(&unit.replace("@BINARY@", &binary.exec_start()?)),
        ),
        (USER, include_str!("files/sysusers.conf").into()),
        (
            NETWORKD,
            format!(
                "{MARK}: no address for the gateway's ports.\n\
                 [Match]\nName={} {}\n\n[Link]\nUnmanaged=yes\nRequiredForOnline=no\n",
                glob(lan),
                glob(wan)
            ),
        ),
        (
            NETWORK_MANAGER,
            format!(
                "{MARK}: no address for the gateway's ports.\n\
                 [keyfile]\nunmanaged-devices+=interface-name:={};interface-name:={}\n",
                escape(lan, ",;\\", "\\"),
                escape(wan, ",;\\", "\\")
            ),
        ),
        (
            SETTINGS,
            settings_file(
                MARK,
                "asymq",
                words,
                &[("control", "/run/asymq/control"), ("fail-open", "true")],
            ),
        ),
    ])
}

/// The given settings and defaults, as the settings file of a service.
pub(super) fn settings_file(
    mark: &str,
    service: &str,
    words: &Words,
    defaults: &[(&str, &str)],
) -> String {
    let shown = ["watch", "json"];
    let mut words = words.clone().filtered(|key| !shown.contains(&key));
    for (key, value) in defaults {
        if words.get(key).is_none() {
            words.set(key, value);
        }
    }
    let toml = words.to_toml();
    format!("{mark}; 'systemctl reload {service}' reads it again.\n{toml}")
}

/// `text` with `sign` before each of the `special` characters.
fn escape(text: &str, special: &str, sign: &str) -> String {
    let letter = |letter: char| match special.contains(letter) {
        true => format!("{sign}{letter}"),
        false => letter.into(),
    };
    text.chars().map(letter).collect()
}

/// A name in a list of systemd-networkd: the list takes one backslash away, the glob another.
fn glob(name: &str) -> String {
    escape(&escape(name, r"*?[]!\", r"\"), r"\", r"\")
}

/// A program in a unit's `ExecStart`, where `$` is special in arguments only.
fn exec_start(program: &Path) -> anyhow::Result<String> {
    let text = program
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    let text = text.with_context(|| {
        format!(
            "{}: move it to a path without control characters",
            program.display()
        )
    })?;
    let text = escape(text, r#""\"#, r"\").replace('%', "%%");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+%".contains(letter);
    Ok(match text.chars().all(is_plain) {
        true => text,
        false => format!("\"{text}\""),
    })
}

/// Name of an interface, whose presence was checked before.
fn name(given: &Option<String>) -> &str {
    given.as_deref().unwrap_or_default()
}

/// The program that a service runs.
pub(super) struct Binary {
    /// This program.
    from: PathBuf,
    /// Where the service finds it.
    to: PathBuf,
}

impl Binary {
    /// The program in a unit's `ExecStart`.
    pub(super) fn exec_start(&self) -> anyhow::Result<String> {
        exec_start(&self.to)
    }

    /// A unit that records that the program was copied for it.
    pub(super) fn marked(&self, unit: &str) -> String {
        match self.from == self.to {
            true => unit.into(),
            false => unit.replacen("\n[Unit]", &format!("\n{COPIED}\n[Unit]"), 1),
        }
    }

    pub(super) fn copy(&self, target: &Target<'_>) -> anyhow::Result<()> {
        match self.from == self.to {
            true => Ok(()),
            false => target.copy(&self.from, &self.to),
        }
    }
}

/// The system to change: this one, a folder, or none for a dry run.
pub(super) struct Target<'a> {
    root: Option<&'a Path>,
    dry: bool,
    /// Failed programs, reported at the end.
    failed: RefCell<Vec<String>>,
}

impl<'a> Target<'a> {
    pub(super) const fn new(root: Option<&'a Path>, dry: bool) -> Self {
        Self {
            root,
            dry,
            failed: RefCell::new(Vec::new()),
        }
    }

    /// Finds this program, which is copied unless it is installed. `unit` is that of the service.
    ///
    /// # Errors
    /// The copy would replace a program of others.
    pub(super) fn place(&self, is_packaged: bool, unit: &str) -> anyhow::Result<Binary> {
        let from = std::env::current_exe().context("finding this program")?;
        let is_installed = from.starts_with("/usr") || from.starts_with("/opt");
        let to = match is_packaged || is_installed && self.root.is_none() {
            true => from.clone(),
            false => BINARY.into(),
        };
        if to != from && self.has(BINARY) && !self.text(unit).contains(COPIED) {
            return Err(self.foreign(BINARY));
        }
        Ok(Binary { from, to })
    }

    /// True if the program was copied for a service.
    pub(super) fn copied(&self, unit: &str) -> bool {
        self.text(unit).contains(COPIED) && self.has(BINARY)
    }

    /// Removes a copied program, and names one of others.
    pub(super) fn remove_copy(&self, copied: bool) -> anyhow::Result<()> {
        match copied {
            true => self.remove_file(BINARY),
            false if self.has(BINARY) => self.stays(BINARY),
            false => Ok(()),
        }
    }

    /// True if programs are run.
    pub(super) const fn runs(&self) -> bool {
        self.root.is_none() && !self.dry
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match self.root {
            None => path.into(),
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        }
    }

    /// Refuses links below the root, which would lead out of it.
    pub(super) fn check_links(&self, written: &[&str]) -> anyhow::Result<()> {
        let Some(root) = self.root else { return Ok(()) };
        for path in written.iter().map(|path| self.path(path)) {
            let below = path.ancestors().take_while(|part| *part != root);
            if let Some(link) = { below }.find(|part| part.is_symlink()) {
                let root = root.display();
                bail!(
                    "{}: a link, which may lead out of {root}; remove it first",
                    link.display()
                );
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn check_ours(&self, path: &str) -> anyhow::Result<()> {
        match fs::read_to_string(self.path(path)) {
            Ok(text) if !text.starts_with(OURS) => Err(self.foreign(path)),
            _ => Ok(()),
        }
    }

    fn foreign(&self, path: &str) -> anyhow::Error {
        anyhow!(
            "{}: not written by 'asymq gateway install'; move it away first",
            self.path(path).display()
        )
    }

    /// Content of a file; empty if it cannot be read.
    pub(super) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// Does `work` on a file and prints that, or prints it alone in a dry run.
    fn act(
        &self,
        [would, did]: [&str; 2],
        path: &Path,
        work: impl FnOnce() -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let verb = match self.dry {
            true => would,
            false => {
                work().with_context(|| path.display().to_string())?;
                did
            }
        };
        output::print(&format!("{verb} {}\n", path.display()))
    }

    /// Renames a file with other content, which its owner may have edited.
    pub(super) fn keep_old(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        match fs::read_to_string(&path) {
            Ok(old) if old != text => {
                let aside = path.with_extension("toml.old");
                let verbs = ["would keep the old one as", "kept the old one as"];
                self.act(verbs, &aside, || fs::rename(&path, &aside))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        if self.dry {
            return output::print(&format!("would write {}:\n{text}\n", path.display()));
        }
        self.act(["", "wrote"], &path, || {
            replace(&path, 0o644, text.as_bytes())
        })
    }

    fn copy(&self, from: &Path, to: &Path) -> anyhow::Result<()> {
        let to = self.path(to);
        let would = format!("would copy {} to", from.display());
        self.act([&would, "wrote"], &to, || {
            replace(&to, 0o755, File::open(from)?)
        })
    }

    /// Removes a file written by `install`. Prints and leaves others.
    pub(super) fn remove(&self, path: &str) -> anyhow::Result<()> {
        match self.text(path).starts_with(OURS) {
            true => self.remove_file(path),
            false if self.has(path) => self.stays(path),
            false => Ok(()),
        }
    }

    fn stays(&self, path: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        output::print(&format!(
            "left {}: not written by 'asymq gateway install'\n",
            path.display()
        ))
    }

    fn remove_file(&self, path: &str) -> anyhow::Result<()> {
        let path = self.path(path);
        self.act(["would remove", "removed"], &path, || {
            fs::remove_file(&path)
        })
    }

    /// Runs a program or prints it. Skips a missing program with a message.
    pub(super) fn run(&self, command: &[&str]) -> anyhow::Result<()> {
        let line = command.join(" ");
        if self.dry {
            return output::print(&format!("would run {line}\n"));
        }
        if self.root.is_some() {
            return Ok(());
        }
        // As sd_booted(3).
        if command[0] == "systemctl" && !Path::new("/run/systemd/system").exists() {
            return output::print(&format!("not run, since systemd is not running: {line}\n"));
        }
        match Command::new(command[0]).args(&command[1..]).status() {
            Ok(status) if status.success() => output::print(&format!("ran {line}\n")),
            Ok(status) => {
                self.failed.borrow_mut().push(format!("{line}: {status}"));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                output::print(&format!("not run, since it is not installed: {line}\n"))
            }
            Err(error) => Err(error).context(line),
        }
    }

    /// Fails if a program failed.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let failed = self.failed.borrow();
        match failed.is_empty() {
            true => Ok(()),
            false => bail!("{}; everything else is done", failed.join("; ")),
        }
    }
}

/// Replaces a file or a link of this name, with this mode whatever the umask. A running program cannot be overwritten,
/// but its name can be replaced.
fn replace(path: &Path, mode: u32, mut content: impl Read) -> io::Result<()> {
    let folders: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|part| !part.exists())
        .collect();
    for folder in folders.into_iter().rev() {
        fs::create_dir(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    let new = path.with_extension("new");
    // Left by an interrupted installation.
    let _ = fs::remove_file(&new);
    let mut file = File::create_new(&new)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    io::copy(&mut content, &mut file)?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_path_is_one_word_of_a_unit() {
        for (path, word) in [
            ("/usr/bin/asymq", "/usr/bin/asymq"),
            ("/opt/my app/100%/asymq", "\"/opt/my app/100%%/asymq\""),
            ("/opt/a;b$c\"d\\/asymq", "\"/opt/a;b$c\\\"d\\\\/asymq\""),
        ] {
            assert_eq!(exec_start(Path::new(path)).unwrap(), word);
        }
        assert!(exec_start(Path::new("/opt/a\nExecStartPre=/bin/x/asymq")).is_err());
    }
}
