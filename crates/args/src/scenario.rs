//! Flags of a scenario, and their defaults.

use crate::bad_argument::BadArgument;
use crate::check::check;
use crate::defaults::Defaults;
use crate::file::{ScenarioError, read_file};
use crate::line_rate::LineRate;
use crate::settings;
use crate::settings::{optional, within};
use crate::words::{Flags, Given, Words};
use asymq_core::catalog::{Catalog, Params, Role, Standard, link_rate};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::Spacing;
use asymq_core::units::Bytes;
use asymq_core::{Duration, Limit, Rate};
use asymq_scenario::{
    AckPolicy, DelayStep, ListedFlow, Modem, Netem, OnOff, QuicFlows, RateProfile, RateSource,
    RateStep, RateTrace, RttRange, Scenario, Tcp, UdpBurst, WebLoad,
};
use clap::Args;
use std::path::{Path, PathBuf};

settings! {
    /// Flags of `sim`, `lab` and `compare`, and the keys of a scenario file; all optional.
    #[derive(PartialEq)]
    pub struct ScenarioArgs: "Scenario" {
        /// Uplink capacity. auto learns the rate of --modem-up (see --help-all); auto:1mbit..20mbit learns it within this range [default: 1mbit].
        pub up: Option<LineRate> = "RATE";
        /// Downlink capacity. auto learns the rate of --modem-down, as in --up [default: 10mbit].
        pub down: Option<LineRate> = "RATE";
        /// Downlink rate that the uplink's discipline assumes, if it needs one [default: --down].
        pub assumed_down: Option<Rate> = "RATE", read link_rate;
        /// Number of long-lived uploads, 0 to 1000 [default: 5, or 0 with --flow or --quic].
        pub flows_up: Option<u32> = "N", read within(0..=1000);
        /// Number of long-lived downloads, 0 to 1000 [default: 10, or 0 with --flow or --quic].
        pub flows_down: Option<u32> = "N", read within(0..=1000);
        /// Round-trip time without queueing: one value for all flows, or a range from which each flow draws a random value [default: 20ms..300ms].
        pub rtt: Option<RttRange> = "TIME[..TIME]";
        /// Uplink buffer, in packets or bytes [default: 50p].
        pub buffer: Option<Limit> = "LIMIT";
        /// Downlink buffer, in packets or bytes [default: 50p].
        pub buffer_down: Option<Limit> = "LIMIT";
        /// Discipline at the uplink [default: asymq].
        pub qdisc: Option<String> = "NAME";
        /// Parameters of the disciplines.
        pub qdisc_params: Params;
        /// Kernel qdisc for the uplink in place of --qdisc, for example "cake ack-filter" (real TCP only). If QDISC contains no rate or overhead, asymq adds the scenario's.
        pub tc: Option<String> = "QDISC";
        /// Discipline at the downlink [default: droptail].
        pub qdisc_down: Option<String> = "NAME";
        /// Parameter of the downlink's discipline, for example data-share=0.3 (SAD's f); repeatable [default: the uplink's value; for ack-queue and other parts, the --qdisc-down discipline's own].
        pub param_down: Vec<String> = "NAME=VALUE";
        /// Congestion control.
        pub tcp: Option<Tcp> = "NAME", arg |arg| arg.help(tcp_help());
        /// Long-lived QUIC flows, for example quinn,up=1,down=10,tcp=bbr,ack-every=10: stack (its name or the path of its program), numbers of uploads and downloads, congestion control [default: --tcp], packets per ACK [default: the stack's]. Simulated stacks: chrome, mvfst, neqo, picoquic, quinn, quic-go, ngtcp2, msquic. Real stacks, built by scripts/quic/stacks: quinn, aioquic.
        pub quic: Option<QuicFlows> = "FLOWS";
        /// Payload of a full TCP segment, 88b to 65495b. Real TCP: at most 1460b, including 12 bytes of timestamps [default: 1460b].
        pub mss: Option<Bytes> = "SIZE";
        /// Maximum delay of an ACK; 0 acknowledges each packet at once. Without TIME, 100ms. Real TCP ignores this flag [default: 0; 40ms with linux].
        pub delayed_ack: Option<Duration> = "TIME", arg |arg| optional(arg, "100ms");
        /// Number of packets per ACK, 1 to 64 (simulator only). An ACK waits at most --delayed-ack for them [default: 1; 2 with linux].
        pub ack_every: Option<u32> = "N", read within(1..=64);
        /// Receive window of every host, in packets or bytes [default: unlimited].
        pub window: Option<Limit> = "LIMIT";
        /// UDP flow of constant rate, for example up:500kbit or down:3mbit:200b@60s..80s: direction, rate, packet size [default: 1000b] and time [default: the whole run]; repeatable. up:1mbit/2..3 crosses only links 2 and 3 of --links. up:3mbit:60b:syns is a flood from a second host at home (simulator only). Its fourth field is udp, syns or acks (with all three, each packet is a new flow), or a number of UDP flows such as 40. Each flow of the flood has its own server. With :server as the fifth field, all flows go to the server of the scenario's first flow. With :forged as the fifth field, they also go to this server, each from a different forged address.
        pub udp: Vec<UdpBurst> = "FLOW";
        /// Interval of probes: small UDP echoes whose queueing delay is reported. 0 sends none [default: 0; 100ms with real TCP].
        pub probe: Option<Duration> = "TIME";
        /// Duration of a run, including the warm-up [default: 60s].
        pub duration: Option<Duration> = "TIME";
        /// Time at the start of a run that is excluded from all means [default: 5s].
        pub warmup: Option<Duration> = "TIME";
        /// Seed of the first run [default: 1].
        pub seed: Option<u64> = "N";
        /// Number of runs, 1 to 10000; each uses the next seed [default: 5; 1 with real TCP].
        pub runs: Option<u32> = "N", read within(1..=10_000);
        /// Flags of the simulator alone.
        pub simulated: SimulatedArgs;
    }
}

