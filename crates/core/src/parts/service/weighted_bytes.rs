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

    /// The class to serve next, given which wait; at least one does.
    #[inline]
    pub fn next(&mut self, ack_waits: bool, data_waits: bool) -> Class {
        let both = ack_waits && data_waits;
        if !both {
            self.data_lead = 0;
        }
        let data_is_behind =
            self.data_lead < 0 || self.data_lead == 0 && self.data_weight >= self.ack_weight;
        if data_waits && (!ack_waits || data_is_behind) {
            Class::Data
        } else {
            Class::Ack
        }
    }

    /// Charges a packet of `len` bytes that was served while both classes waited.
    #[inline]
    pub fn charge(&mut self, class: Class, len: u32) {
        let len = i64::from(len);
        self.data_lead += match class {
            Class::Data => len * i64::from(self.ack_weight),
            Class::Ack => -len * i64::from(self.data_weight),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve_while_both_wait(service: &mut WeightedBytes, packets: u32) -> (u64, u64) {
        let (mut ack, mut data) = (0, 0);
        for _ in 0..packets {
            let class = service.next(true, true);
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
                assert_eq!(service.next(true, true), served);
                service.charge(served, 1500);
            }
            assert_eq!(
                service.next(starved == Class::Ack, starved == Class::Data),
                starved
            );
        }
    }

    #[test]
    fn an_absent_class_gains_no_claim() {
        let mut service = WeightedBytes::new(0.5);
        for _ in 0..1000 {
            assert_eq!(service.next(false, true), Class::Data);
        }
        let (ack, data) = serve_while_both_wait(&mut service, 39);
        assert!(ack <= 1540 && data <= 1500, "{ack} {data}");
    }
}
