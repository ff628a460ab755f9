//! QUIC packets that are treated as ACKs because of their size and direction. Their content is encrypted.
//!
//! A QUIC packet with only an ACK frame is neither acknowledged nor retransmitted; later packets repeat its content
//! (RFC 9000, sec. 13.2). If a dropped packet had other content, such as a window update or a short request, the sender
//! retransmits it a round trip later. The detection may be wrong, so it is off by default.
//!
//! A conversation counts as QUIC if long headers of version 1 or 2 were seen in both directions. During a download,
//! packets of the smallest size count as ACKs if this size recurs. A larger packet may have a further frame, such as a
//! PING of one byte, so it is never dropped. Detection ends for a conversation after two packets of a recurring size
//! that cannot be ACKs, because the server has sent no packet to acknowledge.

use super::{BuildError, FlowTable};
use crate::decide::ack::AckInfo;
use crate::{Direction, Duration, Header, Instant, Protocol, flags};

/// Capacity of the conversation table. A new conversation evicts the least recently used one.
const MAX_FLOWS: u32 = 512;

/// Minimum size of a full IP packet in bytes.
const FULL: u32 = 600;

/// Maximum size of an ACK's IP packet in bytes: QUIC stacks send 60 to 97 bytes without losses. The packets of a tunnel
/// in QUIC (RFC 9484) are longer, even with an ACK of TCP inside.
const MAX_ACK: u32 = 100;

/// Bytes of a download before its first ACK is recognized. Up to `RAMP` bytes, at least every second ACK is sent.
const START: u32 = 40_000;
const RAMP: u32 = 600_000;

/// Maximum number of the server's packets that count as unacknowledged: two superpackets of segmentation offload.
const MAX_CREDIT: u32 = 96;

/// Maximum time until a receiver acknowledges a packet: QUIC's default is 25 ms; the rest is for delays at home.
const ANSWER: Duration = Duration::from_millis(250);

/// Time after a full packet from home during which no ACK of the conversation is recognized: the server would count the
/// home's data as lost if an ACK overtook it.
const OWN_DATA: Duration = Duration::from_secs(1);

/// Length of a download's pause that a lost packet may have caused: longer than gaps between bursts, shorter than
/// pauses of applications. After such a pause, no ACK is recognized for the time `REST`.
const STALL: core::ops::Range<Duration> = ANSWER..Duration::from_millis(1500);
const REST: Duration = Duration::from_secs(4);

/// Number of counted sizes. All counts are halved when a count reaches `MEMORY`.
const SIZES: usize = 8;
const MEMORY: u8 = 64;
/// Minimum count of a size; sizes with lower counts are ignored when the smallest size is determined.
const SEEN: u8 = 2;
/// Minimum count of a recurring size. Its count must also be at least the sum of all counts divided by `PART`.
const RECURS: u8 = 8;
const PART: u32 = 8;

/// Detection ends for a conversation after this number of packets of a recurring size that cannot be ACKs.
const UNEXPLAINED: u8 = 2;

/// Assumed content of an opaque ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpaqueAck {
    /// Bytes of the download seen before this ACK, modulo 2^32.
    bytes: u32,
    /// A packet may replace its predecessor only if both have the same number here.
    kind: u32,
    /// The ECN field of the IP header as a number.
    context: u32,
}

impl OpaqueAck {
    /// Returns the TCP-like content that this packet is assumed to have.
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

/// Sizes of a conversation's small packets, each with a count.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes([(u8, u8); SIZES]);

impl Sizes {
    /// True if this size recurs among the small packets.
    fn recurs(&self, &(_, count): &(u8, u8)) -> bool {
        let all: u32 = self.0.iter().map(|&(_, count)| u32::from(count)).sum();
        count >= RECURS && u32::from(count) * PART >= all
    }

    /// Counts a packet. Returns true for the size of a packet with only an ACK: the smallest size with at
    /// least [`SEEN`] counts, if it recurs.
    fn is_ack(&mut self, size: u8) -> bool {
        let place = self.0.iter().position(|&(known, _)| known == size);
        let least = || (0..SIZES).min_by_key(|&place| self.0[place].1);
        let Some(place) = place.or_else(least) else {
            return false;
        };
        if self.0[place].0 != size {
            self.0[place] = (size, 0);
        }
        self.0[place].1 += 1;
        if self.0[place].1 >= MEMORY {
            for (_, count) in &mut self.0 {
                *count /= 2;
            }
        }
        let seen = self.0.iter().filter(|(_, count)| *count >= SEEN);
        let smallest = seen.map(|&(size, _)| size).min();
        self.recurs(&self.0[place]) && smallest == Some(size)
    }

