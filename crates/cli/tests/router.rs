//! `asymq router` on a router. Tests that need root print a note and pass without it.
//!
//! These tests are a separate program, because the kernel removes ports and namespaces one after the other. Among many
//! other tests, a gateway would not end in time.

#[path = "../../gateway/tests/common/ping.rs"]
mod ping;
#[path = "../../gateway/tests/common/wait.rs"]
mod wait;

use asymq_gateway::net::{Netns, Network, VethEnd};
use ping::Ping;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use wait::{DEADLINE, wait_for};

/// A router between the host `home` and a far host.
struct Place {
    router: Netns,
    far: Netns,
    port: String,
    folder: TempDir,
    _slot: Slot,
}

/// One of three slots, which limit the number of simultaneous tests.
struct Slot;

static FREE: Mutex<u32> = Mutex::new(3);
static RELEASED: Condvar = Condvar::new();

impl Slot {
    fn wait() -> Self {
        let free = FREE.lock().unwrap();
        *RELEASED.wait_while(free, |free| *free == 0).unwrap() -= 1;
        Self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *FREE.lock().unwrap() += 1;
        RELEASED.notify_one();
    }
}

/// Address of the far host.
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

const PORT: u32 = 21;

const fn end(name: &str, index: u32, mac: u8) -> VethEnd<'_> {
    VethEnd {
        name,
        index,
        mac: [2, 0, 0, 9, 0, mac],
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A killed router leaves its network namespace.
        let name = format!("asymq-{}", self.port);
        let mut delete = Command::new("ip");
        let _ = delete.args(["netns", "delete", &name]).output();
    }
}

impl Place {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let slot = Slot::wait();
        let (Ok(router), Ok(far)) = (Netns::new(), Netns::new()) else {
            eprintln!("skipped: a network namespace cannot be made");
            return None;
        };
        let port = format!("r{}x{number}", std::process::id());
        let configure = |index, address: [u8; 4]| {
            let mut network = Network::open()?;
            network.set_up(index)?;
            network.add_address(index, address, 24)
        };
        router
            .run(|| {
                let mut network = Network::open()?;
                network.add_veth(end(&port, PORT, 1), end("far", PORT, 2), far.as_fd())?;
                // Enables the loopback interface, for the metrics.
                network.set_up(1)?;
                configure(PORT, [192, 0, 2, 9])
            })
            .unwrap();
        far.run(|| configure(PORT, [192, 0, 2, 1])).unwrap();
        Some(Self {
            router,
            far,
            port,
            folder: tempfile::tempdir().unwrap(),
            _slot: slot,
        })
    }

    /// Adds a new port with the Ethernet address of the original one.
    fn plug_in(&self, name: &str, index: u32) -> std::io::Result<()> {
        self.router.run(|| {
            let (here, there) = (end(name, index, 1), end("far", PORT, 2));
            Network::open()?.add_veth(here, there, self.far.as_fd())
        })?;
        self.far.run(|| {
            let mut network = Network::open()?;
            network.set_up(PORT)?;
            network.add_address(PORT, [192, 0, 2, 1], 24)
        })
    }

    fn command(&self, line: &str) -> Command {
        let line = line.replace('@', &self.port);
        let line = line.replace("DIR", self.folder.path().to_str().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_asymq"));
        command.arg("router").args(line.split_whitespace());
        command.env_remove("SSH_CONNECTION");
        command
    }

    fn run(&self, line: &str, session: &str) -> (String, Option<i32>) {
        let mut command = self.command(line);
        if !session.is_empty() {
            command.env("SSH_CONNECTION", session);
        }
        let output = self.router.run(|| command.output()).unwrap();
        (said(&output), output.status.code())
    }

    fn start(&self, line: &str) -> Running {
        let mut command = self.command(&format!("--wan @ --state DIR/state {line}"));
        let command = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = self.router.run(|| command.spawn()).unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (say, said) = mpsc::channel();
        thread::spawn(move || {
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(say.send(line)));
        });
        Running { child, said }
    }

    fn pings(&self) -> bool {
        let ping = self.router.run(|| Ping::open(FAR));
        ping.is_ok_and(|ping| ping.answered(1, Duration::ZERO) == 1)
    }

    /// Returns the HTTP answer of a server in the router's namespace.
    fn page(&self, address: &str, path: &str) -> String {
        let mut stream = self.router.run(|| TcpStream::connect(address)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn kind_of_port(&self) -> u32 {
        let peer = self.router.run(|| Network::open()?.link(PORT));
        peer.unwrap()
            .and_then(|port| port.below)
            .unwrap_or_default()
    }

    /// True if the port is the original one, without a namespace or journal of a take-over.
    fn is_given_back(&self) -> bool {
        let namespace = format!("/run/netns/asymq-{}", self.port);
        let state = self.folder.path().join("state");
        let journals = fs::read_dir(state).map_or(0, Iterator::count);
        self.kind_of_port() == PORT && !Path::new(&namespace).exists() && journals == 0
    }
}

struct Running {
    child: Child,
    said: Receiver<String>,
}

impl Running {
    /// Waits for a log line with this text.
    fn hears(&self, words: &str) {
        loop {
            let line = self.said.recv_timeout(DEADLINE).expect(words);
            if line.contains(words) {
                return;
            }
        }
    }

    /// Effective capabilities of a thread.
    fn capabilities(&self, name: &str) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let read = |path: &Path, file| fs::read_to_string(path.join(file)).unwrap_or_default();
        let mut tasks = tasks.flatten().map(|task| task.path());
        let task = tasks
            .find(|task| read(task, "comm").trim() == name)
            .unwrap();
        let status = read(&task, "status");
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &id])
                .status()
                .unwrap()
                .success()
        );
    }

    fn ends(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(text).unwrap().trim_end().to_owned()
}

