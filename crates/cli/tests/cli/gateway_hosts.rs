//! `asymq gateway` on a host: killed, supervised, checked, installed and removed. Tests that need root print a note
//! and pass without it.

use crate::common::wait::{DEADLINE, wait_for};
use asymq_gateway::net::{
    BypassRule, Feature, Netns, Network, VethEnd, add_bypass, feature, remove_bypass, set_feature,
};
use asymq_gateway::{PacketIo as _, Port};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A network namespace with `lan` and `wan`, connected to another namespace.
struct Place {
    middle: Netns,
    far: Netns,
}

impl Place {
    fn new() -> Option<Self> {
        let (Ok(middle), Ok(far)) = (Netns::new(), Netns::new()) else {
            eprintln!("skipped: a network namespace cannot be made");
            return None;
        };
        let place = Self { middle, far };
        place.connect("lan", 11);
        place.connect("wan", 12);
        Some(place)
    }

    fn connect(&self, name: &str, index: u32) {
        let peer = format!("eth{index}");
        let end = |name, mac| VethEnd {
            name,
            index,
            mac: [2, 0, 0, 0, mac, index as u8],
        };
        let connect = || {
            let mut network = Network::open()?;
            network.add_veth(end(name, 0), end(&peer, 1), self.far.as_fd())?;
            network.set_up(index)
        };
        self.middle.run(connect).unwrap();
        self.far.run(|| Network::open()?.set_up(index)).unwrap();
    }

    fn change(&self, change: impl FnOnce(&mut Network) -> io::Result<()> + Send) {
        let change = || change(&mut Network::open()?);
        self.middle.run(change).unwrap();
    }

    fn spawn(&self, command: &mut Command) -> Running {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(self.middle.run(|| command.spawn()).unwrap())
    }

    fn output(&self, command: &mut Command) -> Output {
        self.middle.run(|| command.output()).unwrap()
    }
}

/// Emulates systemd's socket.
struct Notify {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Notify {
    fn new(folder: &Path) -> Self {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { path, socket }
    }

    #[track_caller]
    fn hear(&self, words: &str) {
        wait_for(words, DEADLINE, || {
            let mut message = [0; 256];
            match self.socket.recv(&mut message) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
                received => text(&message[..received.expect("a message")]).contains(words),
            }
        });
    }
}

/// A child process that is killed when dropped.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn gateway(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asymq"));
    command.arg("gateway").args(line.split_whitespace());
    command
}

const FLAGS: &str = "--lan lan --wan wan --up 1mbit --down 10mbit --overhead docsis";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

/// Settings of an interface that a gateway changes.
fn settings(place: &Place, name: &str) -> [String; 5] {
    let read = || {
        let sysctl = |path: &str| {
            let path = format!("/proc/sys/net/{}", path.replace("{}", name));
            fs::read_to_string(path).unwrap().trim().to_owned()
        };
        let link = Network::open()?.link_named(name)?.unwrap();
        Ok([
            sysctl("ipv6/conf/{}/disable_ipv6"),
            sysctl("ipv6/conf/{}/accept_ra"),
            sysctl("ipv6/conf/{}/addr_gen_mode"),
            feature(name, Feature::Gro)?.to_string(),
            (link.flags & libc::IFF_NOARP == 0).to_string(),
        ])
    };
    place.middle.run(read).unwrap()
}

/// Numbered frames between two ports in `far`, two per millisecond.
struct Stream {
    sender: Port,
    receiver: Port,
    sent: u32,
    arrived: Vec<(u32, Instant)>,
}

impl Stream {
    fn new(place: &Place, from: &str, to: &str) -> Self {
        let open = |name| place.far.run(|| Ok(Port::open(name).unwrap())).unwrap();
        Self {
            sender: open(from),
            receiver: open(to),
            sent: 0,
            arrived: Vec::new(),
        }
    }

    fn step(&mut self) {
        const TYPE: [u8; 2] = [0x88, 0xb5];
        let mut frame = [0; 100];
        // Unused addresses.
        frame[..12].copy_from_slice(&[2, 9, 9, 9, 9, 9, 2, 8, 8, 8, 8, 8]);
        frame[12..14].copy_from_slice(&TYPE);
        self.sent += 1;
        frame[14..18].copy_from_slice(&self.sent.to_be_bytes());
        self.sender.send(&frame);
        self.sender.flush().unwrap();
        let arrived = &mut self.arrived;
        let mut keep = |frame: &[u8]| {
            if frame[12..14] == TYPE {
                let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
                arrived.push((number, Instant::now()));
            }
        };
        self.receiver.receive(usize::MAX, &mut keep).unwrap();
    }

