//! Random changes of a line's rates and delays during a run, drawn from the seed.

use asymq_core::decide::random::SplitMix64;
use asymq_core::units::{Duration, Rate};
use asymq_scenario::{
    DelayStep, Direction, Draw, Modem, RateProfile, RateStep, RttRange, Scenario, Source, fraction,
    uniform,
};

/// Rate during an outage; practically zero.
const NOTHING: Rate = Rate::from_bits_per_sec(1).expect("positive");

/// Returns the scenario with the rate profile of `seed` as steps; `None` if it has no rate profile.
pub fn drawn(scenario: &Scenario, seed: u64) -> Option<Scenario> {
    let rate_profile = scenario.rate_profile?;
    let mut random =
        SplitMix64::new(uniform(seed, Source::Link(Direction::Down), Draw::RateProfile).to_bits());
    let Changes { shares, delays } = changes(rate_profile, scenario.duration.as_secs_f64(), || {
        fraction(random.next())
    });
    let at = |seconds: f64| Duration::from_nanos((seconds * 1e9) as u64);
    let steps = |way: usize, modem: Option<Modem>| {
        let rate = modem.map_or(0.0, |modem| modem.rate.bits_per_sec() as f64);
        let steps = shares.iter().map(|(from, shares)| RateStep {
            at: at(*from),
            to: Rate::from_bits_per_sec((rate * shares[way]) as u64).unwrap_or(NOTHING),
        });
        steps.collect()
    };
    let mut drawn = Scenario {
        rate_profile: None,
        steps_up: steps(0, scenario.modem_up),
        steps_down: steps(1, scenario.modem_down),
        steps_delay: delays
            .iter()
            .map(|(from, ms)| DelayStep {
                at: at(*from),
                to: at(ms / 1e3),
            })
            .collect(),
        ..scenario.clone()
    };
    if let (RateProfile::Docsis, Some(modem)) = (rate_profile, &mut drawn.modem_up) {
        modem.grant.get_or_insert(RttRange {
            min: Duration::from_millis(2),
            max: Duration::from_millis(6),
        });
    }
    Some(drawn)
}

/// The changes of a profile, in order of time.
#[derive(Default)]
struct Changes {
    /// New shares of the modems' rates: time in s, and shares for uplink and downlink.
    shares: Vec<(f64, [f64; 2])>,
    /// New delays: time in s, and additional delay in ms.
    delays: Vec<(f64, f64)>,
}

const SLOT: f64 = 15.0;
const TENTH: f64 = 0.1;

/// Returns the changes in a run of `end` seconds.
fn changes(profile: RateProfile, end: f64, mut draw: impl FnMut() -> f64) -> Changes {
    let mut changes = Changes::default();
    let mut within = |from: f64, to: f64| from + (to - from) * draw();
    let Changes { shares, delays } = &mut changes;
    match profile {
        RateProfile::Constant | RateProfile::Docsis => {}
        RateProfile::Steps => {
            for at in times(4.0, end).skip(1) {
                shares.push((at, [0; 2].map(|_| within(0.7, 1.3))));
            }
        }
        RateProfile::Halved => {
            *shares = vec![(end * 5.0 / 14.0, [0.5; 2]), (end * 9.0 / 14.0, [1.0; 2])]
        }
        RateProfile::Ramp => {
            for at in times(TENTH, end).skip(1) {
                let half = 2.0 * at / end;
                let share = if half < 1.0 {
                    1.0 - 0.6 * half
                } else {
                    0.4 + 0.8 * (half - 1.0)
                };
                shares.push((at, [share; 2]));
            }
        }
        RateProfile::Starlink => {
            for slot in times(SLOT, end) {
                let base = within(0.55, 1.2);
                delays.push((slot, within(0.0, 15.0)));
                for second in times(1.0, SLOT.min(end - slot)) {
                    shares.push((slot + second, [0; 2].map(|_| base * within(0.9, 1.1))));
                }
            }
        }
        RateProfile::Cellular => {
            let mut logs = [0.0; 2];
            for at in times(TENTH, end).skip(1) {
                logs = logs.map(|log| {
                    let radius = libm::sqrt(-2.0 * libm::log(1.0 - within(0.0, 1.0)));
                    let normal = radius * libm::cos(within(0.0, core::f64::consts::TAU));
                    0.967 * log + 0.128 * normal
                });
                shares.push((at, logs.map(|log| libm::exp(log - 0.12).clamp(0.12, 2.2))));
            }
        }
        RateProfile::Outage => {
            for quarter in [0.25, 0.5, 0.75] {
                shares.push((end * quarter, [0.0; 2]));
                shares.push((end * quarter + 2.0, [1.0; 2]));
            }
        }
        RateProfile::Path => {
            *delays = vec![(end * 0.25, 20.0), (end * 0.5, 40.0), (end * 0.75, 0.0)]
        }
        RateProfile::Handover => {
            for slot in times(SLOT, end).skip(1) {
                shares.push((slot, [0.0; 2]));
                shares.push((slot + 0.2, [0; 2].map(|_| within(0.6, 1.3))));
                delays.push((slot, within(0.0, 30.0)));
            }
        }
    }
    changes
}

/// Returns the multiples of `step` that are below `end`.
fn times(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0..)
        .map(move |index| f64::from(index) * step)
        .take_while(move |at| *at < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: f64 = 70.0;

    /// The changes of a rate profile in the run with this seed.
    fn changes_of(profile: RateProfile, seed: u64) -> Changes {
        let mut random = SplitMix64::new(seed);
        changes(profile, END, || fraction(random.next()))
    }

    #[test]
    fn changes_are_in_order_within_the_run_and_have_the_documented_extent() {
        for profile in RateProfile::ALL {
            let name = profile.name();
            let Changes { shares, delays } = changes_of(profile, 7);
            let times: Vec<f64> = shares.iter().map(|(at, _)| *at).collect();
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{name}");
            assert!(times.iter().all(|at| (0.0..END).contains(at)), "{name}");
            let (min, max) = match profile {
                RateProfile::Steps => (0.7, 1.3),
                RateProfile::Starlink => (0.55 * 0.9, 1.2 * 1.1),
                RateProfile::Cellular => (0.12, 2.2),
                RateProfile::Handover => (0.0, 1.3),
                RateProfile::Outage => (0.0, 1.0),
                RateProfile::Halved => (0.5, 1.0),
                RateProfile::Ramp => (0.4, 1.2),
                RateProfile::Constant | RateProfile::Path | RateProfile::Docsis => (1.0, 1.0),
            };
            let within = |share: &f64| (min - 1e-9..max + 1e-9).contains(share);
            assert!(
                shares.iter().flat_map(|(_, both)| both).all(within),
                "{name}"
            );
            assert!(
                delays.iter().all(|(_, ms)| (0.0..=40.0).contains(ms)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_random_walk_keeps_near_the_rate_and_its_directions_differ() {
        let mut logs = [0.0; 2];
        let mut count = 0.0;
        for seed in 0..50 {
            for (_, shares) in changes_of(RateProfile::Cellular, seed).shares {
                assert!(shares[0] != shares[1] || shares[0] == 2.2 || shares[0] == 0.12);
                logs = [logs[0] + shares[0].ln(), logs[1] + shares[1].ln()];
                count += 1.0;
            }
        }
        for log in logs {
            assert!((log / count + 0.12).abs() < 0.06, "{}", log / count);
        }
    }
}
