//! Frames on the emulated path.

use super::Side;
use asymq_core::Protocol;
use asymq_core::frame::{self, FlowKey};
use asymq_core::units::Instant;
use asymq_gateway::Frame;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A frame that carries IPv4 with TCP or UDP; `None` for anything else, which is nobody's. Its
/// `len` is the IP length: the access link counts IP bytes.
pub(crate) fn read(bytes: &[u8], from: Side, key: &FlowKey) -> Option<Frame> {
    let parsed = frame::parse(bytes, key);
    if !matches!(parsed.header.protocol, Protocol::Tcp | Protocol::NonTcp) {
        return None;
    }
    let frame = Frame::new(Instant::ZERO, &parsed, parsed.header.ip_len, bytes.into());
    home_port(&frame, from).map(|_| frame)
}

/// Home's TCP or UDP port, which tells the conversation.
pub(crate) fn home_port(frame: &Frame, from: Side) -> Option<u16> {
    let ip = frame.bytes.get(usize::from(frame.network)..)?;
    let first = *ip.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let port = usize::from(first & 0xf) * 4 + if from == Side::Home { 0 } else { 2 };
    Some(u16::from_be_bytes([*ip.get(port)?, *ip.get(port + 1)?]))
}

/// Frames on their way, each due at its own instant; equal instants keep their order.
#[derive(Default)]
pub(crate) struct DelayLine {
    frames: BinaryHeap<Due>,
    sequence: u64,
}

struct Due {
    at: Instant,
    sequence: u64,
    frame: Frame,
}

impl DelayLine {
    /// Lets `frame` arrive `at`.
    pub(crate) fn push(&mut self, at: Instant, frame: Frame) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.frames.push(Due {
            at,
            sequence,
            frame,
        });
    }

    /// The next frame that has arrived by `now`, and when.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, Frame)> {
        if self.next()? > now {
            return None;
        }
        self.frames.pop().map(|due| (due.at, due.frame))
    }

    /// When the next frame arrives.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.frames.peek().map(|due| due.at)
    }
}

impl Ord for Due {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
