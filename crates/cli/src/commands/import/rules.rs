//! Maps each option to a flag of asymq, or to the reason why no flag exists.

use super::file::{Dialect, Section, tc_words};
use crate::output::listed;
use asymq_core::catalog::link_rate;
use asymq_core::decide::overhead::Overhead;
use asymq_core::units::Rate;

/// Result for one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The flag of asymq, with its value.
    Flag(String),
    /// Reason why the option has no flag.
    LeftOut(String),
    /// Link-layer keywords of tc-cake.
    Link(String),
    /// Link-layer keywords of tc-cake that apply only to the downlink.
    LinkDown(String),
}

use Fate::{Flag, LeftOut, Link, LinkDown};

const QUEUES: &str = "asymq has its own queues; use --qdisc cake or fq_codel to keep the old ones";
const CODEL: &str = "asymq learns its targets; use --qdisc cake with --cake-rtt, or fq_codel with --target and --interval, to set them";
const DSCP: &str = "asymq neither reads nor changes DSCP; --qdisc cake with --diffserv reads it";
const ACKS: &str = "asymq always filters ACKs, as many as the downlink needs";
const ECN: &str = "asymq itself marks ECN-capable packets and drops others";
const MEMORY: &str = "--buffer sets the buffer; its default is 100 ms of the rate";
const OWN_QDISC: &str = "asymq uses the port directly, without a qdisc, IFB or marks";
const HOSTS: &str = "asymq shares capacity by host, then by flow; on a router, also behind NAT";
const LEARNT: &str = "with auto, asymq learns the rate from forwarded packets, without probes";
const ITS_OWN: &str = "controls only that program";
const SHAPER: &str = "asymq shapes in user space";
const RULES: &str = "asymq classifies by behaviour; it has no rules for ports or hosts";

/// Returns the results for an option. If its value is a list of words for a qdisc, each word has one result. A downlink
/// rate has two, because it also needs a discipline.
pub(super) fn fates(section: &Section, key: &str, value: &str) -> Vec<(String, Fate)> {
    const OF_QDISC: &str = "eqdisc_opts iqdisc_opts nongameqdiscoptions EXTRA_PARAMETERS_INGRESS EXTRA_PARAMETERS_EGRESS";
    if listed(OF_QDISC, key) && !value.is_empty() {
        let words: Vec<&str> = value.split_whitespace().collect();
        let pairs = tc_words(&words).into_iter();
        let is_down = key == "iqdisc_opts" || key.ends_with("_INGRESS");
        let fate = |(word, value)| match of_qdisc(word, value) {
            Link(words) if is_down => (format!("{key} {word} {value}"), LinkDown(words)),
            fate => (format!("{key} {word} {value}"), fate),
        };
        return pairs.map(fate).collect();
    }
    let fate = match section.dialect {
        Dialect::Sqm | Dialect::Qosmate if value.is_empty() => left("empty"),
        Dialect::Sqm => sqm(section, key, value),
        Dialect::Qosmate => qosmate(section, key, value),
        Dialect::Autorate => autorate(section, key, value),
        Dialect::Tc => tc(section, key, value),
    };
    let option = format!("{key} {value}");
    let shapes =
        matches!(&fate, Flag(flag) if flag.starts_with("--down") && !flag.contains("auto"));
    let mut fates = vec![(option.clone(), fate)];
    if shapes {
        let queue = match section.get("qdisc") {
            "fq_codel" => "fq_codel",
            _ => "cake",
        };
        fates.push((option, Flag(format!("--qdisc-down {queue}"))));
    }
    fates
}

fn left(reason: &str) -> Fate {
    LeftOut(reason.into())
}

/// Reads a rate in kbit/s, the unit of SQM, qosmate and cake-autorate.
fn kbit(flag: &str, value: &str) -> Fate {
    if value == "0" {
        return left("in SQM, 0 disables shaping; asymq router learns the rate and shapes");
    }
    if !value.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return left("not a number of kbit/s");
    }
    rate(flag, &format!("{value}kbit"))
}

/// Reads a rate of tc: `1mbps` is 8 Mbit/s, a bare number is bit/s.
fn rate(flag: &str, value: &str) -> Fate {
    let value = value.to_ascii_lowercase();
    let (value, times) = match (value.strip_suffix("bps"), value.parse::<u64>()) {
        (Some(value), _) => (format!("{value}bit"), 8),
        (None, Ok(bits)) => (format!("{bits}bit"), 1),
        _ => (value, 1),
    };
    let times = |rate: Rate| Rate::from_bits_per_sec(rate.bits_per_sec().saturating_mul(times));
    match link_rate(&value).map(|rate| times(rate).unwrap_or(rate)) {
        Ok(rate) => Flag(format!("{flag} {rate}")),
        Err(error) => LeftOut(format!("not a rate: {error}")),
    }
}

