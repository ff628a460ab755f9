//! A scenario as typed.

use crate::bad_argument::{BadArgument, either};
use crate::file::ScenarioFile;
use crate::simulated_args::{self, SimulatedArgs};
use crate::{
    AckPolicy, DataPerAckArg, QdiscArgs, QdiscName, RttRange, Scenario, Share, Tcp, UdpBurst,
};
use asymq_core::parts::aq::DataPerAck;
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use clap::Args;
use clap::builder::RangedI64ValueParser;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Flags of `sim`, `lab` and `compare`, and the keys of a scenario file; all optional.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Scenario")]
pub struct ScenarioArgs {
    /// Scenario file (TOML, same names); flags override it.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Uplink capacity [default: 1mbit].
    #[arg(long, value_name = "RATE")]
    pub up: Option<Rate>,
    /// Downlink capacity [default: 10mbit].
    #[arg(long, value_name = "RATE")]
    pub down: Option<Rate>,
    /// Long-lived uploads, 0 to 1000 [default: 5].
    #[arg(long, value_name = "N", value_parser = whole(0..=1000))]
    pub flows_up: Option<u32>,
    /// Long-lived downloads, 0 to 1000 [default: 10].
    #[arg(long, value_name = "N", value_parser = whole(0..=1000))]
    pub flows_down: Option<u32>,
    /// Propagation round-trip time, one or a range [default: 20ms..300ms].
    #[arg(long, value_name = "TIME[..TIME]")]
    pub rtt: Option<RttRange>,
    /// Uplink buffer, in packets or bytes [default: 50p].
    #[arg(long, value_name = "LIMIT")]
    pub buffer: Option<Limit>,
    /// Downlink buffer [default: 50p].
    #[arg(long, value_name = "LIMIT")]
    pub buffer_down: Option<Limit>,
    /// Discipline at the uplink [default: aq].
    #[arg(long, value_name = "NAME")]
    pub qdisc: Option<QdiscName>,
    /// Its parameters.
    #[command(flatten)]
    #[serde(flatten)]
    pub qdisc_params: QdiscArgs,
    /// Discipline at the downlink [default: droptail].
    #[arg(long, value_name = "NAME")]
    pub qdisc_down: Option<QdiscName>,
    /// Data's share of the downlink under wrr and cbq (paper 004's f) [default: --weights].
    #[arg(long, value_name = "SHARE")]
    pub weights_down: Option<Share>,
    /// Congestion control: reno, newreno, cubic (simulator); reno, cubic, bbr (lab).
    #[arg(long, value_name = "NAME")]
    pub tcp: Option<Tcp>,
    /// TCP segment payload, 88b to 1460b; real ones spend 12 on timestamps [default: 1460b].
    #[arg(long, value_name = "SIZE")]
    pub mss: Option<Bytes>,
    /// Delayed ACKs with this timeout; 0 acknowledges every packet [default: 0, simulator only].
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "100ms")]
    pub delayed_ack: Option<Duration>,
    /// Acknowledge every N packets, or after the time of --delayed-ack (simulator) [default: 1].
    #[arg(long, value_name = "N", value_parser = whole(1..=64))]
    pub ack_every: Option<u32>,
    /// Receive window in packets or bytes [default: unlimited].
    #[arg(long, value_name = "LIMIT")]
    pub window: Option<Limit>,
    /// Constant-rate UDP, like up:500kbit or down:3mbit:200b@60s..80s; repeatable.
    #[arg(long, value_name = "FLOW")]
    pub udp: Vec<UdpBurst>,
    /// Send a sparse UDP echo this often and report its queueing delay; 0 sends none.
    #[arg(long, value_name = "TIME")]
    pub probe: Option<Duration>,
    /// Length of a run [default: 60s].
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// Time from the start that means leave out [default: 5s].
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Duration>,
    /// Seed of the first run [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of runs with consecutive seeds, 1 to 10000 [default: 5 simulated, 1 real].
    #[arg(long, value_name = "N", value_parser = whole(1..=10_000))]
    pub runs: Option<u32>,
    /// What only the simulator can vary.
    #[command(flatten)]
    #[serde(flatten)]
    pub simulated: SimulatedArgs,
}

fn whole(range: RangeInclusive<i64>) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(range)
}