#[test]
fn only_root_can_write_names_of_namespaces_with_any_umask() {
    let Some(place) = Place::new() else { return };
    // In the new /run, the folder of namespace names does not exist yet.
    let script = "mount -t tmpfs tmpfs /run && umask 000 || exit 9
        \"$@\" >/dev/null 2>&1 & for wait in $(seq 200); do
        [ -e /run/netns/asymq-* ] && break; sleep 0.1; done
        stat -c %a /run/netns; kill $!; wait";
    let command = place.command("--wan @ --state DIR/state --up 1mbit");
    let mut shell = Command::new("unshare");
    shell
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    let output = place.router.run(|| shell.output()).unwrap();
    if output.status.code() == Some(9) {
        eprintln!("skipped: no file system can be mounted");
        return;
    }
    assert_eq!(said(&output).trim(), "755");
    wait_for("the port", DEADLINE, || place.is_given_back());
}

#[test]
fn it_runs_on_the_routers_port_and_gives_it_back() {
    let Some(place) = Place::new() else { return };
    wait_for("a ping", DEADLINE, || place.pings());
    assert!(place.is_given_back());
    let mut running = place.start(
        "--up 20mbit --down 100mbit --control DIR/control --metrics 127.0.0.1:9811 --page 127.0.0.1:9812 --rate-probe 192.0.2.1",
    );
    running.hears("sends by");
    running.hears("sends by");
    wait_for("a ping", DEADLINE, || place.pings());
    assert_ne!(place.kind_of_port(), PORT, "a pair has its place");
    // The command runs in the router's own namespace.
    let (answer, code) = place.run("set --control DIR/control --up 30mbit", "");
    assert_eq!(
        (answer.as_str(), code),
        ("0 packets moved, 0 dropped", Some(0))
    );
    let metrics = place.page("127.0.0.1:9811", "/metrics");
    assert!(metrics.contains("\nasymq_bytes_total{"), "{metrics}");
    let page = place.page("127.0.0.1:9812", "/");
    assert!(page.contains("<html"), "{page}");
    let (answer, code) = place.run("--wan @ --state DIR/state --up 1mbit", "");
    let expected = format!("--wan {}: a running gateway holds it", place.port);
    assert_eq!((answer, code), (expected, Some(1)));
    // Threads that read from the network have no capabilities.
    for thread in ["metrics", "page"] {
        assert_eq!(running.capabilities(thread), 0, "{thread}");
    }
    assert_ne!(running.capabilities("control"), 0);
    running.signal("TERM");
    assert_eq!(running.ends(), Some(0));
    assert!(place.is_given_back());
    wait_for("a ping", DEADLINE, || place.pings());
}