/// True if a shell, tc and systemctl treat the name as one plain word.
pub(super) fn is_interface(name: &str) -> bool {
    let mut letters = name.chars();
    (1..16).contains(&name.len())
        && letters.all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
        && !name.starts_with('-')
}

fn interface(flag: &str, value: &str) -> Fate {
    match value {
        name if name.starts_with("ppp") => {
            left("a PPP session: asymq needs the Ethernet port below it")
        }
        name if is_interface(name) => Flag(format!("{flag} {name}")),
        _ => left("not an interface name"),
    }
}

/// Reads a tc-cake keyword with a number.
fn number(word: &str, value: &str) -> Fate {
    let Ok(value) = value.parse::<i64>() else {
        return left("not a whole number");
    };
    let words = format!("{word} {value}");
    match words.parse::<Overhead>() {
        Ok(_) => Link(words),
        Err(error) => LeftOut(error.to_string()),
    }
}

fn overhead(value: &str) -> Fate {
    number("overhead", value)
}

/// Converts tc-cake's keywords to flags. Later keywords override earlier ones.
///
/// # Errors
/// The sum of the keywords is out of range.
pub(super) fn link_flags(words: &str) -> Result<Vec<String>, String> {
    let overhead: Overhead = words.parse().map_err(|error| format!("{error}"))?;
    let mut parts = words.split(' ');
    if let (Some(word), None) = (parts.next(), parts.next())
        && !["", "atm", "ptm", "noatm", "raw"].contains(&word)
    {
        return Ok(vec![format!("--overhead {word}")]);
    }
    let (bytes, mpu, framing, basis) = overhead.numbers();
    let flags = [
        match (basis, bytes) {
            (1, _) => Some(format!("--overhead {bytes}")),
            (2, 1.. | ..=-1) => Some(format!("--overhead raw {bytes}")),
            _ => None,
        },
        (mpu > 0).then(|| format!("--mpu {mpu}")),
        (framing == 1).then(|| "--atm".into()),
        (framing == 2).then(|| "--ptm".into()),
    ];
    Ok(flags.into_iter().flatten().collect())
}

/// Position of an option's link keywords in the program's tc command. Later keywords override earlier ones.
pub(super) fn link_rank(dialect: Dialect, option: &str) -> usize {
    const ORDER: &str = "COMMON_LINK_PRESETS ETHER_VLAN_KEYWORD linklayer LINK_COMPENSATION LINKTYPE overhead OVERHEAD tcMPU MPU";
    let key = option.split(' ').next();
    match dialect {
        Dialect::Tc => 0,
        _ => ORDER
            .split(' ')
            .position(|known| Some(known) == key)
            .unwrap_or(usize::MAX),
    }
}

/// Size of an Ethernet header, to which tc's size table adds its overhead.
const ETHERNET: i64 = 14;

fn linklayer(value: &str) -> Fate {
    match value {
        "atm" | "adsl" => Link("atm".into()),
        _ => left("not ATM: --overhead is enough"),
    }
}

/// Reads SQM's overhead. The mechanism `cake` adds it to the IP packet; all others add it to the frame, whose Ethernet
/// header has 14 bytes. By default, SQM uses `cake` if the qdisc or the script is CAKE's.
fn sqm_overhead(section: &Section, value: &str) -> Fate {
    let is_cake = match section.get("linklayer_adaptation_mechanism") {
        "" | "default" => {
            ["qdisc", "script"].map(|key| section.get(key).contains("cake")) != [false; 2]
        }
        mechanism => mechanism == "cake",
    };
    match value.parse::<i64>() {
        Ok(bytes) if !is_cake => overhead(&bytes.saturating_add(ETHERNET).to_string()),
        _ => overhead(value),
    }
}

const OF_SQMS_SHAPER: &str = "linklayer_advanced linklayer_adaptation_mechanism tcMTU tcTSIZE shaper shaper_burst \
    shaper_burst_dur_us htb_quantum_function use_mq ishaper_burst_dur_us eshaper_burst_dur_us autoflow";
const OF_TCS_SHAPER: &str = "burst lat latency buffer maxburst mtu tsize stab total_overhead hard_header_len peakrate \
    minburst r2q default direct_packets_stat direct_qlen";

