//! A frame on the emulated path.

use super::Side;
use asymq_core::ack::AckInfo;
use asymq_core::frame::{self, FlowKey};
use asymq_core::units::Instant;
use asymq_core::{Header, Packet, Protocol};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A frame and its facts. Its `len` is the IP length: the access link counts IP bytes.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// Offset of the TCP header; 0 unless TCP.
    pub(crate) transport: u16,
    /// Home's TCP or UDP port, which tells the conversation.
    pub(crate) home_port: u16,
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// A frame that carries IPv4 with TCP or UDP; `None` for anything else, which is nobody's.
    pub(crate) fn read(bytes: Vec<u8>, from: Side, key: &FlowKey) -> Option<Self> {
        const ETHERNET: usize = 14;
        let parsed = frame::parse(&bytes, key);
        let mut header = parsed.header;
        if !matches!(header.protocol, Protocol::Tcp | Protocol::NonTcp) {
            return None;
        }
        header.len = header.ip_len;
        let ip_header = usize::from(bytes.get(ETHERNET)? & 0xf) * 4;
        let port = ETHERNET + ip_header + if from == Side::Home { 0 } else { 2 };
        let home_port = u16::from_be_bytes([*bytes.get(port)?, *bytes.get(port + 1)?]);
        Some(Self {
            header,
            transport: parsed.transport,
            home_port,
            bytes,
        })
    }
}

impl Packet for Frame {
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        frame::ack_info(&self.bytes, self.transport)
    }

    fn rewrite_ack(&mut self, newer: &AckInfo) {
        frame::rewrite_ack(&mut self.bytes, self.transport, newer);
        self.header.ack = newer.ack;
    }
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