/// The defaults that differ between commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// Flows up and down.
    pub flows: (u32, u32),
    /// Round-trip times.
    pub rtt: RttRange,
    /// Buffers in both directions.
    pub buffer: Limit,
    /// Buffers in both directions of the [headline](Self::headline).
    pub headline_buffer: Limit,
    /// Number of its runs.
    pub headline_runs: u32,
    /// Congestion control.
    pub tcp: Tcp,
    /// The congestion controls that can be had.
    pub tcps: &'static [Tcp],
    /// The driver in words, for errors: "in the simulator".
    pub place: &'static str,
    /// Data packets per ACK, for disciplines that want to know.
    pub data_per_ack: DataPerAck,
    /// TCP/IP header bytes of a segment: 40, or 52 with timestamps.
    pub headers: u32,
    /// The sparse echo.
    pub probe: Option<Duration>,
    /// Number of runs.
    pub runs: u32,
    /// Whether the traffic and the far side are simulated, and their every detail can be chosen.
    pub simulated: bool,
}

/// Flags that only the simulator can follow.
const SIMULATED: [&str; 1] = ["--ack-every"];

impl Defaults {
    /// AQ section 4, simulated.
    pub const fn paper() -> Self {
        Self {
            flows: (5, 10),
            rtt: RttRange {
                least: Duration::from_millis(20),
                most: Duration::from_millis(300),
            },
            buffer: Limit::Packets(50),
            headline_buffer: Limit::Packets(100),
            headline_runs: 20,
            tcp: Tcp::Newreno,
            tcps: &[Tcp::Reno, Tcp::Newreno, Tcp::Cubic],
            place: "in the simulator",
            data_per_ack: DataPerAck::Given(1.0),
            headers: 40,
            probe: None,
            runs: 5,
            simulated: true,
        }
    }

    /// The link of paper 000's Fig. 1, one flow in each direction. The text leaves the buffers open;
    /// 100 packets give its numbers with NewReno. Kernel CUBIC rides a buffer of 100 better (its
    /// download reaches 0.75), so it is shown at section 4's 50.
    #[must_use]
    pub const fn headline(self) -> Self {
        Self {
            flows: (1, 1),
            rtt: RttRange::fixed(Duration::from_millis(100)),
            buffer: self.headline_buffer,
            runs: self.headline_runs,
            probe: Some(Duration::from_millis(100)),
            ..self
        }
    }

    /// The same over real kernel TCP.
    pub const fn lab() -> Self {
        Self {
            tcp: Tcp::Cubic,
            tcps: &[Tcp::Reno, Tcp::Cubic, Tcp::Bbr],
            place: "in the lab",
            data_per_ack: DataPerAck::Measured,
            headline_buffer: Limit::Packets(50),
            headline_runs: 3,
            headers: 52,
            probe: Some(Duration::from_millis(100)),
            runs: 1,
            simulated: false,
            ..Self::paper()
        }
    }
}

/// A scenario that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of the file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there, and what to write instead.
        message: String,
    },
    /// A flag's value cannot be run.
    #[error(transparent)]
    Value(BadArgument),
}

impl ScenarioArgs {
    /// Whether the flag is among these arguments.
    fn gives(&self, flag: &str) -> bool {
        let name = flag.trim_start_matches('-');
        let values = serde_json::to_value(self).expect("arguments are plain values");
        !matches!(values.get(name), None | Some(serde_json::Value::Null))
            && values[name] != serde_json::json!([])
    }

