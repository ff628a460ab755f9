//! Long-lived QUIC flows, carried by a stack's program at home and at the servers. The programs are in
//! `scripts/quic/stacks`, whose `src/lib.rs` describes arguments and reports.

use super::FlowResults;
use crate::clock::Window;
use crate::error::{Context as _, LabError};
use crate::halt::Halt;
use crate::plan::{HOME, Plan, QUIC_PORT, SERVER};
use crate::{clock, sys};
use asymq_core::units::Duration;
use asymq_gateway::net::Netns;
use asymq_scenario::{QuicFlows as Flows, QuicStack, Scenario, Tcp};
use serde::Deserialize;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::{env, thread, time};

pub(crate) struct QuicFlows(Option<Running>);

/// The programs at home and at the servers. Each ends when its standard input is closed.
struct Running {
    ends: [End; 2],
    /// Ports at home: uploads, then downloads.
    ports: Vec<u16>,
}

struct End {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

/// Counters of a flow at one end.
#[derive(Deserialize)]
struct Report {
    port: u16,
    sends: bool,
    /// Bytes delivered in order after warm-up.
    payload: u64,
    longest_stall_ns: u64,
    /// Probe timeouts, if the stack reports them.
    timeouts: Option<u16>,
    /// Numbers of packets declared lost after warm-up.
    lost: Vec<u64>,
    /// Ranges of numbers of received packets.
    received: Vec<[u64; 2]>,
}

impl QuicFlows {
    /// Starts the programs and waits until their sockets are open. Sends nothing yet.
    pub(crate) fn open(
        scenario: &Scenario,
        plan: &Plan,
        home: &Netns,
        servers: &Netns,
    ) -> Result<Self, LabError> {
        let Some(flows) = &scenario.quic else {
            return Ok(Self(None));
        };
        let program = program(&flows.stack).ok_or_else(|| refusal(flows, "no such program"))?;
        let words = words(scenario, flows, plan);
        let start = |side: &str, namespace: &Netns| {
            let child = namespace.run(|| {
                sys::raise_priority();
                Command::new(&program)
                    .arg(side)
                    .args(&words)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
            });
            child.map(End::new).during("starting a QUIC stack")
        };
        // The servers must listen before home connects.
        let mut ends = [start("servers", servers)?, start("home", home)?];
        for end in &mut ends {
            let line = end.lines.recv_timeout(time::Duration::from_secs(30));
            if line.as_deref() != Ok("ready") {
                return Err(refusal(flows, "the program ended, or took over 30 s"));
            }
        }
        let ports = plan.quic.iter().flatten().map(|flow| flow.home_port);
        Ok(Self(Some(Running {
            ends,
            ports: ports.collect(),
        })))
    }

