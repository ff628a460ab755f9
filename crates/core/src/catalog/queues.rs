//! The queues of the papers, and their parameters.

use super::config::Config;
use super::entry::{BoxedQueue, Entry, Maker, StandardQueue, entries};
use super::parameter::{Typed, listed, parameters};
use super::parts::narrow;
use super::role::Role;
use crate::hold::{AckFilter, BuildError, FilterBounds, Survivor, boxed};
use crate::packet::Packet;
use crate::units::{Bytes, Duration, Limit};

parameters! {
    /// 64 segments by default: this preserves the sender's ACK clock and bounds the burst that one ACK releases.
    pub(super) MAX_STRETCH: Option<Bytes> = "max-stretch", "93440b",
        "Maximum number of bytes between two ACKs of a flow after filtering, or none";
    /// Limited by default: each new ACK moves to the tail, so the ACKs of a steady flow might never leave.
    MAX_GAP: Option<Duration> = "max-gap", "50ms",
        "Maximum time between two ACKs of a flow after filtering, or none";
}

const fn queue(role: Role, name: &'static str, of: StandardQueue, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Queue(of),
        ..Entry::part(role, name, summary)
    }
}

/// The queues, in the order of `--help`.
pub(super) static QUEUES: &[Entry] = entries! {
    queue(Role::AckQueue, "fifo", StandardQueue::Fifo, "All ACKs, in the order of arrival");
    queue(Role::AckQueue, "af", StandardQueue::AckFilter,
        "ACK filtering: a new ACK removes the older ones of its flow and joins the tail"), source: "RFC 3449, sec. 5.2.1",
        parameters: listed![MAX_STRETCH, MAX_GAP];
    queue(Role::AckQueue, "sad", StandardQueue::SmartDropper,
        "Smart ACK dropper: a new ACK replaces the queued one of its flow and takes its place in the queue"), source: "SAD, sec. 3",
        parameters: listed![MAX_STRETCH];
    queue(Role::DataQueue, "fifo", StandardQueue::Fifo, "First in, first out");
    queue(Role::DataQueue, "fq", StandardQueue::FlowQueues,
        "A queue per flow, served by deficit round robin; a full buffer drops from the longest queue"), source: "RFC 3449, sec. 5.4.1";
};

/// Creates a queue in which a new ACK replaces earlier ones of its flow.
#[inline(never)]
pub(super) fn filter<P: Packet + Send + 'static>(
    survivor: Survivor,
    config: &Config,
    limit: Limit,
) -> Result<BoxedQueue<P>, BuildError> {
    let bounds = FilterBounds {
        max_stretch: max_stretch(config)?,
        max_gap: config.find(MAX_GAP).flatten().unwrap_or(Duration::MAX),
    };
    Ok(boxed(AckFilter::new(survivor, bounds, limit)?)?)
}

/// Maximum bytes between two ACKs after filtering.
pub(super) fn max_stretch(config: &Config) -> Result<u32, BuildError> {
    Ok(config.get(MAX_STRETCH)?.map_or(u32::MAX, narrow))
}