    /// Returns the longest time without an arrival since `from`, the number of missing frames, and the number of
    /// duplicate frames.
    fn holes(&self, from: Instant) -> (Duration, usize, usize) {
        let times = self
            .arrived
            .iter()
            .map(|(_, at)| *at)
            .filter(|at| *at >= from);
        let (mut last, mut longest) = (from, Duration::ZERO);
        for at in times {
            longest = longest.max(at - last);
            last = at;
        }
        longest = longest.max(Instant::now() - last);
        let mut numbers: Vec<u32> = self.arrived.iter().map(|(number, _)| *number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let span = numbers.last().map_or(0, |last| last - numbers[0] + 1);
        (longest, span as usize - numbers.len(), all - numbers.len())
    }
}

#[test]
fn with_fail_open_frames_pass_through_stop_kill_and_start_of_the_gateway() {
    let Some(place) = Place::new() else { return };
    if !kernel_can_bridge(&place) {
        eprintln!("skipped: this kernel has no nf_tables that forward at ingress");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let before = [settings(&place, "lan"), settings(&place, "wan")];
    let notify = Notify::new(folder.path());
    let start = || {
        let flags = FLAGS.replace("--up 1mbit", "--up 100mbit");
        let mut command = gateway(&format!("{flags} --fail-open --state {state}"));
        let gateway = place.spawn(command.env("NOTIFY_SOCKET", &notify.path));
        notify.hear("READY=1");
        gateway
    };
    let mut running = Some(start());
    let mut streams =
        [("eth11", "eth12"), ("eth12", "eth11")].map(|(from, to)| Stream::new(&place, from, to));
    let flow = |streams: &mut [Stream; 2], time: u64| {
        let until = Instant::now() + Duration::from_millis(time);
        while Instant::now() < until {
            streams.iter_mut().for_each(Stream::step);
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    flow(&mut streams, 300);
    let begin = Instant::now();
    for end in ["KILL", "TERM", "KILL"] {
        running.take().unwrap().signal(end);
        // Longer than the period in which frames may be lost.
        flow(&mut streams, 1500);
        let starts = std::thread::scope(|scope| {
            let starts = scope.spawn(start);
            while !starts.is_finished() {
                flow(&mut streams, 5);
            }
            starts.join().unwrap()
        });
        running = Some(starts);
        flow(&mut streams, 300);
    }
    for stream in &streams {
        let (silence, lost, twice) = stream.holes(begin);
        println!(
            "{} sent: silent for {silence:?}, {lost} lost, {twice} twice",
            stream.sent
        );
        assert!(silence < Duration::from_secs(1), "{silence:?}");
        assert!(
            twice < 40,
            "{twice} twice: the kernel forwards beside the gateway"
        );
    }
    running.take().unwrap().signal("TERM");
    flow(&mut streams, 500);
    assert_ne!([settings(&place, "lan"), settings(&place, "wan")], before);
    let restored = place.output(&mut gateway(&format!("restore --state {state}")));
    assert!(restored.status.success());
    assert_eq!([settings(&place, "lan"), settings(&place, "wan")], before);
    streams.iter_mut().for_each(|stream| stream.arrived.clear());
    flow(&mut streams, 200);
    assert!(
        streams.iter().all(|stream| stream.arrived.len() < 5),
        "nothing passes after restore"
    );
}

fn kernel_can_bridge(place: &Place) -> bool {
    let way = |from, name, to| BypassRule { from, name, to };
    let bridge = || {
        add_bypass([way(11, "lan", 12), way(12, "wan", 11)])?;
        remove_bypass(11)?;
        remove_bypass(12)
    };
    place.middle.run(bridge).is_ok()
}

#[test]
fn a_killed_gateways_changes_are_restored_by_the_next_one_or_by_restore() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let all = || [settings(&place, "lan"), settings(&place, "wan")];
    place
        .middle
        .run(|| set_feature("wan", Feature::Gro, true))
        .unwrap();
    let before = all();
    let notify = Notify::new(folder.path());
    let start = || {
        let mut command = gateway(&format!("{FLAGS} --state {state}/state"));
        let running = place.spawn(command.env("NOTIFY_SOCKET", &notify.path));
        notify.hear("READY=1");
        let silent = all().iter().all(|of| of[0] == "1" && of[4] == "false");
        assert!(silent, "{:?}", all());
        running
    };
    let kill = || {
        let mut running = start();
        running.0.kill().unwrap();
        running.0.wait().unwrap();
        assert_ne!(all(), before, "the state has not changed");
    };

    kill();
    let mut next = start();
    next.signal("TERM");
    assert!(next.0.wait().unwrap().success());
    assert_eq!(all(), before);

    kill();
    let restore = place.output(&mut gateway(&format!("restore --state {state}/state")));
    let said = text(&restore.stdout);
    assert!(restore.status.success(), "{}", text(&restore.stderr));
    assert!(said.contains("lan: ") && said.contains("wan: "), "{said}");
    assert_eq!(all(), before);
    let again = place.output(&mut gateway(&format!("restore --state {state}/state")));
    assert_eq!((text(&again.stdout), again.status.code()), ("", Some(0)));
}

#[test]
fn a_gateway_of_other_interfaces_restores_those_of_a_killed_one_at_its_start() {
    let Some(place) = Place::new() else { return };
    place.connect("lan2", 13);
    place.connect("wan2", 14);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let notify = Notify::new(folder.path());
    let all = || [settings(&place, "lan"), settings(&place, "wan")];
    let before = all();
    let start = |flags: &str| {
        let mut command = gateway(&format!("{flags} --state {state}/state"));
        let running = place.spawn(command.env("NOTIFY_SOCKET", &notify.path));
        notify.hear("READY=1");
        running
    };
    let mut killed = start(FLAGS);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    assert_ne!(all(), before, "the state has not changed");

    let running = start("--lan lan2 --wan wan2 --up 1mbit");
    assert_eq!(all(), before);
    assert_eq!(settings(&place, "lan2")[0], "1", "its own stay silent");
    // A third gateway cannot take an interface of a running one either.
    let refused = "--lan lan2 --wan wan --up 1mbit";
    let third = place.output(&mut gateway(&format!("{refused} --state {state}/state")));
    assert_eq!(third.status.code(), Some(2));
    assert_eq!(settings(&place, "lan2")[0], "1");
    assert_eq!(all(), before);
    drop(running);
}

#[test]
fn a_refused_gateway_restores_the_interfaces_of_a_killed_one() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    let notify = Notify::new(folder.path());
    let start = format!("{FLAGS} --state {state}/state");
    let before = settings(&place, "lan");
    let mut command = gateway(&start);
    let mut killed = place.spawn(command.env("NOTIFY_SOCKET", &notify.path));
    notify.hear("READY=1");
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    // The owner now uses the interface for another purpose, with ARP disabled.
    place.change(|network| network.add_address(11, [192, 0, 2, 1], 24));
    let refused = place.output(&mut gateway(&start));
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(settings(&place, "lan"), before);
}

#[test]
fn a_gateway_whose_terminal_goes_gives_everything_back() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let notify = Notify::new(folder.path());
    let all = || [settings(&place, "lan"), settings(&place, "wan")];
    let before = all();
    let line = format!("{FLAGS} --state {}", folder.path().display());
    let mut running = place.spawn(gateway(&line).env("NOTIFY_SOCKET", &notify.path));
    notify.hear("READY=1");
    assert_ne!(all(), before);
    running.signal("HUP");
    assert!(running.0.wait().unwrap().success());
    assert_eq!(all(), before);
}

#[test]
fn after_a_pause_earlier_frames_are_discarded_and_counted() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let notify = Notify::new(folder.path());
    let control = folder.path().join("control");
    let line = format!(
        "{FLAGS} --state {0}/state --control {0}/control",
        folder.path().display()
    );
    // 100 frames take more than a second.
    let mut command = gateway(&line.replace("--up 1mbit", "--up 64kbit"));
    let running = place.spawn(command.env("NOTIFY_SOCKET", &notify.path));
    notify.hear("READY=1");
    let mut stream = Stream::new(&place, "eth11", "eth12");
    (0..100).for_each(|_| stream.step());
    std::thread::sleep(Duration::from_millis(100));
    running.signal("STOP");
    let state = format!("/proc/{}/stat", running.0.id());
    wait_for("the process to stop", DEADLINE, || {
        std::fs::read_to_string(&state).is_ok_and(|stat| stat.contains(") T "))
    });
    // The queue already holds some of the first frames; the ring holds these.
    (0..100).for_each(|_| stream.step());
    std::thread::sleep(Duration::from_secs(7));
    stream.step();
    let before = stream.sent;
    stream.arrived.clear();
    running.signal("CONT");
    wait_for("a frame of after the pause", DEADLINE, || {
        stream.step();
        stream.arrived.iter().any(|(number, _)| *number > before)
    });
    let old = stream
        .arrived
        .iter()
        .filter(|(number, _)| *number <= before);
    assert_eq!(old.count(), 0);
    let status = asymq_gateway::request_status(&control).unwrap();
    let stale = status.split("\"stale\":").nth(1).unwrap();
    let stale: u32 = stale
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((101..=201).contains(&stale), "{stale}: {status}");
}

