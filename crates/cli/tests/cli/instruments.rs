//! All outputs and controls of `asymq gateway` fail in every possible way while traffic flows.

use crate::common::wait::{DEADLINE, wait_for};
use crate::subject::{METRICS, Start, Subject, change, dead_pipe, full_disk, stalled_pipe};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Time in which the gateway creates at least two snapshots.
const SNAPSHOTS: Duration = Duration::from_millis(2500);
/// Maximum memory that attacks may add, in kB.
const SOME_MEMORY: u64 = 20_000;

fn with_metrics() -> Option<Subject> {
    Subject::start(Start {
        flags: &["--metrics", METRICS],
        ..Start::default()
    })
}

fn control_path(name: &str) -> PathBuf {
    let id = std::process::id();
    std::env::temp_dir().join(format!("asymq-faults-{name}-{id}.sock"))
}

const HUGE: [&str; 3] = [
    "GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
    "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
    "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
];

#[test]
fn a_body_of_any_announced_length_is_refused() {
    let Some(mut gateway) = with_metrics() else {
        return;
    };
    for request in HUGE {
        let answer = gateway.asks(request);
        assert!(answer.starts_with("HTTP/1.1 4"), "{request}: {answer}");
        gateway.flows();
    }
    gateway.serves_metrics();
    gateway.stops();
}

#[test]
fn an_endless_header_is_cut_off_and_not_kept() {
    let Some(mut gateway) = with_metrics() else {
        return;
    };
    gateway.serves_metrics();
    let before = gateway.status("VmHWM");
    let mut stream = gateway.connect().unwrap();
    // An earlier version accepted a request of more than 300 MB.
    let sent = pour(&mut stream, b"GET /metrics HTTP/1.1\r\nX: ", 300 << 20);
    assert!(sent < 300 << 20, "all of it was taken");
    gateway.flows();
    gateway.serves_metrics();
    let grown = gateway.status("VmHWM").saturating_sub(before);
    assert!(grown < SOME_MEMORY, "{grown} kB more");
    gateway.stops();
}

/// Sends `begin` and then further bytes up to `limit`, until the other end stops reading. Returns the number of bytes
/// sent.
fn pour(stream: &mut TcpStream, begin: &[u8], limit: usize) -> usize {
    stream.write_all(begin).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_secs(15)))
        .unwrap();
    let chunk = vec![b'x'; 1 << 20];
    let mut sent = 0;
    while sent < limit {
        match stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn a_thousand_half_open_clients_cost_no_thread_each_and_block_no_other() {
    let Some(mut gateway) = with_metrics() else {
        return;
    };
    gateway.serves_metrics();
    let (threads, memory) = (gateway.status("Threads"), gateway.status("VmRSS"));
    let clients: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let mut stream = gateway.connect().unwrap();
            // The server may have closed this client in favour of the next one.
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: ");
            stream
        })
        .collect();
    gateway.flows();
    gateway.serves_metrics();
    assert_eq!(gateway.status("Threads"), threads);
    assert!(gateway.descriptors() < 100);
    assert!(gateway.status("VmRSS") < memory + SOME_MEMORY);
    gateway.stops();
    drop(clients);
}

#[test]
fn a_client_that_requests_and_never_reads_is_closed_and_starves_no_other() {
    let Some(mut gateway) = with_metrics() else {
        return;
    };
    let mut greedy = gateway.connect().unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        let asks = scope.spawn(move || {
            let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
            while greedy.write_all(request.as_bytes()).is_ok() {}
        });
        for _ in 0..5 {
            gateway.flows();
            gateway.serves_metrics();
        }
        wait_for("the end of its connection", DEADLINE, || asks.is_finished());
    });
    assert!(started.elapsed() < Duration::from_secs(30));
    gateway.stops();
}

#[test]
fn clients_that_stand_still_do_not_delay_the_end() {
    let path = control_path("still");
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--metrics", METRICS, "--control", path.to_str().unwrap()],
        ..Start::default()
    }) else {
        return;
    };
    let mut asks = gateway.connect().unwrap();
    asks.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let _silent = gateway.connect().unwrap();
    let mut control = UnixStream::connect(&path).unwrap();
    control.write_all(b"qdisc = ").unwrap();
    let mut greedy = gateway.connect().unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    let greedy = thread::spawn(move || while greedy.write_all(request.as_bytes()).is_ok() {});
    gateway.flows();
    // Unread answers fill the client's buffers.
    thread::sleep(Duration::from_millis(500));
    gateway.stops();
    greedy.join().unwrap();
    assert!(!path.exists(), "the control socket goes with it");
}

#[test]
fn a_dripping_control_client_delays_no_other_and_not_the_end() {
    let path = control_path("drip");
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--control", path.to_str().unwrap()],
        ..Start::default()
    }) else {
        return;
    };
    let drip = |path: PathBuf| {
        move || {
            let mut stream = UnixStream::connect(path).unwrap();
            let started = Instant::now();
            while stream.write_all(b"#").is_ok() && started.elapsed() < DEADLINE {
                thread::sleep(Duration::from_millis(100));
            }
            started.elapsed()
        }
    };
    let first: Vec<_> = (0..3).map(|_| thread::spawn(drip(path.clone()))).collect();
    thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    let answer = change(&path, "sad").unwrap();
    assert!(answer.starts_with("ok: "), "{answer}");
    let took = asked.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?} for a change");
    gateway.flows();
    for dripping in first {
        let lasted = dripping.join().unwrap();
        assert!(lasted < Duration::from_secs(10), "{lasted:?} of dripping");
    }
    let last = thread::spawn(drip(path.clone()));
    gateway.flows();
    gateway.stops();
    last.join().unwrap();
}

