//! The published rule of cake-autorate 3.2 with its default configuration, for comparison. The rule pings six
//! reflectors in turn, one every 50 ms, and derives the rates from delays and load. Two simplifications favour the
//! rule: pings load no link and are never lost, and the user's configuration has the exact rates of the modem.

use asymq_links::KnownRates;

const MS: u64 = 1_000_000;
const REFLECTORS: usize = 6;
const PING_INTERVAL: u64 = 50 * MS;
/// Round-trip time to a reflector in ms.
const REFLECTOR_RTT: f64 = 40.0;
/// Interval in ns at which achieved rates are read.
const LOAD_INTERVAL: u64 = 200 * MS;
/// Number of pings in the window. At least `LATE` late pings in the window indicate bufferbloat.
const WINDOW: usize = 6;
const LATE: usize = 3;
/// Minimum delay in ms above the baseline for a ping to be late. Up to `MAX_UP` ms, rates rise fastest; from `MAX_DOWN`
/// ms on, rates fall fastest.
const DELAY: f64 = 30.0;
const MAX_UP: f64 = 10.0;
const MAX_DOWN: f64 = 60.0;
/// Gain of the baseline for rising delays; `FALL` is the gain for falling delays.
const RISE: f64 = 0.001;
const FALL: f64 = 0.9;
const HIGH_LOAD: f64 = 0.75;
const REFRACTORY: u64 = 300 * MS;
const DECAY_REFRACTORY: u64 = 1000 * MS;

/// State of cake-autorate for both directions.
#[derive(Debug, Default)]
pub(crate) struct CakeAutorate {
    one_way: bool,
    pings: usize,
    next_ping: u64,
    next_load: u64,
    /// Value of `sent` in [`tick`](Self::tick) at the last reading of the load.
    sent: [u64; 2],
    directions: [Option<DirectionState>; 2],
}

#[derive(Debug, Default)]
struct DirectionState {
    /// Minimum, base and maximum rate in bit/s from the user's configuration.
    bounds: [f64; 3],
    rate: f64,
    baselines: [f64; REFLECTORS],
    deltas: [f64; WINDOW],
    late: [bool; WINDOW],
    load: f64,
    load_is_new: bool,
    last_bloat: u64,
    last_decay: u64,
}

impl CakeAutorate {
    pub(crate) fn new(one_way: bool, known: [Option<KnownRates>; 2]) -> Self {
        Self {
            one_way,
            next_load: LOAD_INTERVAL,
            directions: known.map(|known| {
                known.map(|known| DirectionState {
                    bounds: [0.9 * known.min, 0.95 * known.mean, 1.05 * known.max],
                    rate: 0.95 * known.mean,
                    baselines: [100.0; REFLECTORS],
                    ..DirectionState::default()
                })
            }),
            ..Self::default()
        }
    }

    /// Rate of a direction in bit/s.
    pub(crate) fn rate(&self, direction: usize) -> f64 {
        self.directions[direction]
            .as_ref()
            .map_or(0.0, |state| state.rate)
    }

    /// Advances to `now`. `waits` are the modems' queueing delays in ns; `sent` counts the bytes that the uplink's
    /// shaper has sent, and that the downlink's shaper has received.
    pub(crate) fn tick(&mut self, now: u64, waits: [u64; 2], sent: [u64; 2]) {
        if now >= self.next_load {
            self.next_load += LOAD_INTERVAL;
            for (direction, state) in self.directions.iter_mut().enumerate() {
                let bytes = sent[direction] - self.sent[direction];
                if let Some(state) = state {
                    let achieved = bytes as f64 * 8e9 / LOAD_INTERVAL as f64;
                    state.load = achieved / state.rate;
                    state.load_is_new = true;
                }
            }
            self.sent = sent;
        }
        if now < self.next_ping {
            return;
        }
        self.next_ping += PING_INTERVAL;
        let [up, down] = waits.map(|wait| wait as f64 / 1e6);
        let delays = match self.one_way {
            true => [up, down].map(|wait| REFLECTOR_RTT / 2.0 + wait),
            false => [(REFLECTOR_RTT + up + down) / 2.0; 2],
        };
        for (state, delay) in self.directions.iter_mut().zip(delays) {
            if let Some(state) = state {
                state.ping(now, self.pings, delay);
            }
        }
        self.pings += 1;
    }
}

impl DirectionState {
    /// Processes the answer to a ping; `delay` is in ms.
    fn ping(&mut self, now: u64, number: usize, delay: f64) {
        let baseline = &mut self.baselines[number % REFLECTORS];
        let gain = if delay >= *baseline { RISE } else { FALL };
        *baseline += gain * (delay - *baseline);
        let delta = delay - *baseline;
        // A full packet's transmission time at the shaper is added to each threshold.
        let packet = 1514.0 * 8.0 / self.rate * 1e3;
        let [late, max_up, max_down] = [DELAY, MAX_UP, MAX_DOWN].map(|of| of + packet);
        self.deltas[number % WINDOW] = delta;
        self.late[number % WINDOW] = delta > late;
        let mean = self.deltas.iter().sum::<f64>() / WINDOW as f64;
        let rested = now > self.last_bloat + REFRACTORY;
        if self.late.iter().filter(|late| **late).count() >= LATE {
            if rested {
                let share = ((mean - late) / (max_down - late)).clamp(0.0, 1.0);
                self.rate *= 0.99 - share * (0.99 - 0.75);
                (self.last_bloat, self.last_decay) = (now, now);
            }
        } else if self.load > HIGH_LOAD {
            if self.load_is_new && rested {
                let share = ((late - mean) / (late - max_up)).clamp(0.0, 1.0);
                self.rate *= 1.0 + 0.04 * share;
                self.load_is_new = false;
                self.last_decay = now;
            }
        } else if now > self.last_decay + DECAY_REFRACTORY {
            let base = self.bounds[1];
            self.rate = match self.rate > base {
                true => (self.rate * 0.99).max(base),
                false => (self.rate * 1.01).min(base),
            };
            self.last_decay = now;
        }
        self.rate = self.rate.clamp(self.bounds[0], self.bounds[2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_falls_while_pings_are_late_and_rises_with_load() {
        let known = KnownRates {
            min: 1e6,
            mean: 8e6,
            max: 12e6,
        };
        let mut autorate = CakeAutorate::new(true, [Some(known), None]);
        let mut sent = 0;
        let mut run = |autorate: &mut CakeAutorate, from: u64, wait: u64| {
            for tick in from..from + 1000 {
                sent += (autorate.rate(0) / 8.0 / 100.0) as u64;
                autorate.tick(tick * 10 * MS, [wait * MS, 0], [sent, 0]);
            }
            autorate.rate(0)
        };
        assert_eq!(run(&mut autorate, 0, 0), 1.05 * 12e6);
        assert_eq!(run(&mut autorate, 1000, 100), 0.9e6);
        assert_eq!(autorate.rate(1), 0.0);
    }
}
