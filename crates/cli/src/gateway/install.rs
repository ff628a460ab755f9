//! `asymq gateway install`, `uninstall` and `restore`: a systemd service.

use super::args::{
    HostArgs, InstallArgs, SettingsArgs, UninstallArgs, add_missing, read, state_of,
};
use crate::output;
use anyhow::{Context as _, anyhow, bail};
use asymq_args::Words;
use asymq_core::catalog::Catalog;
use asymq_gateway::{
    GatewayError, STATES, check_interface_name, restore as restore_interfaces, restore_router,
};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETTINGS: &str = "/etc/asymq.toml";
/// Runtime folder of the service. systemd creates it, and keeps it after a stop, since it contains the journals.
const RUN: &str = "/run/asymq";
const UNIT: &str = "/etc/systemd/system/asymq.service";
/// Unit file of a package. The package also creates the user and installs the program.
const PACKAGED: &str = "/usr/lib/systemd/system/asymq.service";
const USER: &str = "/etc/sysusers.d/asymq.conf";
const NETWORKD: &str = "/etc/systemd/network/10-asymq.network";
const NETWORK_MANAGER: &str = "/etc/NetworkManager/conf.d/asymq.conf";
/// Path of the program's copy. The program is copied if the service cannot read it, or if a new build would replace it.
const BINARY: &str = "/usr/local/bin/asymq";

const FILES: Files = Files {
    settings: [SETTINGS, "/etc/asymq.toml.old"],
    unit: UNIT,
    others: &[USER, NETWORKD, NETWORK_MANAGER],
};

/// Start of the first line of the files that this command writes.
const MARK: &str = "# Written by asymq gateway install";

/// Start of the first line of the files of gateway and router. Other files are never overwritten or removed.
const OURS: &str = "# Written by asymq ";

/// Mark in the unit if [`BINARY`] is a copy, which must be removed with the unit.
const COPIED: &str = "# The program in /usr/local/bin was copied there by the same command.";

/// Writes the service and its settings. Does not start the service.
pub(super) fn install(args: &InstallArgs<HostArgs>, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let (settings, words) = args.planned.settings(read, catalog)?;
    let settings = settings.host;
    let config = settings.config(catalog)?;
    for (flag, name) in [
        ("--lan", name(&settings.lan)),
        ("--wan", name(&settings.wan)),
    ] {
        // Interface names are written into configuration files, where a line break would add a line.
        check_interface_name(name).map_err(|source| GatewayError::Port { flag, source })?;
    }
    config.check_interfaces()?;
    let target = Target::new(FILES, args.root.as_deref(), args.dry_run)?;
    let is_packaged = target.has(PACKAGED);
    let binary = target.place(is_packaged)?;
    let mut files = files(&settings, &words, &binary)?;
    if is_packaged {
        files.retain(|(path, _)| ![UNIT, USER].contains(path));
    }
    target.write_all(&files, &binary)?;
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
    let target = Target::new(FILES, args.root.as_deref(), args.dry_run)?;
    let state = state_of::<SettingsArgs>(&target.path(SETTINGS), catalog);
    if target.text(UNIT).starts_with(MARK) {
        target.run(&["systemctl", "disable", "--now", "asymq"])?;
    }
    let had_user = target.has(USER);
    target.remove_all(args.keep_settings, state)?;
    if had_user {
        target.run(&["userdel", "asymq"])?;
    }
    target.run(&["systemctl", "daemon-reload"])?;
    target.finish()
}

/// Restores interfaces from the journals in `state`, or in the default folders, and prints their names.
pub(super) fn restore(state: Option<&Path>) -> anyhow::Result<()> {
    let folders = state.map_or(STATES.map(Path::new).to_vec(), |state| vec![state]);
    let mut text = String::new();
    for folder in folders {
        let named = || folder.display().to_string();
        // Restoring a port also restores the interfaces in its namespace.
        let mut restored = restore_router(folder).with_context(named)?;
        restored.extend(restore_interfaces(folder).with_context(named)?);
        for of in &restored {
            writeln!(text, "{of}")?;
        }
    }
    output::print(&text)
}

