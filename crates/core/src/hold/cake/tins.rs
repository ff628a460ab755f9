//! CAKE's tins: the classes of DSCPs and their shares of the link.

use crate::decide::aqm::CobaltParams;
use crate::hold::drr::quantum;
use crate::hold::transmitter::TxTime;
use crate::{Duration, FULL_PACKET, Instant, Rate};

/// Classes of DSCPs, with the names of `tc-cake(8)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diffserv {
    /// A single tin for all packets.
    BestEffort,
    /// The eight classes of IP's former precedence field.
    Precedence,
    /// Bulk, best effort, voice.
    Three,
    /// Bulk, best effort, video, voice.
    Four,
    /// Eight classes.
    Eight,
}

/// Ratio of CAKE's interval to its target.
const TARGET_PART: u64 = 20;

impl Diffserv {
    pub(super) const fn tins(self) -> usize {
        match self {
            Self::BestEffort => 1,
            Self::Three => 3,
            Self::Four => 4,
            Self::Precedence | Self::Eight => 8,
        }
    }

    /// Returns the tin of a DSCP. With three or four tins, tin 0 is best effort; with eight, tin 0 has the lowest rank.
    pub(super) const fn tin(self, dscp: u8) -> usize {
        let dscp = dscp & 0x3f;
        match self {
            Self::BestEffort => 0,
            Self::Precedence => (dscp >> 3) as usize,
            Self::Three => match dscp {
                // LE, CS1.
                1 | 8 => 1,
                // TOS4, VA, EF, CS6, CS7.
                4 | 44 | 46 | 48 | 56 => 2,
                _ => 0,
            },
            Self::Four => match dscp {
                1 | 8 => 1,
                // TOS4, CS2, AF2x, CS3, AF3x, AF4x.
                4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
                // CS4, CS5, VA, EF, CS6, CS7.
                32 | 40 | 44 | 46 | 48 | 56 => 3,
                _ => 0,
            },
            Self::Eight => match dscp {
                // LE.
                1 => 0,
                // TOS2, CS1, AF1x.
                2 | 8 | 10 | 12 | 14 => 1,
                // CS3, AF3x, AF4x.
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                // TOS4, AF2x.
                4 | 18 | 20 | 22 => 4,
                // CS2.
                16 => 5,
                // CS4, CS5, VA, EF.
                32 | 40 | 44 | 46 => 6,
                // CS6, CS7.
                48 | 56 => 7,
                _ => 2,
            },
        }
    }

    /// Returns the quantum in bytes of a flow whose hosts have no other flow.
    pub(super) fn quantum(self, tin: usize, link: Rate) -> u32 {
        quantum(self.rate(tin, link.bits_per_sec() / 8))
    }

    /// Returns the rate in bytes/s up to which a tin has priority.
    fn rate(self, tin: usize, link: u64) -> u64 {
        match self {
            Self::BestEffort => link,
            Self::Three => link >> [0, 4, 2].get(tin).copied().unwrap_or(0),
            Self::Four => link >> [0, 4, 1, 2].get(tin).copied().unwrap_or(0),
            Self::Precedence | Self::Eight => {
                (0..tin).fold(link, |rate, _| rate.saturating_mul(7) >> 3)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tin {
    pub(super) cobalt: CobaltParams,
    time: TxTime,
    /// Time at which the tin is within its share of the link again.
    pub(super) free_at: Instant,
    pub(super) packets: u32,
}

impl Tin {
    pub(super) fn new(diffserv: Diffserv, tin: usize, link: Rate, rtt: Duration) -> Self {
        let bytes = diffserv.rate(tin, link.bits_per_sec() / 8);
        let rate = Rate::from_bits_per_sec(bytes.saturating_mul(8).max(512)).unwrap_or(link);
        let time = TxTime::new(rate);
        let full_packet = time.of(FULL_PACKET);
        let wanted = rtt / TARGET_PART;
        let target = wanted.max(full_packet * 3 / 2);
        Self {
            cobalt: CobaltParams {
                target,
                interval: (rtt + target.saturating_sub(wanted)).max(target * 2),
                full_packet,
            },
            time,
            free_at: Instant::ZERO,
            packets: 0,
        }
    }

    /// Charges a sent packet to the tin's share.
    pub(super) fn charge(&mut self, now: Instant, len: u32) {
        let time = self.time.of(len);
        if self.free_at < now {
            self.free_at += time;
        } else {
            self.free_at = self.free_at.max(now + time);
        }
    }
}
