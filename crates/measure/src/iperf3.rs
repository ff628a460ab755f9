//! Rates by an `iperf3 -s`, in its own protocol: a cookie opens each connection, single bytes name the
//! states of the control connection, and parameters and results are JSON behind a length of four bytes.

use crate::error::{Doing as _, MeasureError};
use crate::flows::{CONNECT, Flow, connect};
use crate::load::{Carried, Count, Counts};
use crate::prober::Window;
use asymq_core::Direction;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Port of an iperf3 server.
pub(crate) const PORT: u16 = 5201;

/// States of the control connection.
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
const ACCESS_DENIED: u8 = 255;
const SERVER_ERROR: u8 = 254;

/// Bytes of a cookie: 36 characters and a zero.
const COOKIE: usize = 37;
/// Maximum bytes of the server's results.
const MAX_RESULTS: u32 = 1 << 20;

/// A test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub(crate) flows: usize,
    pub(crate) up: bool,
    pub(crate) down: bool,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
}

impl Test {
    /// Runs the test. `tick` shows the goodput up and down in bit/s, and waits.
    pub(crate) fn run(
        &self,
        server: SocketAddr,
        clock: Instant,
        tick: &mut dyn FnMut(f64, f64) -> Result<(), MeasureError>,
    ) -> Result<Carried, MeasureError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::InvalidData => MeasureError::Protocol {
                server: server.to_string(),
                message: error.to_string(),
            },
            _ => MeasureError::System {
                doing: format!("talking to iperf3 at {server}"),
                source: error,
            },
        };
        let cookie = cookie().map_err(failed)?;
        let mut control = connect(server, &cookie)
            .doing(|| format!("connecting to {server} (iperf3 -s, there)"))?;
        let flows = self
            .prepare(&mut control, &cookie, server)
            .map_err(failed)?;
        let started = clock.elapsed().as_secs_f64();
        let window = Window {
            from: started + self.warmup.as_secs_f64(),
            to: started + (self.warmup + self.duration).as_secs_f64(),
        };
        let of = |direction| flows.iter().filter(move |(of, _)| *of == direction);
        let bytes = |direction| of(direction).map(|(_, flow)| flow.moved()).collect();
        let [mut sent, mut received] = [Counts::default(), Counts::default()];
        while clock.elapsed().as_secs_f64() < window.to {
            tick(sent.latest(), received.latest())?;
            let at = clock.elapsed().as_secs_f64();
            let count = |direction| Count {
                at,
                bytes: bytes(direction),
            };
            sent.0.push(count(Direction::Up));
            received.0.push(count(Direction::Down));
            if flows.iter().any(|(_, flow)| flow.has_ended()) {
                return Err(failed(invalid("iperf3 ended a flow before its time")));
            }
        }
        let ip_bytes = flows
            .first()
            .map_or(1.0, |(_, flow)| flow.ip_bytes_per_payload());
        let results = finish(&mut control, &flows).map_err(failed)?;
        drop(flows);
        Ok(Carried {
            up: self.uploads(&results).map_err(failed)?,
            down: received.rates(window),
            series_down: if self.down {
                received.series(started)
            } else {
                Vec::new()
            },
            ip_bytes,
            ..Carried::default()
        })
    }

    /// Agrees on the test, and opens its flows.
    fn prepare(
        &self,
        control: &mut TcpStream,
        cookie: &[u8],
        server: SocketAddr,
    ) -> io::Result<Vec<(Direction, Flow)>> {
        control.set_read_timeout(Some(CONNECT))?;
        expect(control, PARAM_EXCHANGE)?;
        let mut parameters = json!({
            "tcp": true,
            "omit": self.warmup.as_secs(),
            "time": (self.warmup + self.duration).as_secs() + 1,
            "num": 0,
            "blockcount": 0,
            "parallel": self.flows,
            "len": 131_072,
            "pacing_timer": 1000,
            "client_version": "3.12",
        });
        // iperf3 takes the presence of these keys for true.
        match (self.up, self.down) {
            (true, true) => parameters["bidirectional"] = true.into(),
            (false, true) => parameters["reverse"] = true.into(),
            _ => {}
        }
        write_json(control, &parameters)?;
        expect(control, CREATE_STREAMS)?;
        let mut flows = Vec::new();
        for (direction, wanted) in [(Direction::Up, self.up), (Direction::Down, self.down)] {
            for _ in 0..if wanted { self.flows } else { 0 } {
                flows.push((direction, connect(server, cookie)?));
            }
        }
        expect(control, TEST_START)?;
        expect(control, TEST_RUNNING)?;
        let start = |(direction, stream)| Ok((direction, Flow::start(stream, direction)?));
        flows.into_iter().map(start).collect()
    }

    /// Bit/s of the uploads, as the server counted them after the warm-up.
    fn uploads(&self, results: &Value) -> io::Result<Vec<f64>> {
        if !self.up {
            return Ok(Vec::new());
        }
        let streams = results["streams"].as_array();
        let streams = streams.ok_or_else(|| invalid("iperf3's results name no streams"))?;
        let rate = |stream: &Value| {
            let time = stream["end_time"].as_f64()? - stream["start_time"].as_f64()?;
            let rate = 8.0 * stream["bytes"].as_f64()? / time;
            rate.is_finite().then_some(rate)
        };
        let uploads = streams.iter().take(self.flows).map(rate);
        let uploads: Option<Vec<f64>> = uploads.collect();
        uploads.ok_or_else(|| invalid("iperf3's results lack bytes or times"))
    }
}

