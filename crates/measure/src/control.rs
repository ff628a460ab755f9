//! The control connection of a session, and the server's counts of uploads.

use crate::error::{Doing as _, MeasureError};
use crate::flows::{CONNECT, Count};
use crate::limit::{Limit, Limited};
use crate::load::Counts;
use crate::lock::lock;
use crate::wire::{Answer, Counted, MAX_FLOWS, MAX_LINE, Opening, Token};
use asymq_scenario::quoted;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Maximum number of counts per second that the client accepts; the server sends five.
const MAX_PER_SECOND: f64 = 20.0;
/// Maximum difference in s between the times since the first count by the server's and by the client's clock.
const MAX_CLOCK_ERROR: f64 = 15.0;

/// The control connection of a session.
pub(crate) struct Control {
    pub(crate) token: Token,
    server: SocketAddr,
    stream: TcpStream,
    feed: Arc<Mutex<Feed>>,
    reader: Option<JoinHandle<()>>,
}

/// Counts with their arrival times, and the reason why no further counts will arrive, if any.
#[derive(Debug, Default)]
struct Feed {
    counts: Vec<(f64, Counted)>,
    ended: Option<String>,
}

impl Feed {
    /// Adds a count.
    ///
    /// # Errors
    /// The count is impossible.
    fn push(&mut self, now: f64, line: &str) -> Result<(), String> {
        let counted: Counted = serde_json::from_str(line)
            .map_err(|_| format!("a line that is not a count: {}", quoted(line)))?;
        let grows = |before: &Counted| {
            let pairs = before.up.iter().zip(&counted.up);
            counted.us >= before.us
                && counted.up.len() >= before.up.len()
                && pairs.into_iter().all(|(before, now)| now >= before)
        };
        if counted.up.len() > MAX_FLOWS || self.counts.last().is_some_and(|(_, last)| !grows(last))
        {
            return Err(format!("an impossible count: {}", quoted(line)));
        }
        if self.counts.len() as f64 > MAX_PER_SECOND * (now + 1.0) {
            return Err("too many counts".into());
        }
        if let Some((at, first)) = self.counts.first() {
            let server = (counted.us - first.us) as f64 / 1e6;
            if (server - (now - at)).abs() > MAX_CLOCK_ERROR {
                return Err("counts with impossible times".into());
            }
        }
        self.counts.push((now, counted));
        Ok(())
    }
}

impl Control {
    pub(crate) fn open(
        server: SocketAddr,
        clock: Instant,
        limit: Limit<'_>,
    ) -> Result<Self, MeasureError> {
        let other = |message: &str| MeasureError::protocol(&server.to_string(), message);
        let limit = limit.part(CONNECT);
        let connected = limit.connect(server, 1).and_then(|mut streams| {
            let stream = streams.pop().ok_or(ErrorKind::NotConnected)?;
            Limited(&stream, limit).write_all(Opening::Start.to_string().as_bytes())?;
            Ok(stream)
        });
        let stream = connected
            .doing(|| format!("connecting to {server} (run 'asymq measure serve' there)"))?;
        // Reads single bytes, because another reader reads the counts that follow.
        let (mut line, mut byte) = (Vec::new(), [0]);
        while line.len() < MAX_LINE && line.last() != Some(&b'\n') {
            let read = Limited(&stream, limit).read(&mut byte);
            match read.doing(|| format!("waiting for the greeting of {server}"))? {
                0 => break,
                _ => line.extend(byte),
            }
        }
        if line.last() != Some(&b'\n') {
            return Err(other(
                "no asymq measure server answers there; for an iperf3 server, add --iperf3",
            ));
        }
        let answer = serde_json::from_slice(&line)
            .map_err(|_| other("the answer does not come from asymq measure serve"))?;
        let session = match answer {
            Answer::Welcome { session, .. } => session,
            Answer::Refused(message) => return Err(other(&quoted(&message))),
        };
        let token = Token::read(&session).ok_or_else(|| {
            other("the answer contains no session; use the same version at both ends")
        })?;
        let input = stream
            .set_read_timeout(None)
            .and_then(|()| stream.try_clone())
            .doing(|| format!("reading from {server}"))?;
        let feed = Arc::<Mutex<Feed>>::default();
        let shared = Arc::clone(&feed);
        let reader = thread::spawn(move || {
            let mut input = BufReader::new(input);
            let ended = loop {
                let Some(line) = read_line(&mut input) else {
                    break "the server ended the session; its limits may be too low (asymq measure serve --time, --bytes)".into();
                };
                let now = clock.elapsed().as_secs_f64();
                if let Err(message) = lock(&shared).push(now, &line) {
                    break format!("the server sends {message}");
                }
            };
            lock(&shared).ended = Some(ended);
        });
        Ok(Self {
            token,
            server,
            stream,
            feed,
            reader: Some(reader),
        })
    }

    /// # Errors
    /// The server ended the session, or sent a count that is impossible.
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        match &lock(&self.feed).ended {
            None => Ok(()),
            Some(message) => Err(MeasureError::protocol(&self.server.to_string(), message)),
        }
    }

    pub(crate) fn latest(&self) -> Vec<u64> {
        let feed = lock(&self.feed);
        let last = feed.counts.last();
        last.map_or_else(Vec::new, |(_, counted)| counted.up.clone())
    }

    /// Returns the counts since `start`, with times by the client's clock. The count with the shortest delay defines
    /// the offset between the clocks.
    pub(crate) fn counts(&self, start: f64) -> Counts {
        let feed = lock(&self.feed);
        let server = |counted: &Counted| counted.us as f64 / 1e6;
        let apart = feed.counts.iter().map(|(at, counted)| at - server(counted));
        let apart = apart.reduce(f64::min).unwrap_or(0.0);
        let at_client = |(_, counted): &(f64, Counted)| Count {
            at: server(counted) + apart,
            bytes: counted.up.clone(),
        };
        let since = |count: &Count| count.at >= start;
        Counts(feed.counts.iter().map(at_client).filter(since).collect())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads a line and removes its line end. `None` at the end of the input, or if the line is too long.
fn read_line(input: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let mut bounded = input.take(MAX_LINE as u64);
    bounded.read_line(&mut line).ok()?;
    line.pop().is_some_and(|end| end == '\n').then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_counts_are_refused() {
        let mut feed = Feed::default();
        feed.push(1.0, r#"{"us":1000000,"up":[10,20]}"#).unwrap();
        feed.push(1.2, r#"{"us":1200000,"up":[11,20]}"#).unwrap();
        for (line, reason) in [
            (r#"{"us":1300000,"up":[10,20]}"#, "impossible count"),
            (r#"{"us":1100000,"up":[11,20]}"#, "impossible count"),
            (r#"{"us":1300000,"up":[11]}"#, "impossible count"),
            (r#"{"us":99000000,"up":[11,20]}"#, "impossible times"),
            (r#"{"us":1300000,"up":[-1,20]}"#, "not a count"),
            (r#"{"us":1300000,"up":[1e300,20]}"#, "not a count"),
            (r#"{"us":1300000,"up":[NaN]}"#, "not a count"),
            ("\u{1b}]0;t\u{7}", r"not a count: \u{1b}]0;t\u{7}"),
        ] {
            let error = feed.push(1.3, line).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let flood = (0..1000).find_map(|_| feed.push(1.3, r#"{"us":1300000,"up":[11,20]}"#).err());
        assert_eq!(flood.as_deref(), Some("too many counts"));
        assert!(feed.counts.len() < 50);
    }
}
