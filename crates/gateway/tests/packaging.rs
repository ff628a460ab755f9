//! The dashboard and the alerts in `packaging/` use metrics and labels that the gateway serves, and
//! `docs/reference/metrics.md` lists them: `ASYMQ_DOCS=write cargo test -p asymq-gateway --test all packaging`.

use asymq_gateway::{Snapshot, exposition};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/");
const DASHBOARD: &str = "grafana/asymq.json";
const RULES: &str = "prometheus/asymq.rules.yml";

/// Labels with their values, by metric.
type Served = BTreeMap<String, BTreeSet<(String, String)>>;

fn page() -> String {
    let mut snapshot = Snapshot::default();
    snapshot.up.control.insert("data_share", 0.5);
    for name in [
        "unfiltered_losses",
        "unfiltered_marks",
        "unfiltered_stretch",
        "unfiltered_options",
        "unfiltered_other",
    ] {
        snapshot.up.control.insert(name, 7.0);
    }
    exposition(&snapshot)
}

fn served() -> Served {
    let mut served = Served::new();
    for line in page().lines().filter(|line| !line.starts_with('#')) {
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

/// Returns each metric in a text, with the matchers in the braces that follow it.
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
    // Labels that Prometheus and Grafana add.
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
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let all = r#"{__name__=~"asymq.+", instance="$instance"}"#;
    let shows_all = |panel: &Value| panel["targets"][0]["expr"] == all;
    assert!(panels.iter().any(shows_all));
    assert!(served().keys().all(|name| name.starts_with("asymq_")));
}

/// Values of the label `reason`, with their meanings.
const REASONS: [(&str, &str); 15] = [
    ("over-limit", "dropped: the queue was full"),
    ("aqm", "dropped by the discipline as a congestion signal"),
    ("ack-filtered", "filtered by the ACK filter"),
    (
        "opaque-filtered",
        "QUIC packet that `--thin-opaque` treated as an ACK and filtered",
    ),
    ("losses", "ACK kept because of losses"),
    ("marks", "ACK kept because of ECN or AccECN marks"),
    ("stretch", "ACK kept because of `--max-stretch`"),
    (
        "options",
        "ACK kept because of TCP options that no filter may interpret",
    ),
    ("other", "ACK kept by [another rule](../notes/ack-rules.md)"),
    ("ring_full", "frame lost: the receive ring was full"),
    ("malformed", "frame lost: it was truncated"),
    (
        "unsegmentable",
        "frame lost: it was merged (GRO) and in an unsupported tunnel",
    ),
    ("too_long", "frame lost: longer than the MTU"),
    (
        "not_sent",
        "frame lost: the driver's queue was full, or the interface was down",
    ),
    (
        "stale",
        "frame lost: it waited while the gateway was stopped for more than 5 s",
    ),
];

/// The reference page of all metrics, with the help texts of the exposition.
fn reference() -> String {
    let (page, served) = (page(), served());
    let mut text = String::from(
        "# Metrics\n\n\
         `asymq gateway --metrics 127.0.0.1:9800` serves these metrics at `/metrics`, in Prometheus' text format and in base units. \
         This page is generated from the code.\n\n\
         | name | type | labels | meaning |\n| --- | --- | --- | --- |\n",
    );
    for head in page.split("# HELP ").skip(1) {
        let (name, rest) = head.split_once(' ').unwrap();
        let (help, rest) = rest.split_once('\n').unwrap();
        let kind = rest.lines().next().unwrap().rsplit(' ').next().unwrap();
        let mut labels = BTreeMap::<&str, Vec<&str>>::new();
        for (label, value) in served.get(name).into_iter().flatten() {
            labels.entry(label).or_default().push(value);
        }
        let labels = labels.iter().map(|(label, values)| match *label {
            "name" => "`name`: the variable".into(),
            label => format!("`{label}`: {}", values.join(", ")),
        });
        let labels: Vec<String> = labels.collect();
        text += &format!("| `{name}` | {kind} | {} | {help} |\n", labels.join("; "));
    }
    text += "\nThe label `reason` gives the reason for a drop, a kept ACK or a lost frame:\n\n\
             | reason | meaning |\n| --- | --- |\n";
    for (reason, meaning) in REASONS {
        text += &format!("| `{reason}` | {meaning} |\n");
    }
    text += "\nThe counts of kept ACKs restart at 0 when the discipline changes.\n";
    text += "\n`packaging/grafana/asymq.json` is a Grafana dashboard. Its last panel lists all metrics. \
             `packaging/prometheus/asymq.rules.yml` defines alerts.\n";
    text
}

#[test]
fn the_reference_page_explains_every_reason() {
    let served = served();
    let labels = served.values().flatten();
    let served: BTreeSet<&str> = labels
        .filter(|(label, _)| label == "reason")
        .map(|(_, value)| value.as_str())
        .collect();
    let explained: BTreeSet<&str> = REASONS.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(served, explained);
}

#[test]
fn the_reference_page_lists_every_metric() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/metrics.md"
    );
    if std::env::var("ASYMQ_DOCS").is_ok_and(|value| value == "write") {
        fs::write(path, reference()).unwrap();
    }
    let page = fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == reference(),
        "ASYMQ_DOCS=write writes docs/reference/metrics.md"
    );
}

/// Paths of all values in JSON.
fn paths(value: &Value, path: &str, all: &mut Vec<String>) {
    match value.as_object() {
        Some(object) => object
            .iter()
            .for_each(|(key, value)| paths(value, &format!("{path}/{key}"), all)),
        None => all.push(path.to_owned()),
    }
}

#[test]
fn every_number_of_a_snapshot_is_in_json_md_and_in_a_metric() {
    let json = serde_json::to_value(Snapshot::default()).unwrap();
    let mut all = Vec::new();
    paths(&json, "", &mut all);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, text) = text.split_once("## `asymq gateway --json`").unwrap();
    let (text, _) = text.split_once("\n## ").unwrap();
    // Rates follow from bytes; dropped and filtered packets are the sums of their reasons.
    let derived = ["format", "time", "interval", "rate", "dropped", "filtered"];
    let in_metric = |path: &str| {
        let mut changed = json.clone();
        *changed.pointer_mut(path).unwrap() = 7.into();
        let changed: Snapshot = serde_json::from_value(changed).unwrap();
        exposition(&changed) != exposition(&Snapshot::default())
    };
    for path in all.iter().filter(|path| !path.starts_with("/down/")) {
        let key = path.rsplit('/').next().unwrap();
        let is_map = path.contains("/losses/") || path.contains("/reasons/");
        let documented = ["`", "."].map(|front| text.contains(&format!("{front}{key}`")));
        assert!(
            is_map || documented.contains(&true),
            "docs/reference/json.md lacks {path}"
        );
        let has_none = is_map || path.starts_with("/sending/") || derived.contains(&key);
        assert!(
            has_none || path == "/up/control" || in_metric(path),
            "{path}: no metric"
        );
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
