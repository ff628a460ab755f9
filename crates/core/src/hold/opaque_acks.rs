//! QUIC packets that are treated as ACKs by size and direction, since their content is encrypted.
//!
//! A QUIC packet with only an ACK frame is neither acknowledged nor retransmitted, and a later one repeats its content
//! (RFC 9000, sec. 13.2). Any other content of that size, such as a window update or a short request, is retransmitted
//! a round trip later if the packet is dropped. Since this is a guess, it is off unless configured.

use super::capacity::BuildError;
use super::flow_table::FlowTable;
use crate::decide::ack::AckInfo;
use crate::packet::{Header, Protocol, flags};
use crate::units::{Duration, Instant};

/// Capacity of the conversation table. A new one evicts the least recently used.
const MAX_FLOWS: u32 = 512;

/// IP length from which a packet counts as full-sized, and the minimum that an ACK acknowledges.
const FULL: u32 = 600;

/// Maximum IP bytes of an ACK. Those of QUIC stacks have 60 to 97 without losses, and up to 207 with gaps to report.
const MAX_ACK: u32 = 220;

/// Bytes by which an ACK may be shorter than its predecessor, since encoded numbers vary in length. A shorter one may
/// lack a frame of the other.
const SLACK: u32 = 4;

/// Bytes of a download before any of its ACKs is recognised.
const START: u32 = 40_000;

/// Maximum bytes of earlier data that ACKs may still account for: two superpackets.
const MAX_CREDIT: u32 = 1 << 17;

/// Time without recognition after a full-sized packet in the direction of the ACKs: an ACK that overtakes data makes
/// that data look lost.
const OWN_DATA: Duration = Duration::from_secs(1);

/// Assumed content of an opaque ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpaqueAck {
    /// Bytes of the download seen before it, modulo 2^32.
    bytes: u32,
    /// Changes at each packet that is much shorter than its predecessor and must not replace it.
    kind: u32,
    /// The ECN field.
    context: u32,
}

impl OpaqueAck {
    /// Returns the ACK that it is assumed to be.
    pub(crate) fn info(&self) -> AckInfo {
        AckInfo {
            seq: self.kind,
            ack: self.bytes,
            flags: flags::ACK,
            context: self.context,
            ..AckInfo::default()
        }
    }
}

/// A conversation with a visible download.
#[derive(Clone, Copy, Debug)]
struct Download {
    bytes: u32,
    /// Bytes of the download, at most [`START`].
    first: u32,
    /// Bytes not yet acknowledged by an assumed ACK, at most [`MAX_CREDIT`].
    credit: u32,
    kind: u32,
    /// IP length of the last assumed ACK.
    len: u32,
    /// Time until which no packet is treated as an ACK.
    not_before: Instant,
    last_used: Instant,
}

/// True if a packet may be QUIC's.
fn is_udp(header: &Header) -> bool {
    matches!(header.protocol, Protocol::Quic | Protocol::NonTcp)
}

/// Downloads with encrypted ACKs, by the flow of the ACKs.
#[derive(Clone, Debug)]
pub struct OpaqueAcks {
    downloads: FlowTable<Download>,
}

impl OpaqueAcks {
    /// Creates an empty instance.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new() -> Result<Self, BuildError> {
        Ok(Self {
            downloads: FlowTable::new(MAX_FLOWS)?,
        })
    }

    /// Processes a packet of the reverse path.
    pub fn observe(&mut self, now: Instant, reverse: &Header) {
        if !is_udp(reverse) || reverse.ip_len < FULL {
            return;
        }
        let new = || Download {
            bytes: 0,
            first: 0,
            credit: 0,
            kind: 0,
            len: 0,
            not_before: Instant::ZERO,
            last_used: now,
        };
        let last_used = |download: &Download| Some(download.last_used.as_nanos());
        let flow = reverse.flow.reverse();
        // Stacks that grease the fixed bit (RFC 9287) set it in every second packet.
        let slot = match reverse.protocol {
            Protocol::Quic => self.downloads.find_or_insert(flow, last_used, new),
            _ => self.downloads.find(flow),
        };
        if let Some(download) = slot.and_then(|slot| self.downloads.get_mut(slot)) {
            download.bytes = download.bytes.wrapping_add(reverse.ip_len);
            download.first = download.first.saturating_add(reverse.ip_len).min(START);
            download.credit = download
                .credit
                .saturating_add(reverse.ip_len)
                .min(MAX_CREDIT);
            download.last_used = now;
        }
    }

    /// Returns the assumed content of an arrival that is treated as an ACK: a small packet of a conversation with
    /// enough unacknowledged bytes in the other direction.
    pub fn read(&mut self, now: Instant, header: &Header) -> Option<OpaqueAck> {
        if !is_udp(header) {
            return None;
        }
        let slot = self.downloads.find(header.flow)?;
        let download = self.downloads.get_mut(slot)?;
        if header.ip_len >= FULL {
            download.not_before = now + OWN_DATA;
        }
        let is_ack = header.ip_len <= MAX_ACK
            && download.first == START
            && download.credit >= FULL
            && now >= download.not_before;
        if !is_ack {
            return None;
        }
        download.credit -= FULL;
        if header.ip_len + SLACK < download.len {
            download.kind = download.kind.wrapping_add(1);
        }
        download.len = header.ip_len;
        Some(OpaqueAck {
            bytes: download.bytes,
            kind: download.kind,
            context: header.ecn as u32,
        })
    }
}
