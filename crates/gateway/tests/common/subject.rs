//! A gateway in its own process between two hosts, tested from outside.
#![allow(dead_code, reason = "every test program uses a part of it")]

use crate::common::wait::{DEADLINE, wait_for};
use crate::common::wire::{Tap, numbered, send};
use crate::common::{Place, WAN};
use asymq_gateway::net::Network;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Address for the gateway's metrics in its own network namespace.
pub(crate) const METRICS: &str = "127.0.0.1:9800";
/// Maximum time from SIGTERM to the end: the time to send the queue, one second, and a margin for a busy machine.
pub(crate) const END: Duration = Duration::from_secs(8);
/// Number of frames that must arrive before traffic counts as working.
const FRAMES: u32 = 20;

pub(crate) struct Subject {
    pub(crate) child: Child,
    pub(crate) place: Arc<Place>,
    tap: Tap,
    next: u32,
}

/// Options with which the gateway starts.
pub(crate) struct Start<'a> {
    pub(crate) flags: &'a [&'a str],
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    /// Shell commands that run before the gateway starts.
    pub(crate) limits: &'a str,
}

impl Default for Start<'_> {
    fn default() -> Self {
        Self {
            flags: &[],
            stdout: Stdio::null(),
            stderr: Stdio::inherit(),
            limits: "",
        }
    }
}

impl Subject {
    /// Starts the gateway, and waits until it forwards; `None` if network namespaces cannot be created.
    pub(crate) fn start(start: Start<'_>) -> Option<Self> {
        let place = Place::new()?;
        place.middle.run(|| Network::open()?.set_up(1)).unwrap();
        Some(Self::start_in(Arc::new(place), start))
    }

    /// Starts a new gateway between the same hosts.
    pub(crate) fn start_again(&self, start: Start<'_>) -> Self {
        Self::start_in(self.place.clone(), start)
    }

