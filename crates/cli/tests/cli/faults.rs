//! Faults around `asymq gateway`. Tests that need root print a note and pass without it.

use crate::common::wait::{DEADLINE, wait_for};
use crate::subject::{Start, Subject, stalled_pipe};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
fn an_error_at_the_start_ends_it_even_if_standard_error_blocks() {
    let (stalled, _reader) = stalled_pipe();
    // The gateway waits for a missing interface. An interface that can never exist is an error.
    let mut child = Command::new(env!("CARGO_BIN_EXE_asymq"))
        .args("gateway --lan no/where --wan nowhere --up 1mbit --down 1mbit".split(' '))
        .stderr(stalled)
        .spawn()
        .unwrap();
    let mut status = None;
    wait_for("the end of the gateway", Duration::from_secs(10), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert!(!status.unwrap().success());
}

#[test]
fn lines_that_a_stalled_standard_error_does_not_take_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asymq.toml");
    fs::write(&file, "mpu = 64\n").unwrap();
    let (stderr, reader) = stalled_pipe();
    let Some(mut gateway) = Subject::start(Start {
        flags: &["--config", file.to_str().unwrap()],
        stderr,
        ..Start::default()
    }) else {
        return;
    };
    fs::write(&file, "mpu = wrong\n").unwrap();
    // Each signal logs a line; at most 256 lines are queued. A signal merges with a pending one.
    for _ in 0..1000 {
        gateway.signal("HUP");
        thread::sleep(Duration::from_millis(3));
    }
    gateway.flows();
    let told = thread::spawn(move || {
        let lines = BufReader::new(reader).lines().map_while(Result::ok);
        let mut counts = lines.filter_map(|line| {
            let line = line.trim_start_matches('.');
            let count = line.strip_prefix("asymq gateway: ")?;
            let count = count.strip_suffix(" log lines were lost")?;
            Some(count.parse::<u64>().unwrap())
        });
        counts.next()
    });
    // The count appears when the reader continues.
    wait_for("the count of lost lines", DEADLINE, || {
        gateway.signal("HUP");
        told.is_finished()
    });
    assert!(told.join().unwrap().is_some_and(|lost| lost > 0));
    gateway.stops();
}
