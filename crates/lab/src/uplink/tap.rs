//! Measures sojourn times of a queue that does not report them, by reading packets before and after it.

use crate::clock::Window;
use crate::halt::Halt;
use crate::{clock, sys};
use asymq_core::measure::Histogram;
use asymq_core::units::{Duration, Instant};
use asymq_gateway::{PacketIo as _, Port, lock, poll};
use asymq_scenario::Percentiles;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub(crate) struct Tap(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Arrival times of waiting packets, by a hash that is equal before and after the queue.
    arrived: HashMap<u64, Instant>,
    /// Departure times of packets whose arrival has not been read yet.
    left: HashMap<u64, Instant>,
    sojourns: Histogram,
}

impl State {
    fn record(&mut self, left: Instant, sojourn: Duration, window: Window) {
        if window.counts(left) {
            self.sojourns.record(sojourn);
        }
    }
}

impl Tap {
    /// Reads packets before the queue until the window ends.
    pub(super) fn watch(&self, port: &mut Port, window: Window, halt: &Halt) -> io::Result<()> {
        const MAX_WAIT: Duration = Duration::from_millis(50);
        const BATCH: usize = 64;
        sys::set_realtime();
        while clock::now() < window.end && !halt.is_set() {
            poll([Some(port.as_fd()), None], Some(MAX_WAIT))?;
            let now = clock::now();
            port.receive(BATCH, &mut |frame| self.arrives(now, frame, window))?;
        }
        Ok(())
    }

    fn arrives(&self, now: Instant, frame: &[u8], window: Window) {
        let Some(key) = key(frame) else { return };
        let mut state = lock(&self.0);
        match state.left.remove(&key) {
            Some(left) => state.record(left, Duration::ZERO, window),
            None => drop(state.arrived.insert(key, now)),
        }
    }

    /// Records that a frame left the queue.
    pub(crate) fn leaves(&self, now: Instant, frame: &[u8], window: Window) {
        let Some(key) = key(frame) else { return };
        let mut state = lock(&self.0);
        match state.arrived.remove(&key) {
            Some(arrived) => state.record(now, now.saturating_since(arrived), window),
            None => drop(state.left.insert(key, now)),
        }
    }

    pub(super) fn sojourn_ms(&self) -> Option<Percentiles> {
        lock(&self.0).sojourns.percentiles_ms()
    }
}

/// Returns a hash of the bytes that a router preserves. The IP identification distinguishes packets of equal content.
fn key(frame: &[u8]) -> Option<u64> {
    const ETHERNET: usize = 14;
    if frame.get(12..ETHERNET)? != [8, 0] {
        return None;
    }
    let packet = frame.get(ETHERNET..)?;
    let mut hasher = DefaultHasher::new();
    for part in [packet.get(2..8)?, packet.get(9..10)?, packet.get(12..)?] {
        hasher.write(part);
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn frame(hops: u8, number: u8) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        bytes[22] = hops;
        bytes[50] = number;
        bytes
    }

    #[test]
    fn a_packet_is_the_same_before_and_behind_a_router_in_any_order() {
        let window = Window {
            start: ms(0),
            warm: ms(0),
            end: ms(1000),
        };
        let tap = Tap::default();
        tap.arrives(ms(10), &frame(64, 1), window);
        tap.arrives(ms(10), &frame(64, 2), window);
        tap.leaves(ms(40), &frame(63, 1), window);
        assert!((29.0..31.0).contains(&tap.sojourn_ms().unwrap().p99));
        tap.leaves(ms(50), &frame(63, 3), window);
        tap.arrives(ms(51), &frame(64, 3), window);
        assert!(
            tap.sojourn_ms().unwrap().p50 < 1.0,
            "one of two waited for nothing"
        );
        // A dropped packet never leaves, and is not counted.
        assert_eq!(lock(&tap.0).arrived.len(), 1);
    }
}
