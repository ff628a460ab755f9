//! Which of two classes is served next, byte for byte in a given ratio.

use super::Class;

/// Serves two classes so that, while both are backlogged, their bytes keep the ratio of their
/// weights to within one packet. Work conserving: a class alone has the whole link, and gains no
/// claim from the time it was absent.
#[derive(Clone, Copy, Debug)]
pub struct WeightedBytes {
    data_weight: u32,
    ack_weight: u32,
    /// `data bytes * ack weight - ack bytes * data weight` since both became backlogged: what the
    /// data class is ahead of its share.
    data_lead: i64,
}

impl WeightedBytes {
    /// The sum of the two weights.
    pub const SCALE: u32 = 1 << 16;

    /// Weights in the ratio `data_share : 1 - data_share`; the share is clamped to 0..=1.
    pub fn new(data_share: f64) -> Self {
        let mut service = Self {
            data_weight: 0,
            ack_weight: 0,
            data_lead: 0,
        };
        service.set_data_share(data_share);
        service
    }

    /// Changes the ratio from now on; what a class is ahead or behind stays.
    pub fn set_data_share(&mut self, data_share: f64) {
        let scaled = data_share.clamp(0.0, 1.0) * f64::from(Self::SCALE) + 0.5;
        self.data_weight = scaled as u32;
        self.ack_weight = Self::SCALE - self.data_weight;
    }

    /// The data class's share of the link while both are backlogged.
    pub fn data_share(&self) -> f64 {
        f64::from(self.data_weight) / f64::from(Self::SCALE)
    }

    /// The class to serve next, given the bytes of each class's next packet; at least one waits.
    ///
    /// While both wait it is the one whose packet would be through first if both were served at
    /// once, each at its share. So an ACK that comes to an empty queue does not wait for a second
    /// data packet: it goes after the one on the link.
    #[inline]
    pub fn next(&mut self, ack: Option<u32>, data: Option<u32>) -> Class {
        match (ack, data) {
            (Some(ack), Some(data)) => {
                let data_done = self.data_lead.saturating_add(self.cost(Class::Data, data));
                if data_done <= -self.cost(Class::Ack, ack) {
                    Class::Data
                } else {
                    Class::Ack
                }
            }
            (ack, _) => {
                self.data_lead = 0;
                if ack.is_some() {
                    Class::Ack
                } else {
                    Class::Data
                }
            }
        }
    }

    /// What `len` bytes of a class add to the data class's lead.
    #[inline]
    fn cost(&self, class: Class, len: u32) -> i64 {
        match class {
            Class::Data => i64::from(len) * i64::from(self.ack_weight),
            Class::Ack => -i64::from(len) * i64::from(self.data_weight),
        }
    }

    /// Charges a packet of `len` bytes that was served while both classes waited.
    #[inline]
    pub fn charge(&mut self, class: Class, len: u32) {
        self.data_lead = self.data_lead.saturating_add(self.cost(class, len));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve_while_both_wait(service: &mut WeightedBytes, packets: u32) -> (u64, u64) {
        let (mut ack, mut data) = (0, 0);
        for _ in 0..packets {
            let class = service.next(Some(40), Some(1500));
            let len = if class == Class::Ack { 40 } else { 1500 };
            service.charge(class, len);
            *(if class == Class::Ack {
                &mut ack
            } else {
                &mut data
            }) += u64::from(len);
        }
        (ack, data)
    }

    #[test]
    fn both_backlogged_classes_keep_the_ratio_to_within_one_packet() {
        for percent in [1, 10, 27, 50, 73, 90, 99] {
            let share = f64::from(percent) / 100.0;
            let mut service = WeightedBytes::new(share);
            for packets in [1, 7, 50, 1000] {
                let mut service = service;
                let (ack, data) = serve_while_both_wait(&mut service, packets);
                let due = (ack + data) as f64 * service.data_share();
                assert!(
                    (data as f64 - due).abs() <= 1500.0,
                    "{percent} %, {packets}: {data} of {due}"
                );
            }
            let (ack, data) = serve_while_both_wait(&mut service, 100_000);
            assert!((data as f64 / (ack + data) as f64 - share).abs() < 0.001);
        }
    }

    #[test]
    fn a_class_of_weight_zero_is_served_only_alone() {
        for (share, served, starved) in [
            (1.0, Class::Data, Class::Ack),
            (0.0, Class::Ack, Class::Data),
        ] {
            let mut service = WeightedBytes::new(share);
            for _ in 0..1000 {
                assert_eq!(service.next(Some(40), Some(1500)), served);
                service.charge(served, 1500);
            }
            assert_eq!(
                service.next(
                    (starved == Class::Ack).then_some(40),
                    (starved == Class::Data).then_some(1500)
                ),
                starved
            );
        }
    }

    #[test]
    fn an_absent_class_gains_no_claim() {
        let mut service = WeightedBytes::new(0.5);
        for _ in 0..1000 {
            assert_eq!(service.next(None, Some(1500)), Class::Data);
        }
        let (ack, data) = serve_while_both_wait(&mut service, 39);
        assert!(ack <= 1540 && data <= 1500, "{ack} {data}");
    }

    #[test]
    fn an_ack_that_comes_alone_goes_after_the_packet_on_the_link() {
        let mut service = WeightedBytes::new(0.73);
        for _ in 0..100 {
            assert_eq!(service.next(None, Some(1500)), Class::Data);
            assert_eq!(service.next(Some(40), Some(1500)), Class::Ack);
            service.charge(Class::Ack, 40);
        }
    }
}