    /// Runs the flows until the window ends or the run is halted. Returns results: uploads, then downloads.
    pub(crate) fn run(self, window: Window, halt: &Halt) -> Result<Vec<FlowResults>, LabError> {
        let Some(mut running) = self.0 else {
            return Ok(Vec::new());
        };
        thread::sleep(window.start.saturating_since(clock::now()).into());
        for end in &mut running.ends {
            if let Some(input) = &mut end.input {
                input.write_all(b"go\n").during("starting QUIC flows")?;
            }
        }
        let mut reports = Vec::new();
        let patience = window.end + Duration::from_secs(10);
        for end in &mut running.ends {
            while clock::now() < patience && !halt.is_set() {
                match end.lines.recv_timeout(time::Duration::from_millis(50)) {
                    Ok(line) => reports.push(read(&line)?),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        let results = |port| FlowResults::from_reports(port, &reports);
        match halt.is_set() {
            true => Ok(Vec::new()),
            false => running.ports.iter().map(|port| results(*port)).collect(),
        }
    }
}

impl End {
    fn new(mut child: Child) -> Self {
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            input: child.stdin.take(),
            child,
            lines,
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl FlowResults {
    /// Combines the reports of sender and reader.
    fn from_reports(port: u16, reports: &[Report]) -> Result<Self, LabError> {
        /// IPv4, UDP and QUIC headers, tag and stream frame header in a full packet of 1500 bytes.
        const HEADERS: f64 = 64.0;
        let find = |sends| {
            let report = reports
                .iter()
                .find(|report| (report.port, report.sends) == (port, sends));
            report.ok_or_else(|| wrong(format!("no report for port {port}")))
        };
        let (sender, reader) = (find(true)?, find(false)?);
        let arrived = |number: &&u64| {
            let ranges = &reader.received;
            ranges
                .iter()
                .any(|[first, last]| (first..=last).contains(number))
        };
        Ok(Self {
            payload: reader.payload,
            wire: reader.payload as f64 * 1500.0 / (1500.0 - HEADERS),
            longest_stall: Duration::from_nanos(reader.longest_stall_ns),
            retransmissions: Some(sender.lost.len() as u32),
            timeouts: sender.timeouts,
            spurious: Some(sender.lost.iter().filter(arrived).count() as u32),
        })
    }
}

/// Arguments of each end's program, after the first argument, which is `home` or `servers`.
fn words(scenario: &Scenario, flows: &Flows, plan: &Plan) -> Vec<String> {
    let tcp = flows.tcp.unwrap_or(scenario.tcp);
    let mut words = vec![
        HOME.to_string(),
        format!("{SERVER}:{QUIC_PORT}"),
        format!("congestion={tcp}"),
        format!("ack-every={}", flows.ack_every.unwrap_or(0)),
        format!("warm={}", scenario.warmup.as_nanos()),
        format!("end={}", scenario.duration.as_nanos()),
    ];
    for (direction, flows) in ["up", "down"].into_iter().zip(&plan.quic) {
        let flow = |flow: &crate::plan::Conversation| {
            format!("{direction}:{}:{}", flow.home_port, flow.start.as_nanos())
        };
        words.extend(flows.iter().map(flow));
    }
    words
}

/// Checks the stack before resources are created.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    let Some(flows) = &scenario.quic else {
        return Ok(());
    };
    let tcp = flows.tcp.unwrap_or(scenario.tcp);
    if !matches!(tcp, Tcp::Cubic | Tcp::Bbr) {
        let message = format!("no QUIC stack here has {tcp}; write tcp=cubic or tcp=bbr");
        return Err(LabError::Quic(flows.to_string(), message));
    }
    match program(&flows.stack) {
        Some(_) => Ok(()),
        None => Err(refusal(flows, "no such program")),
    }
}

fn refusal(flows: &Flows, why: &str) -> LabError {
    let message = match (QuicStack::near(&flows.stack), flows.stack.contains('/')) {
        (Some(near), _) => near,
        (None, true) => format!("{why}: {}", flows.stack),
        (None, false) => format!(
            "{why}: asymq-quic-{} in PATH or {}; build it with scripts/quic/stacks {0}, or write the path of a program",
            flows.stack,
            cache().display(),
        ),
    };
    LabError::Quic(flows.to_string(), message)
}

fn program(stack: &str) -> Option<PathBuf> {
    if stack.contains('/') {
        return Path::new(stack).is_file().then(|| stack.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([cache()]);
    let mut programs = folders.map(|folder| folder.join(format!("asymq-quic-{stack}")));
    programs.find(|program| program.is_file())
}

/// Folder of the programs that `scripts/quic/stacks` builds.
fn cache() -> PathBuf {
    let home =
        || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| OsString::from("/"))).join(".cache");
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    cache.join("asymq/quic/bin")
}

fn read(line: &str) -> Result<Report, LabError> {
    serde_json::from_str(line).map_err(|error| wrong(format!("{line}: {error}")))
}

fn wrong(message: String) -> LabError {
    let source = io::Error::new(io::ErrorKind::InvalidData, message);
    LabError::system("reading a QUIC stack's report", source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_was_declared_lost_and_arrived_is_spurious() {
        let report = |sends, payload, lost: &[u64], received: &[[u64; 2]]| {
            let line = serde_json::json!({
                "port": 25_000, "sends": sends, "payload": payload, "longest_stall_ns": 7, "timeouts": null,
                "sent": 9, "lost": lost, "received": received,
            });
            read(&line.to_string()).unwrap()
        };
        let sender = report(true, 0, &[4, 7, 8, 20, 30], &[[0, 3]]);
        let reader = report(false, 1436, &[2], &[[0, 5], [8, 20]]);
        let results = FlowResults::from_reports(25_000, &[reader, sender]).unwrap();
        assert_eq!((results.payload, results.wire), (1436, 1500.0));
        assert_eq!(
            (results.retransmissions, results.spurious),
            (Some(5), Some(3))
        );
        assert_eq!(
            (results.timeouts, results.longest_stall.as_nanos()),
            (None, 7)
        );
    }

    #[test]
    fn an_end_that_reports_nothing_is_an_error_that_names_the_flow() {
        let error = FlowResults::from_reports(25_000, &[]).unwrap_err();
        assert!(
            error.to_string().ends_with("no report for port 25000"),
            "{error}"
        );
    }
}
