//! Numbers of statistics. Lists grow only at their end.

use asymq_core::{Reading, Reason, TrafficClass};

/// Unit of a number, as `tc` prints it; C has the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets, bytes or another count.
    Count = 0,
    /// Fraction in steps of 2^-30.
    Share = 1,
    /// Nanoseconds.
    Time = 2,
    /// The bits of an IEEE 754 double.
    Real = 3,
    /// Bit/s.
    Rate = 4,
}
use Unit::{Count, Rate, Real, Share, Time};

/// Name and unit of a statistic.
pub type Statistic = (&'static str, Unit);

/// Number of the padding to 8 bytes, in every list.
pub const PAD: u16 = 1;

/// Number of the first statistic of a list; other statistics follow.
pub const FIRST: u16 = 2;

/// Numbers of lists, and of single entries beside the lists.
pub mod id {
    /// [`VERSION`](crate::VERSION).
    pub const VERSION: u16 = 2;
    /// Number of faults since the last change; absent without faults.
    pub const FAILED: u16 = 3;
    /// The first list; other lists follow.
    pub const FIRST_LIST: u16 = 4;
}

/// Lists with their names: all classes, each class, control variables, the qdisc, and its device.
pub const LISTS: &[(&str, &[Statistic])] = &[
    ("", TOTAL),
    ("ack", CLASS),
    ("data", CLASS),
    ("other", CLASS),
    ("control", CONTROL),
    ("queue", QUEUE),
    ("device", DEVICE),
];

/// Number of packets of all classes for each fate.
pub const TOTAL: &[Statistic] = &[("dropped", Count), ("filtered", Count), ("marked", Count)];

/// Statistics of one class of traffic. Reasons of drops come last, but `tc` prints them in the middle.
pub const CLASS: &[Statistic] = &[
    ("sent.packets", Count),
    ("sent.bytes", Count),
    ("backlog.packets", Count),
    ("backlog.bytes", Count),
    ("marked", Count),
    ("rate", Rate),
    ("sojourn.p50", Time),
    ("sojourn.p95", Time),
    ("sojourn.p99", Time),
    ("sojourn.max", Time),
    ("over-limit", Count),
    ("aqm", Count),
    ("ack-filtered", Count),
    ("opaque-filtered", Count),
];

/// Positions in [`CLASS`].
pub mod class {
    use super::FIRST;

    /// Packets sent, followed by their bytes.
    pub const SENT: u16 = FIRST;
    /// Queued packets, followed by their bytes.
    pub const BACKLOG: u16 = FIRST + 2;
    /// Number of packets marked.
    pub const MARKED: u16 = FIRST + 4;
    /// Rate of the last 10 to 20 seconds.
    pub const RATE: u16 = FIRST + 5;
    /// First of four sojourn times.
    pub const SOJOURN: u16 = FIRST + 6;
}

/// Control variables of disciplines and of learnt rates.
pub const CONTROL: &[Statistic] = &[
    ("auto_rate", Rate),
    ("auto_capacity", Rate),
    ("auto_line_queue", Time),
    ("auto_start", Count),
    ("auto_queue", Count),
    ("auto_search", Count),
    ("auto_idle", Count),
    ("auto_blind", Count),
    ("auto_path", Count),
    ("auto_delivered", Count),
    ("data_share", Share),
    ("credit", Count),
    ("data_per_ack", Real),
    ("red_average", Count),
    ("ack_limit", Count),
    ("data_limit", Count),
    ("flows", Count),
    ("codel_target", Time),
    ("codel_count", Count),
    ("new_flows", Count),
    ("old_flows", Count),
    ("sparse_flows", Count),
    ("bulk_flows", Count),
    ("bulk_target", Time),
    ("probability", Share),
    ("unfiltered_losses", Count),
    ("unfiltered_marks", Count),
    ("unfiltered_stretch", Count),
    ("unfiltered_other", Count),
    ("ack_wait", Time),
    ("ack_bytes", Count),
    ("downlink", Real),
    ("downlink_used", Real),
    ("unfiltered_options", Count),
];

/// Statistics of the C half: packets and bytes since the qdisc was created.
pub const QUEUE: &[Statistic] = &[
    ("arrived.packets", Count),
    ("arrived.bytes", Count),
    ("dropped.packets", Count),
    ("dropped.bytes", Count),
    ("filtered.packets", Count),
    ("filtered.bytes", Count),
    ("flushed.packets", Count),
    ("flushed.bytes", Count),
    ("peeked.packets", Count),
    ("peeked.bytes", Count),
    ("fallback_sent.packets", Count),
    ("fallback_sent.bytes", Count),
    ("fallback_dropped.packets", Count),
    ("fallback_dropped.bytes", Count),
    ("reverse.packets", Count),
    ("reverse.bytes", Count),
    ("bypassed.packets", Count),
    ("bypassed.bytes", Count),
];

/// Statistics of the device's ingress hook.
pub const DEVICE: &[Statistic] = &[("packets", Count), ("unknown", Count)];

/// Number of a class's list.
pub const fn of_class(class: TrafficClass) -> u16 {
    id::FIRST_LIST + 1 + class as u16
}

/// Number of the list of control variables.
pub const OF_CONTROL: u16 = id::FIRST_LIST + 4;

/// Number of the list of all classes.
pub const OF_TOTAL: u16 = id::FIRST_LIST;

fn find(list: &[Statistic], name: &str) -> Option<u16> {
    let place = list.iter().position(|(known, _)| *known == name)?;
    Some(FIRST + u16::try_from(place).ok()?)
}

/// Number of a reason in a class's list.
pub fn of_reason(reason: Reason) -> Option<u16> {
    find(CLASS, reason.name())
}

/// Number of a control variable.
pub fn of_variable(name: &str) -> Option<u16> {
    find(CONTROL, name)
}

/// Number and unit of a reading.
pub fn of_reading(reading: Reading) -> (u64, Unit) {
    match reading {
        Reading::Count(count) => (count, Count),
        Reading::Share(share) => (share.steps().into(), Share),
        Reading::Time(time) => (time.as_nanos(), Time),
        Reading::Real(number) => (number.to_bits(), Real),
    }
}

/// Name and statistics of the list with this number.
pub fn list(number: u16) -> Option<(&'static str, &'static [Statistic])> {
    let place = number.checked_sub(id::FIRST_LIST)?;
    LISTS.get(usize::from(place)).copied()
}