    fn start_in(place: Arc<Place>, start: Start<'_>) -> Self {
        let command = crate::command(start.flags);
        let script = format!(
            "{} exec \"$0\" \"$@\" {}",
            start.limits,
            crate::REDIRECTIONS
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(command.get_program());
        shell.args(command.get_args());
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap());
        }
        shell.stdin(Stdio::null());
        shell.stdout(start.stdout).stderr(start.stderr);
        let child = place.middle.run(|| shell.spawn()).unwrap();
        // This process must not keep the ends of the pipes open.
        drop(shell);
        let tap = Tap::open(&place.net);
        let mut subject = Self {
            child,
            place,
            tap,
            next: 1,
        };
        wait_for("the first frame through the gateway", DEADLINE, || {
            send(&subject.place.home, &[numbered(0, 60)]);
            subject.tap.poll() > 0
        });
        subject
    }

    /// Sends the next frames from home.
    fn send_next(&mut self, count: u32) -> Vec<Vec<u8>> {
        let first = self.next;
        self.next += count;
        let frames: Vec<_> = (first..self.next)
            .map(|number| numbered(number, 60))
            .collect();
        send(&self.place.home, &frames);
        frames
    }

    /// Sends frames from home, and checks that all arrive in order.
    #[track_caller]
    pub(crate) fn flows(&mut self) {
        let frames = self.send_next(FRAMES);
        let tap = &mut self.tap;
        wait_for("frames through the gateway", DEADLINE, || {
            tap.poll();
            // Ignores frames that were sent before the gateway forwarded, and that arrive late.
            tap.frames.retain(|frame| frame[20..24] != [0; 4]);
            tap.frames.len() >= frames.len()
        });
        assert_eq!(std::mem::take(&mut tap.frames), frames);
    }

    /// Sends this many frames from home.
    pub(crate) fn sends(&mut self, count: u32) {
        self.send_next(count);
    }

    /// Returns the numbers of the frames that have arrived since the last call.
    pub(crate) fn arrived(&mut self) -> Vec<u32> {
        self.tap.poll();
        let frames = self.tap.frames.drain(..);
        frames
            .map(|frame| u32::from_be_bytes(frame[20..24].try_into().unwrap()))
            .collect()
    }

    /// Checks repeatedly for `span` that traffic passes.
    #[track_caller]
    pub(crate) fn flows_for(&mut self, span: Duration) {
        let start = Instant::now();
        while start.elapsed() < span {
            self.flows();
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Takes the interface towards the net down and up again, and checks the log.
    pub(crate) fn flap(&mut self) {
        let middle = &self.place.middle;
        middle.run(|| Network::open()?.set_down(WAN)).unwrap();
        // If the gateway detected the failure only after the recovery, it would lose the frames sent in between.
        wait_for("the gateway to notice", DEADLINE, || {
            let sockets = middle.run(|| std::fs::read_to_string("/proc/thread-self/net/packet"));
            let bound_to = |line: &str| line.split_whitespace().nth(4) == Some(&WAN.to_string());
            !sockets.unwrap().lines().any(bound_to)
        });
        let (place, tap) = (&self.place, &mut self.tap);
        // Discards earlier frames, which do not prove the recovery.
        tap.poll();
        tap.frames.clear();
        middle.run(|| Network::open()?.set_up(WAN)).unwrap();
        wait_for("the interface to be back", DEADLINE, || {
            send(&place.home, &[numbered(0, 60)]);
            std::thread::sleep(Duration::from_millis(20));
            tap.poll() > 0
        });
    }

    /// Connects a client to the metrics' server.
    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        connect(&self.place)
    }

    /// Sends a request to the metrics' server, and returns the response.
    pub(crate) fn asks(&self, request: &str) -> String {
        let mut stream = self.connect().unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A reset after the answer is harmless.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    pub(crate) fn metrics(&self) -> String {
        self.asks("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    }

    #[track_caller]
    pub(crate) fn serves_metrics(&self) {
        let asked = Instant::now();
        let answer = self.metrics();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\nasymq_packets_total{"), "{answer}");
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(3), "{took:?} for the metrics");
    }

    /// Returns a number from `/proc/PID/status`.
    pub(crate) fn status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn descriptors(&self) -> usize {
        let fds = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        fds.unwrap().count()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &id]).status();
        assert!(kill.unwrap().success());
    }

    /// Waits until the gateway ends.
    #[track_caller]
    pub(crate) fn ends_within(&mut self, span: Duration) -> ExitStatus {
        let mut status = None;
        wait_for("the end of the gateway", span, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Sends SIGTERM, and checks that the gateway ends successfully and in time.
    #[track_caller]
    pub(crate) fn stops(&mut self) {
        self.signal("TERM");
        let status = self.ends_within(END);
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects a client to the metrics of the gateway at `place`.
pub(crate) fn connect(place: &Place) -> io::Result<TcpStream> {
    connect_to(place, METRICS)
}

/// Connects a client to the server `address` at `place`.
pub(crate) fn connect_to(place: &Place, address: &str) -> io::Result<TcpStream> {
    let address: SocketAddr = address.parse().unwrap();
    let connect = || {
        let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(stream)
    };
    place.middle.run(connect)
}

/// A file on which every write fails with ENOSPC.
pub(crate) fn full_disk() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

/// A pipe whose reader has gone.
pub(crate) fn dead_pipe() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a full pipe, and its reader, which never reads.
pub(crate) fn stalled_pipe() -> (Stdio, PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    set_nonblocking(&writer, true);
    while (&writer).write(&[b'.'; 4096]).is_ok() {}
    set_nonblocking(&writer, false);
    (writer.into(), reader)
}

fn set_nonblocking(pipe: &io::PipeWriter, on: bool) {
    use std::os::fd::AsRawFd as _;
    // SAFETY: the descriptor stays open while it is borrowed.
    let done = unsafe {
        let flags = libc::fcntl(pipe.as_raw_fd(), libc::F_GETFL);
        let flags = match on {
            true => flags | libc::O_NONBLOCK,
            false => flags & !libc::O_NONBLOCK,
        };
        libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags)
    };
    assert_eq!(done, 0);
}

/// Sends a request to the control socket, and returns the answer.
pub(crate) fn change(control: &Path, qdisc: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(control)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(format!("qdisc = \"{qdisc}\"").as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
