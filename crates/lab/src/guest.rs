//! Runs the lab in a qemu guest with another kernel.

use crate::error::{Context as _, LabError};
use asymq_scenario::{Report, Scenario};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Boot script and init of the guest, also used by scripts/kernel-test.
const BOOT: &str = include_str!("../guest/boot");
const INIT: &str = include_str!("../guest/init");

/// A kernel to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Image `boot/vmlinuz-VERSION` with `lib/modules/VERSION` beside `boot`, or the folder of `boot` and `lib`.
    pub kernel: PathBuf,
    /// Additional modules to load, in this order. A tc plugin beside a module is used.
    pub modules: Vec<PathBuf>,
}

/// Runs a scenario in a guest whose clock counts instructions, so that this machine's load does not affect results.
pub fn run_in_guest(guest: &Guest, scenario: &Scenario, series: bool) -> Result<Report, LabError> {
    const BOOT_SECONDS: u64 = 300;
    // Maximum real time per second of the guest's clock.
    const SECONDS_PER_SECOND: f64 = 20.0;
    let folder = tempfile::tempdir().during("making a folder for the guest")?;
    let folder = folder.path();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text);
    let prepare = || {
        write("boot", BOOT)?;
        write("init", INIT)?;
        write("scenario.json", &serde_json::to_string(scenario)?)?;
        command(guest, series)
    };
    let command = prepare().during("preparing the guest")?;
    let spent = scenario.duration.as_secs_f64() * f64::from(scenario.runs) * SECONDS_PER_SECOND;
    let output = Command::new("bash")
        .arg(folder.join("boot"))
        .arg(&guest.kernel)
        .arg((BOOT_SECONDS + spent as u64).to_string())
        .arg(command)
        .envs([("COUNTED", "1"), ("CPUS", "1")])
        .env("OUT", folder)
        .stdin(Stdio::null())
        .output()
        .during("starting bash for the guest")?;
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    if output.status.success() {
        let report = serde_json::from_str(&read("report.json"));
        return report
            .map_err(io::Error::from)
            .during("reading the guest's report");
    }
    // Prefers the guest's errors, then the last lines of its output.
    let said = [
        read("errors"),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ];
    let lines = |text: &String| {
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    };
    Err(LabError::Guest {
        message: match output.status.code() {
            Some(124) => "took too long; use a shorter --duration or fewer --runs".into(),
            _ => said
                .iter()
                .map(lines)
                .find(|said| !said.is_empty())
                .unwrap_or_default(),
        },
        is_bad_input: output.status.code() == Some(2),
    })
}

/// Shell commands of the guest, which has this machine's files below `/mnt` and shares `/run/out`.
fn command(guest: &Guest, series: bool) -> io::Result<String> {
    let quoted = |path: &Path| -> io::Result<String> {
        let path = fs::canonicalize(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(format!(
            "'/mnt{}'",
            path.display().to_string().replace('\'', r"'\''")
        ))
    };
    let mut text = String::new();
    for module in &guest.modules {
        text += &format!("insmod {} || exit 1\n", quoted(module)?);
        if let Some(folder) = module.canonicalize()?.parent()
            && folder.join("q_asymq.so").exists()
        {
            text += &format!("export TC_LIB_DIR={}\n", quoted(folder)?);
        }
    }
    let own = quoted(&env::current_exe()?)?;
    // Reads the whole program first, because later page faults would advance the guest's clock.
    text += &format!("cat {own} >/dev/null\n");
    let series = if series { " --series" } else { "" };
    text += &format!(
        "{own} lab /run/out/scenario.json --json{series} >/run/out/report.json 2>/run/out/errors"
    );
    Ok(text)
}
