//! VAQ: data may leave when it has credit, and passing ACKs earn it (VAQ, sec. 4).

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::qdisc::{Probe, Reading};
use crate::units::{Instant, Rate};

/// What earns credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreditPer {
    /// Every byte that an ACK acknowledges, as the text says. A later ACK covers a lost one.
    #[default]
    Byte,
    /// Every ACK, one segment of this many bytes: which gives the paper's figures.
    Segment(u32),
}

/// Credit of the data class, in bytes of the slow link.
///
/// When credit is short and an ACK waits, the ACK leaves; when none waits, data leaves without
/// spending, so that the link never idles with work to do. The paper does not say. Unspent credit is
/// bounded, or an hour of pure download would let an upload shut the ACKs out for minutes.
#[derive(Clone, Debug)]
pub struct AckCredit {
    per: CreditPer,
    /// `C_r / C_f`, the slow link's bytes per byte of the fast one, in 1/65536.
    ratio: u64,
    /// In 1/65536 byte.
    credit: u64,
    max: u64,
}

impl AckCredit {
    /// No credit yet; at most `max` bytes ever.
    pub fn new(per: CreditPer, slow: Rate, fast: Rate, max: u64) -> Self {
        let ratio = (u128::from(slow.bits_per_sec()) << 16) / u128::from(fast.bits_per_sec());
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

    /// Earns for an ACK that leaves and acknowledges `bytes` anew: `NbrBytesAcked * C_r / C_f`.
    #[inline]
    pub fn earn(&mut self, bytes: u32) {
        let bytes = match self.per {
            CreditPer::Byte => bytes,
            CreditPer::Segment(bytes) => bytes,
        };
        self.credit = self
            .credit
            .saturating_add(u64::from(bytes).saturating_mul(self.ratio));
        self.credit = self.credit.min(self.max);
    }

    /// Whether a data packet of `len` bytes may go before a waiting ACK.
    #[inline]
    pub fn affords(&self, len: u32) -> bool {
        self.credit >= u64::from(len) << 16
    }

    /// Spends for a data packet that went before a waiting ACK: `Size(p)`.
    #[inline]
    pub fn spend(&mut self, len: u32) {
        self.credit = self.credit.saturating_sub(u64::from(len) << 16);
    }

    /// Unspent credit in bytes.
    pub const fn bytes(&self) -> u64 {
        self.credit >> 16
    }
}

impl Service for AckCredit {
    #[inline]
    fn next(&mut self, _now: Instant, heads: Heads) -> Next {
        Next::Serve(match (heads.ack, heads.data) {
            (Some(_), Some(data)) if self.affords(data.len) => Class::Data,
            (Some(_), _) => Class::Ack,
            (None, Some(_)) => Class::Data,
            (None, None) => return Next::Empty,
        })
    }

    #[inline]
    fn sent(&mut self, _now: Instant, departure: Departure) {
        match departure.class {
            Class::Ack => self.earn(departure.acked_bytes),
            Class::Data if departure.contended => self.spend(departure.len),
            Class::Data | Class::Priority => {}
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
        let mut credit = credit(CreditPer::Byte);
        for _ in 0..10 {
            assert!(!credit.affords(1500));
            credit.earn(1501);
        }
        assert!(credit.affords(1500));
        credit.spend(1500);
        assert!(!credit.affords(1500));
    }

    #[test]
    fn per_segment_a_stretched_ack_earns_no_more_than_another() {
        let (mut byte, mut segment) = (credit(CreditPer::Byte), credit(CreditPer::Segment(1500)));
        byte.earn(15_000);
        segment.earn(15_000);
        assert_eq!((byte.bytes(), segment.bytes()), (1499, 149));
    }

    #[test]
    fn credit_is_bounded() {
        let mut credit = credit(CreditPer::Byte);
        for _ in 0..1000 {
            credit.earn(u32::MAX);
        }
        assert_eq!(credit.bytes(), 10_000);
    }
}
