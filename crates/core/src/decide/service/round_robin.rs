//! Packet round robin, PRR (DCBQ's comparison).

use super::{Departure, Head, Heads, Next, Service, WeightedBytes};
use crate::decide::control::Settings;
use crate::{Instant, Probe, Share};

/// Serves packets of both classes in the ratio of the weights, independent of packet sizes. With equal weights the
/// classes alternate (DCBQ, sec. 5.1).
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    /// A service by bytes, in which each packet counts as one byte.
    packets: WeightedBytes,
}

impl RoundRobin {
    /// Creates a service with weights in the ratio of `data_share` to the rest.
    pub fn new(data_share: Share) -> Self {
        Self {
            packets: WeightedBytes::new(data_share),
        }
    }
}

impl Service for RoundRobin {
    fn next(&mut self, now: Instant, heads: Heads) -> Next {
        let unit = |head: Head| Head { len: 1, ..head };
        let heads = Heads {
            ack: heads.ack.map(unit),
            data: heads.data.map(unit),
        };
        self.packets.next(now, heads)
    }

    fn sent(&mut self, now: Instant, departure: Departure) {
        let unit = Departure {
            len: 1,
            ..departure
        };
        self.packets.sent(now, unit);
    }

    fn tune(&mut self, settings: &Settings) {
        self.packets.tune(settings);
    }

    fn probe(&self, show: &mut Probe<'_>) {
        self.packets.probe(show);
    }

    fn follows_rates(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::classify::Class;

    /// ACKs and data packets among 1000 served packets, with both classes always backlogged.
    fn served(data_share: Share) -> [u32; 2] {
        let mut service = RoundRobin::new(data_share);
        let head = |len| {
            Some(Head {
                ticket: 0,
                len,
                due: Instant::ZERO,
            })
        };
        let heads = Heads {
            ack: head(40),
            data: head(1500),
        };
        let mut served = [0, 0];
        for _ in 0..1000 {
            let Next::Serve(class) = service.next(Instant::ZERO, heads) else {
                panic!("both wait");
            };
            served[usize::from(class != Class::Ack)] += 1;
            let departure = Departure {
                class,
                len: if class == Class::Ack { 40 } else { 1500 },
                contended: true,
                acked_bytes: 0,
            };
            service.sent(Instant::ZERO, departure);
        }
        served
    }

    #[test]
    fn packets_of_any_length_are_served_in_the_ratio_of_the_weights() {
        assert_eq!(served(Share::HALF), [500, 500]);
        assert_eq!(served(Share::from_f64(0.2)), [800, 200]);
        assert_eq!(served(Share::from_f64(0.8)), [200, 800]);
    }
}
