//! Rates and delays of a line that `tc` emulates in network namespaces. Tests need root, `ip`, and tc's tbf. Otherwise
//! they print a note and pass.

use crate::common::Running;
use asymq_gateway::net::{Netns, Network, VethEnd};
use asymq_measure::{Limits, Link, MeasureError, Measured, Options, Range, Server, measure};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use std::{fs, io, thread};

const SERVER: &str = "10.9.2.2";
/// IP bytes of a full packet, divided by the bytes that tbf counts.
const IP_SHARE: f64 = 1500.0 / 1514.0;

/// Home, router and server, connected in a row.
struct Line {
    home: Netns,
    router: Netns,
    server: Netns,
}

fn end(name: &'static str, index: u8) -> VethEnd<'static> {
    VethEnd {
        name,
        index: index.into(),
        mac: [2, 0, 0, 0, 9, index],
    }
}

/// Runs a command line in the calling thread's namespace.
fn command(line: &str) -> io::Result<()> {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output()?;
    let message = || String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{line}: {}", message().trim()))),
    }
}

impl Line {
    /// Creates a line with these rates in kbit/s, and queues of `queue_ms` milliseconds.
    fn new(up: u64, down: u64, queue_ms: u64) -> io::Result<Self> {
        let line = Self {
            home: Netns::new()?,
            router: Netns::new()?,
            server: Netns::new()?,
        };
        let pair = |a: &Netns, end_a, b: &Netns, end_b| {
            a.run(|| Network::open()?.add_veth(end_a, end_b, b.as_fd()))
        };
        pair(&line.home, end("h0", 11), &line.router, end("r0", 21))?;
        pair(&line.router, end("r1", 22), &line.server, end("s0", 31))?;
        let host = |name: &str, address: &str, router: &str| {
            command("ip link set lo up")?;
            command(&format!("ip address add {address}/24 dev {name}"))?;
            command(&format!("ip link set {name} up"))?;
            command(&format!("ip route add default via {router}"))
        };
        let shaped = |name: &str, rate: u64| {
            let (burst, limit) = (rate / 2 + 3000, rate * queue_ms / 8 + 3000);
            command(&format!(
                "tc qdisc add dev {name} root tbf rate {rate}kbit burst {burst} limit {limit}"
            ))
        };
        line.router.run(|| {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            for (name, address) in [("r0", "10.9.1.1"), ("r1", "10.9.2.1")] {
                command(&format!("ip address add {address}/24 dev {name}"))?;
                command(&format!("ip link set {name} up"))?;
            }
            shaped("r1", up)?;
            shaped("r0", down)
        })?;
        line.home.run(|| host("h0", "10.9.1.2", "10.9.1.1"))?;
        line.server.run(|| host("s0", SERVER, "10.9.2.1"))?;
        Ok(line)
    }

    /// Like `new`; prints a note and returns `None` if the line cannot be created.
    fn or_skip(up: u64, down: u64, queue_ms: u64) -> Option<Self> {
        match Self::new(up, down, queue_ms) {
            Ok(line) => Some(line),
            Err(error) => {
                eprintln!("skipped: {error}; this test needs root, ip and tc's tbf");
                None
            }
        }
    }

    /// Runs a server of this crate in the server's namespace, until the returned value is dropped.
    fn serve<S: Send + 'static>(
        &self,
        bind: fn(Arc<AtomicBool>) -> io::Result<S>,
        address: fn(&S) -> io::Result<SocketAddr>,
        run: fn(S) -> io::Result<()>,
    ) -> Running {
        let started = self.server.run(|| Running::of(bind, address, run));
        started.unwrap()
    }

    fn measure(&self, flows: usize, iperf3: bool) -> Result<Measured, MeasureError> {
        let options = Options {
            host: SERVER.into(),
            iperf3,
            flows,
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(5),
            stop: &AtomicBool::new(false),
        };
        let run = || Ok(measure(&options, &mut |_| ()));
        self.home.run(run).unwrap()
    }
}

/// True if a value differs from the truth by at most the given share.
fn is_near(value: Option<f64>, truth: f64, share: f64) -> bool {
    value.is_some_and(|value| (value / truth - 1.0).abs() < share)
}