    /// These values, and `other`'s where these are absent.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            file: self.file,
            up: self.up.or(other.up),
            down: self.down.or(other.down),
            flows_up: self.flows_up.or(other.flows_up),
            flows_down: self.flows_down.or(other.flows_down),
            rtt: self.rtt.or(other.rtt),
            buffer: self.buffer.or(other.buffer),
            buffer_down: self.buffer_down.or(other.buffer_down),
            qdisc: self.qdisc.or(other.qdisc),
            qdisc_params: self.qdisc_params.or(other.qdisc_params),
            qdisc_down: self.qdisc_down.or(other.qdisc_down),
            weights_down: self.weights_down.or(other.weights_down),
            tcp: self.tcp.or(other.tcp),
            mss: self.mss.or(other.mss),
            delayed_ack: self.delayed_ack.or(other.delayed_ack),
            ack_every: self.ack_every.or(other.ack_every),
            window: self.window.or(other.window),
            udp: if self.udp.is_empty() {
                other.udp
            } else {
                self.udp
            },
            probe: self.probe.or(other.probe),
            duration: self.duration.or(other.duration),
            warmup: self.warmup.or(other.warmup),
            seed: self.seed.or(other.seed),
            runs: self.runs.or(other.runs),
            simulated: self.simulated.or(other.simulated),
        }
    }

    /// Reads the file, if one is named, fills what is absent from `defaults`, and checks the whole.
    ///
    /// # Errors
    /// The file is wrong, or a value is out of range.
    pub fn resolve(self, defaults: &Defaults) -> Result<Scenario, ScenarioError> {
        let Some(path) = self.file.clone() else {
            return self.complete(defaults);
        };
        let file = ScenarioFile::read(&path)?;
        let typed = self.clone();
        self.or(file.args.clone())
            .complete(defaults)
            .map_err(|error| match error {
                ScenarioError::Value(bad) if typed.gives(&bad.argument) => {
                    ScenarioError::Value(bad)
                }
                other => file.locate(other),
            })
    }

    fn complete(self, defaults: &Defaults) -> Result<Scenario, ScenarioError> {
        let args = self;
        let unfit = SIMULATED
            .iter()
            .chain(&simulated_args::FLAGS)
            .find(|flag| !defaults.simulated && args.gives(flag));
        if let Some(flag) = unfit {
            return Err(ScenarioError::Value(BadArgument {
                argument: (*flag).to_owned(),
                value: None,
                message: format!("not to be had {}; leave it out, or use sim", defaults.place),
            }));
        }
        let rate = |bits| Rate::from_bits_per_sec(bits).expect("a positive constant");
        let nonzero = |span: Duration| (span > Duration::ZERO).then_some(span);
        let mss = args.mss.map_or(1460, |size| size.0);
        let qdisc = args.qdisc.unwrap_or(QdiscName::Aq);
        let simulated = args.simulated;
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut scenario = Scenario {
            up: args.up.unwrap_or(rate(1_000_000)),
            down: args.down.unwrap_or(rate(10_000_000)),
            flows_up: args.flows_up.unwrap_or(defaults.flows.0),
            flows_down: args.flows_down.unwrap_or(defaults.flows.1),
            rtt: args.rtt.unwrap_or(defaults.rtt),
            buffer: args.buffer.unwrap_or(defaults.buffer),
            buffer_down: args.buffer_down.unwrap_or(defaults.buffer),
            qdisc,
            qdisc_params: args.qdisc_params,
            tcp: args.tcp.unwrap_or(defaults.tcp),
            mss: narrow(mss),
            qdisc_down: args.qdisc_down.unwrap_or(QdiscName::Droptail),
            weights_down: args.weights_down,
            ack_policy: match (args.ack_every, args.delayed_ack.and_then(nonzero)) {
                (None | Some(1), None) | (Some(1), _) => AckPolicy::EveryPacket,
                (None | Some(2), Some(timeout)) => AckPolicy::Delayed(timeout),
                (Some(packets), timeout) => {
                    AckPolicy::Every(packets, timeout.unwrap_or(Duration::from_millis(100)))
                }
            },
            sack: simulated.sack.unwrap_or(false),
            timestamps: simulated.timestamps.unwrap_or(false),
            byte_counting: simulated.byte_counting.unwrap_or(false),
            regenerate: simulated.regenerate,
            regenerate_paced: simulated.regenerate_paced.unwrap_or(true),
            web: simulated.web,
            on_off: simulated.on_off,
            links: simulated.links.unwrap_or(1),
            header: narrow(simulated.header.map_or(40, |size| size.0)),
            window: args.window,
            udp: args.udp,
            probe: match args.probe {
                Some(interval) => nonzero(interval),
                None => defaults.probe,
            },
            duration: args.duration.unwrap_or(Duration::from_secs(60)),
            warmup: args.warmup.unwrap_or(Duration::from_secs(5)),
            seed: args.seed.unwrap_or(1),
            runs: args.runs.unwrap_or(defaults.runs),
        };
        check(&scenario, defaults)?;
        let (ack_size, data_size) = match defaults.simulated {
            true => (scenario.ack_len(), scenario.mss + scenario.header),
            false => (defaults.headers, scenario.mss + 40),
        };
        let params = &mut scenario.qdisc_params;
        params.ack_size.get_or_insert(Bytes(ack_size.into()));
        params.data_size.get_or_insert(Bytes(data_size.into()));
        params
            .data_per_ack
            .get_or_insert(DataPerAckArg(defaults.data_per_ack));
        Ok(scenario)
    }
}

