//! Measures rates with an `iperf3 -s`, in iperf3's protocol. Each connection begins with a cookie. On the control
//! connection, single bytes encode states; parameters and results are JSON after a length of four bytes.

use crate::error::{Doing as _, MeasureError};
use crate::flows::{CONNECT, Flows};
use crate::limit::{Limit, Limited};
use crate::load::{Carried, CarriedDirection, Record};
use asymq_core::Direction;
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Port of an iperf3 server.
pub(crate) const PORT: u16 = 5201;

/// Time limit for the server's results, which must pass the queue that the load has filled.
pub(crate) const RESULTS: Duration = Duration::from_secs(30);

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

/// Maximum length of the server's results in bytes.
const MAX_RESULTS: u32 = 1 << 16;

pub(crate) struct Test {
    pub(crate) flows: usize,
    pub(crate) up: bool,
    pub(crate) down: bool,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
}

impl Test {
    /// Runs the test. `tick` gets the goodput up and down in bit/s, and sleeps.
    pub(crate) fn run(
        &self,
        server: SocketAddr,
        clock: Instant,
        limit: Limit<'_>,
        tick: &mut dyn FnMut(f64, f64) -> Result<(), MeasureError>,
    ) -> Result<Carried, MeasureError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::InvalidData => {
                MeasureError::protocol(&server.to_string(), &error.to_string())
            }
            ErrorKind::TimedOut => MeasureError::protocol(
                &server.to_string(),
                "no answer from iperf3; does another server listen at this port?",
            ),
            _ => MeasureError::System {
                doing: format!("talking to iperf3 at {server}"),
                source: error,
            },
        };
        let now = || clock.elapsed().as_secs_f64();
        let cookie = cookie();
        let opening = limit.part(CONNECT);
        let connected = opening.connect(server, 1).map(|mut streams| streams.pop());
        let control = connected
            .and_then(|stream| stream.ok_or_else(|| ErrorKind::NotConnected.into()))
            .doing(|| format!("connecting to {server} (run 'iperf3 -s' there)"))?;
        let prepared = self.prepare(&mut Limited(&control, opening), &cookie, server, opening);
        let flows = prepared.map_err(failed)?;
        let began = now();
        let mut record = Record::default();
        let mut step = || {
            let [up, down] = record.moved.each_ref().map(|counts| counts.latest());
            tick(up, down)?;
            record.take(&flows, now());
            flows.check("iperf3")
        };
        let times = [self.warmup, self.duration, Duration::ZERO];
        let (window, silent) = flows.run(clock, times, &mut step)?;
        let ip_bytes = flows.ip_bytes();
        let results =
            finish(&mut Limited(&control, limit.part(RESULTS)), &flows).map_err(failed)?;
        let sent = flows.moved(Direction::Up, 0.0).bytes;
        drop(flows);
        let of = |direction: Direction| {
            let index = direction as usize;
            let (moved, arrived) = (&record.moved[index], &record.arrived[index]);
            CarriedDirection::new(began, window, moved, arrived)
        };
        let up = match self.up {
            false => None,
            true => Some(CarriedDirection {
                goodput: Some(self.uploads(&results, &sent).map_err(failed)?),
                ..of(Direction::Up)
            }),
        };
        Ok(Carried {
            started: began,
            window,
            directions: [up, self.down.then(|| of(Direction::Down))],
            silent,
            ip_bytes,
        })
    }

    /// Negotiates the test, and opens its flows.
    fn prepare(
        &self,
        control: &mut Limited<'_>,
        cookie: &[u8],
        server: SocketAddr,
        limit: Limit<'_>,
    ) -> io::Result<Flows> {
        control.write_all(cookie)?;
        expect(control, PARAM_EXCHANGE)?;
        let mut parameters = json!({
            "tcp": true,
            "omit": self.warmup.as_secs(),
            "time": (self.warmup + self.duration + CONNECT).as_secs(),
            "num": 0,
            "blockcount": 0,
            "parallel": self.flows,
            "len": 131_072,
            "pacing_timer": 1000,
            "client_version": "3.12",
        });
        // iperf3 treats a key as true if it is present.
        match (self.up, self.down) {
            (true, true) => parameters["bidirectional"] = true.into(),
            (false, true) => parameters["reverse"] = true.into(),
            _ => {}
        }
        write_json(control, &parameters)?;
        expect(control, CREATE_STREAMS)?;
        let mut uploads = Vec::new();
        let mut downloads = Vec::new();
        // iperf3 accepts the uploads first, and one stream at a time.
        for (streams, wanted) in [(&mut uploads, self.up), (&mut downloads, self.down)] {
            for _ in 0..if wanted { self.flows } else { 0 } {
                for stream in limit.connect(server, 1)? {
                    Limited(&stream, limit).write_all(cookie)?;
                    streams.push(stream);
                }
            }
        }
        expect(control, TEST_START)?;
        expect(control, TEST_RUNNING)?;
        let number = downloads.len();
        downloads.append(&mut uploads);
        Flows::start(downloads, number, |_, _| String::new(), limit)
    }

    /// Returns the rates of the uploads in bit/s, as counted by the server after the warm-up. Fails if bytes or times
    /// are impossible.
    fn uploads(&self, results: &Value, sent: &[u64]) -> io::Result<Vec<f64>> {
        let streams = results["streams"].as_array();
        let streams = streams.ok_or_else(|| invalid("iperf3's results contain no streams"))?;
        let rate = |(stream, sent): (&Value, &u64)| {
            let time = stream["end_time"].as_f64()? - stream["start_time"].as_f64()?;
            let bytes = stream["bytes"].as_f64()?;
            let least = 0.5 * self.duration.as_secs_f64();
            let is_possible = (0.0..=*sent as f64).contains(&bytes) && time > least && time < 1e3;
            is_possible.then_some(8.0 * bytes / time)
        };
        let uploads: Option<Vec<f64>> = streams.iter().zip(sent).map(rate).collect();
        let uploads = uploads.filter(|uploads| uploads.len() == sent.len());
        uploads.ok_or_else(|| invalid("iperf3's bytes or times are missing or impossible"))
    }
}

