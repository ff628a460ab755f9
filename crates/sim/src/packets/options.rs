//! TCP options as segments carry them.

use asymq_core::Ecn;
use asymq_core::ack::{AckInfo, MAX_SACK_RANGES, SackRange};
use std::fmt::Debug;

/// TCP options in a segment.
pub(crate) trait Options: Copy + Debug + Default + PartialEq + Send + 'static {
    /// The options as they are on the wire, if there are any.
    #[inline]
    fn on_wire(&self) -> Option<&TcpOptions> {
        None
    }

    /// The timestamps of a later ACK are written into this one.
    fn set_timestamps(&mut self, _timestamps: (u32, u32)) {}

    /// The router marks the packet, if its ends understand that; whether it is marked now.
    fn mark_ce(&mut self) -> bool {
        false
    }
}

impl Options for () {}

/// Timestamps (RFC 7323), SACK blocks (RFC 2018) and ECN's fields (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpOptions {
    /// TSval and TSecr.
    pub(crate) timestamps: Option<(u32, u32)>,
    /// SACK blocks in segments beyond the acknowledgement number; the first `blocks` count.
    sack: [(u32, u32); MAX_SACK_RANGES],
    blocks: u8,
    /// Bytes of a segment.
    mss: u16,
    /// The ECN field of the IP header.
    pub(crate) ecn: Ecn,
    /// TCP flags beside those of the segment's kind.
    pub(crate) flags: u16,
}

impl TcpOptions {
    /// Options without SACK blocks, of a flow with segments of `mss` bytes.
    pub(crate) fn new(timestamps: Option<(u32, u32)>, mss: u16) -> Self {
        Self {
            timestamps,
            mss,
            ..Self::default()
        }
    }

    /// Appends a block, from `start` up to but without `end`, in segments beyond the number.
    pub(crate) fn push_sack(&mut self, start: u64, end: u64) {
        if let Some(block) = self.sack.get_mut(usize::from(self.blocks)) {
            *block = (start as u32, end as u32);
            self.blocks += 1;
        }
    }

    /// The blocks, in segments beyond the number.
    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.blocks)]
    }

    /// Bytes that SACK blocks take, padding included.
    pub(crate) fn sack_bytes(&self) -> u32 {
        match self.blocks {
            0 => 0,
            blocks => 4 + 8 * u32::from(blocks),
        }
    }

    /// The blocks in sequence numbers.
    pub(crate) fn sack_ranges(&self, ack: u32) -> impl Iterator<Item = SackRange> {
        let byte = move |segments: u32| ack.wrapping_add(segments.wrapping_mul(self.mss.into()));
        self.blocks().iter().map(move |&(start, end)| SackRange {
            start: byte(start),
            end: byte(end),
        })
    }

    /// Writes them into an ACK's description.
    pub(crate) fn write_to(&self, info: &mut AckInfo) {
        info.timestamps = self.timestamps;
        let ack = info.ack;
        for (slot, range) in info.sack.iter_mut().zip(self.sack_ranges(ack)) {
            *slot = range;
        }
        info.sack_ranges = self.blocks;
    }
}

impl Options for TcpOptions {
    fn on_wire(&self) -> Option<&TcpOptions> {
        Some(self)
    }

    fn set_timestamps(&mut self, timestamps: (u32, u32)) {
        self.timestamps = Some(timestamps);
    }

    fn mark_ce(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

/// The timestamp clock's tick in ns.
pub(crate) const CLOCK_TICK: u64 = 1_000_000;

/// The timestamp clock. It wraps after 49 days, and the longest run is ten hours: neither wrapping
/// nor PAWS arises.
pub(crate) fn clock(now: u64) -> u32 {
    (now / CLOCK_TICK) as u32
}
