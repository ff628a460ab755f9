//! A line with modems that hide its rate: shapers at home, modems, and the sources of the shapers' rates.

use super::{AutorateIngress, CakeAutorate, DataLosses};
use crate::events::NEVER;
use crate::packets::{Kind, Options, SimPacket};
use asymq_core::hold::BuildError;
use asymq_core::{Direction, Instant, Protocol, Rate};
use asymq_links::ModemQueue;
use asymq_rates::{Learner, Observed, TimedSegment};
use asymq_scenario::{RateSource, Scenario};
use std::collections::VecDeque;

const UP: usize = Direction::Up as usize;
const DOWN: usize = Direction::Down as usize;

/// Modems in the line, and the sources of the shapers' rates.
pub(crate) struct Line<O> {
    modems: [Option<ModemQueue>; 2],
    /// Packets in the downlink's modem, or in transit from it to the shaper.
    under_way: VecDeque<(u64, SimPacket<O>)>,
    shapers: [Shaper; 2],
    autorate: Option<CakeAutorate>,
    ingress: Option<AutorateIngress>,
    learner: Option<Box<Learner>>,
    learns_at: u64,
    /// True if the learner sends probes; `probe` is the latest number, `probes_back` holds the probes in transit.
    probes: bool,
    probe: u16,
    probes_back: VecDeque<(u64, u16)>,
    propagation: u64,
    tick: u64,
    /// Data packets that full modems dropped.
    pub(crate) losses: DataLosses,
}

/// A shaper's state and measurements.
struct Shaper {
    source: RateSource,
    rate: Rate,
    /// Bytes that the uplink's shaper has sent, or that the downlink's shaper has received.
    bytes: u64,
}

/// Minimum rate of a shaper unless given or learnt, in bit/s.
const MIN_RATE: f64 = 64_000.0;
/// Ratio of the shaper's rate to the modem's rate, for `Oracle97` and `OracleDrain`.
const ORACLE_SHARE: f64 = 0.97;
/// Time in ns in which `OracleDrain` empties the modem's queue.
const DRAIN_NS: f64 = 200e6;
/// Queue that `OracleDrain` leaves there, in ns.
const DRAIN_LEAVES_NS: f64 = 3e6;
/// Maximum share of the rate that is used for draining.
const DRAIN_MAX: f64 = 0.4;

/// Time in ns from the line's far end to the probed host and back.
const PROBED_HOST: u64 = 10_000_000;

/// Returns the fields from which the learner measures the path; `None` if the packet has none of them.
fn observed<O: Options>(packet: &SimPacket<O>) -> Option<Observed> {
    let (header, kind) = (&packet.header, packet.segment.kind());
    let options = packet.segment.options.on_wire();
    let is_handshake = matches!(kind, Kind::Syn | Kind::SynAck);
    match header.protocol {
        Protocol::Quic => return Some(Observed::Spin(options?.spin)),
        Protocol::Tcp => {}
        Protocol::QuicLong | Protocol::NonTcp | Protocol::Opaque => return None,
    }
    let sequence = match kind {
        Kind::Data => (packet.segment.number().saturating_sub(1) as u32)
            .wrapping_mul(header.payload)
            .wrapping_add(1),
        _ => u32::from(!is_handshake),
    };
    if let Some((stamp, echo)) = options.and_then(|options| options.timestamps) {
        return Some(Observed::Stamps(TimedSegment {
            stamp,
            echo,
            sequence: if kind == Kind::Data { sequence } else { 1 },
            ack: header.ack,
        }));
    }
    let len = header.payload + u32::from(is_handshake);
    Some(Observed::Numbers {
        end: (len > 0).then(|| sequence.wrapping_add(len)),
        ack: (kind != Kind::Syn).then_some(header.ack),
        is_syn: is_handshake,
    })
}

fn rate_of(bits: f64) -> Rate {
    let bits = bits.clamp(MIN_RATE, 10e9) as u64;
    Rate::from_bits_per_sec(bits).expect("clamped to the range of a rate")
}

impl<O: Options> Line<O> {
    /// Time in ns between two changes of rates.
    pub(crate) const TICK: u64 = 10_000_000;

