//! With arbitrary samples, a learnt rate stays within its range and above its floor, and recovers within seconds.

use asymq_core::{Direction, Duration, Flow, Header, Instant, Rate};
use asymq_rates::{Learner, Observed, RateRange, TimedSegment};

/// Kind of packets whose delays can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    /// TCP with timestamps.
    Stamps,
    /// TCP without timestamps.
    Numbers,
    /// QUIC with spin bits.
    Spins,
}

impl Readable {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Stamps, Self::Numbers, Self::Spins];
}

/// A forged packet that an attacker sends on the downlink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Number of the conversation, one of eight.
    pub(crate) conversation: u8,
    /// Difference of the server's timestamp from the correct one.
    pub(crate) stamp: i32,
    /// Age in ms of the echoed departure.
    pub(crate) echo: u16,
    /// Acknowledgement number, relative to the next sequence number up.
    pub(crate) ack: i32,
    /// Time since the previous packet, in us.
    pub(crate) pause: u16,
    /// Bytes of the packet.
    pub(crate) len: u16,
}

const MS: u64 = 1_000_000;

/// A line whose shapers always have a backlog.
struct Bench {
    learner: Learner,
    now: u64,
    /// Times of the next uplink packet and of the next step.
    sends: u64,
    steps: u64,
    stamps: [u32; 8],
    /// Sequence number of the next uplink packet, common to all conversations.
    sequence: u32,
    range: RateRange,
    readable: Readable,
    /// Last spin bit of each server.
    spins: [bool; 8],
    /// Bytes sent up in each of the last ten seconds, the current second first.
    seconds: [u64; 10],
    second: u64,
}

impl Bench {
    fn new(range: RateRange, start: Rate, readable: Readable) -> Self {
        let learner = Learner::new([Some(range); 2], [start; 2]);
        Self {
            learner: learner.unwrap_or_else(|_| panic!("no memory")),
            now: MS,
            sends: MS,
            steps: MS,
            stamps: [0; 8],
            sequence: 1,
            range,
            readable,
            spins: [false; 8],
            seconds: [0; 10],
            second: 0,
        }
    }

    fn rate(&self, direction: Direction) -> Rate {
        self.learner
            .law(direction)
            .map_or(self.range.min, |law| law.rate())
    }

    fn header(conversation: u64, len: u32, direction: Direction) -> Header {
        Header {
            flow: Flow(conversation << 1 | direction as u64),
            len,
            ..Header::default()
        }
    }

    /// Advances to `until`: sends full packets up at the learnt rate, and checks each step.
    fn run(&mut self, until: u64) {
        while self.sends.min(self.steps) <= until {
            if self.sends <= self.steps {
                let at = self.sends;
                for conversation in 0..8 {
                    let header = Self::header(conversation, 190, Direction::Up);
                    let observed = match self.readable {
                        Readable::Stamps => Observed::Stamps(TimedSegment {
                            stamp: (at / MS) as u32,
                            sequence: self.sequence,
                            ..TimedSegment::default()
                        }),
                        Readable::Numbers => Observed::Numbers {
                            end: Some(self.sequence.wrapping_add(138)),
                            ack: Some(1),
                            is_syn: false,
                        },
                        Readable::Spins => Observed::Spin(!self.spins[conversation as usize]),
                    };
                    self.learner
                        .leaves(Instant::from_nanos(at), &header, Some(&observed));
                }
                self.sequence = self.sequence.wrapping_add(138);
                self.seconds[0] += 8 * 190;
                self.sends += self
                    .rate(Direction::Up)
                    .tx_time(8 * 190)
                    .as_nanos()
                    .max(1000);
            } else {
                let at = self.steps;
                self.learner.step(Instant::from_nanos(at), [true; 2]);
                self.steps += Learner::INTERVAL.as_nanos();
                if at / (1000 * MS) > self.second {
                    self.second = at / (1000 * MS);
                    self.seconds.rotate_right(1);
                    self.seconds[0] = 0;
                }
                self.check();
            }
        }
        self.now = until;
    }