/// Paths and contents of the files to write.
fn files(
    settings: &HostArgs,
    words: &Words,
    binary: &Binary,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let (lan, wan) = (name(&settings.lan), name(&settings.wan));
    Ok(vec![
        (UNIT, binary.unit(include_str!("files/asymq.service"))?),
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

/// Formats the given settings and defaults as the settings file of a service.
pub(super) fn settings_file(
    mark: &str,
    service: &str,
    words: &Words,
    defaults: &[(&str, &str)],
) -> String {
    let shown = ["watch", "json"];
    let mut words = words.clone().filtered(|key| !shown.contains(&key));
    add_missing(&mut words, defaults);
    let toml = words.to_toml();
    format!("{mark}; 'systemctl reload {service}' reads it again.\n{toml}")
}

/// Inserts `sign` before each of the `special` characters of `text`.
fn escape(text: &str, special: &str, sign: &str) -> String {
    let letter = |letter: char| match special.contains(letter) {
        true => format!("{sign}{letter}"),
        false => letter.into(),
    };
    text.chars().map(letter).collect()
}

/// Quotes a name for a list in systemd-networkd. The list removes one backslash, the glob another.
fn glob(name: &str) -> String {
    escape(&escape(name, r"*?[]!\", r"\"), r"\", r"\")
}

/// Quotes a program in a unit's `ExecStart`. In the program's path, `$` is not special.
fn exec_start(program: &Path) -> anyhow::Result<String> {
    let text = program
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    let text = text.with_context(|| {
        format!(
            "{}: this path has control characters; move the program",
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

/// Name of an interface; the caller has checked that it is given.
fn name(given: &Option<String>) -> &str {
    given.as_deref().unwrap_or_default()
}

/// The program that a service runs.
pub(super) struct Binary {
    from: PathBuf,
    /// Path at which the service finds the program.
    to: PathBuf,
}

impl Binary {
    /// Returns a unit that runs this program. The unit records whether the program was copied.
    pub(super) fn unit(&self, text: &str) -> anyhow::Result<String> {
        let unit = text.replace("@BINARY@", &exec_start(&self.to)?);
        Ok(match self.from == self.to {
            true => unit,
            false => unit.replacen("\n[Unit]", &format!("\n{COPIED}\n[Unit]"), 1),
        })
    }

    fn copy(&self, target: &Target<'_>) -> anyhow::Result<()> {
        match self.from == self.to {
            true => Ok(()),
            false => target.copy(&self.from, &self.to),
        }
    }
}

/// Paths of a service. Each file begins with a mark.
pub(super) struct Files {
    /// Path of the settings file, and path to which a replaced settings file is renamed.
    pub(super) settings: [&'static str; 2],
    pub(super) unit: &'static str,
    pub(super) others: &'static [&'static str],
}

/// The system to change: this host or a folder. A dry run changes neither.
pub(super) struct Target<'a> {
    files: Files,
    root: Option<&'a Path>,
    dry: bool,
    /// Programs that failed. They are reported at the end.
    failed: RefCell<Vec<String>>,
}

impl<'a> Target<'a> {
    /// # Errors
    /// A path below the root contains a link, which could point outside the root.
    pub(super) fn new(files: Files, root: Option<&'a Path>, dry: bool) -> anyhow::Result<Self> {
        let target = Self {
            files,
            root,
            dry,
            failed: RefCell::new(Vec::new()),
        };
        let Some(root) = root else { return Ok(target) };
        let files = &target.files;
        let written = files.settings.iter().chain(files.others);
        let written = written.chain([&files.unit, &BINARY]);
        for path in written.map(|path| target.path(path)) {
            let below = path.ancestors().take_while(|part| *part != root);
            if let Some(link) = { below }.find(|part| part.is_symlink()) {
                let root = root.display();
                bail!(
                    "{}: a link, which may lead out of {root}; remove it first",
                    link.display()
                );
            }
        }
        Ok(target)
    }

    /// Returns this program's path, and the path to which to copy it if it is not installed.
    ///
    /// # Errors
    /// The copy would replace a program that was not installed by this command.
    pub(super) fn place(&self, is_packaged: bool) -> anyhow::Result<Binary> {
        let from = std::env::current_exe().context("finding this program")?;
        let is_installed = from.starts_with("/usr") || from.starts_with("/opt");
        let to = match is_packaged || is_installed && self.root.is_none() {
            true => from.clone(),
            false => BINARY.into(),
        };
        if to != from && self.has(BINARY) && !self.text(self.files.unit).contains(COPIED) {
            return Err(self.foreign(BINARY));
        }
        Ok(Binary { from, to })
    }

    /// Checks all files, then writes them and the program.
    pub(super) fn write_all(
        &self,
        files: &[(&str, String)],
        binary: &Binary,
    ) -> anyhow::Result<()> {
        for (path, _) in files {
            match fs::read_to_string(self.path(path)) {
                Ok(text) if !text.starts_with(OURS) => return Err(self.foreign(path)),
                _ => {}
            }
        }
        binary.copy(self)?;
        for (path, text) in files {
            if *path == self.files.settings[0] {
                self.keep_old(text)?;
            }
            self.write(path, text)?;
        }
        Ok(())
    }

    /// Removes files and a copied program, and restores interfaces from the journals in `state`.
    pub(super) fn remove_all(
        &self,
        keep_settings: bool,
        state: Option<PathBuf>,
    ) -> anyhow::Result<()> {
        let files = &self.files;
        let copied = self.text(files.unit).contains(COPIED);
        let settings = files.settings.iter().filter(|_| !keep_settings);
        for path in [&files.unit]
            .into_iter()
            .chain(files.others)
            .chain(settings)
        {
            self.remove(path, |text| text.starts_with(OURS))?;
        }
        self.remove(BINARY, |_| copied)?;
        if self.runs() {
            restore(state.as_deref())?;
            // The folder remains if it contains journals that could not be applied.
            let state = state.as_deref().unwrap_or(Path::new(STATES[0]));
            let _ = fs::remove_dir(state).and_then(|()| fs::remove_dir(RUN));
        }
        Ok(())
    }

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

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
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

    /// Performs `work` on a file, and prints the action. A dry run only prints the action.
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

    /// Renames settings with different content, because the owner may have edited them.
    fn keep_old(&self, text: &str) -> anyhow::Result<()> {
        let [path, aside] = self.files.settings.map(|path| self.path(path));
        match fs::read_to_string(&path) {
            Ok(old) if old != text => {
                let verbs = ["would keep the old one as", "kept the old one as"];
                self.act(verbs, &aside, || fs::rename(&path, &aside))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
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

    /// Removes a file if `is_ours` is true for its text. Keeps other files and prints their names.
    fn remove(&self, path: &str, is_ours: impl FnOnce(&str) -> bool) -> anyhow::Result<()> {
        let is_ours = is_ours(&self.text(path));
        let path = self.path(path);
        match (path.exists(), is_ours) {
            (false, _) => Ok(()),
            (true, true) => self.act(["would remove", "removed"], &path, || {
                fs::remove_file(&path)
            }),
            (true, false) => output::print(&format!(
                "left {}: not written by 'asymq gateway install'\n",
                path.display()
            )),
        }
    }

    /// Runs a program. A dry run only prints it. Skips a missing program with a message.
    pub(super) fn run(&self, command: &[&str]) -> anyhow::Result<()> {
        let line = command.join(" ");
        if self.dry {
            return output::print(&format!("would run {line}\n"));
        }
        if self.root.is_some() {
            return Ok(());
        }
        // Test from sd_booted(3).
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

    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let failed = self.failed.borrow();
        match failed.is_empty() {
            true => Ok(()),
            false => bail!("{}; everything else is done", failed.join("; ")),
        }
    }
}

/// Replaces a file or link by a new file with this mode, regardless of the umask. A running program's file cannot be
/// overwritten, but its name can be replaced.
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
    // The file may remain from an interrupted installation.
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
