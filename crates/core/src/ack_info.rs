//! Content of a pure ACK, as parsed by the packet's owner.

/// A range of sequence numbers received out of order, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// First sequence number.
    pub start: u32,
    /// One beyond the last.
    pub end: u32,
}

/// The maximum number of SACK ranges that fit a TCP header.
pub const MAX_SACK_RANGES: usize = 4;

/// Maximum number of marks that ACE reports before it wraps (RFC 9768, sec. 3.2.2).
pub(crate) const ACE_MARKS: u32 = 7;

/// Order of an AccECN option's counters (RFC 9768, sec. 3.2.3). An option of one kind never replaces one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AccEcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    Zero,
    /// Kind 174: ECT(1), CE, ECT(0).
    One,
}

/// An AccECN option: bytes received with each mark, modulo 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcn {
    /// Order of the counters.
    pub order: AccEcnOrder,
    /// Number of valid `counters`, 0 to 3.
    pub fields: u8,
    /// The counters, in the option's order.
    pub counters: [u32; 3],
}

/// Content of a pure ACK beyond its flow.
///
/// The default is a bare ACK with right checksums. Owners leave unknown fields at the default: equal values of `seq`
/// and `context` permit filtering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Sequence number. A pure ACK below what its sender has sent is a probe.
    pub seq: u32,
    /// Cumulative acknowledgement number.
    pub ack: u32,
    /// Window field, unscaled.
    pub window: u16,
    /// TCP flags.
    pub flags: u16,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK ranges, in the order of the option; the first `sack_ranges` count.
    pub sack: [SackRange; MAX_SACK_RANGES],
    /// Number of valid `sack` ranges.
    pub sack_ranges: u8,
    /// True if it carries IP options, a reserved bit, or an unknown or malformed option, MPTCP or TCP-AO. Such an ACK
    /// is never filtered and replaces no other.
    pub keep: bool,
    /// True if signed by MD5 or TCP-AO: must never be edited.
    pub signed: bool,
    /// The AccECN option.
    pub accecn: Option<AccEcn>,
    /// Hash of link headers, DSCP, ECN field and tunnel: packets with equal values are treated alike.
    pub context: u32,
}
