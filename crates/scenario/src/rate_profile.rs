//! Random changes of a line's rates during a run, drawn from the seed.

asymq_core::named! {
    /// Changes of the path's delay beyond the modems, and of the modems' rates, in percent of the first rate.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RateProfile {
        /// The rate never changes.
        Constant = "constant",
        /// Every 4 s each direction gets a new rate of 70 to 130 %.
        Steps = "steps",
        /// The rate is halved from 5/14 to 9/14 of the run.
        Halved = "halved",
        /// The rate falls evenly to 40 % during the first half of the run, then rises evenly to 120 %.
        Ramp = "ramp",
        /// Every 15 s a new rate of 55 to 120 % and a new delay of 0 to 15 ms; every second a change by up to ±10 %.
        Starlink = "starlink",
        /// Every 100 ms the rate of each direction takes a step of a random walk between 12 and 220 %.
        Cellular = "cellular",
        /// No packet passes for 2 s at a quarter, half and three quarters of the run.
        Outage = "outage",
        /// The additional delay is 20 ms from a quarter of the run, 40 ms from half, and 0 from three quarters.
        Path = "path",
        /// Every 15 s no packet passes for 200 ms; then a new rate of 60 to 130 % and a new delay of 0 to 30 ms apply.
        Handover = "handover",
        /// Each packet of the uplink waits 2 to 6 ms for a grant.
        Docsis = "docsis",
    }
}

/// The changes of a profile, in order of time.
#[derive(Default)]
pub(crate) struct Changes {
    /// New shares of the modems' rates: time in s, and shares for uplink and downlink.
    pub(crate) shares: Vec<(f64, [f64; 2])>,
    /// New delays: time in s, and additional delay in ms.
    pub(crate) delays: Vec<(f64, f64)>,
}

impl RateProfile {
    const SLOT: f64 = 15.0;
    const TENTH: f64 = 0.1;

    /// Returns the changes in a run of `end` seconds.
    pub(crate) fn changes(self, end: f64, mut draw: impl FnMut() -> f64) -> Changes {
        let mut changes = Changes::default();
        let mut within = |from: f64, to: f64| from + (to - from) * draw();
        let Changes { shares, delays } = &mut changes;
        match self {
            Self::Constant | Self::Docsis => {}
            Self::Steps => {
                for at in times(4.0, end).skip(1) {
                    shares.push((at, [0; 2].map(|_| within(0.7, 1.3))));
                }
            }
            Self::Halved => {
                *shares = vec![(end * 5.0 / 14.0, [0.5; 2]), (end * 9.0 / 14.0, [1.0; 2])]
            }
            Self::Ramp => {
                for at in times(Self::TENTH, end).skip(1) {
                    let half = 2.0 * at / end;
                    let share = if half < 1.0 {
                        1.0 - 0.6 * half
                    } else {
                        0.4 + 0.8 * (half - 1.0)
                    };
                    shares.push((at, [share; 2]));
                }
            }
            Self::Starlink => {
                for slot in times(Self::SLOT, end) {
                    let base = within(0.55, 1.2);
                    delays.push((slot, within(0.0, 15.0)));
                    for second in times(1.0, Self::SLOT.min(end - slot)) {
                        shares.push((slot + second, [0; 2].map(|_| base * within(0.9, 1.1))));
                    }
                }
            }
            Self::Cellular => {
                let mut logs = [0.0; 2];
                for at in times(Self::TENTH, end).skip(1) {
                    logs = logs.map(|log| {
                        let radius = libm::sqrt(-2.0 * libm::log(1.0 - within(0.0, 1.0)));
                        let normal = radius * libm::cos(within(0.0, core::f64::consts::TAU));
                        0.967 * log + 0.128 * normal
                    });
                    shares.push((at, logs.map(|log| libm::exp(log - 0.12).clamp(0.12, 2.2))));
                }
            }
            Self::Outage => {
                for quarter in [0.25, 0.5, 0.75] {
                    shares.push((end * quarter, [0.0; 2]));
                    shares.push((end * quarter + 2.0, [1.0; 2]));
                }
            }
            Self::Path => *delays = vec![(end * 0.25, 20.0), (end * 0.5, 40.0), (end * 0.75, 0.0)],
            Self::Handover => {
                for slot in times(Self::SLOT, end).skip(1) {
                    shares.push((slot, [0.0; 2]));
                    shares.push((slot + 0.2, [0; 2].map(|_| within(0.6, 1.3))));
                    delays.push((slot, within(0.0, 30.0)));
                }
            }
        }
        changes
    }
}

/// Returns the multiples of `step` that are below `end`.
fn times(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0..)
        .map(move |index| f64::from(index) * step)
        .take_while(move |at| *at < end)
}

asymq_core::read_by_name!(
    RateProfile,
    "unknown; use constant, steps, halved, ramp, starlink, cellular, outage, path, handover or docsis"
);
crate::text::serde_as_string!(RateProfile);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::fraction;
    use asymq_core::decide::random::SplitMix64;

    const END: f64 = 70.0;

    /// The changes of a rate profile in the run with this seed.
    fn drawn(profile: RateProfile, seed: u64) -> Changes {
        let mut random = SplitMix64::new(seed);
        profile.changes(END, || fraction(random.next()))
    }

    #[test]
    fn courses_read_as_they_are_written() {
        for profile in RateProfile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(profile.to_string(), profile.name());
        }
        assert!("steep".parse::<RateProfile>().unwrap_err().contains("ramp"));
    }

    #[test]
    fn changes_are_in_order_within_the_run_and_have_the_documented_extent() {
        for profile in RateProfile::ALL {
            let name = profile.name();
            let Changes { shares, delays } = drawn(profile, 7);
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
            for (_, shares) in drawn(RateProfile::Cellular, seed).shares {
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
