//! Faults within a gateway's process and around it. Tests that need root print a note and pass without it.

mod common;
#[path = "common/panicking.rs"]
mod panicking;
#[path = "common/subject.rs"]
mod subject;

use asymq_gateway::net::{Feature, set_feature};
use asymq_gateway::{
    Control, Gateway, GatewayConfig, Guard, HostOptions, LinkConfig, Notify, Outputs, Show, Stage,
    Stop,
};
use common::disciplines::discipline;
use common::wait::{DEADLINE, wait_for};
use common::wire::{numbered, send};
use common::{Requests, droptail};
use panicking::Panicking;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use subject::{END, Start, Subject, change, dead_pipe, full_disk, stalled_pipe};

const FLAGS: &str = "ASYMQ_TEST_FLAGS";
/// Redirects the gateway's streams, which would otherwise mix with the output of the test harness.
const REDIRECTIONS: &str = "3>&1 4>&2 >/dev/null 2>/dev/null";

/// Runs this program again as a gateway.
fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_gateway", "--ignored", "--nocapture"]);
    command.env(FLAGS, flags.join(" "));
    command
}

#[test]
#[ignore = "the gateway that the others start"]
fn a_gateway() {
    for (from, to) in [(3, 1), (4, 2)] {
        // SAFETY: no pointers; the users of descriptors 1 and 2 accept every target.
        assert_eq!(unsafe { libc::dup2(from, to) }, to);
    }
    let flags = std::env::var(FLAGS).unwrap();
    let value = |name| {
        let mut flags = flags.split(' ').skip_while(|flag| *flag != name);
        flags.nth(1)
    };
    let stop = Stop::new().unwrap();
    let guard = Guard::install(&stop).unwrap();
    stop.on_signals(&[libc::SIGINT, libc::SIGTERM]).unwrap();
    let link = droptail("1gbit");
    let config = GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link: link.clone(),
    };
    let mut gateway = Gateway::open(&Panicking, &config, &HostOptions::default()).unwrap();
    gateway.set_notify(Notify::from_environment().unwrap());
    let read = move |text: &str| {
        let name = text.strip_prefix("qdisc = \"").ok_or("not a discipline")?;
        let name = name.trim_end_matches('"');
        assert_ne!(name, "panic", "as the test wants");
        let stage = Stage::Queue(discipline(name, link.up, link.up, 1000));
        Ok(LinkConfig {
            uplink: stage,
            ..link.clone()
        })
    };
    let requests = Requests(read, |_: &LinkConfig| ());
    let control = Control::new(requests, value("--control").map(Path::new), false).unwrap();
    let outputs = Outputs {
        control: Some(control),
        metrics: value("--metrics").map(|address| address.parse().unwrap()),
        page: None,
        show: match flags
            .split(' ')
            .find(|flag| matches!(*flag, "--json" | "--watch"))
        {
            Some("--json") => Show::Json,
            Some(_) => Show::Table,
            None => Show::Nothing,
        },
    };
    let ended = outputs.run_guarded(gateway, &stop, guard, |_| {});
    std::process::exit(ended.is_err().into());
}

/// A gateway whose discipline can be replaced by one with a fault.
struct Faulty {
    gateway: Subject,
    control: PathBuf,
}

impl Faulty {
    fn start(name: &str, stderr: Stdio) -> Option<Self> {
        let id = std::process::id();
        let control = std::env::temp_dir().join(format!("asymq-faulty-{name}-{id}.sock"));
        // A killed gateway leaves its socket behind.
        let _ = fs::remove_file(&control);
        let gateway = Subject::start(Start {
            flags: &["--control", control.to_str().unwrap()],
            stderr,
            ..Start::default()
        })?;
        Some(Self { gateway, control })
    }

    /// Replaces the discipline by one that fails at its first frame.
    fn breaks(&self, qdisc: &str) {
        // The gateway may end before it answers.
        let _ = change(&self.control, qdisc);
        send(&self.gateway.place.home, &[numbered(1, 60)]);
    }

    fn gro(&self, on: bool) -> bool {
        let middle = &self.gateway.place.middle;
        middle.run(|| set_feature("wan", Feature::Gro, on)).unwrap()
    }
}

/// Checks that a service manager counts the exit status as a failure.
#[track_caller]
fn is_failure(status: ExitStatus) {
    assert!(!status.success(), "{status}");
    assert_ne!(status.signal(), Some(libc::SIGTERM));
    assert_ne!(status.signal(), Some(libc::SIGKILL));
}