fn sqm(section: &Section, key: &str, value: &str) -> Fate {
    match key {
        "interface" => interface("--wan", value),
        "upload" => kbit("--up", value),
        "download" => kbit("--down", value),
        "enabled" if value == "1" => left(ITS_OWN),
        "enabled" => left("this link's SQM is off"),
        "linklayer" => linklayer(value),
        "overhead" | "tcMPU" if matches!(section.get("linklayer"), "" | "none") => {
            left("SQM ignores it without a link layer")
        }
        "overhead" => sqm_overhead(section, value),
        "tcMPU" => number("mpu", value),
        "qdisc" | "script" | "qdisc_advanced" | "qdisc_really_really_advanced" => left(QUEUES),
        "ingress_ecn" | "egress_ecn" => left(ECN),
        "itarget" | "etarget" | "target" => left(CODEL),
        "ilimit" | "elimit" => left(MEMORY),
        "squash_dscp" | "squash_ingress" | "zero_dscp_ingress" | "ignore_dscp_ingress" => {
            left(DSCP)
        }
        key if listed(OF_SQMS_SHAPER, key) => left(SHAPER),
        "debug_logging" | "verbosity" | "log" => left(ITS_OWN),
        _ => unknown(),
    }
}

fn qosmate(section: &Section, key: &str, value: &str) -> Fate {
    match key {
        "WAN" => interface("--wan", value),
        "UPRATE" => kbit("--up", value),
        "DOWNRATE" => kbit("--down", value),
        "OVERHEAD" => overhead(value),
        // Older versions of qosmate use this option for all disciplines except CAKE.
        "OH" if section.get("ROOT_QDISC") != "cake" => overhead(value),
        "OH" => left("qosmate ignores it with ROOT_QDISC cake"),
        "LINKTYPE" => linklayer(value),
        "MPU" => number("mpu", value),
        "ETHER_VLAN_KEYWORD" => match value.parse::<usize>() {
            Ok(0) => left("adds nothing"),
            Ok(tags @ 1..=3) => Link(["ether-vlan"; 3][..tags].join(" ")),
            _ => link_words(value),
        },
        "COMMON_LINK_PRESETS" | "LINK_COMPENSATION" => link_words(value),
        "ROOT_QDISC" | "gameqdisc" | "nongameqdisc" => left(QUEUES),
        "WASHDSCPUP" | "WASHDSCPDOWN" | "PRIORITY_QUEUE_INGRESS" | "PRIORITY_QUEUE_EGRESS" => {
            left(DSCP)
        }
        "ACKRATE" | "ACK_FILTER_EGRESS" => left(ACKS),
        "HOST_ISOLATION" | "NAT_INGRESS" | "NAT_EGRESS" => left(HOSTS),
        "RTT" | "MAXDEL" | "PFIFOMIN" | "PACKETSIZE" => left(CODEL),
        "AUTORATE_INGRESS" => left(LEARNT),
        "enabled" | "PRESERVE_CONFIG_FILES" | "NFT_HOOK" | "NFT_PRIORITY" => left(ITS_OWN),
        "MSS" => left("asymq changes no packet"),
        key if key.starts_with("netem") || key == "pktlossp" => {
            left("asymq adds no delay and no loss; asymq lab emulates paths")
        }
        _ => left(RULES),
    }
}

/// Reads the range of a rate that cake-autorate adjusts. The defaults come from its file `config.primary.sh`.
fn range(section: &Section, flag: &str, way: &str, max: &str) -> Fate {
    let bound = |name: &str, default| {
        let names = ["shaper_rate_kbps", "rate"].map(|end| format!("{name}_{way}_{end}"));
        let given = names.iter().map(|name| section.get(name));
        let value = given.into_iter().find(|value| !value.is_empty());
        value.map_or(default, str::to_owned)
    };
    let bounds = [
        bound("min", "5000".to_owned()),
        bound("max", max.to_owned()),
    ];
    let [low, high] = bounds.map(|value| link_rate(&format!("{value}kbit")));
    match (low, high) {
        (Ok(low), Ok(high)) if low < high => Flag(format!("{flag} auto:{low}..{high}")),
        (Ok(low), Ok(high)) if low == high => Flag(format!("{flag} {low}")),
        (Ok(_), Ok(_)) => left("the minimum exceeds the maximum"),
        (Err(error), _) | (_, Err(error)) => LeftOut(format!("not a rate: {error}")),
    }
}

/// Prefixes of cake-autorate's keys whose values asymq learns.
const LEARNT_KEYS: &str = "delay_ min_ max_ adjust_ shaper_ high_load connection_ base_ reflector no_pingers ping \
    irtt_ randomize_ retain_ dl_ ul_ alpha_ bufferbloat_ decay_ stall_ global_ enable_sleep \
    sustained_idle";

