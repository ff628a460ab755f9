//! Marks for scalable senders (RFC 9331). The share of marked packets rises with the sojourn time in the flow's queue.

use crate::Duration;

/// Fixed part of the marking threshold. The other part is a full packet's transmission time.
const BEYOND: Duration = Duration::from_millis(1);

/// Number of steps of the ramp, from no marks to marks on every packet.
const STEPS: u64 = 256;

/// Fraction of a mark that is carried to the flow's next packet; spreads the marks evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shallow {
    remainder: u8,
}

impl Shallow {
    /// True if an ECT(1) packet that has waited for `sojourn` is marked. The ramp starts 1 ms above `full_packet`, a
    /// packet's transmission time. From 1 ms above twice `full_packet` on, every packet is marked.
    ///
    /// A flow's debt counts like a queue. Up to `ramp` bytes of debt, no packet is marked; from `3 * ramp` bytes on,
    /// every packet is marked.
    pub(super) fn marks(
        &mut self,
        sojourn: Duration,
        full_packet: Duration,
        debt: u32,
        ramp: u32,
    ) -> bool {
        let start = full_packet + BEYOND;
        let beyond = sojourn.saturating_sub(start).as_nanos();
        let step = beyond.saturating_mul(STEPS) / full_packet.as_nanos().max(1);
        let ramp = u64::from(ramp.max(1));
        let beyond = u64::from(debt).saturating_sub(ramp);
        let step = step
            .max(beyond.saturating_mul(STEPS) / (2 * ramp))
            .min(STEPS);
        let steps = u64::from(self.remainder) + step;
        self.remainder = (steps % STEPS) as u8;
        steps >= STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_follow_a_ramp_of_a_packet_beyond_a_packet_and_a_millisecond() {
        let full = Duration::from_micros(600);
        for (micros, expected) in [
            (0, 0),
            (1600, 0),
            (1750, 25),
            (1900, 50),
            (2200, 100),
            (90_000, 100),
        ] {
            let mut shallow = Shallow::default();
            let sojourn = Duration::from_micros(micros);
            let marked = (0..100)
                .filter(|_| shallow.marks(sojourn, full, 0, 1))
                .count();
            assert_eq!(marked, expected, "{micros} us");
        }
    }
}
