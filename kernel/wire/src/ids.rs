//! Numbers of attributes, disciplines and parts. Lists grow only at their end.

use asymq_core::catalog::Role;

/// Version of the exchange between `tc` and the module. Increases when a number changes its meaning.
pub const VERSION: u32 = 1;

/// Width of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A boolean, 0 or 1.
    U8,
    /// A count, the index of a keyword, or a share in steps of 2^-30.
    U32,
    /// A number that may be negative.
    S32,
    /// Bytes, nanoseconds, bit/s, a limit or billionths.
    U64,
}

/// Numbers of the qdisc's own attributes. Number 1 was the text of older versions, and is refused.
pub mod id {
    /// Version of the exchange, [`VERSION`](super::VERSION).
    pub const VERSION: u16 = 2;
    /// Values given by the user, as attributes.
    pub const GIVEN: u16 = 3;
    /// Discipline: index of its name in [`names`](super::names).
    pub const QDISC: u16 = 4;
    /// Rate of the link in bit/s; for a learnt rate, the current value.
    pub const UP: u16 = 5;
    /// Rate of the reverse direction in bit/s.
    pub const DOWN: u16 = 6;
    /// Buffer: packets, or bytes if bit 63 is set.
    pub const BUFFER: u16 = 7;
    /// True if the qdisc shapes to the link's rate.
    pub const SHAPED: u16 = 8;
    /// True if hosts are identified by addresses before this machine's NAT.
    pub const NAT: u16 = 9;
    /// Bytes that the link adds to each packet.
    pub const OVERHEAD: u16 = 10;
    /// Minimum bytes charged for a packet.
    pub const MPU: u16 = 11;
    /// Framing: 0 plain, 1 ATM, 2 PTM.
    pub const FRAMING: u16 = 12;
    /// Basis of the overhead: 0 frame (default), 1 IP packet, 2 frame (keyword `raw`).
    pub const BASIS: u16 = 13;
    /// Lowest rate that may be learnt, in bit/s.
    pub const UP_MIN: u16 = 14;
    /// Highest rate that may be learnt, in bit/s.
    pub const UP_MAX: u16 = 15;
    /// Padding to 8 bytes.
    pub const PAD: u16 = 16;
    /// Parameter `classifier`.
    pub const CLASSIFIER: u16 = super::FIRST_PARAMETER;
    /// Parameter `buffer-split`: the division of the buffer.
    pub const BUFFER_SPLIT: u16 = super::FIRST_PARAMETER + 1;
    /// Parameter `ack-limit`: the limit of the ACK queue.
    pub const ACK_LIMIT: u16 = super::FIRST_PARAMETER + 2;
    /// Parameter `data-limit`: the limit of the data queue.
    pub const DATA_LIMIT: u16 = super::FIRST_PARAMETER + 3;
    /// Parameter `max-stretch`: the maximum bytes between two ACKs of a flow.
    pub const MAX_STRETCH: u16 = super::FIRST_PARAMETER + 4;
    /// The ACK queue.
    pub const ACK_QUEUE: u16 = 20;
    /// The data queue.
    pub const DATA_QUEUE: u16 = 21;
    /// The AQM on arrivals.
    pub const AQM: u16 = 22;
    /// The service.
    pub const SERVICE: u16 = 23;
    /// The controller.
    pub const CONTROLLER: u16 = 24;
}

/// An attribute with its name and width.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Number of the attribute.
    pub id: u16,
    /// Name of the attribute.
    pub name: &'static str,
    /// Width of the attribute.
    pub width: Width,
}

const fn own(id: u16, name: &'static str, width: Width) -> Attribute {
    Attribute { id, name, width }
}

/// Attributes that precede the parameters' attributes.
pub const ATTRIBUTES: &[Attribute] = &[
    own(id::VERSION, "version", Width::U32),
    own(id::QDISC, "qdisc", Width::U32),
    own(id::UP, "up", Width::U64),
    own(id::DOWN, "down", Width::U64),
    own(id::BUFFER, "buffer", Width::U64),
    own(id::SHAPED, "shaped", Width::U8),
    own(id::NAT, "nat", Width::U8),
    own(id::OVERHEAD, "overhead", Width::S32),
    own(id::MPU, "mpu", Width::U32),
    own(id::FRAMING, "framing", Width::U32),
    own(id::BASIS, "basis", Width::U32),
    own(id::UP_MIN, "up-min", Width::U64),
    own(id::UP_MAX, "up-max", Width::U64),
    own(id::ACK_QUEUE, "ack-queue", Width::U32),
    own(id::DATA_QUEUE, "data-queue", Width::U32),
    own(id::AQM, "aqm", Width::U32),
    own(id::SERVICE, "service", Width::U32),
    own(id::CONTROLLER, "controller", Width::U32),
];

/// Number of the first parameter; other parameters follow.
pub const FIRST_PARAMETER: u16 = 32;