#[test]
fn after_a_kill_the_kernel_forwards_and_the_next_one_takes_over() {
    let Some(place) = Place::new() else { return };
    for restores in [false, true] {
        let running = place.start("--up 20mbit");
        running.hears("sends by");
        running.hears("sends by");
        wait_for("a ping", DEADLINE, || place.pings());
        let ping = place.router.run(|| Ping::open(FAR)).unwrap();
        let pings = thread::spawn(move || ping.answered(40, Duration::from_millis(50)));
        thread::sleep(Duration::from_millis(500));
        running.signal("KILL");
        let received = pings.join().unwrap();
        // On a busy machine the process takes some 100 ms to end, and two pings are sent meanwhile.
        assert!(received >= 36, "{received} of 40 pings answered");
        if restores {
            let (answer, _) = place.run("restore --state DIR/state", "");
            assert!(
                answer.starts_with(&format!("{}: 1 settings", place.port)),
                "{answer}"
            );
        } else {
            let mut next = place.start("--up 20mbit");
            next.hears("sends by");
            next.signal("TERM");
            assert_eq!(next.ends(), Some(0));
        }
        assert!(place.is_given_back());
    }
}

#[test]
fn a_port_is_followed_when_its_cable_its_mtu_or_its_place_changes() {
    let Some(place) = Place::new() else { return };
    let mut running = place.start("--up 20mbit");
    running.hears("sends by");
    wait_for("a ping", DEADLINE, || place.pings());
    let pair = || {
        place
            .router
            .run(|| Network::open()?.link(PORT))
            .unwrap()
            .unwrap()
    };
    let far = |up| {
        let set = |network: &mut Network| match up {
            true => network.set_up(PORT),
            false => network.set_down(PORT),
        };
        place.far.run(|| set(&mut Network::open()?)).unwrap();
    };
    far(false);
    wait_for("no carrier", DEADLINE, || !pair().carrier);
    far(true);
    wait_for("a carrier", DEADLINE, || pair().carrier);
    wait_for("a ping", DEADLINE, || place.pings());

    let inner = Netns::named(&format!("asymq-{}", place.port))
        .unwrap()
        .unwrap();
    let port = || {
        inner
            .run(|| Network::open()?.link_named(&place.port))
            .unwrap()
    };
    place
        .router
        .run(|| Network::open()?.set_mtu(PORT, 1400))
        .unwrap();
    wait_for("the MTU", DEADLINE, || port().unwrap().mtu == 1400);

    // The port is unplugged, and plugged in again under another name.
    let index = port().unwrap().index;
    inner.run(|| Network::open()?.delete(index)).unwrap();
    wait_for("no carrier", DEADLINE, || !pair().carrier);
    place.plug_in("usb0", 77).unwrap();
    wait_for("the port", DEADLINE, || port().is_some());
    wait_for("a ping", DEADLINE, || place.pings());
    running.signal("TERM");
    assert_eq!(running.ends(), Some(0));
    assert!(place.is_given_back());
    wait_for("a ping", DEADLINE, || place.pings());
}

#[test]
fn a_hangup_reads_the_settings_again_with_a_routers_defaults() {
    let Some(place) = Place::new() else { return };
    let file = place.folder.path().join("settings");
    let write =
        |up: &str| fs::write(&file, format!("up = \"{up}\"\noverhead = \"docsis\"\n")).unwrap();
    write("20mbit");
    let running = place.start("--config DIR/settings --control DIR/control");
    running.hears("sends by");
    running.hears("sends by");
    let status = || asymq_gateway::request_status(&place.folder.path().join("control")).unwrap();
    write("7mbit");
    running.signal("HUP");
    wait_for("the new rate", DEADLINE, || status().contains("7mbit"));
    let status = status();
    for word in ["auto", "asymq", "docsis"] {
        assert!(status.contains(word), "{word}: {status}");
    }
}