#[test]
fn systemd_gets_ready_without_an_interface_and_watchdog_messages() {
    let Some(place) = Place::new() else { return };
    place.change(|network| network.delete(12));
    let folder = tempfile::tempdir().unwrap();
    let notify = Notify::new(folder.path());
    let state = folder.path().join("state");
    let line = format!("{FLAGS} --state {}", state.display());
    let mut command = gateway(&line);
    command.env("NOTIFY_SOCKET", &notify.path);
    let running = place.spawn(command.env("WATCHDOG_USEC", "200000"));
    notify.hear("READY=1");
    notify.hear("STATUS=waiting for wan");
    notify.hear("WATCHDOG=1");
    place.connect("wan", 12);
    notify.hear("STATUS=forwarding between lan and wan");
    notify.hear("WATCHDOG=1");
    running.signal("TERM");
    notify.hear("STOPPING=1");
}

#[test]
fn a_second_gateway_and_an_interface_in_use_are_refused_with_exit_code_2() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let line = format!("{FLAGS} --state {}", folder.path().display());
    let refused = |words: &str| {
        let output = place.output(&mut gateway(&line));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    let first = place.spawn(&mut gateway(&line));
    wait_for("silent interfaces", DEADLINE, || {
        ["lan", "wan"]
            .iter()
            .all(|name| settings(&place, name)[0] == "1")
    });
    refused("--lan lan: another gateway holds it; ");
    drop(first);
    place.change(|network| network.add_address(11, std::net::Ipv4Addr::new(192, 0, 2, 1), 24));
    refused("--lan lan: has the address 192.0.2.1/24, ");
}