/// The first thing about `scenario` that no driver could run.
fn check(scenario: &Scenario, defaults: &Defaults) -> Result<(), ScenarioError> {
    const MILLISECOND: Duration = Duration::from_millis(1);
    let (duration, warmup) = (scenario.duration, scenario.warmup);
    let require = |holds: bool, name: &str, value: &dyn ToString, message: &str| {
        if holds {
            return Ok(());
        }
        Err(ScenarioError::Value(BadArgument {
            argument: format!("--{name}"),
            value: Some(value.to_string()),
            message: message.to_owned(),
        }))
    };
    let tcp_names: Vec<String> = defaults.tcps.iter().map(Tcp::to_string).collect();
    require(
        defaults.tcps.contains(&scenario.tcp),
        "tcp",
        &scenario.tcp,
        &format!(
            "not to be had {}; use {}",
            defaults.place,
            either(&tcp_names)
        ),
    )?;
    require(
        (88..=1460).contains(&scenario.mss),
        "mss",
        &Bytes(scenario.mss.into()),
        "out of range; use 88b to 1460b",
    )?;
    require(
        duration > Duration::ZERO && duration <= Duration::from_secs(36_000),
        "duration",
        &duration,
        "out of range; use more than 0s and at most 36000s",
    )?;
    require(
        warmup < duration,
        "warmup",
        &warmup,
        &format!("not less than the duration, {duration}"),
    )?;
    if let Some(probe) = scenario.probe {
        require(
            probe >= MILLISECOND,
            "probe",
            &probe,
            "out of range; use 0, or 1ms and more",
        )?;
    }
    if let Some(interval) = scenario.qdisc_params.interval {
        require(
            interval >= MILLISECOND,
            "interval",
            &interval,
            "out of range; use 1ms or more",
        )?;
    }
    simulated_args::check(scenario).map_err(ScenarioError::Value)?;
    for burst in &scenario.udp {
        require(
            (28..=1500).contains(&burst.packet.0),
            "udp",
            &burst.packet,
            "out of range; use packets of 28b to 1500b",
        )?;
        require(
            burst.stop.is_none_or(|stop| stop > burst.start),
            "udp",
            &burst.stop.unwrap_or_default(),
            &format!("the stop is not later than the start, {}", burst.start),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_are_regenerated_where_the_discipline_says_so_and_none_is_asked_for() {
        let resolve = |regenerate| {
            let args = ScenarioArgs {
                simulated: SimulatedArgs {
                    regenerate,
                    ..SimulatedArgs::default()
                },
                ..ScenarioArgs::default()
            };
            args.resolve(&Defaults::paper()).unwrap()
        };
        // As compare does, which runs one scenario under all disciplines.
        let under = |regenerate, qdisc| {
            let scenario = Scenario {
                qdisc,
                ..resolve(regenerate)
            };
            scenario.regeneration()
        };
        assert_eq!(under(None, QdiscName::FifoAfAr), 1);
        assert_eq!(under(None, QdiscName::Af), 0);
        assert_eq!(under(Some(0), QdiscName::FifoAfAr), 0);
        assert_eq!(under(Some(4), QdiscName::Af), 4);
    }

    #[test]
    fn nothing_typed_is_the_papers_default_scenario() {
        let scenario = ScenarioArgs::default().resolve(&Defaults::paper()).unwrap();
        assert_eq!(scenario.up.to_string(), "1mbit");
        assert_eq!(scenario.down.to_string(), "10mbit");
        assert_eq!((scenario.flows_up, scenario.flows_down), (5, 10));
        assert_eq!(scenario.rtt.to_string(), "20ms..300ms");
        assert_eq!(scenario.qdisc_params.data_size, Some(Bytes(1500)));
    }

    #[test]
    fn values_out_of_range_name_the_flag_and_the_range() {
        let error = |args: ScenarioArgs| args.resolve(&Defaults::paper()).unwrap_err().to_string();
        let args = ScenarioArgs {
            mss: Some(Bytes(20)),
            ..Default::default()
        };
        assert_eq!(error(args), "--mss 20b: out of range; use 88b to 1460b");
        let args = ScenarioArgs {
            warmup: Some(Duration::from_secs(60)),
            ..Default::default()
        };
        assert_eq!(error(args), "--warmup 60s: not less than the duration, 60s");
        let args = ScenarioArgs {
            tcp: Some(Tcp::Bbr),
            ..Default::default()
        };
        assert_eq!(
            error(args),
            "--tcp bbr: not to be had in the simulator; use reno, newreno or cubic"
        );
    }
}