fn finish(control: &mut Limited<'_>, flows: &Flows) -> io::Result<Value> {
    control.write_all(&[TEST_END])?;
    expect(control, EXCHANGE_RESULTS)?;
    let streams: Vec<Value> = flows
        .all()
        .enumerate()
        .map(|(index, flow)| {
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

fn expect(control: &mut impl Read, state: u8) -> io::Result<()> {
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

fn write_json(control: &mut impl Write, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    let mut message = (text.len() as u32).to_be_bytes().to_vec();
    message.extend(text.as_bytes());
    control.write_all(&message)
}

fn read_json(control: &mut impl Read) -> io::Result<Value> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_RESULTS {
        return Err(invalid("iperf3's results are too long"));
    }
    let mut text = Vec::new();
    control.take(length.into()).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|_| invalid("iperf3's results are not JSON"))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message)
}

/// Returns 36 random characters and a zero byte.
fn cookie() -> Vec<u8> {
    let random = RandomState::new();
    let part = |number: u64| format!("{:012x}", random.hash_one(number) >> 16);
    ([part(1), part(2), part(3)].concat() + "\0").into_bytes()
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
    fn uploads_are_the_servers_counts_and_impossible_numbers_fail() {
        let stream = |bytes: Value, start: f64, end: f64| json!({"streams": [{"bytes": bytes, "start_time": start, "end_time": end}]});
        let sent = [2000];
        let rates = TEST.uploads(&stream(1000.into(), 0.0, 2.0), &sent);
        assert_eq!(rates.unwrap(), [4000.0]);
        for wrong in [
            json!({}),
            json!({"streams": []}),
            json!({"streams": [{"bytes": 1000}]}),
            stream(0.into(), 1.0, 1.0),
            stream(1000.into(), 0.0, 1e-9),
            stream((-1).into(), 0.0, 2.0),
            stream((-1e300).into(), 0.0, 2.0),
            stream(1e300.into(), 0.0, 2.0),
            stream(2001.into(), 0.0, 2.0),
            stream("1000".into(), 0.0, 2.0),
        ] {
            assert!(TEST.uploads(&wrong, &sent).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn hostile_results_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(results) = read_json(&mut &bytes[..]) {
                let _ = TEST.uploads(&results, &[1]);
            }
        }
    }
}