#[test]
fn a_wifi_port_is_refused_by_the_gateway_and_by_check_with_the_reason() {
    let Some(place) = Place::new() else { return };
    // A fake sysfs entry of a Wi-Fi interface, in the command's own mount namespace.
    let wifi =
        "mount -t tmpfs none /sys/class/net && mkdir -p /sys/class/net/wan/phy80211 && exec \"$@\"";
    let run = |line: &str| {
        let command = gateway(line);
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", wifi, "sh"]);
        place.output(unshare.arg(command.get_program()).args(command.get_args()))
    };
    let reason = "wan: is Wi-Fi, which carries only the frames of one station";
    let output = run(FLAGS);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.starts_with(&format!("--wan {reason}")), "{said}");
    let output = run(&format!("check {FLAGS}"));
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.contains(&reason.replace("wan: ", "wrong: --wan wan: ")),
        "{said}"
    );
}

#[test]
fn rates_that_no_gateway_keeps_are_refused_at_the_start_in_the_file_and_live() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asymq.toml");
    fs::write(&file, "lan = \"lan\"\nwan = \"wan\"\nup = \"1bit\"\n").unwrap();
    let file = file.display();
    for (line, error) in [
        (
            "--lan a --wan b --up 1bit --down 10mbit".to_owned(),
            "--up 1bit: out of range; use 8kbit to 100gbit".to_owned(),
        ),
        (
            "set --control /nowhere --down 101gbit".to_owned(),
            "--down 101gbit: out of range; use 8kbit to 100gbit".to_owned(),
        ),
        (
            format!("--config {file}"),
            format!("{file}:3: up = 1bit: out of range; use 8kbit to 100gbit"),
        ),
    ] {
        let output = gateway(&line).output().unwrap();
        assert_eq!(text(&output.stderr), error, "{line}");
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
}