#[test]
fn a_setup_that_would_cut_off_its_owner_is_refused() {
    let Some(place) = Place::new() else { return };
    let session = "192.0.2.1 50000 192.0.2.9 22";
    // On a busy machine, the check also reports late timers.
    wait_for("a check without a finding", DEADLINE, || {
        let (answer, code) = place.run("check --wan @ --overhead ethernet", "");
        let is_clean = (answer.as_str(), code) == ("no problem found", Some(0));
        assert!(
            is_clean || answer.starts_with("wrong: timers: "),
            "{answer}"
        );
        is_clean
    });
    let (answer, code) = place.run("check --wan @ --overhead ethernet --json", session);
    assert_eq!(code, Some(1), "{answer}");
    assert!(answer.contains("\"subject\": \"session\""), "{answer}");
    let run = "--wan @ --state DIR/state";
    let (answer, code) = place.run(run, session);
    let expected = format!(
        "session: your login session from 192.0.2.1 uses {}; ",
        place.port
    );
    assert!(answer.contains(&expected), "{answer}");
    assert_eq!(code, Some(2));
    // A session over another interface is no finding.
    assert!(
        !place
            .run("check --wan @", "10.0.0.7 50000 10.0.0.1 22")
            .0
            .contains("session")
    );
    let (answer, code) = place.run("--wan none --state DIR/state", "");
    assert!(answer.contains("none: no such interface"), "{answer}");
    assert_eq!(code, Some(2));
    assert!(place.is_given_back());

    for command in [
        "link add name br index 50 type bridge".into(),
        format!("link set {} master br", place.port),
    ] {
        let ip = || Command::new("ip").args(command.split(' ')).status();
        assert!(place.router.run(ip).unwrap().success(), "{command}");
    }
    let (answer, _) = place.run("check --wan @", "");
    assert!(answer.contains("is a member of the bridge br"), "{answer}");
    let (answer, _) = place.run("check --wan br", "");
    assert!(
        answer.contains("cannot leave its network namespace"),
        "{answer}"
    );
}

#[test]
fn an_unconfirmed_port_is_given_back() {
    let Some(place) = Place::new() else { return };
    let mut forgotten = place.start("--confirm 1s");
    forgotten.hears("not confirmed within 1s");
    assert_eq!(forgotten.ends(), Some(0));
    assert!(place.is_given_back());
    let mut kept = place.start("--confirm 1s");
    kept.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    kept.hears("confirmed");
    thread::sleep(Duration::from_millis(1500));
    assert!(kept.child.try_wait().unwrap().is_none());
    assert_ne!(place.kind_of_port(), PORT);
}

#[test]
fn the_services_port_outlives_the_gateway_until_it_is_restored() {
    let Some(place) = Place::new() else { return };
    let take = "take --wan @ --state DIR/state --wait 1s";
    assert_eq!(place.run(take, "").1, Some(0));
    assert_eq!(place.run(take, "").1, Some(0), "twice is once");
    wait_for("a ping", DEADLINE, || place.pings());
    let mut running = place.start("--up 20mbit");
    running.hears("sends by");
    running.hears("sends by");
    let (answer, _) = place.run("restore --state DIR/state", "");
    assert!(answer.contains("a running gateway holds it"), "{answer}");
    running.signal("TERM");
    assert_eq!(running.ends(), Some(0));
    assert_ne!(place.kind_of_port(), PORT);
    assert!(place.pings());
    assert_eq!(place.run("restore --state DIR/state", "").1, Some(0));
    assert!(place.is_given_back());
}

