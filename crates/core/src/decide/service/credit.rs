//! VAQ: data spends credit that passing ACKs have earned (VAQ, sec. 4).

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::{Instant, Probe, Rate, Reading};

/// Credit that an ACK earns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditPer {
    /// Every byte that an ACK acknowledges earns credit, as in the paper's text, so that a later ACK compensates for a
    /// lost one. Headers also earn credit: 40 bytes per packet. The field is the size of a packet on the fast link.
    Byte(u32),
    /// Every payload byte that an ACK acknowledges earns credit; headers earn none.
    Payload,
    /// Each ACK that acknowledges new bytes earns one segment of this many bytes; a duplicate ACK earns nothing. This
    /// reproduces the paper's figures.
    Segment(u32),
}

/// Credit of the data class, in bytes of the slow link.
///
/// Every data packet spends credit. If no ACK is queued, data leaves even without credit, which then becomes zero.
/// The paper does not define this case; without this rule, the link would idle although data is queued. The paper has
/// no bound on unspent credit. Without a bound, an upload after an hour of pure download would block ACKs for minutes.
#[derive(Clone, Debug)]
pub struct AckCredit {
    per: CreditPer,
    /// `C_r / C_f` in units of 1/65536: bytes of the slow link per byte of the fast link, headers included.
    ratio: u64,
    /// Unspent credit in units of 1/65536 byte.
    credit: u64,
    max: u64,
}

impl AckCredit {
    /// Creates an account without credit. The maximum credit is `max` bytes; 2^48 or more means no bound.
    pub fn new(per: CreditPer, slow: Rate, fast: Rate, max: u64) -> Self {
        const HEADER: u32 = 40;
        let (packet, payload) = match per {
            CreditPer::Byte(packet) => (packet, packet.saturating_sub(HEADER).max(1)),
            CreditPer::Payload | CreditPer::Segment(_) => (1, 1),
        };
        let slow = u128::from(slow.bits_per_sec()) * u128::from(packet);
        let fast = u128::from(fast.bits_per_sec()) * u128::from(payload);
        let ratio = (slow << 16) / fast;
        Self {
            per,
            ratio: if ratio > u64::MAX as u128 {
                u64::MAX
            } else {
                ratio as u64
            },
            credit: 0,
            max: max.saturating_mul(1 << 16),
        }
    }

    /// Adds the credit of an ACK that leaves and newly acknowledges `bytes`: `NbrBytesAcked * C_r / C_f`.
    pub fn earn(&mut self, bytes: u32) {
        let bytes = match self.per {
            CreditPer::Byte(_) | CreditPer::Payload => bytes,
            CreditPer::Segment(segment) if bytes > 0 => segment,
            CreditPer::Segment(_) => 0,
        };
        self.credit = self
            .credit
            .saturating_add(u64::from(bytes).saturating_mul(self.ratio));
        self.credit = self.credit.min(self.max);
    }

    /// True if the credit suffices for a data packet of `len` bytes. The packet may then leave before a queued ACK.
    pub fn affords(&self, len: u32) -> bool {
        self.credit >= u64::from(len) << 16
    }

    /// Subtracts a data packet's size, `Size(p)`, from the credit. The credit never falls below zero.
    pub fn spend(&mut self, len: u32) {
        self.credit = self.credit.saturating_sub(u64::from(len) << 16);
    }

    /// Unspent credit in bytes.
    pub const fn bytes(&self) -> u64 {
        self.credit >> 16
    }
}

impl Service for AckCredit {
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        Next::Serve(match (heads.ack, heads.data) {
            (Some(_), Some(data)) if self.affords(data.len) => Class::Data,
            (Some(_), _) => Class::Ack,
            (None, Some(_)) => Class::Data,
            (None, None) => return Next::Empty,
        })
    }

    fn sent(&mut self, _now: Instant, departure: Departure) {
        match departure.class {
            Class::Ack => self.earn(departure.acked_bytes),
            Class::Data => self.spend(departure.len),
        }
    }

    fn needs_acked_bytes(&self) -> bool {
        true
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("credit", Reading::Count(self.bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::Head;

    fn credit(per: CreditPer) -> AckCredit {
        AckCredit::new(
            per,
            "1mbit".parse().unwrap(),
            "10mbit".parse().unwrap(),
            10_000,
        )
    }

    #[test]
    fn ten_acknowledged_packets_pay_for_one_at_ten_to_one() {
        let mut credit = credit(CreditPer::Byte(1500));
        for _ in 0..10 {
            assert!(!credit.affords(1500));
            credit.earn(1461);
        }
        assert!(credit.affords(1500));
        credit.spend(1500);
        assert!(!credit.affords(1500));
    }

    #[test]
    fn data_always_spends_and_leaves_with_credit_or_without_queued_acks() {
        let head = |len| {
            Some(Head {
                ticket: 0,
                len,
                due: Instant::ZERO,
            })
        };
        for contended in [false, true] {
            let mut credit = credit(CreditPer::Payload);
            credit.earn(20_000);
            let sent = Departure {
                class: Class::Data,
                len: 1500,
                contended,
                acked_bytes: 0,
            };
            credit.sent(Instant::ZERO, sent);
            assert_eq!(credit.bytes(), 499);
            let ack = head(40);
            let data = head(1500);
            assert_eq!(
                credit.next(Instant::ZERO, Heads { ack, data }),
                Next::Serve(Class::Ack)
            );
            let alone = Heads { ack: None, data };
            assert_eq!(credit.next(Instant::ZERO, alone), Next::Serve(Class::Data));
            credit.sent(Instant::ZERO, sent);
            assert_eq!(credit.bytes(), 0);
        }
    }

    #[test]
    fn per_segment_a_stretched_ack_earns_no_more_than_another() {
        let (mut byte, mut segment) =
            (credit(CreditPer::Payload), credit(CreditPer::Segment(1500)));
        byte.earn(15_000);
        segment.earn(15_000);
        assert_eq!((byte.bytes(), segment.bytes()), (1499, 149));
        segment.earn(0);
        assert_eq!(segment.bytes(), 149, "a duplicate");
    }

    #[test]
    fn credit_is_bounded() {
        let mut credit = credit(CreditPer::Payload);
        for _ in 0..1000 {
            credit.earn(u32::MAX);
        }
        assert_eq!(credit.bytes(), 10_000);
    }
}