#[test]
fn rates_are_those_of_the_line_and_a_delay_is_that_of_its_full_queue() {
    const UP: u64 = 1000;
    const DOWN: u64 = 10_000;
    const QUEUE_MS: u64 = 200;
    let Some(line) = Line::or_skip(UP, DOWN, QUEUE_MS) else {
        return;
    };
    let bind = |stop| Server::bind(None, Limits::default(), stop);
    let _server = line.serve(bind, Server::address, Server::run);
    let (up, down) = (1e3 * UP as f64 * IP_SHARE, 1e3 * DOWN as f64 * IP_SHARE);
    // One of three attempts must match: BBR and a busy machine leave the line idle at times.
    let near = |measured: &Measured| {
        println!("{:?}", measured.link);
        is_near(measured.link.up, up, 0.04) && is_near(measured.link.down, down, 0.04)
    };
    let mut readings = (0..3).map(|_| line.measure(4, false).unwrap());
    let measured = readings.find(near).expect("a reading within 4 %");
    // TCP fills a tail-drop queue and then backs off. Most packets find the queue more than half full.
    let upload = &measured.up;
    let delay = upload.up.probe_ms.unwrap();
    let full = QUEUE_MS as f64 + 24.0;
    assert!(
        delay.p99 < full + 20.0 && delay.p99 > 0.8 * full,
        "{delay:?}"
    );
    assert!(upload.down.probe_ms.unwrap().p50 < 5.0, "{upload:?}");
    assert!(measured.idle_ms.unwrap().p50 < 5.0);
    let flags = measured.advice.command.unwrap();
    let expected = "asymq gateway --lan LAN --wan WAN --up 9";
    assert!(flags.starts_with(expected), "{flags}");
    assert!(
        flags.contains("kbit --down 9") && flags.ends_with("mbit --qdisc-down asymq"),
        "{flags}"
    );
}

/// True if a capacity is within 2 % of the truth, or its range contains the truth.
fn is_covered(rate: Option<f64>, range: Option<Range>, truth: f64) -> bool {
    let in_range = range.is_some_and(|range| (range.low..=range.high).contains(&truth));
    is_near(rate, truth, 0.02) || in_range
}

/// True if the capacities match a line of these rates in kbit/s.
fn is_line(link: &Link, up: u64, down: u64) -> bool {
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let ends = [
        (link.up, link.up_range, up),
        (link.down, link.down_range, down),
    ];
    let is_end = |(rate, range, line): (Option<f64>, Option<Range>, u64)| {
        let truth = 1e3 * line as f64 * IP_SHARE;
        let error = rate.map(|rate| 100.0 * (rate / truth - 1.0));
        let shares = range.map(|of| [of.low / truth, of.high / truth]);
        println!("{line} kbit/s: error {error:.1?} %, range {shares:.3?}, load {load}");
        is_covered(rate, range, truth)
    };
    ends.map(is_end) == [true; 2]
}

/// Measures a line with buffers of `queue_ms` in both directions, and checks the main results.
fn check_long_buffers(line: &Line, [up, down, queue_ms]: [u64; 3], flows: usize, iperf3: bool) {
    let measured = match iperf3 {
        false => line.measure(flows, false).unwrap(),
        true => measure_when_ready(line),
    };
    let both = &measured.both;
    let [up_share, down_share] = [both.up.delivered, both.down.delivered];
    println!("{queue_ms} ms, {flows} flows, iperf3 {iperf3}, both {up_share:?} {down_share:?}");
    assert!(is_line(&measured.link, up, down), "{:?}", measured.link);
    assert!(both.down.delivered > Some(0.0), "{both:?}");
    assert!(!both.series.down.is_empty() && !both.goodput.down.is_empty());
}

#[test]
fn capacity_is_that_of_the_line_with_a_second_of_buffer() {
    let numbers = [1000, 10_000, 1000];
    let Some(line) = Line::or_skip(numbers[0], numbers[1], numbers[2]) else {
        return;
    };
    let bind = |stop| Server::bind(None, Limits::default(), stop);
    let _server = line.serve(bind, Server::address, Server::run);
    let flows = std::env::var("ASYMQ_LONG").map_or(vec![4], |_| vec![4, 16]);
    for flows in flows {
        check_long_buffers(&line, numbers, flows, false);
    }
}

/// Lines: rate up and rate down in kbit/s, and buffer in ms.
const LONG: [[u64; 3]; 5] = [
    [512, 8000, 2000],
    [256, 1000, 3000],
    [1000, 20_000, 1000],
    [5000, 50_000, 3000],
    [20_000, 200_000, 50],
];