    /// Creates the line of a scenario; `None` without modems. `propagation` is the one-way delay in ns.
    ///
    /// # Errors
    /// There is not enough memory to learn rates.
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        propagation: u64,
    ) -> Result<Option<Box<Self>>, BuildError> {
        let modems = Direction::ALL.map(|direction| ModemQueue::new(scenario, seed, direction));
        if modems.iter().all(Option::is_none) {
            return Ok(None);
        }
        let end = scenario.duration.as_nanos();
        let shaper = |direction: usize, source, rate| {
            let modem = modems[direction].as_ref();
            let fixed = match source {
                RateSource::None => Some(f64::INFINITY),
                source => modem.and_then(|modem| modem.fixed_rate(source, end)),
            };
            Shaper {
                source,
                rate: fixed.map_or(rate, rate_of),
                bytes: 0,
            }
        };
        let shapers = [
            shaper(UP, scenario.shaper_up, scenario.up),
            shaper(DOWN, scenario.shaper_down, scenario.down),
        ];
        let uses = |source| shapers.iter().any(|shaper| shaper.source == source);
        let ingress = (scenario.shaper_down == RateSource::AutorateIngress)
            .then(|| AutorateIngress::new(scenario.down.bits_per_sec() as f64));
        let one_way = uses(RateSource::CakeAutorateOwd);
        let autorate = (one_way || uses(RateSource::CakeAutorate)).then(|| {
            let known = modems.each_ref().map(|modem| {
                let modem = modem.as_ref()?;
                Some(modem.known_rates(end))
            });
            CakeAutorate::new(one_way, known)
        });
        let ranges = [UP, DOWN].map(|direction| match shapers[direction].source {
            RateSource::Auto(range) => Some(range),
            _ => None,
        });
        let rates = [scenario.up, scenario.down];
        let learner = match ranges.iter().any(Option::is_some) {
            true => Some(Box::new(Learner::new(ranges, rates)?)),
            false => None,
        };
        Ok(Some(Box::new(Self {
            modems,
            under_way: VecDeque::new(),
            shapers,
            autorate,
            ingress,
            learner,
            learns_at: 0,
            probes: scenario.rate_probe,
            probe: 0,
            probes_back: VecDeque::new(),
            propagation,
            tick: 0,
            losses: DataLosses::default(),
        })))
    }

    /// Propagation delay in ns that the shaper's link adds; 0 if the line adds it.
    pub(crate) fn propagation_of_link(&self, direction: usize) -> u64 {
        match (direction, &self.modems[DOWN]) {
            (DOWN, None) => self.propagation,
            _ => 0,
        }
    }

    /// Sends a packet from the uplink's shaper at `at`. Returns its arrival at the far end; `None` if it is dropped.
    pub(crate) fn leaves_home(&mut self, at: u64, packet: &SimPacket<O>) -> Option<u64> {
        self.shapers[UP].bytes += u64::from(packet.header.len);
        if let Some(learner) = &mut self.learner {
            // The packet's last bit leaves the shaper at `at`.
            let observed = observed(packet);
            learner.leaves(Instant::from_nanos(at), &packet.header, observed.as_ref());
        }
        let Some(modem) = &mut self.modems[UP] else {
            return Some(at + self.propagation);
        };
        let out = modem.pass(at, packet.header.len);
        if out.is_none() {
            self.losses.add(packet);
        }
        Some(out? + self.propagation)
    }

    /// Accepts a packet that arrives at the line's far end at `now`. Returns false if the downlink has no modem.
    pub(crate) fn takes(&mut self, now: u64, packet: &SimPacket<O>) -> bool {
        let Some(modem) = &mut self.modems[DOWN] else {
            return false;
        };
        match modem.pass(now, packet.header.len) {
            Some(out) => {
                let at = out + self.propagation;
                let mut packet = *packet;
                packet.header.arrival = Instant::from_nanos(at);
                self.under_way.push_back((at, packet));
            }
            None => self.losses.add(packet),
        }
        true
    }

    /// Time at which the line delivers its next packet to the downlink's shaper; [`NEVER`] if there is none.
    pub(crate) fn next(&self, direction: usize) -> u64 {
        let first = self.under_way.front().filter(|_| direction == DOWN);
        first.map_or(NEVER, |(at, _)| *at)
    }

    /// Removes and returns the packet that arrives at [`next`](Self::next).
    pub(crate) fn comes_home(&mut self) -> Option<SimPacket<O>> {
        let (at, packet) = self.under_way.pop_front()?;
        self.shapers[DOWN].bytes += u64::from(packet.header.len);
        if let Some(learner) = &mut self.learner {
            let observed = observed(&packet);
            learner.comes(Instant::from_nanos(at), &packet.header, observed.as_ref());
        }
        if let Some(ingress) = &mut self.ingress {
            ingress.comes(at, packet.header.len);
        }
        Some(packet)
    }

    /// Time of the next change of rates.
    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    /// Returns the shapers' new rates at `now`, which must be the time of [`tick`](Self::tick). `backlogged` is true
    /// for shapers with queued packets.
    pub(crate) fn rates(&mut self, now: u64, backlogged: [bool; 2]) -> [Rate; 2] {
        self.tick = now + Self::TICK;
        if let Some(learner) = &mut self.learner
            && now >= self.learns_at
        {
            self.learns_at = now + Learner::INTERVAL.as_nanos();
            while let Some(&(at, number)) = self.probes_back.front()
                && at <= now
            {
                self.probes_back.pop_front();
                learner.probe_returns(Instant::from_nanos(at), number);
            }
            if self.probes && learner.probe_is_due(Instant::from_nanos(now)) {
                // Probes load no link and are never lost, like the pings of `CakeAutorate`.
                self.probe = self.probe.wrapping_add(1);
                learner.probe_leaves(Instant::from_nanos(now), self.probe);
                let waits = self.modems.iter().flatten().map(|modem| modem.wait(now));
                let back = now + waits.sum::<u64>() + 2 * self.propagation + PROBED_HOST;
                self.probes_back.push_back((back, self.probe));
            }
            learner.step(Instant::from_nanos(now), backlogged);
            for direction in Direction::ALL {
                if let Some(law) = learner.law(direction) {
                    self.shapers[direction as usize].rate = law.rate();
                }
            }
        }
        if let Some(autorate) = &mut self.autorate {
            let modem = |direction: usize| self.modems[direction].as_ref();
            let waits =
                [UP, DOWN].map(|direction| modem(direction).map_or(0, |modem| modem.wait(now)));
            let sent = [UP, DOWN].map(|direction| self.shapers[direction].bytes);
            autorate.tick(now, waits, sent);
        }
        for direction in [UP, DOWN] {
            let shaper = &mut self.shapers[direction];
            let Some(modem) = &self.modems[direction] else {
                continue;
            };
            let rate = 8.0 * modem.rate(now, modem.oracle_span());
            let drain = (modem.wait(now) as f64 - DRAIN_LEAVES_NS).max(0.0) / DRAIN_NS;
            let learnt = self.ingress.as_ref().map(AutorateIngress::rate);
            let autorate = self.autorate.as_ref().map(|all| all.rate(direction));
            let bits = match shaper.source {
                RateSource::AutorateIngress => learnt.unwrap_or(rate),
                RateSource::Oracle => rate,
                RateSource::Oracle97 => ORACLE_SHARE * rate,
                RateSource::OracleDrain => ORACLE_SHARE * (1.0 - drain.min(DRAIN_MAX)) * rate,
                RateSource::CakeAutorate | RateSource::CakeAutorateOwd => autorate.unwrap_or(rate),
                _ => continue,
            };
            shaper.rate = rate_of(bits);
        }
        [UP, DOWN].map(|direction| self.shapers[direction].rate)
    }

    /// Bytes that a direction's modem can carry from the start of the run to `now`; `None` without a modem.
    pub(crate) fn capacity(&self, direction: usize, now: u64) -> Option<f64> {
        Some(self.modems[direction].as_ref()?.capacity(now))
    }

    /// Number of packets that a full modem dropped.
    pub(crate) fn lost(&self, direction: usize) -> u64 {
        self.modems[direction].as_ref().map_or(0, ModemQueue::lost)
    }

    /// Number of packets in the downlink's modem, or in transit from it.
    #[cfg(test)]
    pub(crate) fn held(&self, direction: usize) -> u64 {
        match direction {
            DOWN => self.under_way.len() as u64,
            _ => 0,
        }
    }
}