#[test]
fn a_request_that_is_too_long_is_answered_with_the_limit() {
    let path = control_path("long");
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--control", path.to_str().unwrap()],
        ..Start::default()
    }) else {
        return;
    };
    let mut stream = UnixStream::connect(&path).unwrap();
    for _ in 0..20 {
        stream.write_all(&[b'#'; 4096]).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(
        answer,
        "error: reading the request: longer than 65536 bytes\n"
    );
    gateway.flows();
    gateway.stops();
}

/// Runs `check` for all outputs at the same time.
fn for_each<T: Send>(outputs: [T; 3], check: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        let checks = outputs.map(|output| scope.spawn(|| check(output)));
        checks.into_iter().for_each(|check| check.join().unwrap());
    });
}

#[test]
fn a_standard_error_that_is_full_or_dead_or_stalled_costs_only_the_log() {
    let (stalled, _reader) = stalled_pipe();
    for_each([full_disk(), dead_pipe(), stalled], |stderr| {
        let Some(mut gateway) = Subject::start(Start {
            stderr,
            ..Start::default()
        }) else {
            return;
        };
        gateway.flap();
        gateway.flows();
        gateway.stops();
    });
}

#[test]
fn json_on_a_full_disk_or_a_dead_or_stalled_pipe_costs_only_lines() {
    let (stalled, _reader) = stalled_pipe();
    let outputs = [(full_disk(), true), (dead_pipe(), true), (stalled, false)];
    for_each(outputs, |(stdout, logs)| {
        let Some(mut gateway) = Subject::start(Start {
            flags: &["--json"],
            stdout,
            stderr: Stdio::piped(),
            ..Start::default()
        }) else {
            return;
        };
        gateway.flows_for(SNAPSHOTS);
        gateway.stops();
        let mut log = String::new();
        let mut stderr = gateway.child.stderr.take().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        let told = log.matches("--json: ").count();
        assert_eq!(told, usize::from(logs), "{log}");
    });
}

#[test]
fn json_beyond_the_size_that_a_file_may_have_costs_only_lines() {
    let file = tempfile::tempfile().unwrap();
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--json"],
        stdout: file.try_clone().unwrap().into(),
        // Half a kilobyte, less than one line.
        limits: "ulimit -f 1;",
        ..Start::default()
    }) else {
        return;
    };
    wait_for("a line that is cut off", DEADLINE, || {
        file.metadata().unwrap().len() == 512
    });
    gateway.flows_for(SNAPSHOTS);
    gateway.stops();
}

#[test]
fn a_terminal_of_another_job_does_not_stop_it() {
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--watch"],
        ..Start::default()
    }) else {
        return;
    };
    // The signal's default action stops the process.
    gateway.signal("TTOU");
    gateway.flows_for(SNAPSHOTS);
    gateway.stops();
}

#[test]
fn a_table_on_a_full_disk_or_a_dead_or_stalled_pipe_costs_only_the_table() {
    let (stalled, _reader) = stalled_pipe();
    for_each([full_disk(), dead_pipe(), stalled], |stdout| {
        let Some(mut gateway) = Subject::start(Start {
            flags: &["--watch"],
            stdout,
            ..Start::default()
        }) else {
            return;
        };
        gateway.flows_for(SNAPSHOTS);
        gateway.flap();
        gateway.flows();
        gateway.stops();
    });
}

#[test]
fn under_a_memory_limit_attacks_on_the_metrics_do_not_end_it() {
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--metrics", METRICS, "--json"],
        limits: "ulimit -v 600000;",
        ..Start::default()
    }) else {
        return;
    };
    for request in HUGE {
        gateway.asks(request);
    }
    let mut stream = gateway.connect().unwrap();
    pour(&mut stream, b"GET /metrics HTTP/1.1\r\nX: ", 300 << 20);
    let clients: Vec<TcpStream> = (0..200).map(|_| gateway.connect().unwrap()).collect();
    gateway.flows();
    gateway.serves_metrics();
    gateway.stops();
    drop(clients);
}

#[test]
fn one_that_was_killed_can_be_started_again() {
    let path = control_path("killed");
    let flags = ["--control", path.to_str().unwrap(), "--metrics", METRICS];
    let start = || Start {
        flags: &flags,
        ..Start::default()
    };
    let Some(mut gateway) = Subject::start(start()) else {
        return;
    };
    gateway.serves_metrics();
    gateway.signal("KILL");
    gateway.ends_within(DEADLINE);
    let mut again = gateway.start_again(start());
    again.flows();
    again.serves_metrics();
    assert!(change(&path, "sad").unwrap().starts_with("ok: "));
    again.stops();
}