#[test]
fn capacity_is_that_of_the_line_with_long_buffers() {
    if std::env::var_os("ASYMQ_LONG").is_none() {
        eprintln!("skipped: ASYMQ_LONG=1 runs it");
        return;
    }
    for numbers in LONG {
        let Some(line) = Line::or_skip(numbers[0], numbers[1], numbers[2]) else {
            return;
        };
        let bind = |stop| Server::bind(None, Limits::default(), stop);
        let _server = line.serve(bind, Server::address, Server::run);
        check_long_buffers(&line, numbers, 4, false);
        if let Some(_iperf3) = serve(&line, "iperf3", "-s") {
            check_long_buffers(&line, numbers, 4, true);
        }
    }
}

/// A process that is killed when the value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program on the server's side; prints a note and returns `None` if the program is not installed.
fn serve(line: &Line, program: &str, argument: &str) -> Option<Process> {
    let mut command = Command::new(program);
    command.arg(argument);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = line.server.run(|| command.spawn()).map(Process);
    if running.is_err() {
        eprintln!("skipped: there is no {program} (apt install {program})");
    }
    running.ok()
}

/// Measures as soon as the servers listen.
fn measure_when_ready(line: &Line) -> Measured {
    let mut measured = line.measure(4, true);
    for _ in 0..20 {
        match &measured {
            Err(MeasureError::System { source, .. })
                if source.kind() == io::ErrorKind::ConnectionRefused =>
            {
                thread::sleep(Duration::from_millis(100));
                measured = line.measure(4, true);
            }
            _ => break,
        }
    }
    measured.unwrap()
}

#[test]
fn an_iperf3_server_gives_the_same_rates() {
    const UP: u64 = 5000;
    const DOWN: u64 = 20_000;
    let Some(line) = Line::or_skip(UP, DOWN, 50) else {
        return;
    };
    let Some(_server) = serve(&line, "iperf3", "-s") else {
        return;
    };
    let measured = measure_when_ready(&line);
    let (up, down) = (1e3 * UP as f64 * IP_SHARE, 1e3 * DOWN as f64 * IP_SHARE);
    assert!(is_near(measured.link.up, up, 0.05), "{:?}", measured.link);
    assert!(
        is_near(measured.link.down, down, 0.05),
        "{:?}",
        measured.link
    );
    let both = &measured.both;
    assert_eq!((both.goodput.up.len(), both.goodput.down.len()), (4, 4));
    assert!(both.probe_ms.is_none());
}

#[cfg(feature = "https")]
mod https {
    use super::*;
    use asymq_measure::{Confidence, HttpsServer, TestOptions, Tested, test_responsiveness};

