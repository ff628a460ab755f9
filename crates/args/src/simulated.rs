//! Flags of the simulator alone.

use crate::settings;
use crate::settings::within;
use asymq_core::hold::Spacing;
use asymq_core::overhead::Overhead;
use asymq_core::units::{Bytes, Duration};
use asymq_scenario::{
    DelayStep, ListedFlow, Modem, Netem, OnOff, RateProfile, RateSource, RateStep, Tcp, WebLoad,
};
use std::path::PathBuf;

/// The help of a flag with the names of the simulated congestion controls that `has` holds for.
fn of_tcp(help: &str, has: impl Fn(&Tcp) -> bool) -> String {
    help.replace("{}", &Tcp::joined(Tcp::simulated().filter(has), "and"))
}

settings! {
    /// Flags of the simulated hosts, their traffic and the path; all optional.
    #[derive(PartialEq)]
    pub struct SimulatedArgs: "Simulated hosts and path" {
        /// SACK recovery.
        pub sack: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("SACK, with recovery by RACK-TLP and PRR, RFC 8985 and 9937 [default: true with {}, else false]", Tcp::has_sack_by_default));
        /// Timestamps, RFC 7323: 12 bytes of each segment and ACK [default: true with linux, else false].
        pub timestamps: Option<bool> = "true|false";
        /// Appropriate byte counting, RFC 3465 with L = 2; linux counts all [default: true with linux, else false].
        pub byte_counting: Option<bool> = "true|false";
        /// ECN at the hosts.
        pub tcp_ecn: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("ECN at the hosts, RFC 3168; with dctcp as RFC 8257 says [default: true with {}, else false]", Tcp::needs_ecn));
        /// AccECN at the hosts, RFC 9768: exact counts of marks in each ACK, by ACE and the option [default: false].
        pub accecn: Option<bool> = "true|false";
        /// AccECN without its option: ACE alone, whose three bits count marks modulo 8 [default: false].
        pub ace_only: Option<bool> = "true|false";
        /// HyStart++.
        pub hystart: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("HyStart++, RFC 9406, with {}; linux has its own HyStart [default: true with linux, else false]", Tcp::has_hystart));
        /// Pacing.
        pub pacing: Option<bool> = "true|false", arg |arg| arg.help(of_tcp("Pacing as Linux does it: twice the window per round trip in slow start, then 1.2 times [default: false; {} paces]", Tcp::paces));
        /// ACKs regenerated beyond the uplink for each filtered (AR's R), 0 to 16 [default: 1 if the discipline's name has ar, else 0].
        pub regenerate: Option<u32> = "R", read within(0..=16);
        /// Departure of those ACKs: at-once, paced (over the gap they fill, a segment's time apart at most), smoothed (over the smoothed time between ACKs, as ns-2's AR does) [default: paced].
        pub regenerate_spacing: Option<Spacing> = "SPACING";
        /// Long-lived flows start uniformly within this time, 0 to the duration [default: 1s, or a tenth of a shorter run].
        pub start_within: Option<Duration> = "TIME";
        /// A further TCP flow, like down,rtt=40ms,start=2s,size=1mb: direction, rtt, start, stop, size, rate (of its application), tcp, sack, mss, delayed-ack, ack-every, acks-per-rtt, opaque, quic (true or a stack) or tunnel (no queue can read its packets), links (of a chain, like 2..3); repeatable.
        pub flow: Vec<ListedFlow> = "FLOW";
        /// Short TCP transfers, like down:1:30kb:1.3: direction, new ones per second (Poisson), mean size, Pareto shape; repeatable.
        pub web: Vec<WebLoad> = "LOAD";
        /// Long-lived flows write like 200kbit:500ms:500ms: rate, mean time on and off (exponential) [default: greedy].
        pub on_off: Option<OnOff> = "PATTERN";
        /// Asymmetric links in a chain, 1 to 32, each with its own disciplines [default: 1].
        pub links: Option<u32> = "N", read within(1..=32);
        /// A change of the uplink's rate, like 10s:2mbit: its time and the new rate; repeatable. Disciplines assume --up.
        pub steps_up: Vec<RateStep> = "STEP";
        /// A change of the downlink's rate; repeatable.
        pub steps_down: Vec<RateStep> = "STEP";
        /// Opportunities of the uplink in Mahimahi's format: a time in ms for each 1500 bytes, repeated. Disciplines assume --up [default: the trace's mean].
        pub trace_up: Option<PathBuf> = "FILE";
        /// Opportunities of the downlink, in the same format.
        pub trace_down: Option<PathBuf> = "FILE";
        /// A modem behind the uplink's shaper, like 10mbit,buffer=600ms,grant=2ms..6ms: rate, buffer as a time, in packets or bytes, time from request to grant; --up is the shaper's rate then, and --steps-up or --trace-up the modem's [default: none].
        pub modem_up: Option<Modem> = "MODEM";
        /// A modem before the downlink's shaper, which moves to the home.
        pub modem_down: Option<Modem> = "MODEM";
        /// Source of the rate before --modem-up: fixed (--up), auto or auto:1mbit..20mbit (learnt, from --up on), none (no shaper), oracle, oracle-97, oracle-drain, fixed-mean, fixed-min, cake-autorate or cake-autorate-owd [default: fixed].
        pub shaper_up: Option<RateSource> = "SOURCE";
        /// Source of the rate behind --modem-down; autorate-ingress is CAKE's.
        pub shaper_down: Option<RateSource> = "SOURCE";
        /// A change of the path's delay behind both modems, like 10s:25ms: its time and the extra one-way delay; repeatable.
        pub steps_delay: Vec<DelayStep> = "STEP";
        /// Profile of both modems' rates and of the path's delay, drawn from the seed: constant, steps, halved, ramp, starlink, cellular, outage, path, handover or docsis [default: none].
        pub rate_profile: Option<RateProfile> = "PROFILE";
        /// Let learnt rates send probes, at most 20 a second, while no packet shows delays.
        pub rate_probe: Option<bool> = "true|false";
        /// Servers' clocks start anywhere and drift by up to this many ppm, 0 to 1000 [default: one clock for all].
        pub clock_drift: Option<u32> = "PPM", read within(0..=1000);
        /// Tick of the servers' timestamps, 1ms to 100ms [default: 1ms].
        pub clock_tick: Option<Duration> = "TIME";
        /// Impairment of the path behind the uplink in netem's words, like "loss 1%", "loss gemodel 1% 10% 70% 0.1%", "delay 10ms 5ms" or "delay 10ms reorder 25% gap 5".
        pub netem_up: Option<Netem> = "NETEM";
        /// Impairment of the path behind the downlink.
        pub netem_down: Option<Netem> = "NETEM";
        /// Impairment of each host's own path to the uplink.
        pub netem_access_up: Option<Netem> = "NETEM";
        /// Impairment of each host's own path to the downlink.
        pub netem_access_down: Option<Netem> = "NETEM";
        /// TCP/IP header bytes of data packets and of ACKs, 40b to 80b [default: 40b].
        pub header: Option<Bytes> = "SIZE";
        /// Bytes that both links charge for a packet beside its IP bytes, and that disciplines count too, in tc-cake's words, like pppoe-vcmux, docsis or "overhead 44 atm" [default: nothing].
        pub overhead: Option<Overhead> = "WORDS";
    }
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