#[test]
fn check_names_every_fault_with_a_remedy() {
    let Some(place) = Place::new() else { return };
    let check = |flags: &str| {
        let output = place.output(&mut gateway(&format!("check {flags}")));
        let said = text(&output.stdout).to_owned();
        (said, output.status.code())
    };
    // The lateness of timers depends on the load of this machine.
    let wrong = |said: &str| {
        let lines = said.lines().filter(|line| line.starts_with("wrong: "));
        let lines = lines.filter(|line| !line.starts_with("wrong: timers"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    place
        .middle
        .run(|| set_feature("wan", Feature::Gro, true))
        .unwrap();
    let (said, _) = check(FLAGS);
    assert_eq!(wrong(&said), [""; 0], "{said}");
    assert!(
        said.contains("note: --wan wan: GRO enabled, which merges frames; leave it: "),
        "{said}"
    );

    place.change(|network| {
        network.add_address(11, std::net::Ipv4Addr::new(192, 0, 2, 1), 24)?;
        network.set_mtu(12, 1400)
    });
    let (said, code) = check("--lan lan --wan wan --up 20gbit --down 10mbit --atm");
    assert_eq!(code, Some(1), "{said}");
    let found = wrong(&said);
    for start in [
        "wrong: --lan lan: has the address 192.0.2.1/24, over which you may be logged in; on a router, use ",
        "wrong: --up 20gbit: lan runs at 10gbit, so the queue builds up in its driver; ",
        "wrong: --up 20gbit: wan runs at 10gbit, ",
        "wrong: --lan, --wan: longer frames are lost, because the MTUs differ: lan 1500, wan 1400; ",
        "wrong: --overhead: ATM cells are counted, but not the bytes that the line adds to a packet; use docsis for ",
    ] {
        assert!(
            found.iter().any(|line| line.starts_with(start)),
            "{start}\n{said}"
        );
    }
    assert_eq!(found.len(), 5, "{said}");

    place.change(|network| network.delete(11));
    let (json, code) = check(&format!("{FLAGS} --json"));
    let findings: serde_json::Value = serde_json::from_str(&json).unwrap();
    let findings = findings.as_array().unwrap();
    let absent = findings
        .iter()
        .find(|of| of["subject"] == "--lan lan")
        .unwrap();
    assert_eq!(absent["problem"], "no such interface");
    assert_eq!(absent["remedy"], "the interfaces are lo, wan");
    assert_eq!((absent["wrong"].as_bool(), code), (Some(true), Some(1)));
}

/// Runs the check in each setup of docs/router/which-way.md, in a new namespace.
#[test]
fn check_detects_the_setup_of_a_host_and_keeps_every_way_to_it() {
    type Setup = &'static [&'static str];
    let cases: [(&str, Setup, &str, &str); 5] = [
        (
            "box",
            &[
                "ip address add 10.9.9.9/24 dev mgmt",
                "ip route add default via 10.9.9.1 dev mgmt",
            ],
            "a box between router and modem: lan and wan have no address, mgmt has one for login",
            "sudo asymq gateway --lan lan --wan wan --up 950kbit --watch",
        ),
        (
            "router",
            &[
                "ip address add 192.168.1.1/24 dev lan",
                "ip address add 192.0.2.2/24 dev wan",
                "ip route add default via 192.0.2.1 dev wan",
                "sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'",
            ],
            "this box is the router: it forwards between lan, which has an address, and wan",
            "sudo asymq router --wan wan --up 950kbit",
        ),
        (
            "router",
            &[
                "ip address add 2001:db8::2/64 dev wan nodad",
                "ip address add 192.168.1.1/24 dev lan",
                "ip route add default via 2001:db8::1 dev wan",
                "sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'",
            ],
            "this box is the router: it forwards between lan",
            "sudo asymq router --wan wan --up 950kbit",
        ),
        (
            "open-wrt",
            &[
                "mount -t tmpfs none /etc",
                "touch /etc/openwrt_release",
                "ip address add 192.0.2.2/24 dev wan",
                "ip route add default via 192.0.2.1 dev wan",
            ],
            "this is a router with OpenWrt",
            "asymq import /etc/config/sqm",
        ),
        (
            "trying",
            &[
                "ip link delete lan",
                "ip address add 192.0.2.2/24 dev wan",
                "ip route add default via 192.0.2.1 dev wan",
            ],
            "no gateway can run here: it needs two Ethernet ports without an address; this host has only mgmt",
            "keep wan, which connects this host",
        ),
    ];
    for (role, setup, problem, remedy) in cases {
        let Some(place) = Place::new() else { return };
        place.connect("mgmt", 13);
        let asymq = env!("CARGO_BIN_EXE_asymq");
        for flags in [
            "--json",
            "--json --lan lan --wan wan --up 950kbit --down 10mbit",
        ] {
            let setup: Vec<String> = match flags {
                // The first run has created this setup, except for the mount namespace.
                "--json" => setup.iter().map(|line| (*line).to_owned()).collect(),
                _ => {
                    let again = setup.iter().filter(|line| line.contains(" /etc"));
                    again.map(|line| (*line).to_owned()).collect()
                }
            };
            let script = format!(
                "{} && {asymq} gateway check {flags}",
                [vec!["true".into()], setup].concat().join(" && ")
            );
            let output =
                place.output(Command::new("unshare").args(["--mount", "sh", "-c", &script]));
            let said = text(&output.stdout);
            let findings: serde_json::Value = serde_json::from_str(said)
                .unwrap_or_else(|error| panic!("{error}: {said}{}", text(&output.stderr)));
            let findings = findings.as_array().unwrap();
            assert_eq!(findings[0]["role"], role, "{said}");
            let of = |key: &str| findings[0][key].as_str().unwrap();
            assert!(of("problem").starts_with(problem), "{said}");
            assert!(of("remedy").contains(remedy), "{said}");
            // A remedy must keep every connection to the host.
            for finding in findings {
                let remedy = finding["remedy"].as_str().unwrap();
                for word in [
                    "flush",
                    "address del",
                    "link del",
                    "nomaster",
                    "route del",
                    "ip link set wan down",
                ] {
                    assert!(!remedy.contains(word), "{remedy}");
                }
            }
        }
    }
}

#[test]
fn check_finds_settings_changed_back_during_a_run() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let notify = Notify::new(folder.path());
    let line = format!("{FLAGS} --state {}", folder.path().display());
    let _running = place.spawn(gateway(&line).env("NOTIFY_SOCKET", &notify.path));
    notify.hear("READY=1");
    let check = || {
        let output = place.output(&mut gateway(&format!("check {FLAGS}")));
        text(&output.stdout).to_owned()
    };
    let said = check();
    assert!(
        said.contains("note: --wan wan: a gateway holds it; "),
        "{said}"
    );
    assert!(!said.contains("switched on after"), "{said}");
    let switch = || fs::write("/proc/sys/net/ipv6/conf/wan/disable_ipv6", "0");
    place.middle.run(switch).unwrap();
    let said = check();
    assert!(
        said.contains("wrong: --wan wan: IPv6 was changed back after the gateway started; "),
        "{said}"
    );
}

#[test]
fn check_reports_missing_privileges() {
    let Some(place) = Place::new() else { return };
    let mut command = Command::new("setpriv");
    let asymq = env!("CARGO_BIN_EXE_asymq");
    let output = place.middle.run(|| {
        command
            .args(["--bounding-set", "-all", "--inh-caps", "-all", asymq])
            .args(["gateway", "check"])
            .args(FLAGS.split(' '))
            .output()
    });
    let Ok(output) = output else {
        eprintln!("skipped: no setpriv");
        return;
    };
    let said = text(&output.stdout);
    let expected = "wrong: privileges: CAP_NET_ADMIN and CAP_NET_RAW missing; run as root, ";
    assert!(
        said.lines().any(|line| line.starts_with(expected)),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// All files below a folder, with relative paths.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn install_writes_a_service_that_starts_and_uninstall_takes_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let at_root = |line: &str| format!("{line} --root {}", root.display());
    let run = |line: &str| {
        let output = gateway(&at_root(line)).output().unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (said, output.status.code())
    };
    let flags = "--lan eth1 --wan eth0 --up 950kbit --down 10mbit --overhead pppoe-ptm --qdisc sad";
    let (said, code) = run(&format!("install --dry-run {flags}"));
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("would write ") && said.contains("ExecStart="),
        "{said}"
    );
    assert!(said.contains("would run systemctl daemon-reload"), "{said}");
    assert_eq!(tree(root), [""; 0], "a dry run writes nothing");

    assert_eq!(
        run("install --lan eth1"),
        ("missing: --wan <IF>".into(), Some(2))
    );
    let (said, code) = run(&format!("install {flags}"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        tree(root),
        [
            "etc/NetworkManager/conf.d/asymq.conf",
            "etc/asymq.toml",
            "etc/systemd/network/10-asymq.network",
            "etc/systemd/system/asymq.service",
            "etc/sysusers.d/asymq.conf",
            "usr/local/bin/asymq",
        ]
    );
    let unit = root.join("etc/systemd/system/asymq.service");
    let unit_text = fs::read_to_string(&unit).unwrap();
    assert!(
        unit_text.contains("\nExecStart=/usr/local/bin/asymq gateway --config /etc/asymq.toml\n")
    );

    assert!(unit_text.contains("\nOOMScoreAdjust=-900\n"), "{unit_text}");

    // An invalid settings file would cause exit code 2.
    let settings = root.join("etc/asymq.toml");
    let check = gateway(&format!("check --config {}", settings.display()));
    let check = { check }.output().unwrap();
    assert_ne!(check.status.code(), Some(2), "{}", text(&check.stderr));

    // systemd reads the unit from another root that contains the program.
    let verify = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .arg(format!("--root={}", root.display()))
        .arg("asymq.service")
        .output();
    match verify {
        Ok(verify) => {
            let said = text(&verify.stderr);
            // The other root has only our program.
            let ours = said
                .lines()
                .filter(|line| line.contains("asymq.service") && !line.contains("/bin/kill"));
            assert_eq!(ours.collect::<Vec<_>>(), [""; 0]);
        }
        Err(_) => eprintln!("skipped: no systemd-analyze"),
    }

    // A new installation keeps the owner's additions.
    let edited = fs::read_to_string(&settings).unwrap() + "metrics = \"127.0.0.1:9800\"\n";
    fs::write(&settings, &edited).unwrap();
    let (said, code) = run(&format!("install {flags}"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("kept the old one as "), "{said}");
    let old = root.join("etc/asymq.toml.old");
    assert_eq!(fs::read_to_string(&old).unwrap(), edited);
    let (said, code) = run(&format!("install {flags}"));
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("kept"), "the same text again: {said}");

    let (said, code) = run("uninstall --keep-settings");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(tree(root), ["etc/asymq.toml", "etc/asymq.toml.old"]);
    let (said, code) = run("uninstall");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(tree(root), [""; 0]);
}

#[test]
fn install_refuses_a_name_that_would_be_a_line_of_its_own() {
    let flags = ["--wan", "eth0", "--up", "1mbit", "--down", "10mbit"];
    let output = gateway("install --dry-run")
        .args(["--lan", "eth1\n[Service]"])
        .args(flags)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn install_and_check_refuse_one_interface_for_both_sides() {
    for command in ["install --dry-run", "check"] {
        let line = format!("{command} --lan eth1 --wan eth1 --up 1mbit");
        let output = gateway(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_eq!(
            text(&output.stderr),
            "--wan eth1: the same interface as --lan; a bridge needs two"
        );
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn install_quotes_names_and_refuses_those_of_no_kernel() {
    let install = |lan: &str, wan: &str| {
        let mut command = gateway("install --dry-run --up 1mbit");
        let output = command.args(["--lan", lan, "--wan", wan]).output();
        let output = output.unwrap();
        (text(&output.stdout).to_owned(), output.status.code())
    };
    let (said, code) = install("a*;b", "!c,$[?\\");
    assert_eq!(code, Some(0), "{said}");
    for line in [
        r"Name=a\\*;b \\!c,$\\[\\?\\\\",
        r"unmanaged-devices+=interface-name:=a*\;b;interface-name:=!c\,$[?\\",
    ] {
        assert!(said.lines().any(|found| found == line), "{line} in {said}");
    }
    for name in [
        "a b",
        "a%n",
        "a\tb",
        "a:b",
        "a/b",
        "..",
        "all",
        "default",
        "sixteen-bytes-00",
        "",
        "a\u{b}b",
        "a\nb",
    ] {
        assert_eq!(install(name, "eth0"), (String::new(), Some(2)), "{name}");
    }
}

#[test]
fn install_does_not_leave_its_root_through_links() {
    let outside = tempfile::tempdir().unwrap();
    for (link, is_folder) in [
        ("etc", true),
        ("etc/systemd/system", true),
        ("usr/local", true),
        ("etc/asymq.toml", false),
        ("etc/sysusers.d/asymq.conf", false),
        ("usr/local/bin/asymq", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let target = match is_folder {
            true => outside.path().to_owned(),
            false => outside.path().join("victim"),
        };
        fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        for command in ["install --lan eth1 --wan eth0 --up 1mbit", "uninstall"] {
            let line = format!("{command} --root {}", root.display());
            let output = gateway(&line).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{link}: {said}");
            assert!(
                said.contains(&format!("{link}: a link, which may lead out")),
                "{said}"
            );
            assert_eq!(tree(outside.path()), [""; 0], "{link}");
        }
    }
}

#[test]
fn installed_files_have_the_same_modes_with_any_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    for mask in ["000", "077"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        // A remainder of an interrupted installation, or a link prepared by another user.
        fs::create_dir_all(root.join("etc")).unwrap();
        std::os::unix::fs::symlink(root.join("victim"), root.join("etc/asymq.new")).unwrap();
        let line = format!(
            "install --lan eth1 --wan eth0 --up 1mbit --root {}",
            root.display()
        );
        let command = gateway(&line);
        let shell = format!("umask {mask}; exec \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &shell, "sh"])
            .arg(command.get_program())
            .args(command.get_args())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mode =
            |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        for path in tree(root)
            .iter()
            .filter(|path| *path != "usr/local/bin/asymq")
        {
            assert_eq!(mode(path), 0o644, "{path} under umask {mask}");
        }
        for path in [
            "usr/local/bin/asymq",
            "usr",
            "etc/systemd/system",
            "etc/NetworkManager",
        ] {
            assert_eq!(mode(path), 0o755, "{path} under umask {mask}");
        }
        assert!(!root.join("victim").exists());
    }
}

#[test]
fn install_leaves_a_program_of_others_alone_and_replaces_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    let flags = "--lan eth1 --wan eth0 --up 950kbit";
    let install = || {
        let output = gateway(&format!("install --root {root} {flags}")).output();
        let output = output.unwrap();
        (text(&output.stderr).to_owned(), output.status.code())
    };
    let program = folder.path().join("usr/local/bin/asymq");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "of the owner's").unwrap();
    let (said, code) = install();
    assert_eq!(code, Some(1));
    assert!(said.contains("usr/local/bin/asymq: not written by 'asymq gateway install'"));
    assert_eq!(tree(folder.path()), ["usr/local/bin/asymq"]);
    assert_eq!(fs::read_to_string(&program).unwrap(), "of the owner's");

    fs::remove_file(&program).unwrap();
    assert_eq!(install(), (String::new(), Some(0)));
    fs::write(&program, "an older one").unwrap();
    assert_eq!(install(), (String::new(), Some(0)));
    assert!(fs::metadata(&program).unwrap().len() > 1000);
}

#[test]
fn install_leaves_settings_of_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("etc/asymq.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "lan = \"mine\"\n").unwrap();
    let root = folder.path().display();
    let flags = "--lan eth1 --wan eth0 --up 950kbit --down 10mbit";
    let output = gateway(&format!("install --root {root} {flags}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        format!(
            "{}: not written by 'asymq gateway install'; move it away first",
            settings.display()
        )
    );
    assert_eq!(tree(folder.path()), ["etc/asymq.toml"]);
    let output = gateway(&format!("uninstall --root {root}"))
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(fs::read_to_string(&settings).unwrap(), "lan = \"mine\"\n");
}

#[test]
fn install_writes_where_metrics_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    let flags = "--lan eth1 --wan eth0 --up 950kbit --metrics 127.0.0.1:9800";
    let output = gateway(&format!("install --root {root} {flags}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let settings = fs::read_to_string(folder.path().join("etc/asymq.toml")).unwrap();
    assert!(
        settings.contains("\nmetrics = \"127.0.0.1:9800\"\n"),
        "{settings}"
    );
}

#[test]
fn a_file_that_is_not_a_settings_file_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let huge = folder.path().join("huge.toml");
    fs::File::create(&huge).unwrap().set_len(300 << 20).unwrap();
    // The limit is below the file's size.
    let limited = "ulimit -v 262144; exec \"$@\"";
    for command in [
        "gateway check --config",
        "sim",
        "sweep",
        "reproduce --check",
    ] {
        let output = Command::new("sh")
            .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_asymq")])
            .args(command.split(' '))
            .arg(&huge)
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{command}: {said}"
        );
        assert!(said.contains("it is longer than 64 MiB"), "{said}");
    }
}

#[test]
fn uninstall_names_the_files_of_others_that_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = ["etc/systemd/system/asymq.service", "usr/local/bin/asymq"];
    for path in theirs.map(|path| folder.path().join(path)) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "of the owner's").unwrap();
    }
    let root = folder.path().display();
    let output = gateway(&format!("uninstall --root {root}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let expected =
        theirs.map(|path| format!("left {root}/{path}: not written by 'asymq gateway install'"));
    assert_eq!(text(&output.stdout), expected.join("\n"));
    assert_eq!(tree(folder.path()), theirs);
}