#[test]
fn a_panic_of_the_forwarding_loop_is_logged_and_ends_the_process_within_a_second() {
    let Some(mut faulty) = Faulty::start("panic", Stdio::piped()) else {
        return;
    };
    faulty.gateway.flows();
    let started = Instant::now();
    faulty.breaks("red");
    let status = faulty.gateway.ends_within(Duration::from_secs(5));
    assert!(started.elapsed() < Duration::from_secs(3), "{started:?}");
    assert_eq!(status.signal(), Some(libc::SIGABRT));
    let mut log = String::new();
    let mut stderr = faulty.gateway.child.stderr.take().unwrap();
    stderr.read_to_string(&mut log).unwrap();
    let line = log.lines().find(|line| line.contains("internal error"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(line.starts_with("asymq gateway: internal error, gateway ends: "));
    assert!(
        line.ends_with("this discipline panics, as the test wants"),
        "{line}"
    );
}

#[test]
fn a_panic_ends_the_process_with_any_standard_error() {
    let (stalled, _reader) = stalled_pipe();
    for stderr in [full_disk(), dead_pipe(), stalled] {
        let Some(mut faulty) = Faulty::start("unheard", stderr) else {
            return;
        };
        faulty.breaks("red");
        is_failure(faulty.gateway.ends_within(Duration::from_secs(5)));
    }
}

#[test]
fn a_panic_beside_the_forwarding_loop_ends_the_process() {
    let Some(mut faulty) = Faulty::start("beside", Stdio::null()) else {
        return;
    };
    faulty.breaks("panic");
    is_failure(faulty.gateway.ends_within(Duration::from_secs(5)));
}

#[test]
fn one_that_hangs_ends_at_sigterm_after_the_drain_time() {
    let Some(mut faulty) = Faulty::start("hang", Stdio::null()) else {
        return;
    };
    faulty.gateway.flows();
    faulty.breaks("acc");
    faulty.gateway.signal("TERM");
    is_failure(faulty.gateway.ends_within(END));
}

#[test]
fn offloads_are_given_back_however_it_ends() {
    for (qdisc, signal) in [("sad", true), ("red", false), ("acc", true)] {
        let Some(mut faulty) = Faulty::start("offloads", Stdio::null()) else {
            return;
        };
        // Simulates a gateway that has restored all settings.
        faulty.gateway.stops();
        faulty.gro(true);
        let Faulty { gateway, control } = &faulty;
        let again = gateway.start_again(Start {
            flags: &["--control", control.to_str().unwrap()],
            stderr: Stdio::null(),
            ..Start::default()
        });
        faulty.gateway = again;
        faulty.breaks(qdisc);
        if signal {
            faulty.gateway.signal("TERM");
        }
        faulty.gateway.ends_within(END);
        assert!(faulty.gro(true), "{qdisc}: GRO was off");
    }
}

/// Closing a socket makes the kernel wait for all processors, which takes seconds on a busy machine. The guard would
/// then abort a gateway that ends correctly.
#[test]
fn packet_sockets_are_left_to_the_end_of_the_process() {
    let Some(mut faulty) = Faulty::start("sockets", Stdio::null()) else {
        return;
    };
    let id = faulty.gateway.child.id();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let strace = Command::new("strace")
        .args(["-f", "-q", "-y", "-e", "trace=close,exit_group", "-p"])
        .arg(id.to_string())
        .arg("-o")
        .arg(trace.path())
        .spawn();
    let Ok(mut strace) = strace else {
        eprintln!("skipped: no strace");
        return;
    };
    wait_for("strace at every thread", DEADLINE, || {
        let mut threads = fs::read_dir(format!("/proc/{id}/task")).unwrap();
        threads.all(|thread| {
            let status = thread.and_then(|thread| fs::read_to_string(thread.path().join("status")));
            !status.unwrap().contains("TracerPid:\t0")
        })
    });
    // Each interface has two sockets.
    let sockets = fs::read_to_string(format!("/proc/{id}/net/packet")).unwrap();
    let inodes = sockets.lines().skip(1).map(|line| {
        let inode = line.split_whitespace().nth(8).unwrap();
        format!("[{inode}]")
    });
    let inodes: Vec<String> = inodes.collect();
    assert!(inodes.len() >= 4, "{sockets}");
    faulty.gateway.stops();
    strace.wait().unwrap();
    let trace = fs::read_to_string(trace.path()).unwrap();
    assert!(trace.contains("exit_group(0)"), "{trace}");
    let closed = inodes.iter().filter(|inode| trace.contains(*inode));
    assert_eq!(closed.count(), 0, "{trace}");
}

#[test]
fn the_service_manager_hears_from_the_forwarding_loop_until_it_hangs() {
    let id = std::process::id();
    for hangs in [false, true] {
        let path = std::env::temp_dir().join(format!("asymq-notify-{id}-{hangs}.sock"));
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(DEADLINE)).unwrap();
        let hear = || loop {
            let mut words = [0; 64];
            let len = manager.recv(&mut words)?;
            let heard = String::from_utf8(words[..len].to_vec()).unwrap();
            // Between two watchdog messages, the gateway may send status lines.
            if !heard.starts_with("STATUS=") {
                return std::io::Result::Ok(heard);
            }
        };
        let limits = format!(
            "NOTIFY_SOCKET={} WATCHDOG_USEC=200000 WATCHDOG_PID=$$",
            path.display()
        );
        let control = std::env::temp_dir().join(format!("asymq-watchdog-{id}.sock"));
        let Some(mut gateway) = Subject::start(Start {
            flags: &["--control", control.to_str().unwrap()],
            limits: &format!("export {limits};"),
            ..Start::default()
        }) else {
            return;
        };
        assert_eq!(hear().unwrap(), "READY=1");
        let mut beats = 0;
        wait_for("five signs of life", DEADLINE, || {
            beats += u32::from(hear().unwrap() == "WATCHDOG=1");
            beats == 5
        });
        if hangs {
            let _ = change(&control, "acc");
            send(&gateway.place.home, &[numbered(1, 60)]);
            manager
                .set_read_timeout(Some(Duration::from_secs(1)))
                .unwrap();
            let silent = || hear().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            wait_for("a second of silence", DEADLINE, silent);
        } else {
            gateway.signal("TERM");
            let mut last = String::new();
            wait_for("the word that it stops", DEADLINE, || {
                last = hear().unwrap();
                last == "STOPPING=1"
            });
            gateway.ends_within(END);
        }
        let _ = fs::remove_file(path);
    }
}

#[test]
fn a_control_client_that_has_gone_costs_nothing() {
    let Some(mut faulty) = Faulty::start("gone", Stdio::null()) else {
        return;
    };
    for _ in 0..100 {
        let mut stream = UnixStream::connect(&faulty.control).unwrap();
        stream.write_all(b"qdisc = \"sad\"").unwrap();
    }
    faulty.gateway.flows();
    assert!(change(&faulty.control, "fq").unwrap().starts_with("ok: "));
    faulty.gateway.stops();
}