/// Sends uploads or downloads between a home host and a port of the far host, up to `until`. Returns the counter of
/// arrived bytes.
fn traffic(
    place: &Place,
    home: &Netns,
    (port, flows, is_download): (u16, usize, bool),
    until: std::time::Instant,
) -> std::sync::Arc<AtomicU64> {
    fn send(mut stream: TcpStream, until: std::time::Instant) {
        let block = [0; 1 << 14];
        while std::time::Instant::now() < until && stream.write_all(&block).is_ok() {}
    }
    fn count(mut stream: TcpStream, counter: &AtomicU64) {
        let mut block = [0; 1 << 14];
        while let Ok(length @ 1..) = stream.read(&mut block) {
            counter.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
    let listen = || std::net::TcpListener::bind(("192.0.2.1", port));
    let listener = place.far.run(listen).unwrap();
    let counter = std::sync::Arc::new(AtomicU64::new(0));
    for _ in 0..flows {
        let connect = || TcpStream::connect(("192.0.2.1", port));
        let near = home.run(connect).unwrap();
        let far = listener.accept().unwrap().0;
        let (from, to) = if is_download {
            (far, near)
        } else {
            (near, far)
        };
        let counter = counter.clone();
        thread::spawn(move || send(from, until));
        thread::spawn(move || count(to, &counter));
    }
    counter
}

#[test]
fn hosts_behind_nat_share_the_line_and_not_their_flows() {
    let Some(place) = Place::new() else { return };
    let rules = format!(
        "table ip nat {{\n chain after {{\n type nat hook postrouting priority 100\n oifname {:?} masquerade\n }}\n}}\n",
        place.port
    );
    let file = place.folder.path().join("rules");
    fs::write(&file, rules).unwrap();
    let homes = [1, 2].map(|number: u8| {
        let home = Netns::new().unwrap();
        let end = |name, mac| VethEnd {
            name,
            index: 30 + u32::from(number),
            mac: [2, 0, 0, 9, number, mac],
        };
        let inside = format!("home{number}");
        let (index, gateway) = (end("eth", 0).index, [10, 0, number, 1]);
        place
            .router
            .run(|| {
                let mut network = Network::open()?;
                network.add_veth(end(&inside, 1), end("eth", 2), home.as_fd())?;
                network.set_up(index)?;
                network.add_address(index, gateway, 24)
            })
            .unwrap();
        home.run(|| {
            let mut network = Network::open()?;
            network.set_up(index)?;
            network.add_address(index, [10, 0, number, 2], 24)?;
            let route = format!("route add default via 10.0.{number}.1");
            Command::new("ip").args(route.split(' ')).status().map(drop)
        })
        .unwrap();
        home
    });
    let nat = place.router.run(|| {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        Command::new("nft").arg("-f").arg(&file).status()
    });
    if !nat.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no nft");
        return;
    }
    let running = place.start("--up 10mbit --down 20mbit --control DIR/control");
    running.hears("sends by");
    wait_for("a ping", DEADLINE, || place.pings());
    let until = std::time::Instant::now() + Duration::from_secs(7);
    // 1 and 12 uploads, 1 and 12 downloads.
    let flows = [
        (0, 5001, 1, false),
        (1, 5002, 12, false),
        (0, 5003, 1, true),
        (1, 5004, 12, true),
    ];
    let counters = flows.map(|(home, port, flows, is_download)| {
        traffic(&place, &homes[home], (port, flows, is_download), until)
    });
    let read = || {
        counters
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed) as f64)
    };
    thread::sleep(Duration::from_secs(2));
    let before = read();
    thread::sleep(Duration::from_secs(4));
    let after = read();
    let shares = [0, 2].map(|at| {
        let [one, twelve] = [at, at + 1].map(|at| after[at] - before[at]);
        println!(
            "share of the host with one flow: {:.3} of {}",
            one / (one + twelve),
            one + twelve
        );
        one / (one + twelve)
    });
    let control = place.folder.path().join("control");
    let status = asymq_gateway::request_status(&control).unwrap();
    assert!(
        status.contains("\"hosts_behind_nat\":{\"tracked\":true,\"connections\":26,\"refused\":0}"),
        "{status}"
    );
    drop(running);
    assert!(
        shares.iter().all(|share| (0.45..=0.55).contains(share)),
        "{shares:?}"
    );
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let find = Command::new("find")
        .arg(folder)
        .args(["-type", "f"])
        .output()
        .unwrap();
    let text = String::from_utf8(find.stdout).unwrap();
    let mut files: Vec<String> = text
        .lines()
        .map(|file| file.trim_start_matches(folder.to_str().unwrap()).to_owned())
        .collect();
    files.sort();
    files
}

