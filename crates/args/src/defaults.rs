//! The defaults of a scenario.

use asymq_core::catalog::DEFAULT_QDISC;
use asymq_core::units::{Duration, Limit, nearest};
use asymq_scenario::{OutsideTcp, RttRange, Tcp};

/// The defaults of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// Discipline at the uplink.
    pub qdisc: &'static str,
    /// Numbers of uploads and downloads.
    pub flows: (u32, u32),
    /// Round-trip times of flows.
    pub rtt: RttRange,
    /// Buffers in both directions.
    pub buffer: Limit,
    /// Buffers in both directions for the [headline](Self::headline) comparison.
    pub headline_buffer: Limit,
    /// Number of runs of the headline comparison.
    pub headline_runs: u32,
    /// Congestion control.
    pub tcp: Tcp,
    /// Congestion controls of other crates that this simulator supports.
    pub outside: &'static [OutsideTcp],
    /// The driver (simulator or lab) as error messages name it, such as "in the simulator".
    pub place: &'static str,
    /// Data packets per ACK that disciplines assume: a number, or `auto` to measure it.
    pub data_per_ack: &'static str,
    /// Bytes of the TCP and IP headers: 40, or 52 with timestamps.
    pub headers: u32,
    /// Interval of the probe.
    pub probe: Option<Duration>,
    /// Number of runs.
    pub runs: u32,
    /// True if hosts and path are simulated, so that all their settings can be chosen.
    pub simulated: bool,
}

impl Defaults {
    /// Returns the scenario of AQ's evaluation (section 4), simulated.
    pub const fn paper() -> Self {
        Self {
            qdisc: "aq",
            flows: (5, 10),
            rtt: RttRange {
                min: Duration::from_millis(20),
                max: Duration::from_millis(300),
            },
            buffer: Limit::Packets(50),
            headline_buffer: Limit::Packets(100),
            headline_runs: 10,
            tcp: Tcp::Newreno,
            outside: &[],
            place: "in the simulator",
            data_per_ack: "1",
            headers: 40,
            probe: None,
            runs: 5,
            simulated: true,
        }
    }

    /// Returns the simulator's defaults: the scenario of AQ's section 4, but with the discipline asymq.
    pub const fn sim() -> Self {
        Self {
            qdisc: DEFAULT_QDISC,
            ..Self::paper()
        }
    }

    /// Returns the defaults of `compare`: the link of AQ's Fig. 1, one flow in each direction, with Linux's senders.
    /// The paper does not give the buffers; 100 packets reproduce its numbers with NewReno. Real runs use the 50
    /// packets of section 4, since with 100 the kernel's CUBIC fills only 75 % of the downlink.
    #[must_use]
    pub const fn headline(self) -> Self {
        Self {
            flows: (1, 1),
            rtt: RttRange::fixed(Duration::from_millis(100)),
            buffer: self.headline_buffer,
            runs: self.headline_runs,
            probe: Some(Duration::from_millis(100)),
            tcp: if self.simulated { Tcp::Linux } else { self.tcp },
            ..self
        }
    }

    /// Returns the defaults for the kernel's TCP.
    pub const fn lab() -> Self {
        Self {
            tcp: Tcp::Cubic,
            place: "in the lab",
            data_per_ack: "auto",
            headline_buffer: Limit::Packets(50),
            headline_runs: 3,
            headers: 52,
            probe: Some(Duration::from_millis(100)),
            runs: 1,
            simulated: false,
            ..Self::sim()
        }
    }

    /// Adds congestion controls of other crates.
    #[must_use]
    pub const fn with(self, outside: &'static [OutsideTcp]) -> Self {
        Self { outside, ..self }
    }

    /// Returns an error that lists this driver's congestion controls if `tcp` is not among them.
    pub(crate) fn refuses(&self, tcp: Tcp) -> Option<String> {
        let known = || {
            let outside = self.outside.iter().copied().map(Tcp::Outside);
            Tcp::ALL.iter().copied().chain(outside)
        };
        if !known().any(|known| known == tcp) {
            let known: Vec<Tcp> = known().collect();
            let near = nearest(tcp.name(), known.iter().map(Tcp::name));
            return Some(match near {
                Some(near) => format!("unknown; did you mean {near}?"),
                None => format!("unknown; use {}", Tcp::either(known.into_iter())),
            });
        }
        let runs = |tcp: &Tcp| match self.simulated {
            true => tcp.is_simulated(),
            false => tcp.kernel_name().is_some(),
        };
        (!runs(&tcp)).then(|| {
            let choice = Tcp::either(known().filter(runs));
            format!("not available {}; use {choice}", self.place)
        })
    }
}