/// Parameters of the catalog.
pub const PARAMETERS: &[(&str, Width)] = &[
    ("classifier", Width::U32),
    ("buffer-split", Width::U32),
    ("ack-limit", Width::U64),
    ("data-limit", Width::U64),
    ("max-stretch", Width::U64),
    ("max-gap", Width::U64),
    ("ecn", Width::U8),
    ("mark-above", Width::U64),
    ("data-share", Width::U32),
    ("borrow", Width::U8),
    ("made-up", Width::U64),
    ("credit", Width::U32),
    ("data-size", Width::U64),
    ("max-credit", Width::U64),
    ("configured-rate", Width::U64),
    ("ack-size", Width::U64),
    ("data-per-ack", Width::U64),
    ("interval", Width::U64),
    ("beyond-limit", Width::U32),
    ("gamma", Width::U64),
    ("utility", Width::U64),
    ("min-share", Width::U64),
    ("target", Width::U64),
    ("ce_threshold", Width::U64),
    ("flow-queues", Width::U32),
    ("quantum", Width::U64),
    ("memory_limit", Width::U64),
    ("drop_batch", Width::U32),
    ("cake-rtt", Width::U64),
    ("diffserv", Width::U32),
    ("isolation", Width::U32),
    ("ack-filter", Width::U32),
    ("memlimit", Width::U64),
    ("tupdate", Width::U64),
    ("alpha", Width::U64),
    ("beta", Width::U64),
    ("step_thresh", Width::U64),
    ("coupling_factor", Width::U32),
    ("classic_protection", Width::U32),
    ("drop_on_overload", Width::U8),
    ("drop_enqueue", Width::U8),
    ("any_ect", Width::U8),
    ("ack-wait", Width::U64),
    ("ack-segments", Width::U64),
    ("ack-ramp", Width::U64),
    ("thin-opaque", Width::U8),
    ("bulk-limit", Width::U64),
    ("flow-limit", Width::U64),
    ("bulk-target", Width::U64),
    ("bulk-min", Width::U64),
    ("bulk-interval", Width::U64),
    ("bulk-floor", Width::U64),
    ("min-ack-wait", Width::U64),
    ("max-ack-wait", Width::U64),
    ("downlink-full", Width::U64),
    ("ack-gain", Width::U64),
    ("ack-exponent", Width::U64),
    ("max-ack-share", Width::U64),
    ("unused-share", Width::U32),
];

/// Last attribute's number plus one.
pub const COUNT: usize = FIRST_PARAMETER as usize + PARAMETERS.len();

const DISCIPLINES: &[&str] = &[
    "droptail",
    "red",
    "acc",
    "fq",
    "af",
    "acks-first",
    "prr",
    "wrr",
    "cbq",
    "aq",
    "afvq",
    "acq",
    "dcbq",
    "e-dcbq",
    "vaq",
    "sad",
    "fifo+af/ar",
    "cbq+af/ar",
    "acq+af/ar",
    "sad+ar+cbq",
    "codel",
    "fq_codel",
    "cake",
    "cake+ack-filter",
    "cake+ack-filter-aggressive",
    "dualpi2",
    "asymq",
    "asymq+thin-opaque",
];

/// Names of a role, in the order of their numbers.
pub const fn names(role: Role) -> &'static [&'static str] {
    match role {
        Role::Qdisc => DISCIPLINES,
        Role::AckQueue => &["fifo", "af", "sad", "slots"],
        Role::DataQueue => &[
            "fifo", "fq", "codel", "fq_codel", "cake", "dualpi2", "isolated",
        ],
        Role::Aqm => &["none", "red", "acc", "step"],
        Role::Service => &[
            "shared",
            "acks-first",
            "prr",
            "wrr",
            "cbq",
            "vaq",
            "due-first",
        ],
        Role::Controller => &["none", "aq", "acq", "dcbq", "afvq", "ack-need"],
    }
}

pub(crate) const fn of_role(role: Role) -> u16 {
    match role {
        Role::Qdisc => id::QDISC,
        Role::AckQueue => id::ACK_QUEUE,
        Role::DataQueue => id::DATA_QUEUE,
        Role::Aqm => id::AQM,
        Role::Service => id::SERVICE,
        Role::Controller => id::CONTROLLER,
    }
}

#[cfg(feature = "text")]
pub(crate) fn of_parameter(name: &str) -> Option<u16> {
    let mut parameters = PARAMETERS.iter();
    let place = parameters.position(|(known, _)| *known == name)?;
    Some(FIRST_PARAMETER + u16::try_from(place).ok()?)
}

pub(crate) fn parameter(id: u16) -> Option<(&'static str, Width)> {
    let place = id.checked_sub(FIRST_PARAMETER)?;
    PARAMETERS.get(usize::from(place)).copied()
}

/// Discipline of a qdisc that is created without options: SAD, without its [limits](USUAL_LIMITS).
pub(crate) const USUAL: &[(u16, u64)] = &[
    (id::QDISC, 15),
    (id::UP, 1_000_000_000),
    (id::SHAPED, 0),
    (id::NAT, 0),
    (id::OVERHEAD, 0),
    (id::MPU, 0),
    (id::FRAMING, 0),
    (id::BASIS, 0),
    (id::ACK_QUEUE, 2),
    (id::DATA_QUEUE, 0),
    (id::AQM, 0),
    (id::SERVICE, 1),
    (id::CONTROLLER, 0),
    (id::CLASSIFIER, 0),
    (id::BUFFER_SPLIT, SEPARATE),
    (id::MAX_STRETCH, 93_440),
];

/// Value of [`id::BUFFER_SPLIT`] for separate limits.
pub(crate) const SEPARATE: u64 = 1;

/// Attributes of the limits that [`USUAL`] lacks: total, ACKs, data.
pub(crate) const USUAL_LIMITS: [u16; 3] = [id::BUFFER, id::ACK_LIMIT, id::DATA_LIMIT];