#[test]
fn install_writes_a_service_or_the_qdiscs_and_uninstall_removes_all_of_it() {
    let root = tempfile::tempdir().unwrap();
    let of = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asymq"));
        command
            .arg("router")
            .args(line.split(' '))
            .arg("--root")
            .arg(root.path());
        let output = command.output().unwrap();
        (said(&output), output.status.code())
    };
    let service = [
        "/etc/asymq-router.toml",
        "/etc/systemd/system/asymq-router-port.service",
        "/etc/systemd/system/asymq-router.service",
        "/etc/udev/rules.d/86-asymq-router.rules",
        "/usr/local/bin/asymq",
    ];
    let udev =
        ["sys/class/net/enp1s0/ifindex", "run/udev/data/n7"].map(|file| root.path().join(file));
    for (file, text) in udev
        .iter()
        .zip(["7\n", "E:ID_NET_NAME_PATH=enp1s0\nE:ID_NET_NAME_X=a\"b\n"])
    {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let install = "install --wan enp1s0 --up 19mbit --overhead docsis";
    assert_eq!(of(install).1, Some(0));
    for file in udev {
        fs::remove_file(file).unwrap();
    }
    assert_eq!(files(root.path()), service);
    let text = |path: &str| fs::read_to_string(root.path().join(&path[1..])).unwrap();
    let settings = text(service[0]);
    for line in [
        "wan = \"enp1s0\"",
        "up = \"19mbit\"",
        "down = \"auto\"",
        "qdisc-down = \"asymq\"",
    ] {
        assert!(settings.contains(line), "{line}: {settings}");
    }
    let rule = text(service[3]);
    // systemd-networkd's DHCP identity is a hash of this name.
    let keys =
        "ENV{INTERFACE}==\"enp1s0\", ENV{NM_UNMANAGED}=\"0\", ENV{ID_NET_NAME_PATH}=\"enp1s0\"\n";
    assert!(rule.ends_with(keys), "{rule}");
    let (answer, code) = of(&format!("{install} --kernel"));
    assert!(
        answer.contains("'asymq router uninstall' first"),
        "{answer}"
    );
    assert_eq!(code, Some(1));
    assert_eq!(of("uninstall").1, Some(0));
    assert!(files(root.path()).is_empty());

    assert_eq!(of(&format!("{install} --kernel --down 95mbit")).1, Some(0));
    let qdiscs = [
        "/etc/asymq-router-qdisc.sh",
        "/etc/systemd/system/asymq-router-qdisc.service",
    ];
    assert_eq!(files(root.path()), qdiscs);
    let unit = text(qdiscs[1]);
    assert!(
        unit.contains("BindsTo=sys-subsystem-net-devices-enp1s0.device"),
        "{unit}"
    );
    assert!(of(install).0.contains("'asymq router uninstall' first"));
    let (answer, code) = of("install --wan enp1s0 --kernel --buffer 50p");
    assert!(
        answer.contains("--buffer: not available with --kernel"),
        "{answer}"
    );
    assert_eq!(code, Some(1));
    assert_eq!(of("uninstall").1, Some(0));
    assert!(files(root.path()).is_empty());
    // Files that the owner has written must remain.
    fs::write(
        root.path().join("etc/asymq-router.toml"),
        "wan = \"eth0\"\n",
    )
    .unwrap();
    assert!(of(install).0.contains("not written by"));
    assert_eq!(of("uninstall").1, Some(0));
    assert_eq!(files(root.path()), ["/etc/asymq-router.toml"]);
}
