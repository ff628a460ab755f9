//! `asymq gateway` for a long time under traffic, changes and faults; started by `scripts/soak`.

use crate::common::wait::DEADLINE;
use crate::common::{HOME, LAN, NET, Place, WAN};
use crate::subject::{
    METRICS, Start, Subject, change, connect, connect_to, full_disk, stalled_pipe,
};
use asymq_gateway::net::{Netns, Network};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Rates that a debug build can carry. The disciplines drop packets, and the test accounts for every drop.
const LINK: &str = "--up 10mbit --down 20mbit --qdisc-down asymq --buffer 200p";
/// Time until all one-time allocations are done.
const WARM_UP: Duration = Duration::from_secs(15);
/// Pause after the load, in which the last clients end.
const IDLE: Duration = Duration::from_secs(7);
const FLAP_EVERY: Duration = Duration::from_secs(10);
/// Time for changes of settings before each trial.
const CHANGES: Duration = Duration::from_secs(30);
/// Time after which a trial is interrupted.
const TRIAL: Duration = Duration::from_secs(40);
const PAGE: &str = "127.0.0.1:9801";
/// Paths that the page requests.
const PAGE_PATHS: &[&str] = &["/history?after=0", "/hosts"];
/// Number of viewers of the page, and of viewers of the metrics.
const VIEWERS: u64 = 3;
/// Time until the history of the page is full.
const HISTORY: Duration = Duration::from_secs(3700);
/// Allowed growth of resident memory in kB, for pages that the allocator keeps and for more simultaneous answers of
/// the page. The history of the page may grow in addition, until it is full.
const SLACK: u64 = 2_048;
const OF_HISTORY: u64 = 8_192;

/// Quantities that must not grow during the test.
#[derive(Clone, Copy, Debug)]
struct Figures {
    memory: u64,
    descriptors: usize,
    threads: u64,
}

impl Figures {
    fn of(gateway: &Subject) -> Self {
        Self {
            memory: gateway.status("VmRSS"),
            descriptors: gateway.descriptors(),
            threads: gateway.status("Threads"),
        }
    }

    fn print(self, when: &str) {
        let Self {
            memory,
            descriptors,
            threads,
        } = self;
        println!("{when:>8}: {memory} kB resident, {descriptors} descriptors, {threads} threads");
    }
}

/// Numbers of faults and changes that the gateway has processed.
#[derive(Debug, Default)]
struct Counts {
    /// Bytes that arrived over TCP, in both directions.
    bytes: AtomicU64,
    changes: AtomicU64,
    trials: AtomicU64,
    attacks: AtomicU64,
    views: AtomicU64,
}

/// Numbered frames sent outside of link flaps.
#[derive(Clone, Copy, Debug, Default)]
struct Numbered {
    sent: u64,
    arrived: u64,
    /// Number of frames that a discipline dropped, according to the metrics.
    dropped: u64,
    flaps: u64,
}