    /// Checks that each rate is within its range. Checks that the uplink's rate is above a share of the best
    /// delivery in the last nine whole seconds.
    fn check(&self) {
        for direction in Direction::ALL {
            let rate = self.rate(direction);
            assert!(
                rate >= self.range.min && rate <= self.range.max,
                "{direction:?}: {rate}"
            );
        }
        let best = self.seconds[..9].iter().max().copied().unwrap_or(0);
        let rate = self.rate(Direction::Up).bits_per_sec();
        // Seconds of this test and of the law begin at different times, hence half of the share.
        assert!(
            rate >= self.range.min.bits_per_sec().max(best),
            "{rate}, {best} bytes"
        );
    }

    fn comes(&mut self, claim: Claim) {
        let conversation = usize::from(claim.conversation % 8);
        let stamp = &mut self.stamps[conversation];
        *stamp = stamp.wrapping_add_signed(claim.stamp);
        let ack = self.sequence.wrapping_add_signed(claim.ack);
        let observed = match self.readable {
            Readable::Stamps => Observed::Stamps(TimedSegment {
                stamp: *stamp,
                echo: ((self.now / MS) as u32).wrapping_sub(claim.echo.into()),
                sequence: 1,
                ack,
            }),
            Readable::Numbers => Observed::Numbers {
                end: None,
                ack: Some(ack),
                is_syn: false,
            },
            Readable::Spins => {
                let spin = claim.stamp & 1 == 1;
                self.spins[conversation] = spin;
                Observed::Spin(spin)
            }
        };
        let header = Self::header(conversation as u64, claim.len.into(), Direction::Down);
        let at = Instant::from_nanos(self.now);
        self.learner.comes(at, &header, Some(&observed));
    }
}

/// Runs three phases: two seconds of honest servers that deliver ten times the floor, five seconds of repeated
/// `claims`, then honest samples.
///
/// # Panics
/// A rate leaves its range, falls to the floor, or falls below a share of recent deliveries. Two seconds after
/// the last claim, a rate is still near the floor.
pub(crate) fn rates_keep_their_bounds(readable: Readable, claims: &[Claim]) {
    let rate = |bits| Rate::from_bits_per_sec(bits).unwrap_or(Rate::MAX);
    let range = RateRange {
        min: rate(1_000_000),
        max: rate(20_000_000),
    };
    let mut bench = Bench::new(range, rate(10_000_000), readable);
    let honest = |bench: &mut Bench, ms: u64| {
        for _ in 0..ms {
            bench.run(bench.now + MS);
            let conversation = (bench.now / MS % 8) as u8;
            let stamp = (bench.now / MS) as u32;
            bench.stamps[usize::from(conversation)] = stamp;
            // An ACK acknowledges data that was sent 20 ms earlier.
            let behind = (bench.rate(Direction::Up).bits_per_sec() / 8 / 190 * 138 / 50) as i32;
            bench.comes(Claim {
                conversation,
                stamp: match readable {
                    // A round trip of 24 ms.
                    Readable::Spins => (bench.now / MS / 24 % 2) as i32,
                    _ => 0,
                },
                echo: 20,
                ack: match readable {
                    Readable::Numbers => -behind,
                    _ => -1_000_000,
                },
                pause: 0,
                len: 1500,
            });
        }
    };
    honest(&mut bench, 2000);
    let end = bench.now + Duration::from_secs(5).as_nanos();
    while bench.now < end {
        if claims.is_empty() {
            bench.run(end);
        }
        for claim in claims {
            bench.run(bench.now + 1000 * u64::from(claim.pause) + 1000);
            bench.comes(*claim);
        }
    }
    let at_floor = bench.rate(Direction::Up).bits_per_sec();
    assert!(
        at_floor > range.min.bits_per_sec(),
        "at the floor: {at_floor}"
    );
    honest(&mut bench, 2000);
    let freed = bench.rate(Direction::Up).bits_per_sec();
    assert!(freed >= 2_000_000, "{freed} after two honest seconds");
}
