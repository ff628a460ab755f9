//! Measurements of a flow, and its counters, read from its qlog while the stack writes it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// This side's measurements of a flow.
#[derive(Default)]
pub struct Seen {
    pub(crate) received: u64,
    /// Time of the latest data, and the longest time without data.
    pub(crate) delivered_at: Option<Instant>,
    pub(crate) longest_stall: Duration,
    pub counts: Counts,
}

impl Seen {
    /// Counts data that the application read.
    pub fn deliver(&mut self, now: Instant, bytes: usize) {
        if self.counts.warm.is_some_and(|warm| now > warm) {
            self.received += bytes as u64;
            let longest_stall = now.saturating_duration_since(self.delivered_at.unwrap_or(now));
            self.longest_stall = self.longest_stall.max(longest_stall);
            self.delivered_at = Some(now);
        }
    }
}

/// Counters of a connection. Only 1-RTT packets count.
#[derive(Default)]
pub struct Counts {
    /// End of the warm-up; earlier events are not counted. Packet numbers are recorded from the start.
    pub warm: Option<Instant>,
    pub sent: u64,
    /// Probe timeouts.
    pub timeouts: u64,
    /// Consecutive probe timeouts at the latest update.
    backoff: u64,
    /// Numbers of packets that the sender declared lost.
    pub lost: Vec<u64>,
    /// Ranges of packets that arrived, ends included.
    pub received: Vec<[u64; 2]>,
}

impl Counts {
    fn counts(&self) -> bool {
        self.warm.is_some_and(|warm| Instant::now() > warm)
    }

    /// Records that a packet arrived.
    pub fn receives(&mut self, number: u64) {
        let at = self.received.partition_point(|[_, last]| last + 1 < number);
        match self.received.get_mut(at) {
            Some([first, last]) if *first <= number + 1 => {
                (*first, *last) = ((*first).min(number), (*last).max(number));
                let last = *last;
                if let Some([_, end]) = self
                    .received
                    .get(at + 1)
                    .copied()
                    .filter(|next| next[0] <= last + 1)
                {
                    self.received[at][1] = end;
                    self.received.remove(at + 1);
                }
            }
            _ => self.received.insert(at, [number, number]),
        }
    }

    /// Reads an event of a qlog.
    fn event(&mut self, event: &str) {
        if let Some(backoff) = number_of(event, "pto_count") {
            if backoff > self.backoff && self.counts() {
                self.timeouts += backoff - self.backoff;
            }
            self.backoff = backoff;
        }
        if !event.contains("\"1RTT\"") {
            return;
        }
        let Some(number) = number_of(event, "packet_number") else {
            return;
        };
        if event.contains("packet_received\"") {
            self.receives(number);
        } else if self.counts() {
            if event.contains("packet_lost\"") {
                self.lost.push(number);
            } else if event.contains("packet_sent\"") {
                self.sent += 1;
            }
        }
    }
}

fn number_of(event: &str, key: &str) -> Option<u64> {
    let (_, rest) = event.split_once(&format!("\"{key}\":"))?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Reads a stack's qlog: events in lines, or in records of RFC 7464.
pub struct Reader {
    seen: Arc<Mutex<Seen>>,
    line: Vec<u8>,
}

impl Reader {
    pub fn new(seen: &Arc<Mutex<Seen>>) -> Self {
        Self {
            seen: seen.clone(),
            line: Vec::new(),
        }
    }
}

impl io::Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.seen
                    .lock()
                    .expect("no panic")
                    .counts
                    .event(&String::from_utf8_lossy(&line));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