    impl Line {
        /// Tests the line; `progress` collects the names of the stages.
        fn test(
            &self,
            connections: usize,
            longest: u64,
            progress: &mut (dyn FnMut(&'static str) + Send),
        ) -> Tested {
            let bind = |stop| HttpsServer::bind(None, None, Limits::default(), stop);
            let server = self.serve(bind, HttpsServer::address, HttpsServer::run);
            let options = TestOptions {
                url: format!("https://{SERVER}:{}", server.address.port()),
                connections,
                interval: Duration::from_secs(1),
                longest: Duration::from_secs(longest),
                stop: &AtomicBool::new(false),
            };
            // A namespace belongs to a thread, so the test must create its threads within the namespace.
            let run = || {
                Ok(test_responsiveness(&options, &mut |now| {
                    progress(now.stage)
                }))
            };
            self.home.run(run).unwrap().unwrap()
        }

        /// Bytes and packets that have left the router for the server.
        fn carried(&self) -> io::Result<[f64; 2]> {
            let mut show = Command::new("tc");
            show.args(["-s", "qdisc", "show", "dev", "r1"]);
            let output = self.router.run(|| show.output())?;
            let text = String::from_utf8_lossy(&output.stdout);
            let sent = text
                .split_once("Sent ")
                .map(|(_, counts)| counts.split(' '));
            let counts = sent
                .into_iter()
                .flatten()
                .filter_map(|word| word.parse().ok());
            let counts: Vec<f64> = counts.take(2).collect();
            counts.try_into().map_err(|_| io::Error::other(text))
        }
    }

    #[test]
    fn responsiveness_includes_the_full_queue_and_uploads_count_carried_bytes() {
        const UP: u64 = 5000;
        const DOWN: u64 = 20_000;
        const QUEUE_MS: u64 = 150;
        let Some(line) = Line::or_skip(UP, DOWN, QUEUE_MS) else {
            return;
        };
        let mut carried: Vec<[f64; 2]> = Vec::new();
        let tested = line.test(8, 8, &mut |stage| {
            if stage == "up" {
                carried.push(line.carried().unwrap());
            }
        });
        check_full_queue(&tested, [UP, DOWN], QUEUE_MS as f64);
        check_carried(&tested, &carried, 1e3 * UP as f64);
    }

    /// Checks delays and rates of the loads up and down on a line with a queue of `queue_ms`.
    fn check_full_queue(tested: &Tested, [up, down]: [u64; 2], queue_ms: f64) {
        let idle = tested.idle.unwrap();
        assert!(idle.tcp_ms < 10.0, "{idle:?}");
        for (name, load, rate, truth) in [
            ("up", &tested.up, tested.up.rate.up, up),
            ("down", &tested.down, tested.down.rate.down, down),
        ] {
            let payload = 1e3 * truth as f64 * IP_SHARE;
            assert!(
                rate > 0.8 * payload && rate < 1.05 * payload,
                "{name}: {load:?}"
            );
            assert!(
                load.rate_confidence >= Confidence::Medium,
                "{name}: {load:?}"
            );
            // A new connection waits in the same queue, which is half full to full.
            let of = load.responsiveness.unwrap();
            let full = queue_ms + 10.0;
            assert!(of.foreign.tcp_ms > 0.4 * full, "{name}: {of:?}");
            assert!(of.foreign.tcp_ms < full + 100.0, "{name}: {of:?}");
            assert!(of.rpm < 60_000.0 / (0.4 * full), "{name}: {of:?}");
        }
    }

    /// Checks that the upload's rate counts bytes that have left the router, and not bytes in the socket.
    fn check_carried(tested: &Tested, carried: &[[f64; 2]], link: f64) {
        // The rate covers the last four intervals, in which the line is full.
        let [.., (from, _), _, _, _, (to, _)] = tested.up.series.up[..] else {
            panic!("{:?}", tested.up)
        };
        let before = (carried.len() as f64 * from / to) as usize;
        let (before, after) = (carried[before], carried[carried.len() - 1]);
        let [bytes, packets] = [0, 1].map(|of| after[of] - before[of]);
        // Ethernet, IPv4, TCP with timestamps.
        let payload = link * (1.0 - 66.0 * packets / bytes);
        // Handshake and request of each new connection are about 1 kB.
        let opened = tested.up.responsiveness.unwrap().foreign.probes + 4;
        let payload = payload - 8e3 * opened as f64 / (to - from);
        // TLS and HTTP/2 add 31 bytes to each 3000 bytes of data.
        let truth = payload * 3000.0 / 3031.0;
        let rate = tested.up.rate.up;
        println!(
            "{rate:.0} of {truth:.0} bit/s, {:?}",
            tested.up.rate_confidence
        );
        assert!(
            is_near(Some(rate), truth, 0.03),
            "{rate} of {truth}: {:?}",
            tested.up
        );
    }

    #[test]
    fn a_second_of_buffer_ends_no_test_and_its_rates_are_the_lines_or_doubted() {
        let Some(line) = Line::or_skip(1000, 10_000, 1000) else {
            return;
        };
        let tested = line.test(8, 8, &mut |_| ());
        // Headers of TCP, IP, TLS and HTTP/2 are 5 to 6 % of a frame.
        for (load, rate, line) in [
            (&tested.up, tested.up.rate.up, 1e6),
            (&tested.down, tested.down.rate.down, 1e7),
        ] {
            println!("{rate:.0} of {line} bit/s, {:?}", load.rate_confidence);
            let is_right = rate > 0.85 * line && rate < 0.97 * line;
            assert!(
                is_right || load.rate_confidence < Confidence::High,
                "{load:?}"
            );
        }
    }

    #[test]
    fn capacity_of_the_responsiveness_test_is_the_lines() {
        let lines = match std::env::var("ASYMQ_LONG") {
            Err(_) => vec![[2000, 20_000, 100]],
            Ok(_) => LONG.into(),
        };
        for [up, down, queue_ms] in lines {
            let Some(line) = Line::or_skip(up, down, queue_ms) else {
                return;
            };
            println!("{queue_ms} ms, https");
            let is_right = |_| {
                let tested = line.test(16, 20, &mut |_| ());
                // A busy machine may not carry the fastest line.
                let doubts = [tested.up.rate_confidence, tested.down.rate_confidence]
                    .map(|confidence| confidence < Confidence::High);
                println!("in doubt {doubts:?}");
                is_line(&tested.link, up, down) || doubts != [false; 2]
            };
            // One range in twenty may miss the truth.
            assert!((0..2).any(is_right), "{up}/{down} kbit/s");
        }
    }
}
