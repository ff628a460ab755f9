//! Flags of the simulator alone.

use asymq_core::hold::Spacing;
use asymq_core::overhead::Overhead;
use asymq_core::units::{Bytes, Duration};
use asymq_scenario::{
    DelayStep, ListedFlow, Modem, Netem, OnOff, RateProfile, RateSource, RateStep, Tcp, WebLoad,
};
use clap::Args;
use clap::builder::RangedI64ValueParser;
use std::path::PathBuf;

/// The help of a flag with the names of the simulated congestion controls that `has` holds for.
fn of_tcp(help: &str, has: impl Fn(&Tcp) -> bool) -> String {
    help.replace("{}", &Tcp::joined(Tcp::simulated().filter(has), "and"))
}

/// Flags of the simulated hosts, their traffic and the path; all optional.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Simulated hosts and path")]
pub struct SimulatedArgs {
    /// SACK recovery.
    #[arg(long, help = of_tcp("SACK recovery, RFC 2018 and 6675 [default: true with {}, else false]", Tcp::has_sack_by_default), value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub sack: Option<bool>,
    /// Timestamps, RFC 7323: 12 bytes of each segment and ACK [default: false].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub timestamps: Option<bool>,
    /// Appropriate byte counting, RFC 3465 with L = 2 [default: false].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub byte_counting: Option<bool>,
    /// ECN at the hosts.
    #[arg(long, help = of_tcp("ECN at the hosts, RFC 3168; with dctcp as RFC 8257 says [default: true with {}, else false]", Tcp::needs_ecn), value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub tcp_ecn: Option<bool>,
    /// AccECN at the hosts, RFC 9768: exact counts of marks in each ACK, by ACE and the option [default: false].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub accecn: Option<bool>,
    /// AccECN without its option: ACE alone, whose three bits count marks modulo 8 [default: false].
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub ace_only: Option<bool>,
    /// HyStart++.
    #[arg(long, help = of_tcp("HyStart++, RFC 9406, with {} [default: false]", Tcp::has_hystart), value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub hystart: Option<bool>,
    /// Pacing.
    #[arg(long, help = of_tcp("Pacing as Linux does it: twice the window per round trip in slow start, then 1.2 times [default: false; {} paces]", Tcp::paces), value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub pacing: Option<bool>,
    /// ACKs regenerated beyond the uplink for each filtered (AR's R), 0 to 16 [default: 1 if the discipline's name has ar, else 0].
    #[arg(long, value_name = "R", value_parser = RangedI64ValueParser::<u32>::new().range(0..=16))]
    pub regenerate: Option<u32>,
    /// Departure of those ACKs: at-once, paced (over the gap they fill, a segment's time apart at most), smoothed (over the smoothed time between ACKs, as ns-2's AR does) [default: paced].
    #[arg(long, value_name = "SPACING")]
    pub regenerate_spacing: Option<Spacing>,
    /// Long-lived flows start uniformly within this time, 0 to the duration [default: 1s, or a tenth of a shorter run].
    #[arg(long, value_name = "TIME")]
    pub start_within: Option<Duration>,
    /// A further TCP flow, like down,rtt=40ms,start=2s,size=1mb: direction, rtt, start, stop, size, rate (of its application), tcp, sack, mss, delayed-ack, ack-every, acks-per-rtt, opaque, quic or tunnel (no queue can read its packets), links (of a chain, like 2..3); repeatable.
    #[arg(long, value_name = "FLOW")]
    pub flow: Vec<ListedFlow>,
    /// Short TCP transfers, like down:1:30kb:1.3: direction, new ones per second (Poisson), mean size, Pareto shape; repeatable.
    #[arg(long, value_name = "LOAD")]
    pub web: Vec<WebLoad>,
    /// Long-lived flows write like 200kbit:500ms:500ms: rate, mean time on and off (exponential) [default: greedy].
    #[arg(long, value_name = "PATTERN")]
    pub on_off: Option<OnOff>,
    /// Asymmetric links in a chain, 1 to 32, each with its own disciplines [default: 1].
    #[arg(long, value_name = "N", value_parser = RangedI64ValueParser::<u32>::new().range(1..=32))]
    pub links: Option<u32>,
    /// A change of the uplink's rate, like 10s:2mbit: from when on, rate; repeatable. Disciplines assume --up.
    #[arg(long, value_name = "STEP")]
    pub steps_up: Vec<RateStep>,
    /// A change of the downlink's rate; repeatable.
    #[arg(long, value_name = "STEP")]
    pub steps_down: Vec<RateStep>,
    /// Opportunities of the uplink in Mahimahi's format: a time in ms for each 1500 bytes, repeated. Disciplines assume --up [default: the trace's mean].
    #[arg(long, value_name = "FILE")]
    pub trace_up: Option<PathBuf>,
    /// Opportunities of the downlink, in the same format.
    #[arg(long, value_name = "FILE")]
    pub trace_down: Option<PathBuf>,
    /// A modem behind the uplink's shaper, like 10mbit,buffer=600ms,grant=2ms..6ms: rate, buffer as a time, in packets or bytes, time from request to grant; --up is the shaper's rate then, and --steps-up or --trace-up the modem's [default: none].
    #[arg(long, value_name = "MODEM")]
    pub modem_up: Option<Modem>,
    /// A modem before the downlink's shaper, which is at home then.
    #[arg(long, value_name = "MODEM")]
    pub modem_down: Option<Modem>,
    /// Source of the rate before --modem-up: fixed (--up), auto or auto:1mbit..20mbit (learnt, from --up on), none (no shaper), oracle, oracle-97, oracle-drain, fixed-mean, fixed-min, cake-autorate or cake-autorate-owd [default: fixed].
    #[arg(long, value_name = "SOURCE")]
    pub shaper_up: Option<RateSource>,
    /// Source of the rate behind --modem-down; autorate-ingress is CAKE's.
    #[arg(long, value_name = "SOURCE")]
    pub shaper_down: Option<RateSource>,
    /// A change of the path's delay behind both modems, like 10s:25ms: from when on, extra one-way delay; repeatable.
    #[arg(long, value_name = "STEP")]
    pub steps_delay: Vec<DelayStep>,
    /// Profile of both modems' rates and of the path's delay, drawn from the seed: constant, steps, halved, ramp, starlink, cellular, outage, path, handover or docsis [default: none].
    #[arg(long, value_name = "COURSE")]
    pub rate_profile: Option<RateProfile>,
    /// Let learnt rates send probes, at most 20 a second, where no packet tells delays.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub rate_probe: Option<bool>,
    /// Servers' clocks start anywhere and drift by up to this many ppm, 0 to 1000 [default: one clock for all].
    #[arg(long, value_name = "PPM", value_parser = RangedI64ValueParser::<u32>::new().range(0..=1000))]
    pub clock_drift: Option<u32>,
    /// Tick of the servers' timestamps, 1ms to 100ms [default: 1ms].
    #[arg(long, value_name = "TIME")]
    pub clock_tick: Option<Duration>,
    /// Impairment of the path behind the uplink in netem's words, like "loss 1%", "loss gemodel 1% 10% 70% 0.1%", "delay 10ms 5ms" or "delay 10ms reorder 25% gap 5".
    #[arg(long, value_name = "NETEM")]
    pub netem_up: Option<Netem>,
    /// Impairment of the path behind the downlink.
    #[arg(long, value_name = "NETEM")]
    pub netem_down: Option<Netem>,
    /// Impairment of each host's own path to the uplink.
    #[arg(long, value_name = "NETEM")]
    pub netem_access_up: Option<Netem>,
    /// Impairment of each host's own path to the downlink.
    #[arg(long, value_name = "NETEM")]
    pub netem_access_down: Option<Netem>,
    /// TCP/IP header bytes of data packets and of ACKs, 40b to 80b [default: 40b].
    #[arg(long, value_name = "SIZE")]
    pub header: Option<Bytes>,
    /// Bytes that both links charge for a packet beside its IP bytes, and that disciplines count too, in tc-cake's words, like pppoe-vcmux, docsis or "overhead 44 atm" [default: nothing].
    #[arg(long, value_name = "WORDS")]
    pub overhead: Option<Overhead>,
}

/// Flags that only the simulator can follow, and why a real run cannot, to go behind "not available".
pub(crate) const UNREAL: &[(&[&str], &str)] = &[
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
        ", where all hosts share one cable and none has a path of its own",
    ),
    (
        &["flow", "web", "on-off"],
        ", where all flows are long-lived and greedy",
    ),
    (&["links"], ", where there is one link"),
    (
        &["clock-drift", "clock-tick"],
        ", where the kernel's clock stamps segments",
    ),
    (&["rate-probe"], ", whose gateway sends no probes"),
];
