//! `asymq gateway` for a long time under traffic, changes and faults; `scripts/soak` runs it.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
#[path = "../../gateway/tests/common/subject.rs"]
mod subject;

use common::{HOME, NET, Place, transfer};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use subject::{METRICS, Start, Subject, change, connect, full_disk, stalled_pipe};

const REDIRECTIONS: &str = "";
/// Until what is allocated once is allocated.
const WARM_UP: Duration = Duration::from_secs(15);
/// Until the last client has had its time.
const IDLE: Duration = Duration::from_secs(7);
const FLAP_EVERY: Duration = Duration::from_secs(10);
/// What resident memory may differ by, in kB: pages that the allocator keeps.
const SLACK: u64 = 4_096;

fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_asymq"));
    // Slow enough for a debug build, with room for all that TCP has under way.
    let link = "gateway --lan lan --wan wan --up 40mbit --down 80mbit --buffer 10000p";
    command.args(link.split(' ')).args(flags);
    command
}

/// What must not grow.
#[derive(Clone, Copy, Debug)]
struct Figures {
    memory: u64,
    descriptors: usize,
    threads: u64,
    lost: u64,
}

impl Figures {
    fn of(gateway: &Subject, lost: u64) -> Self {
        Self {
            memory: gateway.status("VmRSS"),
            descriptors: gateway.descriptors(),
            threads: gateway.status("Threads"),
            lost,
        }
    }

    fn print(self, when: &str) {
        let Self {
            memory,
            descriptors,
            threads,
            lost,
        } = self;
        println!(
            "{when:>8}: {memory} kB resident, {descriptors} descriptors, {threads} threads, {lost} frames lost"
        );
    }
}

/// What was done to the gateway.
#[derive(Default)]
struct Counts {
    transfers: AtomicU64,
    changes: AtomicU64,
    attacks: AtomicU64,
}

#[test]
#[ignore = "runs as long as it is told to"]
fn soak() {
    let seconds = std::env::var("ASYMQ_SOAK_SECONDS");
    let seconds = seconds.map_or(60, |seconds| seconds.parse().unwrap());
    let path = std::env::temp_dir().join(format!("asymq-soak-{}.sock", std::process::id()));
    let (stdout, _reader) = stalled_pipe();
    let Some(mut gateway) = Subject::start(Start {
        flags: &[
            "--json",
            "--metrics",
            METRICS,
            "--control",
            path.to_str().unwrap(),
        ],
        stdout,
        stderr: full_disk(),
        ..Start::default()
    }) else {
        return;
    };
    let counts = Counts::default();
    let mut lost = load(&mut gateway, &path, WARM_UP, &counts, 0);
    thread::sleep(IDLE);
    let start = Figures::of(&gateway, lost);
    start.print("start");
    lost = load(
        &mut gateway,
        &path,
        Duration::from_secs(seconds),
        &counts,
        lost,
    );
    thread::sleep(IDLE);
    let end = Figures::of(&gateway, lost);
    end.print("end");
    let Counts {
        transfers,
        changes,
        attacks,
    } = counts;
    println!(
        "{} TCP transfers, {} changes, {} rounds of attacks, {} numbered frames",
        transfers.into_inner(),
        changes.into_inner(),
        attacks.into_inner(),
        gateway.numbered_so_far(),
    );
    for line in gateway.metrics().lines() {
        if line.starts_with("asymq_lost_frames_total") && !line.ends_with(" 0") {
            println!("{line}");
        }
    }
    gateway.stops();
    assert!(end.memory <= start.memory + SLACK, "memory has grown");
    assert!(
        end.descriptors <= start.descriptors,
        "descriptors have grown"
    );
    assert!(end.threads <= start.threads, "threads have grown");
    assert_eq!(end.lost, 0, "frames were lost");
}

/// Everything at once for so long; answers how many numbered frames were lost, with those before.
fn load(
    gateway: &mut Subject,
    control: &Path,
    span: Duration,
    counts: &Counts,
    mut lost: u64,
) -> u64 {
    let place = gateway.place.clone();
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
            scope.spawn(move || {
                until_over(&mut || {
                    assert_eq!(transfer(from, to, address, 2_000_000), 2_000_000);
                    counts.transfers.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
        scope.spawn(|| {
            let mut qdiscs = ["fq", "wrr", "sad", "droptail", "aq"].into_iter().cycle();
            until_over(&mut || {
                let answer = change(control, qdiscs.next().unwrap()).unwrap();
                assert!(answer.starts_with("ok: "), "{answer}");
                counts.changes.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(200));
            });
        });
        scope.spawn(|| {
            until_over(&mut || {
                attack(&place, control);
                counts.attacks.fetch_add(1, Ordering::Relaxed);
            });
        });
        // However this ends, the others end too.
        let _over = Over(&over);
        let (started, mut told) = (Instant::now(), Instant::now());
        let mut flapped = Instant::now();
        while started.elapsed() < span {
            lost += gateway.loses();
            thread::sleep(Duration::from_millis(10));
            if flapped.elapsed() > FLAP_EVERY {
                gateway.flap();
                flapped = Instant::now();
            }
            if told.elapsed() > Duration::from_secs(30) {
                let when = format!("{} s", started.elapsed().as_secs());
                Figures::of(gateway, lost).print(&when);
                told = Instant::now();
            }
        }
    });
    lost
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clients of all bad kinds, for a second or two.
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
            // It may have been sent away for the next.
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
        // It may have had its time.
        let _ = drip.write_all(b"#");
        thread::sleep(Duration::from_millis(100));
    }
}