/// Ends the test and exchanges results.
fn finish(control: &mut TcpStream, flows: &[(Direction, Flow)]) -> io::Result<Value> {
    control.write_all(&[TEST_END])?;
    // The answer waits in the queue that the load has filled.
    control.set_read_timeout(Some(Duration::from_secs(30)))?;
    expect(control, EXCHANGE_RESULTS)?;
    let streams: Vec<Value> = flows
        .iter()
        .enumerate()
        .map(|(index, (_, flow))| {
            // iperf3 numbers its streams 1, 3, 4, ...
            let id = if index == 0 { 1 } else { index + 2 };
            json!({
                "id": id, "bytes": flow.moved(), "retransmits": -1, "jitter": 0, "errors": 0,
                "packets": 0, "start_time": 0, "end_time": 1,
            })
        })
        .collect();
    let own = json!({
        "cpu_util_total": 0.0, "cpu_util_user": 0.0, "cpu_util_system": 0.0,
        "sender_has_retransmits": 0, "streams": streams,
    });
    write_json(control, &own)?;
    let results = read_json(control)?;
    expect(control, DISPLAY_RESULTS)?;
    control.write_all(&[IPERF_DONE])?;
    Ok(results)
}

fn expect(control: &mut TcpStream, state: u8) -> io::Result<()> {
    let mut read = [0];
    control.read_exact(&mut read)?;
    match read[0] {
        read if read == state => Ok(()),
        ACCESS_DENIED => Err(invalid("iperf3 is busy with another test; try again later")),
        SERVER_ERROR => Err(invalid("iperf3 reports an error; see its output")),
        read => Err(invalid(&format!(
            "state {read} instead of {state}: not an iperf3 server of version 3.1 or later"
        ))),
    }
}

fn write_json(control: &mut TcpStream, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    let mut message = (text.len() as u32).to_be_bytes().to_vec();
    message.extend(text.as_bytes());
    control.write_all(&message)
}

fn read_json(control: &mut impl io::Read) -> io::Result<Value> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_RESULTS {
        return Err(invalid("iperf3's results are too long"));
    }
    let mut text = Vec::new();
    control.take(length.into()).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|_| invalid("iperf3's results are no JSON"))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message)
}

fn cookie() -> io::Result<[u8; COOKIE]> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE];
    let characters = &mut cookie[..COOKIE - 1];
    File::open("/dev/urandom")?.read_exact(characters)?;
    for character in characters {
        *character = LETTERS[usize::from(*character) % LETTERS.len()];
    }
    Ok(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEST: Test = Test {
        flows: 1,
        up: true,
        down: false,
        warmup: Duration::ZERO,
        duration: Duration::from_secs(1),
    };

    #[test]
    fn uploads_are_what_the_server_received() {
        let results = json!({"streams": [{"bytes": 1000, "start_time": 0, "end_time": 2}]});
        assert_eq!(TEST.uploads(&results).unwrap(), [4000.0]);
        for wrong in [
            json!({}),
            json!({"streams": [{"bytes": 1000}]}),
            json!({"streams": [{"bytes": 0, "start_time": 1, "end_time": 1}]}),
        ] {
            assert!(TEST.uploads(&wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn hostile_results_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(results) = read_json(&mut &bytes[..]) {
                let _ = TEST.uploads(&results);
            }
        }
    }
}