    fn forget(&mut self, size: u8) -> bool {
        let place = self.0.iter().position(|&(known, _)| known == size);
        let recurred = place.is_some_and(|place| self.recurs(&self.0[place]));
        if let Some(place) = place {
            self.0[place].1 = 0;
        }
        recurred
    }
}

/// State of a QUIC conversation, from its handshake on.
#[derive(Clone, Copy, Debug, Default)]
struct Download {
    /// For packets from home and from the server: true if a long header was seen.
    shaken: [bool; 2],
    bytes: u32,
    /// Bytes of the download so far, at most [`RAMP`].
    first: u32,
    /// Number of the server's packets that are not acknowledged yet, at most [`MAX_CREDIT`].
    credit: u32,
    kind: u32,
    /// Size of the last packet treated as an ACK; a shorter packet may lack a frame of this one. `second` is true for
    /// every second ACK.
    len: u8,
    second: bool,
    sizes: Sizes,
    unexplained: u8,
    /// Time of the last packet treated as an ACK.
    acked: Instant,
    /// Time of the download's last full packet.
    arrived: Instant,
    /// Time until which no packet is treated as an ACK.
    not_before: Instant,
    last_used: Instant,
}

impl Download {
    fn new(now: Instant) -> Self {
        Self {
            arrived: now,
            last_used: now,
            ..Self::default()
        }
    }

    fn observe(&mut self, now: Instant, len: u32) {
        let pause = now.saturating_since(self.last_used);
        self.credit = match pause > ANSWER {
            true => 1,
            false => (self.credit + 1).min(MAX_CREDIT),
        };
        self.last_used = now;
        if len < FULL {
            return;
        }
        let pause = now.saturating_since(self.arrived);
        if STALL.contains(&pause) && self.arrived.saturating_since(self.acked) < ANSWER {
            self.not_before = self.not_before.max(now + REST);
        }
        self.arrived = now;
        self.bytes = self.bytes.wrapping_add(len);
        self.first = self.first.saturating_add(len).min(RAMP);
    }

    /// True if a small packet is an ACK without other content.
    fn is_ack(&mut self, now: Instant, size: u8) -> bool {
        if self.credit == 0 || now.saturating_since(self.last_used) > ANSWER {
            self.unexplained = self
                .unexplained
                .saturating_add(self.sizes.forget(size).into());
            return false;
        }
        self.credit -= 1;
        let downloads = now.saturating_since(self.arrived) <= ANSWER && self.first >= START;
        downloads
            && self.sizes.is_ack(size)
            && now >= self.not_before
            && self.unexplained < UNEXPLAINED
    }
}

/// True if a packet may belong to QUIC.
fn is_udp(header: &Header) -> bool {
    matches!(
        header.protocol,
        Protocol::Quic | Protocol::QuicLong | Protocol::NonTcp
    )
}

/// Downloads with encrypted ACKs, indexed by the flow of their ACKs.
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
        if is_udp(reverse)
            && let Some(download) = self.conversation(now, reverse, Direction::Down)
        {
            download.observe(now, reverse.ip_len);
        }
    }

    /// Returns the conversation of a packet; creates a conversation for a long header.
    fn conversation(
        &mut self,
        now: Instant,
        header: &Header,
        direction: Direction,
    ) -> Option<&mut Download> {
        let flow = direction.pick(header.flow, header.flow.reverse());
        // Stacks that grease the fixed bit (RFC 9287) clear it in half of the short headers, but never in long headers.
        let is_long = header.protocol == Protocol::QuicLong;
        let last_used = |download: &Download| Some(download.last_used.as_nanos());
        let slot = match is_long {
            true => self
                .downloads
                .find_or_insert(flow, last_used, || Download::new(now)),
            false => self.downloads.find(flow),
        };
        let download = self.downloads.get_mut(slot?)?;
        download.shaken[direction as usize] |= is_long;
        Some(download)
    }

    /// Returns the assumed content of an arrival that is treated as an ACK.
    pub fn read(&mut self, now: Instant, header: &Header) -> Option<OpaqueAck> {
        if !is_udp(header) {
            return None;
        }
        let download = self.conversation(now, header, Direction::Up)?;
        if header.protocol == Protocol::QuicLong {
            return None;
        }
        if header.ip_len >= FULL {
            download.not_before = download.not_before.max(now + OWN_DATA);
        }
        let size = u8::try_from(header.ip_len).ok()?;
        let is_small = header.ip_len <= MAX_ACK && download.shaken == [true; 2];
        if !is_small || !download.is_ack(now, size) {
            return None;
        }
        // At the start of a download, at most every second ACK is replaced.
        download.second = !download.second;
        let starts = download.first < RAMP && !download.second;
        if size < download.len || starts {
            download.kind = download.kind.wrapping_add(1);
        }
        download.len = size;
        download.acked = now;
        Some(OpaqueAck {
            bytes: download.bytes,
            kind: download.kind,
            context: header.ecn as u32,
        })
    }
}