settings! {
    /// Flags of simulated hosts, their traffic and the path; all optional.
    #[derive(PartialEq)]
    pub struct SimulatedArgs: "Simulated hosts and path" {
        /// SACK recovery.
        pub sack: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("Use SACK, and recover losses by RACK-TLP (RFC 8985) and PRR (RFC 9937) [default: true with {}, otherwise false]", Tcp::has_sack_by_default));
        /// Use TCP timestamps (RFC 7323), which take 12 bytes of each segment and ACK [default: true with linux, otherwise false].
        pub timestamps: Option<bool> = "true|false";
        /// Grow the congestion window by the bytes that an ACK acknowledges (RFC 3465), by at most 2 segments per ACK; linux has no such maximum [default: true with linux, otherwise false].
        pub byte_counting: Option<bool> = "true|false";
        /// ECN at the hosts.
        pub tcp_ecn: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("Use ECN at the hosts (RFC 3168; RFC 8257 with dctcp) [default: true with {}, otherwise false]", Tcp::needs_ecn));
        /// Use AccECN (RFC 9768): each ACK reports the number of CE marks in its ACE field and AccECN option [default: false].
        pub accecn: Option<bool> = "true|false";
        /// Use AccECN without its option: ACKs report CE marks only in the ACE field, modulo 8 [default: false].
        pub ace_only: Option<bool> = "true|false";
        /// HyStart++.
        pub hystart: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("Use HyStart++ (RFC 9406), or Linux's own HyStart with linux; only {} can use it [default: true with linux, otherwise false]", Tcp::has_hystart));
        /// Pacing.
        pub pacing: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("Pace segments at Linux's rates: 2 windows per round trip in slow start, otherwise 1.2 [default: false; {} always paces]", Tcp::paces));
        /// Number of ACKs to create beyond the uplink for each filtered ACK (the papers' R), 0 to 16 [default: 1 for disciplines with ar in their name, otherwise 0].
        pub regenerate: Option<u32> = "R", read within(0..=16);
        /// Times at which regenerated ACKs are sent: at-once, paced (spread over the time since the previous ACK, with gaps of at most one segment's transmission time) or smoothed (spread over the mean time between ACKs, as in ns-2) [default: paced].
        pub regenerate_spacing: Option<Spacing> = "SPACING";
        /// Period at the start of a run in which every long-lived flow starts, at a random time [default: 1s, at most a tenth of --duration].
        pub start_within: Option<Duration> = "TIME";
        /// TCP flow, for example down,rtt=40ms,start=2s,size=1mb; repeatable. The direction comes first. Keys: rtt, start, stop, size, rate (of the application), tcp, sack, mss, delayed-ack, ack-every, acks-per-rtt, links (of --links, for example 2..3). With opaque, quic, quic=STACK or tunnel, the flow's headers are encrypted, so that queues cannot read them.
        pub flow: Vec<ListedFlow> = "FLOW";
        /// Short TCP transfers, for example down:1:30kb:1.3: direction, mean number per second (Poisson arrivals), mean size, shape of the Pareto distribution of sizes; repeatable.
        pub web: Vec<WebLoad> = "LOAD";
        /// Pauses of the applications of long-lived flows, for example 200kbit:500ms:500ms: rate while sending, mean sending time, mean pause. Both times are exponentially distributed [default: no pauses, no rate limit].
        pub on_off: Option<OnOff> = "PATTERN";
        /// Number of asymmetric links in series, 1 to 32; each has its own queues [default: 1].
        pub links: Option<u32> = "N", read within(1..=32);
        /// Change of the uplink's rate, for example 10s:2mbit (time and new rate); repeatable. The uplink's discipline still assumes the rate --up.
        pub steps_up: Vec<RateStep> = "STEP";
        /// Change of the downlink's rate, written like --steps-up; repeatable.
        pub steps_down: Vec<RateStep> = "STEP";
        /// Mahimahi trace of the uplink: each line is a time in ms at which 1500 bytes can leave; at its end the trace starts again. The discipline assumes the rate --up, by default the trace's mean rate.
        pub trace_up: Option<PathBuf> = "FILE";
        /// Mahimahi trace of the downlink, used like --trace-up.
        pub trace_down: Option<PathBuf> = "FILE";
        /// Modem after the uplink's shaper, for example 10mbit,buffer=600ms,grant=2ms..6ms: rate, buffer (as time, packets or bytes), time from request to grant. --up then sets the shaper's rate; --steps-up and --trace-up set the modem's [default: none].
        pub modem_up: Option<Modem> = "MODEM";
        /// Modem before the downlink's shaper, written like --modem-up. The downlink's shaper is then at home.
        pub modem_down: Option<Modem> = "MODEM";
        /// Rate of the shaper before --modem-up: fixed (--up), auto or auto:1mbit..20mbit (learnt, starting at --up), or none (no shaper). docs/research/scenarios.md explains oracle, oracle-97, oracle-drain, fixed-mean, fixed-min, cake-autorate and cake-autorate-owd [default: fixed].
        pub shaper_up: Option<RateSource> = "SOURCE";
        /// Rate of the shaper after --modem-down: a value of --shaper-up, or autorate-ingress (estimated by CAKE) [default: fixed].
        pub shaper_down: Option<RateSource> = "SOURCE";
        /// Change of the path's delay beyond the modems, for example 10s:25ms (time of the change, one-way delay added from then on); repeatable.
        pub steps_delay: Vec<DelayStep> = "STEP";
        /// Random changes of the modems' rates and the path's delay, different for each seed: constant, steps, halved, ramp, starlink, cellular, outage, path, handover or docsis (docs/research/scenarios.md) [default: none].
        pub rate_profile: Option<RateProfile> = "PROFILE";
        /// Let a shaper that learns its rate send up to 20 probes per second while no passing packet shows the line's delay [default: false].
        pub rate_probe: Option<bool> = "true|false";
        /// Maximum drift of the servers' clocks in ppm, 0 to 1000; each clock also has a random offset [default: all hosts share one clock].
        pub clock_drift: Option<u32> = "PPM", read within(0..=1000);
        /// Resolution of the servers' TCP timestamps, 1ms to 100ms [default: 1ms].
        pub clock_tick: Option<Duration> = "TIME";
        /// Impairment of the path beyond the uplink, in netem's syntax, for example "loss 1%", "loss gemodel 1% 10% 70% 0.1%", "delay 10ms 5ms" or "delay 10ms reorder 25% gap 5".
        pub netem_up: Option<Netem> = "NETEM";
        /// Impairment of the path beyond the downlink, in netem's syntax.
        pub netem_down: Option<Netem> = "NETEM";
        /// Impairment of each home host's own path to the uplink, in netem's syntax.
        pub netem_access_up: Option<Netem> = "NETEM";
        /// Impairment of each server's own path to the downlink, in netem's syntax.
        pub netem_access_down: Option<Netem> = "NETEM";
        /// Size of the TCP and IP headers of each data packet and ACK, 40b to 80b [default: 40b].
        pub header: Option<Bytes> = "SIZE";
        /// Bytes that both links add to each IP packet, in tc-cake's syntax, for example docsis or "overhead 44 atm". Disciplines count these bytes too [default: none].
        pub overhead: Option<Overhead> = "WORDS";
    }
}

