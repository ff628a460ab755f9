//! Names of random changes of a line's rates during a run.

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

asymq_core::read_by_name!(
    RateProfile,
    "unknown; use constant, steps, halved, ramp, starlink, cellular, outage, path, handover or docsis"
);
crate::text::serde_as_string!(RateProfile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_read_as_they_are_written() {
        for profile in RateProfile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(profile.to_string(), profile.name());
        }
        assert!("steep".parse::<RateProfile>().unwrap_err().contains("ramp"));
    }
}
