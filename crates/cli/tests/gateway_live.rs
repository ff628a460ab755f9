//! A running `asymq gateway`, changed from outside. Needs root; says so and passes otherwise.

use asymq_gateway::net::{Netns, Network, VethEnd};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A gateway in a network namespace, stopped when dropped.
struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
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
        let said = BufReader::new(child.stderr.take().unwrap());
        Some(Self {
            child,
            said,
            _middle: middle,
            _far: far,
        })
    }

    /// The next line that it says and that is not about offloads.
    fn hears(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended");
            if !line.contains("switched") {
                return line.trim_end().to_owned();
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

fn wait_for(path: &str) {
    for _ in 0..500 {
        if fs::exists(path).unwrap() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no {path}");
}

#[test]
fn the_control_socket_changes_it_or_says_in_one_line_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let socket = socket.to_str().unwrap();
    // Left behind by one that was killed.
    drop(std::os::unix::net::UnixListener::bind(socket).unwrap());
    let flags = "--lan lan --wan wan --up 1mbit --down 10mbit --control";
    let mut flags: Vec<&str> = flags.split(' ').collect();
    flags.push(socket);
    let Some(mut gateway) = Running::start(&flags) else {
        return;
    };
    let mut answer = set(socket, "--qdisc sad");
    for _ in 0..500 {
        if answer.status.success() {
            break;
        }
        // It is not there yet.
        std::thread::sleep(std::time::Duration::from_millis(10));
        answer = set(socket, "--qdisc sad");
    }
    for flags in [
        "--qdisc wrr --weights 0.3 --ack-queue sad --gamma 1.5",
        "--qdisc-down afvq --up 2mbit --buffer 80p",
        "--qdisc-down none --overhead pppoe-vcmux ether-vlan",
        "--overhead -4 --ptm",
        "--role headend --regenerate 2 --at-once --mss 1448b",
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
            "--control /nowhere/socket: No such file or directory",
        ),
    ] {
        let answer = set(socket, flags);
        let said = line(&answer.stderr);
        assert!(said.starts_with(error), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert_eq!(answer.status.code(), Some(2), "{flags}");
    }
    // As text, without our client.
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    std::io::Write::write_all(&mut stream, b"qdisc = \"vaq\"\nrole = \"away\"\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(
        said,
        "error: request:2: role = away: unknown; use home or headend\n"
    );
    gateway.signal("TERM");
    assert_eq!(
        gateway.hears(),
        "asymq gateway: stopped, nothing left behind"
    );
    assert!(gateway.child.wait().unwrap().success());
    assert!(!fs::exists(socket).unwrap(), "the socket goes with it");
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
    wait_for(socket);
    // The answer comes only when it runs, and so minds signals.
    assert!(set(socket, "--qdisc vaq").status.success());
    for (more, said) in [
        (
            "qdisc = \"sad\"\natm = true\noverhead = 44\n",
            "{file} read again, 0 packets moved, 0 dropped",
        ),
        (
            "qdisc = \"sadd\"\n",
            "{file}:6: qdisc = sadd: unknown; use droptail, red, acc",
        ),
        (
            "\nweight = 0.3\n",
            "{file}:7: weight: unknown key; did you mean weights?; the settings stay as they were",
        ),
        (
            "overhead = \"docsys\"\n",
            "{file}:6: overhead = docsys: unknown keyword 'docsys'",
        ),
        (
            "metrics = \"127.0.0.1:0\"\n",
            "{file} read again, 0 packets moved, 0 dropped; takes a restart: metrics",
        ),
    ] {
        write(more);
        gateway.signal("HUP");
        let expected = format!("asymq gateway: {}", said.replace("{file}", file));
        let heard = gateway.hears();
        assert!(heard.starts_with(&expected), "{heard}\n{expected}");
    }
    assert!(set(socket, "--qdisc aq").status.success());
    gateway.signal("INT");
    assert_eq!(
        gateway.hears(),
        "asymq gateway: stopped, nothing left behind"
    );
}
