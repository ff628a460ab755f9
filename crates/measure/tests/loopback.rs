//! Client and server over the loopback interface, and requests that a server refuses.

use crate::common::Running;
use asymq_measure::{Limits, MAX_FLOWS, MeasureError, Options, Probe, Token, measure};
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

impl Running {
    fn connect(&self, first: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(first).unwrap();
        stream
    }

    fn start(&self) -> (TcpStream, String) {
        let mut stream = self.connect(b"asymq-measure 1 start\n");
        let mut line = vec![0; 300];
        let length = stream.read(&mut line).unwrap();
        (stream, String::from_utf8(line[..length].to_vec()).unwrap())
    }
}

/// Returns the token in a welcome message.
fn session(welcome: &str) -> &str {
    let (_, rest) = welcome.split_once("\"session\":\"").expect(welcome);
    &rest[..16]
}

/// True if the peer closes the connection before it sends a byte.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.read(&mut [0]).map_or(true, |length| length == 0)
}

#[test]
fn a_loopback_has_rates_delays_and_advice() {
    // In one second, the loopback interface carries more than most lines in a minute.
    let server = Running::plain(Limits {
        bytes: u64::MAX,
        ..Limits::default()
    });
    let stop = AtomicBool::new(false);
    let options = Options {
        host: server.address.to_string(),
        iperf3: false,
        flows: 2,
        warmup: Duration::from_millis(300),
        duration: Duration::from_millis(1200),
        stop: &stop,
    };
    let mut stages = Vec::new();
    let measured = measure(&options, &mut |progress| {
        assert!((0.0..=1.0).contains(&progress.done), "{progress:?}");
        stages.push(progress.stage);
    });
    let measured = measured.unwrap();
    stages.dedup();
    assert_eq!(stages, ["idle", "up", "down", "both", "idle"]);
    assert!(
        measured.link.up > Some(1e8) && measured.link.down > Some(1e8),
        "{:?}",
        measured.link
    );
    let both = &measured.both;
    assert_eq!((both.goodput.up.len(), both.goodput.down.len()), (2, 2));
    assert!(both.goodput_utility > Some(0.0) && both.goodput_utility <= Some(2.0));
    assert!(both.probe_grade.is_some() && both.rpm.unwrap() > 0.0);
    let up = &measured.up;
    assert!(up.goodput.down.is_empty());
    assert_eq!(up.down.delivered, Some(0.0));
    assert!(!both.series.up.is_empty() && !both.series.probe.is_empty());
    let advice = measured.advice;
    assert!(
        advice.command.is_some() != advice.keep.is_some(),
        "{advice:?}"
    );
}

#[test]
fn the_clients_at_a_time_are_bounded_and_a_client_that_goes_makes_room() {
    let server = Running::plain(Limits {
        clients: 3,
        clients_per_network: 1,
        ..Limits::default()
    });
    let (first, welcome) = server.start();
    assert!(welcome.contains("welcome"), "{welcome}");
    let (_, refused) = server.start();
    assert!(refused.contains("busy"), "{refused}");
    drop(first);
    let end = Instant::now() + Duration::from_secs(10);
    while !server.start().1.contains("welcome") {
        assert!(Instant::now() < end, "there is no room");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_refused_client_is_told_why() {
    let server = Running::plain(Limits {
        clients: 0,
        ..Limits::default()
    });
    let options = Options {
        host: server.address.to_string(),
        iperf3: false,
        flows: 1,
        warmup: Duration::ZERO,
        duration: Duration::from_secs(1),
        stop: &AtomicBool::new(false),
    };
    let error = measure(&options, &mut |_| ()).unwrap_err();
    let MeasureError::Protocol { message, .. } = &error else {
        panic!("{error}");
    };
    assert!(message.contains("busy"), "{message}");
}

#[test]
fn bytes_and_time_of_a_client_are_bounded() {
    let server = Running::plain(Limits {
        bytes: 1_000_000,
        time: Duration::from_secs(2),
        ..Limits::default()
    });
    let (mut control, welcome) = server.start();
    let opening = format!("asymq-measure 1 down {} 0\n", session(&welcome));
    let mut data = Vec::new();
    let mut flow = server.connect(opening.as_bytes());
    // A reset ends the flow like a close.
    let _ = flow.read_to_end(&mut data);
    assert!((900_000..1_100_000).contains(&data.len()), "{}", data.len());
    let started = Instant::now();
    let _ = control.read_to_end(&mut Vec::new());
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn strangers_and_nonsense_get_nothing() {
    let server = Running::plain(Limits::default());
    let (_control, welcome) = server.start();
    let token = session(&welcome);
    for opening in [
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "\n".into(),
        "x".repeat(500),
        "asymq-measure 1 down 0000000000000000 0\n".into(),
        format!("asymq-measure 1 down {token} {MAX_FLOWS}\n"),
        format!("asymq-measure 1 down {token} 99999999999999999999999\n"),
    ] {
        assert!(is_closed(server.connect(opening.as_bytes())), "{opening}");
    }
}

#[test]
fn a_second_flow_with_a_number_ends_the_first() {
    // A full queue may lose the reset of a flow whose number the next load uses again.
    let server = Running::plain(Limits::default());
    let (_control, welcome) = server.start();
    for direction in ["up", "down"] {
        let opening = format!("asymq-measure 1 {direction} {} 3\n", session(&welcome));
        let mut first = server.connect(opening.as_bytes());
        thread::sleep(Duration::from_millis(100));
        let mut second = server.connect(opening.as_bytes());
        let started = Instant::now();
        let _ = first.read_to_end(&mut Vec::new());
        assert!(started.elapsed() < Duration::from_secs(5), "{direction}");
        // The second flow stays registered after the first has ended.
        thread::sleep(Duration::from_millis(100));
        let third = server.connect(opening.as_bytes());
        let _ = second.read_to_end(&mut Vec::new());
        assert!(started.elapsed() < Duration::from_secs(5), "{direction}");
        drop(third);
    }
}

#[test]
fn a_probe_is_echoed_at_its_own_length_and_only_to_a_session() {
    let server = Running::plain(Limits {
        probes: 2,
        ..Limits::default()
    });
    let (_control, welcome) = server.start();
    let token = Token::read(session(&welcome)).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let probe = |session, number| Probe {
        session,
        number,
        arrived: 0,
        left: 0,
    };
    let mut bytes = [0; 100];
    let mut echoed = |datagram: &[u8]| {
        socket.send(datagram).unwrap();
        socket.recv(&mut bytes).ok()
    };
    assert_eq!(echoed(&probe(Token(token.0 ^ 1), 0).write()), None);
    assert_eq!(echoed(&probe(token, 0).write()[..31]), None);
    assert_eq!(echoed(&probe(token, 1).write()), Some(Probe::LEN));
    assert_eq!(echoed(&probe(token, 2).write()), Some(Probe::LEN));
    // This probe exceeds the session's budget.
    assert_eq!(echoed(&probe(token, 3).write()), None);
}