fn autorate(section: &Section, key: &str, value: &str) -> Fate {
    let is_fixed = |way: &str| section.get(&format!("adjust_{way}_shaper_rate")) == "0";
    let starts = |prefixes: &str| prefixes.split(' ').any(|prefix| key.starts_with(prefix));
    match key {
        "ul_if" => interface("--wan", value),
        "dl_if" => left("asymq shapes the downlink without an IFB"),
        "base_ul_shaper_rate_kbps" if is_fixed("ul") => kbit("--up", value),
        "base_dl_shaper_rate_kbps" if is_fixed("dl") => kbit("--down", value),
        "min_ul_shaper_rate_kbps" | "max_ul_shaper_rate_kbps" | "min_ul_rate" | "max_ul_rate"
            if !is_fixed("ul") =>
        {
            range(section, "--up", "ul", "35000")
        }
        "upload_only" if value == "0" => left(ITS_OWN),
        "upload_only" => {
            left("asymq router shapes both directions; a gateway without --down only the uplink")
        }
        _ if section.get("upload_only") == "1" && key.contains("_dl_") => {
            left("upload_only leaves the downlink alone")
        }
        "min_dl_shaper_rate_kbps" | "max_dl_shaper_rate_kbps" | "min_dl_rate" | "max_dl_rate"
            if !is_fixed("dl") =>
        {
            range(section, "--down", "dl", "80000")
        }
        _ if starts("output_ log_ debug startup_ if_up_ monitor_") => left(ITS_OWN),
        _ if starts(LEARNT_KEYS) => left(LEARNT),
        _ => unknown(),
    }
}

fn tc(section: &Section, key: &str, value: &str) -> Fate {
    let is_download = section.is_download();
    match key {
        "dev" if is_download => left("asymq shapes the downlink without an IFB"),
        "dev" => interface("--wan", value),
        "bandwidth" if value == "unlimited" => word(value),
        "bandwidth" | "rate" if is_download => rate("--down", value),
        "bandwidth" | "rate" => rate("--up", value),
        "qdisc" if matches!(value, "htb" | "hfsc") => {
            left("its rates are in its classes; add --up and --down, or asymq router learns them")
        }
        // After `raw`, CAKE also adds bytes to the frame.
        "stab-overhead" if section.options.iter().any(|(key, _)| key == "raw") => overhead(value),
        "stab-overhead" => match value.parse::<i64>() {
            Ok(bytes) => overhead(&bytes.saturating_add(ETHERNET).to_string()),
            Err(_) => left("not a whole number"),
        },
        "linklayer" => linklayer(value),
        key if listed(OF_TCS_SHAPER, key) => left(SHAPER),
        "root" | "refcnt" | "parent" | "handle" | "ingress" | "egress" => left(OWN_QDISC),
        _ => of_qdisc(key, value),
    }
}

/// Reads an option of cake or fq_codel.
fn of_qdisc(key: &str, value: &str) -> Fate {
    match key {
        "overhead" => overhead(value),
        "mpu" => number("mpu", value),
        _ => word(key),
    }
}

/// Reads tc-cake's link-layer keywords.
fn link_words(value: &str) -> Fate {
    let words = value.strip_prefix("cake-").unwrap_or(value);
    match words.parse::<Overhead>() {
        _ if words == "none" => left("adds nothing"),
        Ok(_) if !words.is_empty() && words.is_ascii() => Link(words.into()),
        _ => unknown(),
    }
}

/// Reads a keyword of cake or fq_codel whose value, if any, is ignored.
fn word(key: &str) -> Fate {
    match key {
        "qdisc" | "flows" | "quantum" | "drop_batch" => left(QUEUES),
        "rtt" | "target" | "interval" | "datacentre" | "lan" | "metro" | "regional"
        | "internet" | "oceanic" | "satellite" | "interplanetary" => left(CODEL),
        "besteffort" | "diffserv" | "diffserv3" | "diffserv4" | "diffserv8" | "precedence"
        | "wash" | "nowash" | "fwmark" => left(DSCP),
        "ack-filter" | "ack-filter-aggressive" | "no-ack-filter" => left(ACKS),
        "ecn" | "noecn" | "ce_threshold" => left(ECN),
        "limit" | "memlimit" | "memory_limit" => left(MEMORY),
        "flowblind" | "srchost" | "dsthost" | "hosts" | "dual-srchost" | "dual-dsthost"
        | "triple-isolate" | "nat" | "nonat" => left(HOSTS),
        "split-gso" | "no-split-gso" => left("asymq receives single frames: offloads are off"),
        "autorate-ingress" => left(LEARNT),
        "unlimited" => left("without --up, asymq learns the rate"),
        "ingress" => left("asymq shapes the packets it sends; dropped ones use no capacity"),
        key => link_words(key),
    }
}

fn unknown() -> Fate {
    left("unknown")
}
