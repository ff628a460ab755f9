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

/// Returns the help of a flag, with the names of the simulated congestion controls for which `has` is true.
fn of_tcp(help: &str, has: impl Fn(&Tcp) -> bool) -> String {
    help.replace("{}", &Tcp::joined(Tcp::simulated().filter(has), "and"))
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
        /// Mahimahi trace of the uplink: each line is a time in ms at which 1500 bytes can leave; at its end the trace starts again. The discipline assumes the rate --up [default: the trace's mean rate].
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
