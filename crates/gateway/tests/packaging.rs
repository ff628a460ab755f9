//! The dashboard and the alerts in `packaging/` ask for metrics and labels that the gateway serves.

use asymq_gateway::{Snapshot, exposition};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/");
const DASHBOARD: &str = "grafana/asymq.json";
const RULES: &str = "prometheus/asymq.rules.yml";

/// Labels with their values, by metric.
type Served = BTreeMap<String, BTreeSet<(String, String)>>;

fn served() -> Served {
    let mut snapshot = Snapshot::default();
    snapshot.up.control.insert("data_share", 0.5);
    snapshot.up.control.insert("unfiltered_marks", 7.0);
    let mut served = Served::new();
    for line in exposition(&snapshot)
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let name = line.split(['{', ' ']).next().unwrap();
        let labels = line.split(['{', '}']).nth(1).filter(|_| line.contains('{'));
        served
            .entry(name.into())
            .or_default()
            .extend(matchers(labels.unwrap_or_default()));
    }
    served
}

/// `a="b", c="d"` as pairs.
fn matchers(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|matcher| {
        let (label, value) = matcher.split_once('=')?;
        Some((label.trim().into(), value.trim_matches(['"', '\\']).into()))
    })
}

/// Each metric in a text, with what stands in the braces behind it.
fn asked(text: &str) -> Vec<(String, String)> {
    let starts = text.match_indices("asymq_").map(|(at, _)| &text[at..]);
    starts
        .map(|rest| {
            let ends = |of: char| !of.is_ascii_lowercase() && of != '_';
            let (name, rest) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            let braces = rest
                .strip_prefix('{')
                .and_then(|rest| rest.split('}').next());
            (name.into(), braces.unwrap_or_default().into())
        })
        .collect()
}

#[test]
fn every_metric_and_label_of_dashboard_and_alerts_is_served() {
    let served = served();
    // Prometheus' own, and one that Grafana fills in.
    let from_outside = ["instance", "job"];
    for (file, minimum) in [(DASHBOARD, 12), (RULES, 4)] {
        let text = fs::read_to_string(format!("{FOLDER}{file}")).unwrap();
        let asked = asked(&text);
        assert!(asked.len() >= minimum, "{file}: {asked:?}");
        for (name, braces) in asked {
            let labels = served.get(&name);
            let labels = labels.unwrap_or_else(|| panic!("{file}: {name} is not served"));
            for matcher in matchers(&braces) {
                let is_there = labels.contains(&matcher) || from_outside.contains(&&*matcher.0);
                assert!(is_there, "{file}: {name} has no {matcher:?}");
            }
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let text = fs::read_to_string(format!("{FOLDER}{DASHBOARD}")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let text = dashboard.to_string();
    for name in served().keys() {
        let bytes = name == "asymq_backlog_bytes";
        assert!(bytes || text.contains(name.as_str()), "{name}");
    }
}

#[test]
fn promtool_takes_the_alerts() {
    let check = Command::new("promtool")
        .args(["check", "rules"])
        .arg(format!("{FOLDER}{RULES}"))
        .output();
    match check {
        Err(_) => eprintln!("skipped: no promtool (Debian: prometheus)"),
        Ok(check) => assert!(
            check.status.success(),
            "{}",
            String::from_utf8_lossy(&check.stderr)
        ),
    }
}
