//! Arguments and output of `tc`.

use asymq_core::catalog::{Catalog as _, Standard};
use asymq_core::decide::overhead::Overhead;
use asymq_scenario::Scenario;
use serde_json::Value;
use std::io;
use std::process::Command;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) dropped: u64,
    pub(super) filtered: u64,
    pub(super) marked: u64,
    /// Number of waiting packets.
    pub(super) backlog: u32,
}

/// Arguments that make a shaper charge IP bytes instead of Ethernet bytes.
const IP_BYTES: [&str; 3] = ["stab", "overhead", "-14"];

/// Returns the commands that add the qdisc of `words` to a device. Unless `words` sets them, `asymq` gets the rates and
/// buffer of `scenario`, and `cake` gets its uplink rate. A qdisc that does not shape becomes a leaf of HTB at the
/// uplink's rate. The shaping qdisc or HTB counts IP bytes.
pub(super) fn commands(words: &str, scenario: &Scenario, device: &str) -> Vec<Vec<String>> {
    let given: Vec<&str> = words.split_whitespace().collect();
    let has = |word: &str| given.contains(&word);
    let (up, down) = (scenario.up.to_string(), scenario.down.to_string());
    let add = |place: &str, words: &[&str]| {
        let head = ["qdisc", "add", "dev", device].into_iter();
        let all = head.chain(place.split(' ')).chain(words.iter().copied());
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    match given.first().copied() {
        Some("asymq") if !has("unshaped") => {
            let limit = scenario.uplink.limit.to_string();
            let usual = [
                ("up", up),
                ("down", down),
                ("buffer", limit),
                ("overhead", "0".into()),
            ];
            // A link-layer keyword, for example docsis.
            let link_word = |word: &&str| word.parse::<Overhead>().is_ok();
            let is_needed = |name: &str| match name {
                "down" => !has(name) && given.iter().any(|word| needs_down(word)),
                "overhead" => !has(name) && !given.iter().any(link_word),
                name => !has(name),
            };
            let absent = usual.iter().filter(|(name, _)| is_needed(name));
            let absent = absent.flat_map(|(name, value)| [*name, value]);
            let words: Vec<&str> = given.iter().copied().chain(absent).collect();
            vec![add("root", &words)]
        }
        Some("cake") => {
            let shaped = has("bandwidth") || has("unlimited") || has("autorate-ingress");
            let rate: &[&str] = if shaped { &[] } else { &["bandwidth", &up] };
            let words = [&["cake", "overhead", "0"], rate, &given[1..]].concat();
            vec![add("root", &words)]
        }
        Some("tbf") => {
            let words = [&IP_BYTES, &given[..]].concat();
            vec![add("root handle 1:", &words)]
        }
        _ => {
            let shaper = [&IP_BYTES[..], &["htb", "default", "10"]].concat();
            let shaper = add("root handle 1:", &shaper);
            let class = format!(
                "class add dev {device} parent 1: classid 1:10 htb rate {up} burst 1600 cburst 1600 quantum 1514"
            );
            let class = class.split(' ').map(str::to_owned).collect();
            vec![shaper, class, add("parent 1:10 handle 10:", &given)]
        }
    }
}

/// True if `word` names a discipline or part that uses the downlink's rate.
fn needs_down(word: &str) -> bool {
    let entries = Standard.entries();
    let needs = |name: &str| {
        entries
            .iter()
            .any(|entry| entry.name == name && entry.needs_reverse)
    };
    let itself = entries.iter().filter(|entry| entry.name == word);
    needs(word)
        || itself
            .flat_map(|entry| entry.brings)
            .any(|(_, part)| needs(part))
}

/// Runs a command in the calling thread's namespace; returns tc's output or error message.
pub(super) fn run(words: &[String]) -> io::Result<Result<String, String>> {
    let output = Command::new("tc").args(words).output().map_err(|error| {
        let message = format!("{error}; install iproute2");
        io::Error::new(error.kind(), message)
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', ", ");
    Ok(match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(text(&output.stderr)),
    })
}

pub(super) fn counters(kind: &str, device: &str) -> io::Result<Counters> {
    let words = ["-s", "-j", "qdisc", "show", "dev", device].map(str::to_owned);
    let answer = run(&words)?.map_err(io::Error::other)?;
    counters_in(&answer, kind).ok_or_else(|| io::Error::other(format!("no {kind}: {answer}")))
}

/// Parses the counters of the qdisc of this kind. Names of marks and filtered ACKs differ by qdisc.
fn counters_in(answer: &str, kind: &str) -> Option<Counters> {
    let qdiscs: Vec<Value> = serde_json::from_str(answer).ok()?;
    let qdisc = qdiscs.iter().rfind(|qdisc| qdisc["kind"] == kind)?;
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
    let tins = qdisc["tins"].as_array().map_or(&[][..], Vec::as_slice);
    let in_tins = |name: &str| tins.iter().map(|tin| number(tin, name)).sum::<u64>();
    let ack_drops = in_tins("ack_drops");
    Some(Counters {
        // CAKE counts filtered ACKs as drops too.
        dropped: number(qdisc, "drops").saturating_sub(ack_drops),
        filtered: number(qdisc, "filtered") + ack_drops,
        marked: ["marked", "ecn_mark"]
            .map(|name| number(qdisc, name))
            .iter()
            .sum::<u64>()
            + in_tins("ecn_mark"),
        backlog: number(qdisc, "qlen").try_into().unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::{Defaults, ScenarioArgs};

    fn text_of(words: &str) -> Vec<String> {
        let scenario = ScenarioArgs::default().resolve(&Defaults::lab()).unwrap();
        let commands = commands(words, &scenario, "wan0");
        commands.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn a_shaper_gets_the_scenarios_rates_unless_it_names_its_own() {
        for (words, expected) in [
            (
                "asymq aq",
                "asymq aq up 1mbit down 10mbit buffer 49p overhead 0",
            ),
            (
                "asymq sad up 2mbit buffer 64kb",
                "asymq sad up 2mbit buffer 64kb overhead 0",
            ),
            ("asymq", "asymq up 1mbit buffer 49p overhead 0"),
            (
                "asymq data-queue isolated controller aq",
                "asymq data-queue isolated controller aq up 1mbit down 10mbit buffer 49p overhead 0",
            ),
            (
                "asymq aq docsis",
                "asymq aq docsis up 1mbit down 10mbit buffer 49p",
            ),
            (
                "cake ack-filter",
                "cake overhead 0 bandwidth 1mbit ack-filter",
            ),
            ("cake unlimited docsis", "cake overhead 0 unlimited docsis"),
        ] {
            let expected = format!("qdisc add dev wan0 root {expected}");
            assert_eq!(text_of(words), [expected], "{words}");
        }
    }

    #[test]
    fn a_qdisc_that_does_not_shape_is_the_leaf_of_a_shaping_class() {
        for words in ["fq_codel limit 100", "asymq aq unshaped"] {
            let commands = text_of(words);
            assert!(commands[0].contains("stab overhead -14 htb default 10"));
            assert!(commands[1].contains("htb rate 1mbit"));
            assert_eq!(
                commands[2],
                format!("qdisc add dev wan0 parent 1:10 handle 10: {words}")
            );
        }
    }

    #[test]
    fn each_qdisc_has_its_own_names_for_marks_and_filtered_acks() {
        let cake = r#"[{"kind":"cake","handle":"8001:","root":true,"drops":9,"qlen":3,
            "tins":[{"drops":1,"ecn_mark":2,"ack_drops":4},{"drops":0,"ecn_mark":1,"ack_drops":1}]}]"#;
        let leaf = r#"[{"kind":"htb","drops":7,"qlen":5},{"kind":"fq_codel","drops":7,"ecn_mark":6,"qlen":5}]"#;
        let asymq = r#"[{"kind":"asymq","drops":2,"dropped":2,"filtered":5,"marked":1,"qlen":0}]"#;
        let counters = |dropped, filtered, marked, backlog| Counters {
            dropped,
            filtered,
            marked,
            backlog,
        };
        assert_eq!(counters_in(cake, "cake"), Some(counters(4, 5, 3, 3)));
        assert_eq!(counters_in(leaf, "fq_codel"), Some(counters(7, 0, 6, 5)));
        assert_eq!(counters_in(asymq, "asymq"), Some(counters(2, 5, 1, 0)));
        assert_eq!(counters_in(asymq, "cake"), None);
    }
}
