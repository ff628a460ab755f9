//! Rights of an ordinary user, and cleanup after a killed lab. Each case needs a process that has a single thread at
//! its start, so this file has its own test runner.

#[path = "../../gateway/tests/common/wait.rs"]
mod wait;

use asymq_args::{Defaults, ScenarioArgs};
use asymq_gateway::STANDARD;
use asymq_lab::{LabError, Options, enter_user_namespace, run_scenarios};
use asymq_scenario::Run;
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{env, fs, io, process, thread};
use wait::{DEADLINE, wait_for};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A lab's namespaces: home, gateway, path, servers.
const NAMESPACES: &str = "4";
const NOBODY: u32 = 65_534;
const RUNNING: &str = "running";

fn main() -> ExitCode {
    let outcome = match env::args().nth(1).as_deref() {
        Some("child:user-namespace") => enter_user_namespace().map_err(Into::into),
        Some("child:unprivileged") => unprivileged(),
        Some("child:killer") => killer(),
        Some("child:long-lab") => lab("60s").map(drop).map_err(Into::into),
        Some("child:short-lab") => lab("600ms").map(drop).map_err(Into::into),
        _ => return parent(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parent() -> ExitCode {
    let program = env::temp_dir().join(format!("asymq-lab-test-{}", process::id()));
    let mut failed = 0;
    let cases = [
        ("an_ordinary_user_runs_a_lab", "child:unprivileged"),
        ("a_killed_lab_leaves_no_namespace", "child:killer"),
    ];
    // An ordinary user must be able to read the copy.
    let prepared = env::current_exe()
        .and_then(|own| fs::copy(own, &program))
        .and_then(|_| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)));
    if let Err(error) = prepared {
        eprintln!("cannot copy the test program: {error}");
        return ExitCode::FAILURE;
    }
    if !succeeds(start_as_user(&program, "child:user-namespace")) {
        let skipped = cases.len();
        println!("this kernel lets ordinary users make no user namespaces: nothing to test");
        println!("test result: ok. 0 passed; 0 failed; {skipped} ignored");
        let _ = fs::remove_file(&program);
        return ExitCode::SUCCESS;
    }
    // Each case has its own user namespace, in which the kernel counts namespaces separately.
    let running = cases.map(|(name, child)| (name, start_as_user(&program, child)));
    for (name, child) in running {
        let well = succeeds(child);
        failed += usize::from(!well);
        println!("test {name} ... {}", if well { "ok" } else { "FAILED" });
    }
    let _ = fs::remove_file(&program);
    let passed = cases.len() - failed;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored");
    ExitCode::from(u8::from(failed > 0))
}

/// Starts the case, as an unprivileged user if possible.
fn start_as_user(program: &Path, case: &str) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg(case);
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.spawn()
}

fn succeeds(child: io::Result<Child>) -> bool {
    let status = child.and_then(|mut child| child.wait());
    status.is_ok_and(|status| status.success())
}

/// A lab with one flow in each direction.
fn lab(duration: &str) -> Result<Run, LabError> {
    let args = ScenarioArgs {
        flows_up: Some(1),
        flows_down: Some(1),
        rtt: Some("20ms".parse().expect("a time")),
        duration: Some(duration.parse().expect("a time")),
        warmup: Some("500ms".parse().expect("a time")),
        ..ScenarioArgs::default()
    };
    let scenario = args.resolve(&Defaults::lab()).expect("a valid scenario");
    let options = Options {
        stop: &AtomicBool::new(false),
        series: false,
        jobs: NonZeroUsize::MIN,
    };
    let mut said = false;
    let mut reports = run_scenarios(
        STANDARD,
        std::slice::from_ref(&scenario),
        options,
        &mut |progress| {
            // After 1 s, queues are full and data is in flight.
            if !said && progress.elapsed.as_secs_f64() > 1.0 {
                println!("{RUNNING}");
                said = true;
            }
        },
    )?;
    Ok(reports.remove(0).runs.remove(0))
}

fn unprivileged() -> Outcome {
    enter_user_namespace()?;
    // Without privileges a busy machine may lose packets; a lab that always loses some is broken.
    let mut result = lab("2s");
    for _ in 0..3 {
        if matches!(result, Err(LabError::TooSlow { .. })) {
            result = lab("2s");
        }
    }
    let run = result?;
    let goodput = &run.summary.goodput;
    if goodput.up[0] <= 0.0 || goodput.down[0] <= 0.0 {
        return Err(format!("a direction carried nothing: {run:?}").into());
    }
    Ok(())
}

/// Uses the kernel's limit of namespaces: if only one lab's namespaces are allowed, a second lab starts only after the
/// kernel has removed all of the first.
fn killer() -> Outcome {
    enter_user_namespace()?;
    fs::write("/proc/sys/user/max_net_namespaces", NAMESPACES)?;
    let mut first = start("child:long-lab")?;
    let mut said = String::new();
    let out = first.stdout.take().ok_or("no pipe")?;
    BufReader::new(out).read_line(&mut said)?;
    let second = start("child:short-lab")?.wait()?;
    first.kill()?;
    first.wait()?;
    if said.trim() != RUNNING {
        return Err("the first lab did not run".into());
    }
    if second.success() {
        return Err("the kernel did not count the first lab's namespaces".into());
    }
    nothing_is_left();
    // Also kills a lab during its start, after any number of namespaces was created.
    for millis in [1, 5, 10, 30] {
        let mut early = start("child:long-lab")?;
        thread::sleep(Duration::from_millis(millis));
        early.kill()?;
        early.wait()?;
        nothing_is_left();
    }
    Ok(())
}

/// Waits until another lab can start: the kernel removes networks in the background.
fn nothing_is_left() {
    wait_for("the end of a killed lab's namespaces", DEADLINE, || {
        let lab = start("child:short-lab").and_then(|mut lab| lab.wait());
        lab.is_ok_and(|status| status.success())
    });
}

fn start(case: &str) -> std::io::Result<Child> {
    Command::new(env::current_exe()?)
        .arg(case)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}
