//! CBQ without borrowing: each class is paced to its share of the link.

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::decide::control::Settings;
use crate::{Duration, Instant, Probe, Rate, Reading, Share};

/// Maximum compensated lateness. A class is late if a packet of the other class still uses the link at its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeUp {
    /// Time of one packet, at the class's share. Short ACKs between long data packets get less than their share.
    Own,
    /// The time of `Own`, or the time of one packet of the other class if this is longer. Each class gets its share for
    /// all packet sizes.
    Other,
    /// A fixed time. With zero, lateness is never compensated.
    UpTo(Duration),
}

/// Service of two classes, each limited to its share even if the other class is idle. The service is not work
/// conserving. The CBQ of the ACQ, DCBQ and SAD papers does not borrow either: its utilization, summed over both
/// directions, is 1.4 to 1.5 in the papers. With borrowing, the sum would exceed 1.7.
#[derive(Clone, Debug)]
pub struct PacedShares {
    link: Rate,
    made_up: MadeUp,
    data_share: Share,
    turns: [Turn; Class::COUNT],
}

/// Pace of one class, and its next turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Transmission time per byte at the class's share, in units of 1/256 ns.
    pace: u64,
    next: Instant,
    /// Transmission time of the last packet.
    time: Duration,
}

/// Minimum share of a class: 0.1 %, so that each class is served.
const MIN_SHARE: Share = Share::from_steps(Share::SCALE / 1000);

impl PacedShares {
    /// Creates a service: data has `data_share` of `link`, ACKs have the rest; each class has at least 0.1 %.
    pub fn new(link: Rate, data_share: Share, made_up: MadeUp) -> Self {
        let mut paced = Self {
            link,
            made_up,
            data_share,
            turns: Default::default(),
        };
        paced.set_data_share(data_share);
        paced
    }

    fn set_data_share(&mut self, data_share: Share) {
        self.data_share = data_share.clamp(MIN_SHARE, MIN_SHARE.rest());
        // 256 * 8e9 bit-nanoseconds per byte, divided by rate times share.
        let pace = |share: Share| {
            let rate = u128::from(self.link.bits_per_sec()) * u128::from(share.steps().max(1));
            let pace = 256 * 8_000_000_000 * u128::from(Share::SCALE) / rate.max(1);
            u64::try_from(pace).unwrap_or(u64::MAX)
        };
        self.turns[Class::Data as usize].pace = pace(self.data_share);
        self.turns[Class::Ack as usize].pace = pace(self.data_share.rest());
    }

    /// Sets a class's next turn after a packet of `len` bytes. Lateness is compensated up to the limit of [`MadeUp`];
    /// time without a packet counts as lateness.
    fn charge(&mut self, now: Instant, class: Class, len: u32) {
        let other_time = self.turns[1 - class as usize].time;
        let turn = &mut self.turns[class as usize];
        turn.time = self.link.tx_time(len);
        let gap = Duration::from_nanos(u64::from(len).saturating_mul(turn.pace) >> 8);
        let owed = match self.made_up {
            MadeUp::Own => gap,
            MadeUp::Other => gap.max(other_time),
            MadeUp::UpTo(time) => time,
        };
        let owed_since = Instant::from_nanos(now.as_nanos().saturating_sub(owed.as_nanos()));
        turn.next = turn.next.max(owed_since) + gap;
    }
}

impl Service for PacedShares {
    /// Returns the class with the earliest turn, if the time of this turn has come.
    fn next(&mut self, now: Instant, heads: Heads) -> Next {
        let turn = |class: Class| self.turns[class as usize].next;
        let class = match (heads.ack, heads.data) {
            (None, None) => return Next::Empty,
            (Some(_), Some(_)) if turn(Class::Ack) <= turn(Class::Data) => Class::Ack,
            (_, Some(_)) => Class::Data,
            (Some(_), None) => Class::Ack,
        };
        let at = turn(class);
        if at <= now {
            Next::Serve(class)
        } else {
            Next::NotBefore(at)
        }
    }

    fn sent(&mut self, now: Instant, departure: Departure) {
        self.charge(now, departure.class, departure.len);
    }

    fn tune(&mut self, settings: &Settings) {
        if let Some(share) = settings.data_share {
            self.set_data_share(share);
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("data_share", Reading::Share(self.data_share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::Head;

    fn heads(ack: bool, data: bool) -> Heads {
        let head = Head {
            ticket: 0,
            len: 0,
            due: Instant::ZERO,
        };
        Heads {
            ack: ack.then_some(head),
            data: data.then_some(head),
        }
    }

    #[test]
    fn a_single_class_is_limited_to_its_share() {
        let link: Rate = "1mbit".parse().unwrap();
        let mut paced = PacedShares::new(link, Share::HALF, MadeUp::Other);
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::from_nanos(10_000_000_000) {
            match paced.next(now, heads(false, true)) {
                Next::Serve(class) => {
                    assert_eq!(class, Class::Data);
                    paced.charge(now, class, 1500);
                    sent += 1500;
                    now += link.tx_time(1500);
                }
                Next::NotBefore(at) => now = at,
                Next::Empty => unreachable!("data waits"),
            }
        }
        let half = 10 * 1_000_000 / 8 / 2;
        assert!((half..=half + 3000).contains(&sent), "{sent}");
    }

    /// Bytes of ACKs and of data served in 100 s at 56 kbit/s, half for each class, with both always backlogged.
    fn served(made_up: MadeUp) -> [u64; 2] {
        let link: Rate = "56kbit".parse().unwrap();
        let mut paced = PacedShares::new(link, Share::HALF, made_up);
        let (mut now, mut bytes) = (Instant::ZERO, [0, 0]);
        while now < Instant::from_nanos(100_000_000_000) {
            match paced.next(now, heads(true, true)) {
                Next::Serve(class) => {
                    let len = if class == Class::Ack { 40 } else { 1000 };
                    paced.charge(now, class, len);
                    bytes[usize::from(class != Class::Ack)] += u64::from(len);
                    now += link.tx_time(len);
                }
                Next::NotBefore(at) => now = at,
                Next::Empty => unreachable!("both wait"),
            }
        }
        bytes
    }

    const HALF: u64 = 100 * 56_000 / 8 / 2;

    #[test]
    fn the_other_classs_transmission_time_is_made_up_only_if_configured() {
        let [acks, data] = served(MadeUp::Other);
        assert!((HALF - 8000..=HALF + 1000).contains(&acks), "{acks}");
        assert!((HALF - 2000..=HALF + 1000).contains(&data), "{data}");
        // A cycle of 2000 bytes has a data packet of 1000 bytes. During its transmission, 13 to 15 ACKs pass at half
        // the rate; one of them is compensation.
        let [acks, data] = served(MadeUp::Own);
        assert!((HALF - 2000..=HALF + 1000).contains(&data), "{data}");
        let per_cycle = acks * 1000 / 40 / data;
        assert!((13..=15).contains(&per_cycle), "{per_cycle}");
    }
}