/// Flags that only the simulator supports, each with the reason that follows "not available" in the error.
const UNREAL: &[(&[&str], &str)] = &[
    (
        &[
            "sack",
            "timestamps",
            "byte-counting",
            "tcp-ecn",
            "accecn",
            "ace-only",
            "hystart",
            "pacing",
        ],
        ", where the kernel's settings decide",
    ),
    (&["ack-every"], ", where the kernel acknowledges"),
    (&["header"], ", where the kernel writes the headers"),
    (&["overhead"], ", where links count IP bytes"),
    (
        &["netem-access-up", "netem-access-down"],
        ", where all hosts share one path",
    ),
    (
        &["flow", "web", "on-off"],
        ", where all flows are long-lived and always have data",
    ),
    (&["links"], ", where there is one link"),
    (
        &["clock-drift", "clock-tick"],
        ", where the kernel's clock stamps segments",
    ),
    (&["rate-probe"], ", whose gateway sends no probes"),
];

/// Returns the help of a flag, with the names of the simulated congestion controls for which `has` is true.
fn of_tcp(help: &str, has: impl Fn(&Tcp) -> bool) -> String {
    help.replace("{}", &Tcp::joined(Tcp::simulated().filter(has), "and"))
}

fn tcp_help() -> String {
    let names = |tcps: &mut dyn Iterator<Item = Tcp>| {
        let names: Vec<String> = tcps.map(|tcp| tcp.to_string()).collect();
        names.join(", ")
    };
    format!(
        "Congestion control of the senders; linux is CUBIC with Linux's default TCP settings. Simulated: {} [default: {}]; real TCP: {} [default: {}]",
        names(&mut Tcp::simulated()),
        Defaults::paper().tcp,
        names(&mut Tcp::real()),
        Defaults::lab().tcp,
    )
}