#[test]
#[ignore = "runs as long as it is told to"]
fn soak() {
    let seconds = std::env::var("ASYMQ_SOAK_SECONDS");
    let seconds = seconds.map_or(60, |seconds| seconds.parse().unwrap());
    let path = std::env::temp_dir().join(format!("asymq-soak-{}.sock", std::process::id()));
    let (stdout, _reader) = stalled_pipe();
    let outputs = ["--json", "--metrics", METRICS, "--page", PAGE];
    let control = ["--control", path.to_str().unwrap()];
    let flags: Vec<&str> = LINK.split(' ').chain(outputs).chain(control).collect();
    let Some(mut gateway) = Subject::start(Start {
        flags: &flags,
        stdout,
        stderr: full_disk(),
        ..Start::default()
    }) else {
        return;
    };
    // Apart from the numbered frames, home must send only data and ACKs.
    let place = gateway.place.clone();
    for (host, index, other, far) in [(&place.home, LAN, NET, 12), (&place.net, WAN, HOME, 11)] {
        let mac = [2, 0, 0, 0, 1, far];
        host.run(|| {
            fs::write("/proc/sys/net/ipv6/conf/eth/disable_ipv6", "1")?;
            Network::open()?.add_neighbour(index, other, mac)
        })
        .unwrap();
    }
    let counts = Counts::default();
    let mut numbered = Numbered::default();
    load(&mut gateway, &path, WARM_UP, &counts, &mut numbered);
    thread::sleep(IDLE);
    let start = Figures::of(&gateway);
    start.print("start");
    let span = Duration::from_secs(seconds);
    let full = load(&mut gateway, &path, span, &counts, &mut numbered);
    thread::sleep(IDLE);
    let end = Figures::of(&gateway);
    end.print("end");
    println!("{counts:?}\n{numbered:?}");
    let metrics = metrics(&gateway);
    let lost = metrics
        .lines()
        .filter(|line| line.starts_with("asymq_lost_frames_total") && !line.ends_with(" 0"));
    let lost: Vec<&str> = lost.collect();
    println!("{}", lost.join("\n"));
    gateway.stops();
    for line in lost {
        // A flap loses only packets that wait for the interface that is down.
        assert!(line.contains(r#"port="wan",reason="not_sent""#), "{line}");
    }
    assert!(numbered.dropped > 0, "no drop was accounted for");
    assert!(
        end.memory <= start.memory + OF_HISTORY,
        "memory has grown by more than the history"
    );
    if let Some(full) = full {
        assert!(end.memory <= full.memory + SLACK, "memory has grown");
    }
    assert!(
        end.descriptors <= start.descriptors,
        "descriptors have grown"
    );
    assert!(end.threads <= start.threads, "threads have grown");
    assert_eq!(numbered.sent, numbered.arrived + numbered.dropped);
}

/// Applies all loads at the same time. Returns the figures taken after the page's history became full, if it did.
fn load(
    gateway: &mut Subject,
    control: &Path,
    span: Duration,
    counts: &Counts,
    numbered: &mut Numbered,
) -> Option<Figures> {
    let place = gateway.place.clone();
    let mut full = None;
    let over = AtomicBool::new(false);
    let until_over = |work: &mut dyn FnMut()| {
        while !over.load(Ordering::Relaxed) {
            work();
        }
    };
    thread::scope(|scope| {
        for (from, to, address) in [
            (&place.home, &place.net, NET),
            (&place.net, &place.home, HOME),
        ] {
            let over = &over;
            scope.spawn(move || pour(from, to, address, over, &counts.bytes));
        }
        scope.spawn(|| {
            let qdiscs = ["fq", "wrr", "sad", "droptail", "aq", "asymq"];
            let mut qdiscs = qdiscs.into_iter().cycle();
            until_over(&mut || {
                let since = Instant::now();
                while since.elapsed() < CHANGES && !over.load(Ordering::Relaxed) {
                    let answer = change(control, qdiscs.next().unwrap()).unwrap();
                    assert!(answer.starts_with("ok: "), "{answer}");
                    counts.changes.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(200));
                }
                // Makes no change meanwhile, because a change would end the trial.
                try_droptail(control, &over);
                counts.trials.fetch_add(1, Ordering::Relaxed);
            });
        });
        for _ in 0..VIEWERS {
            for (address, paths) in [(PAGE, PAGE_PATHS), (METRICS, &["/metrics"])] {
                let place = &place;
                scope.spawn(move || {
                    until_over(&mut || {
                        for path in paths {
                            counts
                                .views
                                .fetch_add(view(place, address, path), Ordering::Relaxed);
                        }
                        thread::sleep(Duration::from_secs(1));
                    });
                });
            }
        }
        scope.spawn(|| {
            until_over(&mut || {
                attack(&place, control);
                counts.attacks.fetch_add(1, Ordering::Relaxed);
            });
        });
        // Stops the other loads, even if this one fails.
        let _over = Over(&over);
        let (started, mut told) = (Instant::now(), Instant::now());
        while started.elapsed() < span {
            account(gateway, numbered);
            gateway.flap();
            numbered.flaps += 1;
            if told.elapsed() > Duration::from_secs(60) {
                let when = format!("{} s", started.elapsed().as_secs());
                let figures = Figures::of(gateway);
                figures.print(&when);
                told = Instant::now();
                if started.elapsed() > HISTORY {
                    full.get_or_insert(figures);
                }
            }
        }
    });
    full
}

/// Sends over one TCP connection until `over`; further connections would add frames to the numbered ones. All bytes
/// must arrive unchanged.
fn pour(from: &Netns, to: &Netns, address: Ipv4Addr, over: &AtomicBool, count: &AtomicU64) {
    let (ready, listening) = mpsc::channel();
    let chunk: Vec<u8> = (0..1 << 16).map(|i| i as u8).collect();
    let receive = move || {
        let listener = TcpListener::bind((address, 5000))?;
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let (mut received, mut part) = (0u64, vec![0; 1 << 16]);
        loop {
            let len = stream.read(&mut part)?;
            if len == 0 {
                return Ok(received);
            }
            let mut bytes = part[..len].iter().zip(received..);
            assert!(bytes.all(|(&byte, at)| byte == at as u8));
            received += len as u64;
            count.fetch_add(len as u64, Ordering::Relaxed);
        }
    };
    let send = || {
        let mut stream = TcpStream::connect_timeout(&(address, 5000).into(), DEADLINE)?;
        stream.set_write_timeout(Some(DEADLINE))?;
        let mut sent = 0;
        while !over.load(Ordering::Relaxed) {
            stream.write_all(&chunk)?;
            sent += chunk.len() as u64;
        }
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        // The receiver closes after it has read all bytes.
        assert_eq!(stream.read(&mut [0])?, 0);
        Ok(sent)
    };
    thread::scope(|scope| {
        let receiver = scope.spawn(move || to.run(receive).unwrap());
        listening.recv().unwrap();
        let sent = from.run(send).unwrap();
        assert_eq!(receiver.join().unwrap(), sent);
    });
}

/// Sends numbered frames until the next flap. Waits until each has arrived once and in order, or a discipline has
/// dropped it.
fn account(gateway: &mut Subject, numbered: &mut Numbered) {
    // The next snapshot then includes the earlier drops.
    thread::sleep(Duration::from_millis(2500));
    let before = dropped(gateway);
    gateway.arrived();
    let (mut sent, mut arrived, mut last) = (0, 0, 0);
    let mut take = |gateway: &mut Subject| {
        // Frames with number 0 belong to the flap.
        for number in gateway.arrived().into_iter().filter(|&of| of > 0) {
            assert!(number > last, "{number} came after {last}");
            (arrived, last) = (arrived + 1, number);
        }
        arrived
    };
    let started = Instant::now();
    for round in 0.. {
        if started.elapsed() > FLAP_EVERY {
            break;
        }
        // Sometimes more frames than the queue has room for.
        let count = if round % 50 == 0 { 400 } else { 20 };
        gateway.sends(count);
        sent += u64::from(count);
        take(gateway);
        thread::sleep(Duration::from_millis(20));
    }
    let (mut here, mut gone) = (0, 0);
    let ended = Instant::now();
    while here + gone != sent {
        assert!(
            ended.elapsed() < Duration::from_secs(30),
            "of {sent} frames {here} arrived and {gone} were dropped by a discipline"
        );
        thread::sleep(Duration::from_millis(100));
        here = take(gateway);
        gone = dropped(gateway) - before;
    }
    numbered.sent += sent;
    numbered.arrived += here;
    numbered.dropped += gone;
}

/// Number of packets from home, neither data nor ACKs, that disciplines have dropped.
fn dropped(gateway: &Subject) -> u64 {
    let metrics = metrics(gateway);
    let name = r#"asymq_dropped_packets_total{direction="up",class="other""#;
    let lines = metrics.lines().filter(|line| line.starts_with(name));
    let counts = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    counts.sum()
}

/// Returns the metrics; retries, since the server may refuse a client while it has others.
fn metrics(gateway: &Subject) -> String {
    loop {
        let mut answer = Vec::new();
        if ask(&gateway.place, METRICS, "/metrics", &mut answer) && answer.ends_with(b"\n") {
            return String::from_utf8(answer).unwrap();
        }
    }
}

/// Requests the metrics or the page; returns the number of answers.
fn view(place: &Place, address: &str, path: &str) -> u64 {
    u64::from(ask(place, address, path, &mut Vec::new()))
}

/// True if the answer is a page. The server may refuse a client while it has others.
fn ask(place: &Place, address: &str, path: &str, answer: &mut Vec<u8>) -> bool {
    let Ok(mut stream) = connect_to(place, address) else {
        return false;
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_end(answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200 OK\r\n")
}

/// Runs a trial of another discipline until it has enough intervals or its time limit expires.
fn try_droptail(control: &Path, over: &AtomicBool) {
    let mut trial = Command::new(env!("CARGO_BIN_EXE_asymq"));
    let flags = "gateway try --qdisc droptail --pairs 8 --hold 2s --settle 500ms --json --control";
    trial.args(flags.split(' ')).arg(control);
    let mut trial = trial.stdout(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while since.elapsed() < TRIAL && !over.load(Ordering::Relaxed) {
        if trial.try_wait().unwrap().is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    let pid = trial.id().to_string();
    let asked = trial.try_wait().unwrap().is_none();
    // Repeats the signal: a shell's background jobs ignore it until the trial handles it.
    while trial.try_wait().unwrap().is_none() {
        let kill = Command::new("kill").args(["-s", "INT", &pid]).status();
        kill.unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    let status = trial.wait().unwrap();
    // The trial may have been interrupted before it handled the signal.
    assert!(status.success() || asked, "{status}");
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs hostile clients of all kinds for one to two seconds.
fn attack(place: &Place, control: &Path) {
    let mut clients = Vec::new();
    for (request, count) in [
        ("GET /metrics HTTP/1.1\r\nHo", 100),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n",
            5,
        ),
        (
            "GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
            5,
        ),
    ] {
        for _ in 0..count {
            let mut stream = connect(place).unwrap();
            // The server may have closed this client in favour of the next one.
            let _ = stream.write_all(request.as_bytes());
            clients.push(stream);
        }
    }
    let mut endless = connect(place).unwrap();
    let chunk = [b'x'; 4096];
    for _ in 0..1000 {
        if endless.write_all(&chunk).is_err() {
            break;
        }
    }
    let mut drip = UnixStream::connect(control).unwrap();
    for _ in 0..10 {
        // The client's time limit may have expired.
        let _ = drip.write_all(b"#");
        thread::sleep(Duration::from_millis(100));
    }
}
