//! Header fields of a pure ACK.

/// A range of sequence numbers received out of order, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// First sequence number.
    pub start: u32,
    /// End of the range (exclusive).
    pub end: u32,
}

/// Maximum number of SACK ranges in a TCP header.
pub const MAX_SACK_RANGES: usize = 4;

/// Maximum number of new marks that the 3-bit ACE field reports without a wrap (RFC 9768, sec. 3.2.2).
pub(crate) const ACE_MARKS: u32 = 7;

/// Order of the counters in an AccECN option (RFC 9768, sec. 3.2.3). An ACK never replaces an ACK with another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccEcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    Zero,
    /// Kind 174: ECT(1), CE, ECT(0).
    One,
}

/// An AccECN option: bytes received with each ECN codepoint, modulo 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcn {
    /// Order of the counters.
    pub order: AccEcnOrder,
    /// Number of valid `counters`, 0 to 3.
    pub fields: u8,
    /// The counters, in the option's order.
    pub counters: [u32; 3],
}

/// Header fields of a pure ACK, without addresses and ports.
///
/// The default is an ACK without options and with correct checksums. Callers may leave unknown fields at their
/// defaults. An ACK may replace another one only if both have the same `seq` and `context`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Sequence number. In a keepalive or window probe, it is lower than in the flow's other ACKs.
    pub seq: u32,
    /// Cumulative acknowledgement number.
    pub ack: u32,
    /// Window field, unscaled.
    pub window: u16,
    /// TCP flags.
    pub flags: u16,
    /// TSval and TSecr of the timestamps option.
    pub timestamps: Option<(u32, u32)>,
    /// SACK ranges, in the order of the option; only the first `sack_ranges` are valid.
    pub sack: [SackRange; MAX_SACK_RANGES],
    /// Number of valid `sack` ranges.
    pub sack_ranges: u8,
    /// True if the ACK has IP options, a reserved bit, MPTCP, TCP-AO, or an unknown or malformed option. Such an ACK is
    /// never filtered, and never replaces another ACK.
    pub keep: bool,
    /// True if the ACK is signed by MD5 or TCP-AO. A signed ACK must never be edited.
    pub signed: bool,
    /// The AccECN option.
    pub accecn: Option<AccEcn>,
    /// Hash of link headers, DSCP, ECN field and tunnel. The network treats packets with equal hashes in the same way.
    pub context: u32,
}