/// Flags of a scenario, and the scenario file whose values they override.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Scenario")]
pub struct ScenarioFlags {
    /// Scenario file (TOML); its keys are the flags without leading dashes. Flags override the file.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The flags.
    #[command(flatten)]
    pub given: Given<ScenarioArgs>,
}

impl ScenarioFlags {
    /// Merges flags and file, adds defaults, and checks all values.
    ///
    /// # Errors
    /// The file is invalid, or a value is out of range.
    pub fn resolve(
        self,
        catalog: &dyn Catalog,
        defaults: &Defaults,
    ) -> Result<Scenario, ScenarioError> {
        let (flags, typed) = (Flags::new(catalog), self.given.words);
        let Some(path) = self.file else {
            return typed.scenario(&flags, catalog, defaults);
        };
        let text = read_file(&path)?;
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            return typed.replay(&path, &text, catalog, defaults);
        }
        let file = flags.text(&path, &text)?;
        let words = flags.merge(&typed, &file);
        let scenario = words.scenario(&flags, catalog, defaults);
        scenario.map_err(|error| words.locate(&path, &text, error))
    }
}

impl Words {
    /// Makes a scenario from arguments, for the driver with these `defaults`.
    ///
    /// # Errors
    /// An argument is invalid or out of range, or this driver cannot run the scenario.
    pub fn scenario(
        &self,
        flags: &Flags<ScenarioArgs>,
        catalog: &dyn Catalog,
        defaults: &Defaults,
    ) -> Result<Scenario, ScenarioError> {
        let unreal = UNREAL.iter().filter(|_| !defaults.simulated);
        for (flag, why) in unreal.flat_map(|(flags, why)| flags.iter().map(move |flag| (flag, why)))
        {
            if self.get(flag).is_some() {
                let place = defaults.place;
                let message = format!("not available {place}{why}; leave it out, or use sim");
                return Err(BadArgument::new(format!("--{flag}"), message).into());
            }
        }
        let args = flags.read(self)?;
        args.resolve_in(catalog, defaults)
    }
}

