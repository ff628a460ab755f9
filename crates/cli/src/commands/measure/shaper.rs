//! Finds the shaper of this host through which a measurement passes.

use asymq_gateway::request_status;
use std::path::Path;
use std::process::Command;

/// Control sockets of an installed gateway and an installed router.
const CONTROLS: [&str; 2] = ["/run/asymq/control", "/run/asymq/router"];

/// Describes this host's shaper, like `asymq at 950kbit`: a gateway or router at its usual control socket, or a qdisc.
pub(super) fn of_this_host() -> Option<String> {
    let gateway = || {
        let statuses = CONTROLS
            .iter()
            .map(|control| request_status(Path::new(control)));
        statuses.flatten().find_map(|status| of_gateway(&status))
    };
    let qdiscs = || Command::new("tc").args(["qdisc", "show"]).output().ok();
    gateway().or_else(|| of_qdiscs(&String::from_utf8_lossy(&qdiscs()?.stdout)))
}

/// Describes a gateway and its uplink's rate, from its status.
fn of_gateway(status: &str) -> Option<String> {
    let status: serde_json::Value = serde_json::from_str(status).ok()?;
    let settings = status["settings"].as_str()?;
    let rate = settings
        .lines()
        .find_map(|line| line.strip_prefix("up = "))?;
    Some(format!("asymq at {}", rate.trim_matches('"')))
}

/// Describes the first qdisc in `tc qdisc show` that shapes an uplink.
fn of_qdiscs(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_download = words
            .iter()
            .any(|word| *word == "ingress" || word.starts_with("ifb"));
        let key = match *words.get(1)? {
            _ if is_download => return None,
            "asymq" => "up",
            "cake" => "bandwidth",
            _ => return None,
        };
        let rate = words.iter().skip_while(|word| **word != key).nth(1)?;
        (*rate != "unlimited").then(|| format!("{} at {}", words[1], rate.to_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_and_a_qdisc_are_named_with_their_rates() {
        let status = r#"{"settings": "lan = \"a\"\nup = \"950kbit\"\ndown = \"9mbit\"\n"}"#;
        assert_eq!(of_gateway(status).unwrap(), "asymq at 950kbit");
        assert_eq!(of_gateway("{}"), None);
        let shown = "qdisc noqueue 0: dev lo root refcnt 2\n\
                     qdisc cake 8001: dev ifb0 root refcnt 2 bandwidth unlimited diffserv3\n\
                     qdisc asymq 8002: dev eth0 root refcnt 2 up 950Kbit nat\n";
        assert_eq!(of_qdiscs(shown).unwrap(), "asymq at 950kbit");
        let cake = "qdisc cake 8000: dev ifb4eth0 root refcnt 2 bandwidth 95Mbit ingress\n\
                    qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 20Mbit besteffort\n";
        assert_eq!(of_qdiscs(cake).unwrap(), "cake at 20mbit");
        assert_eq!(
            of_qdiscs("qdisc fq_codel 0: dev eth0 root\nqdisc asymq\n"),
            None
        );
    }
}
