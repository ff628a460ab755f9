//! Service of two classes whose bytes keep a given ratio.

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::decide::control::Settings;
use crate::{Instant, Probe, Reading, Share};

/// Keeps the bytes of two classes in the ratio of their weights to within one packet, while both are backlogged. The
/// service is work conserving: a single class gets the whole link, and an idle class earns no credit. If two packets
/// would finish at the same time, the class behind its share goes first; if neither is behind, ACKs go first.
#[derive(Clone, Copy, Debug)]
pub struct WeightedBytes {
    data_weight: u32,
    ack_weight: u32,
    /// `data bytes * ack weight - ack bytes * data weight`, counted since both classes became backlogged. Positive if
    /// data is ahead of its share.
    data_lead: i64,
}

impl WeightedBytes {
    /// Tolerance for the rounding error of `data_lead`, per byte of the next packets. A share has an error of up to
    /// half a step; the errors of a thousand packets may add up. The tolerance is still only a millionth of a packet.
    const ROUNDING: i64 = 1 << 10;

    /// Creates a service with weights in the ratio of `data_share` to the rest.
    pub fn new(data_share: Share) -> Self {
        let mut service = Self {
            data_weight: 0,
            ack_weight: 0,
            data_lead: 0,
        };
        service.set_data_share(data_share);
        service
    }

    /// Changes the ratio. A class that is ahead of its share stays ahead.
    fn set_data_share(&mut self, data_share: Share) {
        self.data_weight = data_share.steps();
        self.ack_weight = data_share.rest().steps();
    }

    /// The data class's share of the link while both are backlogged.
    pub const fn data_share(&self) -> Share {
        Share::from_steps(self.data_weight)
    }

    /// Returns the change of `data_lead` if a class sends `len` bytes.
    fn cost(&self, class: Class, len: u32) -> i64 {
        match class {
            Class::Ack => -i64::from(len) * i64::from(self.data_weight),
            Class::Data => i64::from(len) * i64::from(self.ack_weight),
        }
    }
}

impl Service for WeightedBytes {
    /// With packets of both classes, chooses the packet that would finish first if each class were sent at its share.
    /// With equal shares, an ACK that finds no other ACK queued thus waits for at most one full data packet.
    #[inline]
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        let (Some(ack), Some(data)) = (heads.ack, heads.data) else {
            self.data_lead = 0;
            return heads.only().map_or(Next::Empty, Next::Serve);
        };
        let data_done = self
            .data_lead
            .saturating_add(self.cost(Class::Data, data.len));
        let later = data_done.saturating_add(self.cost(Class::Ack, ack.len));
        // With equal capacities, one ACK follows each data packet (AQ, eq. 7), and both would always finish at the same
        // time.
        let rounding = Self::ROUNDING * (i64::from(ack.len) + i64::from(data.len));
        let data_is_owed = self.data_lead < -rounding;
        let data_first = match later.unsigned_abs() <= rounding.unsigned_abs() {
            true => data_is_owed,
            false => later < 0,
        };
        Next::Serve(match data_first {
            true => Class::Data,
            false => Class::Ack,
        })
    }

    fn sent(&mut self, _now: Instant, departure: Departure) {
        if departure.contended {
            let cost = self.cost(departure.class, departure.len);
            self.data_lead = self.data_lead.saturating_add(cost);
        }
    }

    fn tune(&mut self, settings: &Settings) {
        if let Some(share) = settings.data_share {
            self.set_data_share(share);
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("data_share", Reading::Share(self.data_share()));
    }

    fn follows_rates(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::Head;

    fn next(service: &mut WeightedBytes, ack: Option<u32>, data: Option<u32>) -> Class {
        let head = |len| Head {
            ticket: 0,
            len,
            due: Instant::ZERO,
        };
        let heads = Heads {
            ack: ack.map(head),
            data: data.map(head),
        };
        match service.next(Instant::ZERO, heads) {
            Next::Serve(class) => class,
            other => panic!("{other:?}"),
        }
    }

    fn charge(service: &mut WeightedBytes, class: Class, len: u32) {
        let departure = Departure {
            class,
            len,
            contended: true,
            acked_bytes: 0,
        };
        service.sent(Instant::ZERO, departure);
    }

    fn serve_while_both_wait(service: &mut WeightedBytes, packets: u32) -> (u64, u64) {
        let (mut ack, mut data) = (0, 0);
        for _ in 0..packets {
            let class = next(service, Some(40), Some(1500));
            let len = if class == Class::Ack { 40 } else { 1500 };
            charge(service, class, len);
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
            let mut service = WeightedBytes::new(Share::from_f64(share));
            for packets in [1, 7, 50, 1000] {
                let mut service = service;
                let (ack, data) = serve_while_both_wait(&mut service, packets);
                let due = (ack + data) as f64 * service.data_share().as_f64();
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
            (Share::ONE, Class::Data, Class::Ack),
            (Share::ZERO, Class::Ack, Class::Data),
        ] {
            let mut service = WeightedBytes::new(share);
            for _ in 0..1000 {
                assert_eq!(next(&mut service, Some(40), Some(1500)), served);
                charge(&mut service, served, 1500);
            }
            let alone = next(
                &mut service,
                (starved == Class::Ack).then_some(40),
                (starved == Class::Data).then_some(1500),
            );
            assert_eq!(alone, starved);
        }
    }

    #[test]
    fn an_absent_class_gains_no_claim() {
        let mut service = WeightedBytes::new(Share::HALF);
        for _ in 0..1000 {
            assert_eq!(next(&mut service, None, Some(1500)), Class::Data);
        }
        let (ack, data) = serve_while_both_wait(&mut service, 39);
        assert!(ack <= 1540 && data <= 1500, "{ack} {data}");
    }

    #[test]
    fn an_ack_that_comes_alone_leaves_after_the_packet_on_the_link() {
        let mut service = WeightedBytes::new(Share::from_f64(0.73));
        for _ in 0..100 {
            assert_eq!(next(&mut service, None, Some(1500)), Class::Data);
            assert_eq!(next(&mut service, Some(40), Some(1500)), Class::Ack);
            charge(&mut service, Class::Ack, 40);
        }
    }

    #[test]
    fn a_tie_goes_to_acks_unless_data_is_owed_with_any_rounding() {
        // Eq. 7 at equal capacities: an ACK of 40 bytes for every 1500 bytes of data.
        let exact = Share::from_f64(1500.0 / 1540.0).steps();
        for steps in exact - 2..=exact + 2 {
            let mut service = WeightedBytes::new(Share::from_steps(steps));
            for _ in 0..100 {
                assert_eq!(next(&mut service, Some(40), Some(1500)), Class::Ack);
                charge(&mut service, Class::Ack, 40);
                assert_eq!(next(&mut service, Some(40), Some(1500)), Class::Data);
                charge(&mut service, Class::Data, 1500);
            }
            // After an ACK of 20 bytes data is behind; its packet would finish together with a second such ACK.
            charge(&mut service, Class::Ack, 20);
            assert_eq!(next(&mut service, Some(20), Some(1500)), Class::Data);
        }
    }
}
