//! QUIC packets that are taken for ACKs by their size and direction: their content is encrypted.
//!
//! A QUIC packet that holds an ACK frame alone is not acknowledged and not sent again, and a later one
//! repeats what it said (RFC 9000, sec. 13.2). What else a packet of that size may hold (a window update, a
//! short request) is sent again a round trip later if it is filtered. That is a guess, so that no discipline makes it
//! unless its owner asks.

use super::capacity::BuildError;
use super::flow_table::FlowTable;
use crate::decide::ack::AckInfo;
use crate::packet::{Header, Protocol, flags};
use crate::units::{Duration, Instant};

/// Conversations remembered at once; the least recently used make room for further ones.
const MAX_FLOWS: u32 = 512;

/// IP bytes from which on a packet counts as full, and minimum that an ACK stands for.
const FULL: u32 = 600;

/// Maximum IP bytes of an ACK. Those of QUIC stacks have 60 to 97 without losses, and up to 207 with gaps to report.
const MAX_ACK: u32 = 220;

/// Bytes by which an ACK may be shorter than the one before it, since numbers and delays vary in length.
/// One that is shorter still may lack a frame of the other.
const SLACK: u32 = 4;

/// Bytes of a download before any of its ACKs is recognised.
const START: u32 = 40_000;

/// Maximum bytes of the past that account for ACKs: two superpackets, whose ACKs come after each of them.
const MAX_CREDIT: u32 = 1 << 17;

/// Time after a full packet of the ACKs' direction in which none is recognised: an ACK that overtakes data makes that look lost.
const OWN_DATA: Duration = Duration::from_secs(1);

/// What an opaque packet is assumed to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpaqueAck {
    /// Bytes of the download that came before it, modulo 2^32.
    bytes: u32,
    /// Changes wherever a packet is much shorter than its predecessor, which it must not replace.
    kind: u32,
    /// The ECN field.
    context: u32,
}

impl OpaqueAck {
    /// As the ACK that it is taken for.
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

/// A conversation whose download is seen.
#[derive(Clone, Copy, Debug)]
struct Download {
    bytes: u32,
    /// The same, but at most [`START`].
    first: u32,
    /// Bytes that no ACK stands for yet, at most [`MAX_CREDIT`].
    credit: u32,
    kind: u32,
    /// IP bytes of the last packet that was taken for an ACK.
    len: u32,
    /// End of the time in which no packet is taken for one.
    not_before: Instant,
    last_used: Instant,
}

/// True if a packet may be QUIC's.
fn is_udp(header: &Header) -> bool {
    matches!(header.protocol, Protocol::Quic | Protocol::NonTcp)
}

/// Downloads whose ACKs cannot be read, by the flow of their ACKs.
#[derive(Clone, Debug)]
pub struct OpaqueAcks {
    downloads: FlowTable<Download>,
}

impl OpaqueAcks {
    /// Nothing seen.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new() -> Result<Self, BuildError> {
        Ok(Self {
            downloads: FlowTable::new(MAX_FLOWS)?,
        })
    }

    /// Sees a packet of the reverse path.
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
        // Stacks that grease the first bits (RFC 9287) show them right in every second packet.
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

    /// What an arrival acknowledges, if it is taken for an ACK: a small packet of a conversation whose
    /// other direction has had bytes for it.
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
