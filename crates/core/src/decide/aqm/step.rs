//! Marking above a threshold of the backlog, for DCTCP (RFC 8257, section 3.1).

use super::{Aqm, Verdict};
use crate::decide::classify::Class;
use crate::{Backlog, Header, Instant, Limit};

/// Marks or drops every data packet that arrives while the backlog is at least the threshold. Pure ACKs pass.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    threshold: Limit,
}

impl Step {
    /// Creates an AQM with this threshold (RFC 8257's `K`).
    pub const fn new(threshold: Limit) -> Self {
        Self { threshold }
    }
}

impl Aqm for Step {
    fn arrives(&mut self, _: Instant, _: &Header, class: Class, backlog: Backlog) -> Verdict {
        let above = match self.threshold {
            Limit::Packets(packets) => backlog.packets >= packets,
            Limit::Bytes(bytes) => backlog.bytes >= bytes,
        };
        match above && class != Class::Ack {
            true => Verdict::Mark,
            false => Verdict::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_packet_is_marked_from_the_threshold_on_and_no_ack() {
        let judge = |threshold: Limit, packets: u32, class| {
            let backlog = Backlog {
                packets,
                bytes: u64::from(packets) * 1000,
            };
            Step::new(threshold).arrives(Instant::ZERO, &Header::default(), class, backlog)
        };
        for threshold in [Limit::Packets(5), Limit::Bytes(5000)] {
            assert_eq!(judge(threshold, 4, Class::Data), Verdict::Pass);
            assert_eq!(judge(threshold, 5, Class::Data), Verdict::Mark);
            assert_eq!(judge(threshold, 50, Class::Ack), Verdict::Pass);
        }
    }
}