impl ScenarioArgs {
    /// Parses arguments like `--up=1mbit`, as the command line does.
    ///
    /// # Errors
    /// The first invalid argument.
    pub fn from_words(words: impl IntoIterator<Item = String>) -> Result<Self, BadArgument> {
        let flags = Flags::new(&Standard);
        flags.read(&flags.given(words)?)
    }

    /// Adds defaults, and checks all values.
    ///
    /// # Errors
    /// A value is out of range.
    pub fn resolve(self, defaults: &Defaults) -> Result<Scenario, ScenarioError> {
        self.resolve_in(&Standard, defaults)
    }

    /// Like [`resolve`](Self::resolve), with the disciplines of another catalog.
    ///
    /// # Errors
    /// See [`resolve`](Self::resolve).
    pub fn resolve_in(
        self,
        catalog: &dyn Catalog,
        defaults: &Defaults,
    ) -> Result<Scenario, ScenarioError> {
        let trace_up = read_trace("trace-up", self.simulated.trace_up.as_deref())?;
        let trace_down = read_trace("trace-down", self.simulated.trace_down.as_deref())?;
        let (up, down) = self.link_rates(trace_up.as_ref(), trace_down.as_ref());
        let source = |given: Option<RateSource>, rate: Option<LineRate>| {
            let learnt = rate.and_then(LineRate::range).map(RateSource::Auto);
            given.or(learnt).unwrap_or_default()
        };
        let buffer = self.buffer.unwrap_or(defaults.buffer);
        let buffer_down = self.buffer_down.unwrap_or(defaults.buffer);
        let [uplink, downlink] =
            self.disciplines(catalog, defaults, [up, down], [buffer, buffer_down])?;
        let regenerates = catalog
            .entry(Role::Qdisc, &uplink.qdisc)
            .is_some_and(|entry| entry.regenerates);
        let (mss, header) = self.sizes();
        let args = self;
        let simulated = args.simulated;
        let tcp = args.tcp.unwrap_or(defaults.tcp);
        let nonzero = |span: Duration| (span > Duration::ZERO).then_some(span);

        // Listed flows replace the default flows.
        let has_listed = !simulated.flow.is_empty() || args.quic.is_some();
        let flows = if has_listed { (0, 0) } else { defaults.flows };
        let (flow, quic) = match (args.quic, defaults.simulated) {
            (Some(quic), true) => ([simulated.flow, listed(quic)?].concat(), None),
            (quic, _) => (simulated.flow, quic),
        };
        let ace_only = simulated.ace_only.unwrap_or(false);
        let accecn = simulated.accecn.unwrap_or(ace_only);
        let mut scenario = Scenario {
            up,
            down,
            flows_up: args.flows_up.unwrap_or(flows.0),
            flows_down: args.flows_down.unwrap_or(flows.1),
            flow,
            quic,
            rtt: args.rtt.unwrap_or(defaults.rtt),
            start_within: simulated.start_within,
            buffer,
            buffer_down,
            uplink,
            downlink,
            tc: args.tc,
            tcp,
            mss,
            ack_policy: match (args.ack_every, args.delayed_ack) {
                (None, None) if tcp.is_linux() => AckPolicy::LINUX,
                (every, delay) => AckPolicy::of(every, delay),
            },
            sack: simulated.sack.unwrap_or_else(|| tcp.has_sack_by_default()),
            timestamps: simulated.timestamps.unwrap_or(tcp.is_linux()),
            byte_counting: simulated.byte_counting.unwrap_or(tcp.is_linux()),
            tcp_ecn: simulated.tcp_ecn.unwrap_or(tcp.needs_ecn() || accecn),
            accecn,
            ace_only,
            hystart: simulated.hystart.unwrap_or(tcp.is_linux()),
            pacing: simulated.pacing.unwrap_or(false),
            regenerate: simulated.regenerate.unwrap_or(regenerates.into()),
            regenerate_spacing: simulated.regenerate_spacing.unwrap_or_default(),
            web: simulated.web,
            on_off: simulated.on_off,
            links: simulated.links.unwrap_or(1),
            steps_up: simulated.steps_up,
            steps_down: simulated.steps_down,
            trace_up,
            trace_down,
            modem_up: simulated.modem_up,
            modem_down: simulated.modem_down,
            shaper_up: source(simulated.shaper_up, args.up),
            shaper_down: source(simulated.shaper_down, args.down),
            steps_delay: simulated.steps_delay,
            rate_profile: simulated.rate_profile,
            rate_probe: simulated.rate_probe.unwrap_or(false),
            clock_drift: simulated.clock_drift,
            clock_tick: simulated.clock_tick,
            netem_up: simulated.netem_up,
            netem_down: simulated.netem_down,
            netem_access_up: simulated.netem_access_up,
            netem_access_down: simulated.netem_access_down,
            header,
            overhead: simulated.overhead,
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
        check(&mut scenario, catalog, defaults)?;
        Ok(scenario)
    }
}

/// Reads a trace file in Mahimahi's format.
fn read_trace(name: &str, path: Option<&Path>) -> Result<Option<RateTrace>, ScenarioError> {
    let Some(path) = path else { return Ok(None) };
    let text = read_file(path)?;
    let trace =
        RateTrace::parse_mahimahi(&text).map_err(|(line, message)| ScenarioError::File {
            path: path.to_owned(),
            line,
            message: format!("{name}: {message}"),
        })?;
    Ok(Some(trace))
}

/// Converts flows of a QUIC stack to listed flows for the simulator.
fn listed(flows: QuicFlows) -> Result<Vec<ListedFlow>, ScenarioError> {
    let bad = |message| BadArgument::new("--quic", message).of_value(flows.to_string());
    flows.listed().map_err(|message| bad(message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_discipline_that_computes_with_the_reverse_rate_has_one_unless_asked() {
        let assumed = |qdisc: &str, assumed_down: Option<&str>| {
            let args = ScenarioArgs {
                qdisc: Some(qdisc.into()),
                assumed_down: assumed_down.map(|rate| rate.parse().unwrap()),
                ..ScenarioArgs::default()
            };
            let scenario = args.resolve(&Defaults::paper()).unwrap();
            assert_eq!(scenario.down.to_string(), "10mbit");
            scenario.uplink.reverse.map(|rate| rate.to_string())
        };
        assert_eq!(assumed("asymq", None), None);
        assert_eq!(assumed("asymq", Some("5mbit")).as_deref(), Some("5mbit"));
        assert_eq!(assumed("aq", None).as_deref(), Some("10mbit"));
        assert_eq!(assumed("aq", Some("5mbit")).as_deref(), Some("5mbit"));
    }

    #[test]
    fn every_flag_of_a_scenario_changes_it() {
        let trace = concat!(
            "--trace-up=",
            env!("CARGO_MANIFEST_DIR"),
            "/../../scenarios/varying.trace"
        );
        let trace_down = trace.replace("up", "down");
        let samples: &[&[&str]] = &[
            &["--up=2mbit"],
            &["--down=20mbit"],
            &["--assumed-down=5mbit"],
            &["--flows-up=2"],
            &["--flows-down=2"],
            &["--rtt=50ms"],
            &["--buffer=60p"],
            &["--buffer-down=60p"],
            &["--qdisc=sad"],
            &["--tc=cake"],
            &["--qdisc-down=sad"],
            &["--param-down=data-share=0.3", "--qdisc-down=wrr"],
            &["--tcp=reno"],
            &["--quic=quinn,down=1"],
            &["--mss=1000b"],
            &["--delayed-ack=100ms"],
            &["--ack-every=4"],
            &["--window=20p"],
            &["--udp=up:100kbit"],
            &["--probe=50ms"],
            &["--duration=20s"],
            &["--warmup=2s"],
            &["--seed=2"],
            &["--runs=2"],
            &["--sack=true"],
            &["--timestamps=true"],
            &["--byte-counting=true"],
            &["--tcp-ecn=true"],
            &["--accecn=true"],
            &["--ace-only=true"],
            &["--hystart=true"],
            &["--pacing=true"],
            &["--regenerate=1"],
            &["--regenerate-spacing=smoothed"],
            &["--start-within=2s"],
            &["--flow=down"],
            &["--web=down:1:30kb:1.3"],
            &["--on-off=200kbit:500ms:500ms"],
            &["--links=2"],
            &["--steps-up=10s:2mbit"],
            &["--steps-down=10s:2mbit"],
            &[trace],
            &[&trace_down],
            &["--modem-up=2mbit"],
            &["--modem-down=20mbit"],
            &["--shaper-up=auto", "--modem-up=1mbit"],
            &["--shaper-down=auto", "--modem-down=10mbit"],
            &["--steps-delay=10s:25ms", "--modem-up=1mbit"],
            &["--rate-profile=steps", "--modem-up=1mbit"],
            &["--rate-probe=true"],
            &["--clock-drift=50"],
            &["--clock-tick=10ms"],
            &["--netem-up=loss 1%"],
            &["--netem-down=loss 1%"],
            &["--netem-access-up=loss 1%"],
            &["--netem-access-down=loss 1%"],
            &["--header=60b"],
            &["--overhead=docsis"],
        ];
        let resolved = |words: &[&str]| {
            let defaults = match words.first() {
                Some(&"--tc=cake") => Defaults::lab(),
                _ => Defaults::paper(),
            };
            let words = words.iter().map(|word| (*word).to_owned());
            ScenarioArgs::from_words(words)
                .unwrap()
                .resolve(&defaults)
                .unwrap()
        };
        for arg in <ScenarioArgs as crate::Settings>::args() {
            let front = format!("--{}=", arg.get_long().unwrap());
            let mut of_flag = samples.iter().filter(|words| words[0].starts_with(&front));
            let words = of_flag
                .next()
                .unwrap_or_else(|| panic!("add a sample of {front}"));
            let without = if front == "--tc=" {
                ScenarioArgs::default().resolve(&Defaults::lab()).unwrap()
            } else {
                resolved(&words[1..])
            };
            assert_ne!(resolved(words), without, "{front} changes nothing");
        }
    }

    #[test]
    fn the_lab_gives_the_reason_for_rejecting_a_flag() {
        let mut command = Given::<SimulatedArgs>::augment_args(clap::Command::new("test"));
        let real = [
            "regenerate",
            "start-within",
            "netem-up",
            "netem-down",
            "steps-",
            "trace-",
            "modem-",
            "shaper-",
            "rate-profile",
        ];
        let unreal: Vec<&str> = UNREAL
            .iter()
            .flat_map(|(flags, _)| *flags)
            .copied()
            .collect();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            let real = real.iter().any(|real| flag.starts_with(real));
            assert!(
                real != unreal.contains(&flag),
                "{flag}: can the lab follow it?"
            );
        }
        command = Given::<ScenarioArgs>::augment_args(clap::Command::new("test"));
        for flag in unreal {
            let mut known = command.get_arguments();
            assert!(known.any(|arg| arg.get_long() == Some(flag)), "{flag}");
        }
        let flags = Flags::new(&Standard);
        let words = flags.given(["--links=2".to_owned()]).unwrap();
        let scenario = words.scenario(&flags, &Standard, &Defaults::lab());
        let error = scenario.unwrap_err().to_string();
        assert!(
            error.contains("not available in the lab, where there is one link; leave it out"),
            "{error}"
        );
    }

    #[test]
    fn the_lab_has_modems_without_oracles() {
        let refusal = |words: &str| {
            let words = words.split_whitespace().map(str::to_owned);
            let args = ScenarioArgs::from_words(words).unwrap();
            let error = args.resolve(&Defaults::lab()).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        let modem = "--modem-up=10mbit --modem-down=50mbit";
        assert_eq!(
            refusal(&format!(
                "{modem} --shaper-up=auto --shaper-down=none --steps-down=2s:20mbit"
            )),
            ""
        );
        for (words, said) in [
            ("--steps-up=2s:1mbit", "add --modem-up"),
            ("--modem-up=1mbit --steps-down=2s:1mbit", "add --modem-down"),
            (
                "--modem-up=1mbit --shaper-up=oracle-97",
                "fixed-min, none or auto",
            ),
            ("--modem-up=1mbit --shaper-up=auto --tc=cake", "up auto"),
            ("--modem-down=1mbit --tc=cake", "leave out --tc"),
        ] {
            let error = refusal(words);
            assert!(
                error.contains("in the lab") && error.contains(said),
                "{words}: {error}"
            );
        }
    }

    #[test]
    fn the_lab_refuses_a_flood() {
        let args = || ScenarioArgs {
            udp: vec!["up:1mbit:60b:syns".parse().unwrap()],
            ..ScenarioArgs::default()
        };
        let refusal = |defaults| args().resolve(&defaults).err().map(|e| e.to_string());
        assert_eq!(refusal(Defaults::sim()), None);
        let error = refusal(Defaults::lab()).unwrap();
        assert!(
            error.contains("up:1mbit:60b:syns: not available in the lab"),
            "{error}"
        );
    }

    #[test]
    fn regeneration_follows_the_discipline_unless_it_is_given() {
        let under = |regenerate, qdisc: &str| {
            let args = ScenarioArgs {
                qdisc: Some(qdisc.into()),
                simulated: SimulatedArgs {
                    regenerate,
                    ..SimulatedArgs::default()
                },
                ..ScenarioArgs::default()
            };
            args.resolve(&Defaults::paper()).unwrap().regenerate
        };
        assert_eq!(under(None, "fifo+af/ar"), 1);
        assert_eq!(under(None, "af"), 0);
        assert_eq!(under(Some(0), "fifo+af/ar"), 0);
        assert_eq!(under(Some(4), "af"), 4);
    }

    #[test]
    fn nothing_typed_is_the_papers_default_scenario() {
        let scenario = ScenarioArgs::default().resolve(&Defaults::paper()).unwrap();
        assert_eq!(scenario.up.to_string(), "1mbit");
        assert_eq!(scenario.down.to_string(), "10mbit");
        assert_eq!((scenario.flows_up, scenario.flows_down), (5, 10));
        assert_eq!(scenario.rtt.to_string(), "20ms..300ms");
        assert_eq!(
            scenario.uplink.params.text("data-size").as_deref(),
            Some("1500b")
        );
        assert_eq!(scenario.uplink.limit, Limit::Packets(49));
    }

    #[test]
    fn cubic_has_sack_unless_told_otherwise_and_is_warned_of_without() {
        let of = |tcp, sack| {
            let args = ScenarioArgs {
                tcp: Some(tcp),
                simulated: SimulatedArgs {
                    sack,
                    ..SimulatedArgs::default()
                },
                ..ScenarioArgs::default()
            };
            let scenario = args.resolve(&Defaults::paper()).unwrap();
            (scenario.sack, scenario.warnings().len())
        };
        assert_eq!(of(Tcp::Cubic, None), (true, 0));
        assert_eq!(of(Tcp::Cubic, Some(false)), (false, 1));
        assert_eq!(of(Tcp::Newreno, None), (false, 0));
        assert_eq!(of(Tcp::Newreno, Some(true)), (true, 0));
    }

    #[test]
    fn values_out_of_range_name_the_flag_and_the_range() {
        let error = |args: ScenarioArgs| args.resolve(&Defaults::paper()).unwrap_err().to_string();
        let args = ScenarioArgs {
            mss: Some(Bytes(20)),
            ..Default::default()
        };
        assert_eq!(error(args), "--mss 20b: out of range; use 88b to 65495b");
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
            format!(
                "--tcp bbr: not available in the simulator; use {}",
                Tcp::either(Tcp::simulated())
            )
        );
    }
}
