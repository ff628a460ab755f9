//! A scenario as the arguments of ns-2's script, or the reason why ns-2 cannot run it.

use asymq_core::catalog::Config;
use asymq_core::units::{Duration, Limit, Rate};
use asymq_scenario::{AckPolicy, Scenario};

/// Keys and values of the script's arguments.
pub type Settings = Vec<(&'static str, String)>;

/// A scenario that ns-2 cannot follow: the key, its value where it is short, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{key}{}: {reason}", value.as_ref().map_or(String::new(), |value| format!(" = {value}")))]
pub struct Unsupported {
    key: &'static str,
    value: Option<String>,
    reason: &'static str,
}

/// The time that ns-2's DelAck sink holds an ACK.
const DELAYED_ACK: Duration = Duration::from_millis(100);
/// Propagation delay of the script's fixed links, there and back; a flow's own link has the rest.
const FIXED_RTT: Duration = Duration::from_millis(12);
/// Bytes that ns-2's queue monitor counts before its 32 bits are full.
const COUNTER_BYTES: u128 = 1 << 32;
/// A window that no flow fills.
const UNLIMITED_WINDOW: &str = "100000";

/// Refuses a scenario unless ns-2 follows each key: the key with its value where it is short, whether it
/// follows, and the reason if it does not.
macro_rules! accept {
    ($($key:literal $(= $value:expr)?, $follows:expr, $reason:expr;)*) => {
        $(if !$follows {
            return refuse($key, None::<String>$(.or(Some($value.to_string())))?, $reason);
        })*
    };
}

/// The script's arguments for a scenario.
///
/// # Errors
/// The scenario sets something that the script does not have; ns-2 would run another case.
pub fn settings(scenario: &Scenario) -> Result<Settings, Unsupported> {
    check(scenario)?;
    let packets = |key, limit: &Limit| match limit {
        Limit::Packets(packets) => Ok(packets.to_string()),
        Limit::Bytes(_) => refuse(key, Some(limit.to_string()), "ns-2 counts packets"),
    };
    let sink = match &scenario.ack_policy {
        AckPolicy::EveryPacket => "TCPSink",
        AckPolicy::Delayed(time) if *time == DELAYED_ACK => "TCPSink/DelAck",
        AckPolicy::Delayed(time) => {
            return refuse("delayed-ack", Some(time.to_string()), "use 0 or 100ms");
        }
        AckPolicy::Every(count, _) => {
            return refuse("ack-every", Some(count.to_string()), "use 1 or 2");
        }
    };
    let window = scenario.window.as_ref();
    let window = window.map_or(Ok(UNLIMITED_WINDOW.to_owned()), |w| packets("window", w))?;
    let seconds = |time: Duration| time.as_secs_f64().to_string();
    Ok(vec![
        ("up", scenario.up.bits_per_sec().to_string()),
        ("down", scenario.down.bits_per_sec().to_string()),
        ("flows-up", scenario.flows_up.to_string()),
        ("flows-down", scenario.flows_down.to_string()),
        ("rtt-min", seconds(scenario.rtt.min)),
        ("rtt-max", seconds(scenario.rtt.max)),
        ("buffer", packets("buffer", &scenario.buffer)?),
        (
            "buffer-down",
            packets("buffer-down", &scenario.buffer_down)?,
        ),
        ("mss", scenario.mss.to_string()),
        (
            "tcp",
            scenario.tcp.ns2_name().unwrap_or_default().to_owned(),
        ),
        ("sink", sink.to_owned()),
        ("window", window),
        ("duration", seconds(scenario.duration)),
        ("warmup", seconds(scenario.warmup)),
    ])
}

/// Refuses a scenario that ns-2 cannot follow.
fn check(scenario: &Scenario) -> Result<(), Unsupported> {
    // Without `..`: a new field of a scenario must be decided on here. `settings` takes the rest.
    let Scenario {
        up,
        down,
        flows_up: _,
        flows_down: _,
        flow,
        rtt,
        start_within,
        buffer: _,
        buffer_down: _,
        uplink,
        downlink,
        quic: _, // the simulator's scenarios have none
        tc: _,   // nor that
        tcp,
        mss: _,
        ack_policy: _,
        sack,
        timestamps,
        byte_counting,
        tcp_ecn,
        accecn: _,   // a form of ECN
        ace_only: _, // goes with accecn
        hystart,
        pacing,
        regenerate,
        regenerate_spacing: _, // nothing is spaced where nothing is regenerated
        web,
        on_off,
        links,
        steps_up,
        steps_down,
        trace_up,
        trace_down,
        modem_up,
        modem_down,
        shaper_up: _,   // only beside a modem
        shaper_down: _, // only beside a modem
        steps_delay: _, // only beside a modem
        rate_profile: _,
        rate_probe: _,  // only of learnt rates
        clock_drift: _, // of timestamps
        clock_tick: _,  // of timestamps
        netem_up,
        netem_down,
        netem_access_up,
        netem_access_down,
        header,
        overhead,
        window: _,
        udp,
        probe,
        duration,
        warmup: _,
        seed: _, // an argument of each run
        runs: _, // the number of processes
    } = scenario;

    let fits = |rate: &Rate| bytes(*rate, *duration) < COUNTER_BYTES;
    let constant = "ns-2 runs over links of constant rate";
    let clean = "ns-2 runs over paths without loss and jitter";
    let too_long = "ns-2 counts less than 4 GiB per run; shorten the duration";
    accept! {
        "qdisc" = uplink.qdisc, is_drop_tail(uplink), "use droptail, without other parts";
        "qdisc-down" = downlink.qdisc, is_drop_tail(downlink), "use droptail";
        "tcp" = tcp, tcp.ns2_name().is_some(), "use reno or newreno";
        "sack", !sack, "ns-2 runs without SACK";
        "timestamps", !timestamps, "ns-2 runs without timestamps";
        "byte-counting", !byte_counting, "ns-2 counts ACKs";
        "tcp-ecn", !tcp_ecn, "ns-2 runs without ECN";
        "hystart", !hystart, "ns-2's slow start is the standard one";
        "pacing", !pacing, "ns-2 sends bursts";
        "regenerate", *regenerate == 0, "ns-2 regenerates no ACKs";
        "start-within", start_within.is_none(), "ns-2's flows start within a second";
        "flow", flow.is_empty(), "ns-2 runs flows-up and flows-down only";
        "web", web.is_empty(), "ns-2 runs long-lived flows only";
        "on-off", on_off.is_none(), "ns-2 runs greedy flows only";
        "udp", udp.is_empty(), "ns-2 runs TCP only";
        "probe", probe.is_none(), "ns-2 runs TCP only";
        "links" = links, *links == 1, "ns-2 has one bottleneck";
        "steps-up", steps_up.is_empty(), constant;
        "steps-down", steps_down.is_empty(), constant;
        "trace-up", trace_up.is_none(), constant;
        "trace-down", trace_down.is_none(), constant;
        "modem-up", modem_up.is_none(), constant;
        "modem-down", modem_down.is_none(), constant;
        "netem-up", netem_up.is_none(), clean;
        "netem-down", netem_down.is_none(), clean;
        "netem-access-up", netem_access_up.is_none(), clean;
        "netem-access-down", netem_access_down.is_none(), clean;
        "header" = header, *header == 40, "ns-2's headers have 40 bytes";
        "overhead", overhead.is_none(), "ns-2's links count IP bytes";
        "rtt" = rtt, rtt.min >= FIXED_RTT, "ns-2 needs 12ms or more";
        "up" = up, fits(up), too_long;
        "down" = down, fits(down), too_long;
    }
    Ok(())
}

/// True if it is one FIFO for all, whatever its name.
fn is_drop_tail(config: &Config) -> bool {
    [
        ("ack-queue", "fifo"),
        ("data-queue", "fifo"),
        ("aqm", "none"),
        ("service", "shared"),
        ("controller", "none"),
        ("buffer-split", "shared"),
    ]
    .iter()
    .all(|(name, value)| config.params.get(name) == Some(value))
}

/// Maximum of bytes that a link carries in this time.
fn bytes(rate: Rate, time: Duration) -> u128 {
    u128::from(rate.bits_per_sec()) * u128::from(time.as_nanos()) / 8_000_000_000
}

const fn refuse<T>(
    key: &'static str,
    value: Option<String>,
    reason: &'static str,
) -> Result<T, Unsupported> {
    Err(Unsupported { key, value, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, Flags, ScenarioArgs};

    /// The paper's scenario under DropTail with these keys changed.
    fn scenario(keys: &str) -> Scenario {
        let flags = Flags::<ScenarioArgs>::of(&asymq_core::catalog::Standard);
        let words = |text| flags.text(std::path::Path::new("s.toml"), text).unwrap();
        let words = words(keys).or(&words("qdisc = \"droptail\""));
        let args = flags.read(&words).unwrap();
        args.resolve(&Defaults::paper()).unwrap()
    }

    #[test]
    fn a_plain_scenario_becomes_the_scripts_arguments() {
        let settings = settings(&scenario(
            "up = \"2mbit\"\nrtt = \"20ms..300ms\"\ntcp = \"reno\"\ndelayed-ack = \"100ms\"\nwindow = \"64p\"",
        ))
        .unwrap();
        for expected in [
            ("up", "2000000"),
            ("rtt-min", "0.02"),
            ("rtt-max", "0.3"),
            ("tcp", "Reno"),
            ("sink", "TCPSink/DelAck"),
            ("window", "64"),
        ] {
            let found = settings.iter().find(|(key, _)| *key == expected.0);
            assert_eq!(found.map(|(_, value)| value.as_str()), Some(expected.1));
        }
    }

    #[test]
    fn what_ns2_cannot_follow_is_refused_by_its_key() {
        for (keys, expected) in [
            ("qdisc = \"aq\"", "qdisc = aq: use droptail"),
            (
                "ack-queue = \"af\"",
                "qdisc = droptail: use droptail, without other parts",
            ),
            ("qdisc-down = \"red\"", "qdisc-down = red: use droptail"),
            ("sack = true", "sack: "),
            ("timestamps = true", "timestamps: "),
            ("byte-counting = true", "byte-counting: "),
            ("regenerate = 1", "regenerate: "),
            ("probe = \"20ms\"", "probe: "),
            ("links = 2", "links = 2: "),
            ("flow = \"up\"", "flow: "),
            ("steps-down = \"1s:1mbit\"", "steps-down: "),
            ("netem-up = \"loss 1%\"", "netem-up: "),
            ("netem-access-down = \"loss 1%\"", "netem-access-down: "),
            ("mss = 1440\nheader = 60", "header = 60: "),
            (
                "tcp = \"cubic\"\nsack = false",
                "tcp = cubic: use reno or newreno",
            ),
            (
                "delayed-ack = \"200ms\"",
                "delayed-ack = 200ms: use 0 or 100ms",
            ),
            ("ack-every = 4", "ack-every = 4: use 1 or 2"),
            ("buffer = \"64kb\"", "buffer = 64kb: ns-2 counts packets"),
            ("window = \"64kb\"", "window = 64kb: ns-2 counts packets"),
            ("rtt = \"10ms\"", "rtt = 10ms: ns-2 needs 12ms or more"),
            (
                "down = \"1gbit\"",
                "down = 1gbit: ns-2 counts less than 4 GiB",
            ),
        ] {
            let refusal = settings(&scenario(keys)).unwrap_err().to_string();
            assert!(refusal.starts_with(expected), "{keys}: {refusal}");
        }
    }
}
