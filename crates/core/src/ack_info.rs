//! Content of a pure ACK, as its owner reads it off the frame.

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

/// Marks that ACE reports before it cycles (RFC 9768, sec. 3.2.2).
pub(crate) const ACE_MARKS: u32 = 7;

/// The order of an AccECN option's counters (RFC 9768, sec. 3.2.3): the two kinds differ, so that
/// neither stands for the other.
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
    /// In which order the counters stand.
    pub order: AccEcnOrder,
    /// Number of `counters` that are there, 0 to 3.
    pub fields: u8,
    /// The counters, in the option's order.
    pub counters: [u32; 3],
}

/// Content of a pure ACK beyond its flow.
///
/// The default is a bare ACK with right checksums. An owner that cannot know a field leaves it as it is: equal
/// values of `seq` and `context` permit filtering.
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
    /// Number of `sack` that count.
    pub sack_ranges: u8,
    /// Carries an option that is unknown, malformed, MPTCP or TCP-AO, a reserved bit, or IP options:
    /// never filtered, and no other for it.
    pub keep: bool,
    /// Signed by MD5 or TCP-AO: never to be edited.
    pub signed: bool,
    /// The AccECN option.
    pub accecn: Option<AccEcn>,
    /// A hash of what routers and hosts treat alike: link headers, DSCP, ECN field, tunnel.
    pub context: u32,
}
