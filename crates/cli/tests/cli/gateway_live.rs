//! A running `asymq gateway`, changed from outside. Tests that need root print a note and pass without it.

use crate::common::wait::{DEADLINE, wait_for};
use asymq_gateway::net::{Netns, Network, VethEnd};
use asymq_gateway::request_status;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use tempfile::TempDir;

/// A gateway in a network namespace, stopped when dropped.
struct Running {
    child: Child,
    said: Receiver<String>,
    _middle: Netns,
    _far: Netns,
}

impl Running {
    fn start(arguments: &[&str]) -> Option<Self> {
        let (Ok(middle), Ok(far)) = (Netns::new(), Netns::new()) else {
            eprintln!("skipped: a network namespace cannot be made");
            return None;
        };
        let child = middle.run(|| {
            let mut network = Network::open()?;
            for (index, name, peer) in [(11, "lan", "eth1"), (12, "wan", "eth2")] {
                let end = |name, mac| VethEnd {
                    name,
                    index,
                    mac: [2, 0, 0, 0, mac, index as u8],
                };
                network.add_veth(end(name, 0), end(peer, 1), far.as_fd())?;
                network.set_up(index)?;
            }
            asymq()
                .arg("gateway")
                .args(arguments)
                .stderr(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
        });
        let mut child = child.unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            // The receiver may have ended.
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(say.send(line)));
        });
        Some(Self {
            child,
            said,
            _middle: middle,
            _far: far,
        })
    }

    /// Starts a gateway between `lan` and `wan` with these flags. Returns it with the path of its control socket, in a
    /// folder that is removed with it.
    fn with_socket(flags: &str) -> Option<(Self, TempDir, String)> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket").to_str().unwrap().to_owned();
        // A killed gateway leaves its socket behind.
        drop(UnixListener::bind(&socket).unwrap());
        let arguments = "--lan lan --wan wan --control".split(' ').chain([&*socket]);
        let arguments: Vec<&str> = arguments.chain(flags.split(' ')).collect();
        Some((Self::start(&arguments)?, folder, socket))
    }

    /// Returns the next log line. Skips the lines about ports at the start.
    fn hears(&self) -> String {
        loop {
            let line = self.said.recv_timeout(DEADLINE).expect("a line");
            if !line.contains(": disabled ") && !line.contains("sends by") {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asymq() -> Command {
    Command::new(env!("CARGO_BIN_EXE_asymq"))
}

fn set(socket: &str, flags: &str) -> Output {
    let flags = flags.split_whitespace();
    let set = ["gateway", "set", "--control", socket];
    asymq().args(set).args(flags).output().unwrap()
}

fn line(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

#[test]
fn the_control_socket_applies_a_change_or_returns_one_line_of_error() {
    let flags = "--up 1mbit --down 10mbit";
    let Some((mut gateway, _folder, socket)) = Running::with_socket(flags) else {
        return;
    };
    let socket = socket.as_str();
    wait_for("an answer on the control socket", DEADLINE, || {
        set(socket, "--qdisc sad").status.success()
    });
    for flags in [
        "--qdisc wrr --data-share 0.3 --ack-queue sad --gamma 1.5",
        "--qdisc-down afvq --up 2mbit --buffer 80p",
        "--qdisc-down none --overhead pppoe-vcmux ether-vlan",
        "--overhead -4 --ptm",
        "--role headend --regenerate 2 --regenerate-spacing at-once --mss 1448b",
    ] {
        let answer = set(socket, flags);
        assert_eq!(line(&answer.stderr), "", "{flags}");
        assert_eq!(
            line(&answer.stdout),
            "0 packets moved, 0 dropped",
            "{flags}"
        );
        assert_eq!(answer.status.code(), Some(0), "{flags}");
    }
    for (socket, flags, error) in [
        (
            socket,
            "--up 1mbitt",
            "--up 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit",
        ),
        (socket, "--lan eth7", "--lan: unknown argument; "),
        (
            "/nowhere/socket",
            "--up 1mbit",
            "--control /nowhere/socket: no gateway listens there; ",
        ),
    ] {
        let answer = set(socket, flags);
        let said = line(&answer.stderr);
        assert!(said.starts_with(error), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert_eq!(answer.status.code(), Some(2), "{flags}");
    }
    // Sends requests as text, without asymq's client.
    for (request, answer) in [
        (
            "qdisc = \"vaq\"\nrole = \"away\"\n",
            "error: request:2: role = away: unknown; use home or headend\n",
        ),
        (
            "up = \"1bit\"\n",
            "error: request:1: up = 1bit: out of range; use 8kbit to 100gbit\n",
        ),
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert_eq!(said, answer);
    }
    gateway.signal("TERM");
    assert_eq!(
        gateway.hears(),
        "asymq gateway: stopped, the queue is empty"
    );
    assert!(gateway.child.wait().unwrap().success());
    assert!(!fs::exists(socket).unwrap(), "the socket goes with it");
}

#[test]
fn an_interrupted_trial_prints_its_result_and_restores_settings() {
    let flags = "--up 1mbit --data-share 0.3 --qdisc wrr";
    let Some((_gateway, _folder, socket)) = Running::with_socket(flags) else {
        return;
    };
    let socket = socket.as_str();
    let status = || request_status(Path::new(socket)).unwrap_or_default();
    wait_for("the gateway's status", DEADLINE, || {
        status().contains("wrr")
    });
    let settings = || status().split("\"snapshot\"").next().unwrap().to_owned();
    let before = settings();
    for (ends, end) in [
        ("", "\"interrupted\""),
        ("--up 2mbit", "\"changed_by_others\""),
    ] {
        let trial = asymq()
            .args(["gateway", "try", "--control", socket, "--hold", "2s"])
            .args(["--settle", "1s", "--data-share", "0.7", "--gamma", "2"])
            .arg("--json")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("the tried setting", DEADLINE, || settings().contains("0.7"));
        assert!(settings().contains("gamma"), "{}", settings());
        match ends {
            "" => {
                let id = trial.id().to_string();
                let kill = Command::new("kill").args(["-s", "INT", &id]).status();
                assert!(kill.unwrap().success());
            }
            flags => assert!(set(socket, flags).status.success()),
        }
        let answer = trial.wait_with_output().unwrap();
        assert!(answer.status.success());
        let answer = String::from_utf8(answer.stdout).unwrap();
        let answer: String = answer.split_whitespace().collect();
        assert!(answer.contains(&format!("\"ended\":{end}")), "{answer}");
        assert!(
            answer.contains("\"names\":[\"wrrwithdata-share0.3,gammadefault\""),
            "{answer}"
        );
        match ends {
            "" => assert_eq!(settings(), before),
            _ => assert!(settings().contains("2mbit"), "another's change stays"),
        }
    }
}

#[test]
fn a_trial_without_settings_compares_with_no_shaping_in_both_directions() {
    let flags = "--up 1mbit --down 10mbit";
    let Some((_gateway, _folder, socket)) = Running::with_socket(flags) else {
        return;
    };
    let socket = socket.as_str();
    let status = || request_status(Path::new(socket)).unwrap_or_default();
    let settings = || status().split("\"snapshot\"").next().unwrap().to_owned();
    wait_for("the gateway's settings", DEADLINE, || {
        settings().contains("10mbit")
    });
    let mut trial = asymq()
        .args(["gateway", "try", "--control", socket, "--hold", "2s"])
        .args(["--settle", "1s"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("both directions without shaping", DEADLINE, || {
        settings().matches("none").count() == 2
    });
    let id = trial.id().to_string();
    let kill = Command::new("kill").args(["-s", "INT", &id]).status();
    assert!(kill.unwrap().success());
    assert!(trial.wait().unwrap().success());
}

#[test]
fn sighup_reads_the_settings_again_and_a_wrong_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (
        folder.path().join("asymq.toml"),
        folder.path().join("socket"),
    );
    let (file, socket) = (file.to_str().unwrap(), socket.to_str().unwrap());
    let write = |more: &str| {
        let common = format!("lan = \"lan\"\nwan = \"wan\"\ncontrol = \"{socket}\"\n");
        fs::write(
            file,
            format!("{common}up = \"1mbit\"\ndown = \"10mbit\"\n{more}"),
        )
        .unwrap();
    };
    write("");
    let Some(mut gateway) = Running::start(&["--config", file, "--buffer", "60p"]) else {
        return;
    };
    // The gateway answers only when it runs. From then on it also handles signals.
    wait_for("an answer on the control socket", DEADLINE, || {
        set(socket, "--qdisc vaq").status.success()
    });
    for (more, said) in [
        (
            "qdisc = \"sad\"\natm = true\noverhead = 44\n",
            "settings reloaded: 0 packets moved, 0 dropped",
        ),
        (
            "qdisc = \"sadd\"\n",
            "{file}:6: qdisc = sadd: unknown; did you mean `sad`",
        ),
        (
            "\ndata-shar = 0.3\n",
            "{file}:7: data-shar: unknown key; did you mean `data-share`?; settings unchanged",
        ),
        (
            "overhead = \"docsys\"\n",
            "{file}:6: overhead = docsys: unknown keyword 'docsys'",
        ),
        (
            "metrics = \"127.0.0.1:0\"\n",
            "settings reloaded: 0 packets moved, 0 dropped; restart for: metrics",
        ),
    ] {
        write(more);
        gateway.signal("HUP");
        let expected = format!("asymq gateway: {}", said.replace("{file}", file));
        let heard = gateway.hears();
        assert!(heard.starts_with(&expected), "{heard}\n{expected}");
    }
    // Reading a pipe would block the thread that also answers on the socket.
    fs::remove_file(file).unwrap();
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
    gateway.signal("HUP");
    let heard = gateway.hears();
    let expected = "not a regular file; write the settings to one; settings unchanged";
    assert!(heard.ends_with(expected), "{heard}");
    assert!(set(socket, "--qdisc aq").status.success());
    gateway.signal("INT");
    assert_eq!(
        gateway.hears(),
        "asymq gateway: stopped, the queue is empty"
    );
    // A gateway that is killed before it restores its interfaces leaves its journal.
    assert!(gateway.child.wait().unwrap().success());
}
