//! Hostile clients: during each attack, the server keeps its limits, and a client of another network gets a session.

use crate::common::Running;
use asymq_measure::Limits;
use socket2::{Domain, Socket, Type};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const START: &[u8] = b"asymq-measure 1 start\n";

fn connect(server: SocketAddr, host: u8) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into())?;
    socket.connect(&server.into())?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(socket.into())
}

/// Opens a session. Returns the stream and the answer's text.
fn start(server: SocketAddr, host: u8) -> io::Result<(TcpStream, String)> {
    let mut stream = connect(server, host)?;
    stream.write_all(START)?;
    let mut line = vec![0; 300];
    let length = stream.read(&mut line)?;
    Ok((stream, String::from_utf8_lossy(&line[..length]).into()))
}

fn token(welcome: &str) -> &str {
    let (_, rest) = welcome.split_once("\"session\":\"").expect(welcome);
    &rest[..16]
}

/// Checks that another host gets a session within 2 s, in each of 8 attempts (20 with `ASYMQ_LONG=1`).
fn assert_another_gets_a_session(server: SocketAddr, host: u8) {
    let attempts = std::env::var_os("ASYMQ_LONG").map_or(8, |_| 20);
    for attempt in 0..attempts {
        let begin = Instant::now();
        let opened = start(server, host).map(|(_, answer)| answer);
        let welcome = opened
            .as_ref()
            .is_ok_and(|answer| answer.contains("welcome"));
        assert!(welcome, "attempt {attempt}: {opened:?}");
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(2), "attempt {attempt}: {took:?}");
        // The server detects a client's end within 200 ms.
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn bytes_bound_a_client_that_reopens_flows() {
    const BYTES: usize = 10_000_000;
    let server = Running::plain(Limits {
        bytes: BYTES as u64,
        ..Limits::default()
    });
    let (_control, welcome) = start(server.address, 1).unwrap();
    let mut total = 0;
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let mut flow = connect(server.address, 1).unwrap();
        let opening = format!("asymq-measure 1 down {} 0\n", token(&welcome));
        flow.write_all(opening.as_bytes()).unwrap();
        let mut bytes = [0; 1 << 16];
        // A reset or a close ends the flow.
        while let Ok(length @ 1..) = flow.read(&mut bytes) {
            total += length;
        }
    }
    assert!(total > BYTES / 2 && total <= BYTES, "{total}");
}

#[cfg(target_os = "linux")]
#[test]
fn silent_connections_cost_no_thread_and_block_no_other() {
    let server = Running::plain(Limits::default());
    let before = threads();
    let _silent: Vec<_> = (0..400)
        .filter_map(|_| connect(server.address, 2).ok())
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    // Other tests of this process also have threads.
    assert!(threads() < before + 200, "{} of {before}", threads());
    assert_another_gets_a_session(server.address, 3);
}

#[test]
fn idle_sessions_yield_their_places() {
    let server = Running::plain(Limits::default());
    let mut idle: Vec<_> = (0..8)
        .map(|index| start(server.address, 10 + index / 2).unwrap())
        .collect();
    assert!(idle.iter().all(|(_, answer)| answer.contains("welcome")));
    std::thread::sleep(Duration::from_millis(1200));
    assert_another_gets_a_session(server.address, 3);
    // The server has ended one of the eight sessions for the newcomer.
    let ended = |(stream, _): &mut (TcpStream, String)| {
        let time = Some(Duration::from_millis(100));
        stream.set_read_timeout(time).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    };
    assert_eq!(
        idle.iter_mut()
            .filter_map(|of| ended(of).then_some(()))
            .count(),
        1
    );
}

#[test]
fn a_trickle_does_not_keep_a_session() {
    let server = Running::plain(Limits::default());
    let mut held: Vec<_> = (0..8)
        .map(|index| start(server.address, 20 + index / 2).unwrap())
        .collect();
    let flows: Vec<TcpStream> = held
        .iter()
        .zip(0..)
        .map(|((_, welcome), index)| {
            let mut flow = connect(server.address, 20 + index / 2).unwrap();
            let opening = format!("asymq-measure 1 up {} 0\nx", token(welcome));
            flow.write_all(opening.as_bytes()).unwrap();
            flow
        })
        .collect();
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        for mut flow in &flows {
            let _ = flow.write(b"x");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_another_gets_a_session(server.address, 3);
    held.clear();
}
