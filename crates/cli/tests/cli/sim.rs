//! `asymq sim` and `asymq compare`, run as a user runs them.

use crate::{answer, asymq};
use asymq_core::catalog::{Catalog, Role, Standard};
use serde_json::Value;
use std::fs;

const SHORT: &str = "--duration 8s --warmup 2s --runs 2";

/// Number of columns that a text occupies.
fn width(text: &str) -> usize {
    let widths = text.lines().map(|line| line.chars().count());
    widths.max().unwrap_or(0)
}

#[test]
fn nothing_measured_is_a_dash_and_absent_in_json() {
    let words = "sim --flows-up 0 --flows-down 0 --duration 6s --runs 1";
    let directory = tempfile::tempdir().unwrap();
    let table = answer(directory.path(), words);
    for (row, unknown) in [("up  ", 2), ("down", 2)] {
        let mut rows = table.lines().filter(|line| line.starts_with(row));
        let sojourn = rows.next().unwrap().split_whitespace().rev().take(2);
        assert_eq!(
            sojourn.filter(|cell| *cell == "-").count(),
            unknown,
            "{table}"
        );
        let stall = rows.next().unwrap();
        assert!(stall.ends_with('-'), "{stall}");
        let per_ack = rows.next().unwrap();
        assert!(per_ack.ends_with('-'), "{per_ack}");
    }
    let json = answer(directory.path(), &format!("{words} --json"));
    for key in ["sojourn_ms", "bytes_per_ack", "p50", "NaN"] {
        assert!(!json.contains(key), "{key}: {json}");
    }
}

#[test]
fn a_result_of_several_runs_fits_80_columns() {
    let directory = tempfile::tempdir().unwrap();
    for flags in [
        "--probe 100ms",
        "--up 20mbit --down 200mbit --flows-down 100 --udp up:1mbit",
    ] {
        let table = answer(directory.path(), &format!("sim {flags} {SHORT}"));
        assert!(width(&table) <= 80, "{table}");
        assert!(table.contains(" ± "), "{table}");
    }
    let flow = "--flow down,rtt=20ms,start=1s,size=200kb --flows-up 1 --flows-down 10";
    let line = format!("sim --up 20mbit --down 200mbit {flow} {SHORT}");
    let table = answer(directory.path(), &line);
    assert!(width(&table) <= 80, "{table}");
    let listed = table.lines().find(|row| row.starts_with("12 down*"));
    let cells: Vec<&str> = listed.unwrap().split_whitespace().collect();
    assert_eq!(cells[2], "1.00", "{table}");
    assert!(cells[5].parse::<f64>().unwrap() > 0.0, "{table}");
}

#[test]
fn the_same_seed_prints_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("sim --json --series {SHORT}");
    let first = answer(directory.path(), &line);
    assert_eq!(first, answer(directory.path(), &line));
    assert_ne!(first, answer(directory.path(), &format!("{line} --seed 9")));
}

#[test]
fn a_report_has_the_documented_shape() {
    let directory = tempfile::tempdir().unwrap();
    let json = answer(
        directory.path(),
        &format!("sim --json --probe 100ms --flows-up 2 --flows-down 3 {SHORT}"),
    );
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["format"], 3);
    assert_eq!(report["tool"]["driver"], "sim");
    assert_eq!(report["scenario"]["up"], "1mbit");
    assert_eq!(report["scenario"]["flows-down"], 3);
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    assert_eq!(report["runs"][1]["seed"], 2);
    assert!(report["runs"][0].get("series").is_none());
    for summary in [&report["runs"][0], &report["mean"], &report["sd"]] {
        for direction in ["up", "down"] {
            for key in [
                "utilization",
                "data",
                "ack",
                "delivered",
                "acks_per_s",
                "bytes_per_ack",
                "longest_stall_s",
                "retransmissions",
                "timeouts",
                "dropped",
                "filtered",
                "marked",
            ] {
                assert!(summary[direction][key].is_number(), "{direction}.{key}");
            }
            for percentile in ["p50", "p95", "p99"] {
                assert!(summary[direction]["sojourn_ms"][percentile].is_number());
                assert!(summary[direction]["probe_ms"][percentile].is_number());
            }
        }
        assert!(summary["utility"].is_number());
        assert!(summary["goodput_utility"].is_number());
        assert!(summary["least_utilization"].is_number());
        assert!(summary["goodput"]["smallest_down"].is_number());
        assert_eq!(summary["goodput"]["up"].as_array().unwrap().len(), 2);
        assert_eq!(summary["goodput"]["down"].as_array().unwrap().len(), 3);
        assert!(summary["probe_ms"]["p99"].is_number());
    }
}

#[test]
fn a_direction_may_have_no_flows() {
    let directory = tempfile::tempdir().unwrap();
    let json = answer(
        directory.path(),
        &format!("sim --json --flows-up 0 {SHORT}"),
    );
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["mean"]["up"]["data"], 0.0);
    assert!(report["mean"]["up"]["ack"].as_f64().unwrap() > 0.0);
    assert_eq!(report["mean"]["goodput"]["up"], serde_json::json!([]));
    let table = answer(
        directory.path(),
        &format!("sim --flows-up 0 --flows-down 0 {SHORT}"),
    );
    assert!(table.contains("0 uploads and 0 downloads"), "{table}");
}

#[test]
fn flags_override_the_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("link.toml"),
        "up = \"512kbit\"\ndown = \"4mbit\"\nqdisc = \"droptail\"\nflows-up = 1\n",
    )
    .unwrap();
    let json = answer(
        directory.path(),
        &format!("sim link.toml --down 2mbit --json {SHORT}"),
    );
    let scenario = &serde_json::from_str::<Value>(&json).unwrap()["scenario"];
    assert_eq!(scenario["up"], "512kbit");
    assert_eq!(scenario["down"], "2mbit");
    assert_eq!(scenario["uplink"]["qdisc"], "droptail");
}

#[test]
fn traces_are_written_as_pcapng() {
    let directory = tempfile::tempdir().unwrap();
    answer(
        directory.path(),
        &format!("sim --pcap-up up.pcapng --pcap-down down.pcapng {SHORT}"),
    );
    for name in ["up.pcapng", "down.pcapng"] {
        let trace = fs::read(directory.path().join(name)).unwrap();
        assert_eq!(trace[..4], [0x0a, 0x0d, 0x0d, 0x0a], "{name}");
        assert!(trace.len() > 10_000, "{name}");
    }
}

#[test]
fn compare_shows_eight_disciplines_in_80_columns_and_draws_where_asked() {
    let directory = tempfile::tempdir().unwrap();
    let table = answer(directory.path(), &format!("compare --chart c.svg {SHORT}"));
    assert_eq!(
        table.lines().filter(|line| line.starts_with("  ")).count(),
        8 + 2
    );
    assert!(width(&table) <= 80, "{table}");
    let table = answer(directory.path(), &format!("compare {SHORT}"));
    assert!(width(&table) <= 80, "{table}");
    for name in ["droptail", "aq"] {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("  {name} ")));
        assert!(row.is_some(), "{table}");
    }
    for part in ["in common use:", "the papers':", "* best in its column"] {
        assert!(table.contains(part), "{table}");
    }
    let svg = fs::read_to_string(directory.path().join("c.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("DropTail") && svg.contains("prefers-color-scheme:dark"));
    assert!(!svg.contains("<script") && !svg.contains("href"));
}

#[test]
fn compare_answers_in_json_with_a_report_per_discipline_and_no_picture() {
    let directory = tempfile::tempdir().unwrap();
    let json = answer(
        directory.path(),
        &format!("compare --only aq,droptail --json {SHORT}"),
    );
    let comparison: Value = serde_json::from_str(&json).unwrap();
    let reports = comparison["reports"].as_object().unwrap();
    assert_eq!(reports.len(), 2);
    assert_eq!(comparison["groups"]["papers"], serde_json::json!(["aq"]));
    assert_eq!(
        comparison["groups"]["today"],
        serde_json::json!(["droptail"])
    );
    assert_eq!(comparison["best"]["down"], serde_json::json!(["aq"]));
    assert_eq!(reports["aq"]["scenario"]["uplink"]["qdisc"], "aq");
    assert_eq!(reports["aq"]["scenario"]["buffer"], "100p");
    assert!(reports["droptail"]["mean"]["down"]["utilization"].is_number());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn sim_and_compare_run_a_file_alike() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.toml"), "up = \"2mbit\"\n").unwrap();
    let json = |command: &str| -> Value {
        let text = answer(directory.path(), &format!("{command} --json {SHORT}"));
        serde_json::from_str(&text).unwrap()
    };
    let compared = json("compare a.toml --only sad");
    assert_eq!(compared["reports"]["sad"], json("sim a.toml --qdisc sad"));
}

#[test]
fn both_puts_each_discipline_at_both_ends_of_the_link() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("compare --both --only cake+ack-filter,fq_codel --json {SHORT}");
    let compared: Value = serde_json::from_str(&answer(directory.path(), &line)).unwrap();
    let table = answer(directory.path(), &line.replace("--json", ""));
    assert!(
        table.contains("discipline in both") && !table.contains("at the downlink"),
        "{table}"
    );
    for name in ["cake+ack-filter", "fq_codel"] {
        let scenario = &compared["reports"][name]["scenario"];
        assert_eq!(
            [&scenario["uplink"]["qdisc"], &scenario["downlink"]["qdisc"]],
            [name, name]
        );
    }
}

#[test]
fn all_disciplines_are_all_that_the_catalog_has() {
    let directory = tempfile::tempdir().unwrap();
    let line =
        "compare --all --json --flows-up 0 --flows-down 0 --duration 2s --warmup 1s --runs 1";
    let compared: Value = serde_json::from_str(&answer(directory.path(), line)).unwrap();
    let shown: Vec<&str> = compared["reports"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut known: Vec<&str> = Standard
        .of_role(Role::Qdisc)
        .iter()
        .map(|entry| entry.name)
        .collect();
    known.sort_unstable();
    assert_eq!(shown, known);
}

#[test]
fn the_picture_has_the_goodput_of_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("compare --only fq_codel,asymq {SHORT}");
    answer(directory.path(), &format!("{line} --chart c.svg"));
    let svg = fs::read_to_string(directory.path().join("c.svg")).unwrap();
    let json: Value =
        serde_json::from_str(&answer(directory.path(), &format!("{line} --json"))).unwrap();
    for name in ["fq_codel", "asymq"] {
        for way in ["up", "down"] {
            let mean = &json["reports"][name]["mean"][way];
            let goodput = format!("\n{:.0} %\n", 100.0 * mean["delivered"].as_f64().unwrap());
            assert!(svg.contains(&goodput), "{name} {way} {goodput}: {svg}");
        }
    }
    let title = svg.split("</title>").next().unwrap();
    assert!(
        title.contains("Goodput as a share of the link. FQ-CoDel: download "),
        "{title}"
    );
    for text in ["40 ms", "Pale, on top: ACKs"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn compare_shows_start_and_web_columns_if_they_have_values() {
    let directory = tempfile::tempdir().unwrap();
    let line =
        "compare --only aq,droptail --flow down,start=500ms,size=100kb --web down:2:30kb:1.3";
    let table = answer(directory.path(), &format!("{line} {SHORT}"));
    let heads: Vec<&str> = table.lines().filter(|line| line.contains("web")).collect();
    assert!(heads[0].contains("start"), "{table}");
    let json = answer(directory.path(), &format!("{line} --json {SHORT}"));
    let comparison: Value = serde_json::from_str(&json).unwrap();
    for key in ["start_s", "web_p95_ms"] {
        assert!(!comparison["best"][key].as_array().unwrap().is_empty());
    }
    let mean = &comparison["reports"]["aq"]["mean"];
    let time = mean["down"]["completion_s"].as_f64().unwrap();
    assert!(time > 0.08, "at 10 Mbit/s: {time}");
    assert!(mean["up"].get("completion_s").is_none());
    let table = answer(directory.path(), &format!("compare --only aq {SHORT}"));
    assert!(
        !table.contains(" start ") && !table.contains("web"),
        "{table}"
    );
}

#[test]
fn nothing_is_written_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let table = answer(directory.path(), &format!("compare --only aq {SHORT}"));
    assert!(table.ends_with("--wide.\n"), "{table}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_asymq"))
        .args(["sim", "--json", "--series", "--duration", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}

#[test]
fn progress_is_shown_only_on_terminals() {
    let directory = tempfile::tempdir().unwrap();
    let output = asymq(directory.path(), &format!("sim {SHORT}"));
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn cubic_without_sack_is_warned_of_once_and_runs() {
    let directory = tempfile::tempdir().unwrap();
    let sim = |flags: &str| {
        let output = asymq(directory.path(), &format!("sim --json {SHORT} {flags}"));
        assert!(output.status.success());
        let scenario: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sack = scenario["scenario"].get("sack").cloned();
        (sack, String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(sim("--tcp cubic"), (Some(true.into()), String::new()));
    let (sack, warning) = sim("--tcp cubic --sack=false");
    assert_eq!(sack, None);
    assert!(
        warning.starts_with("warning: --tcp cubic without SACK"),
        "{warning}"
    );
    assert_eq!(warning.lines().count(), 1);
}

#[test]
fn a_results_scenario_fed_back_in_prints_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    for flags in [
        "--qdisc e-dcbq",
        "--qdisc vaq --ack-queue sad --ack-limit 30p --qdisc-down fq --param-down data-limit=70p",
        "--qdisc cbq+af/ar --sack --timestamps --links 2 --mss 1000b --window 64kb --delayed-ack=60ms",
        "--tcp cubic --web down:2:30kb:1.3 --udp up:100kbit:200b@1s..2s --rtt 40ms --probe 50ms",
    ] {
        let first = answer(directory.path(), &format!("sim --json {SHORT} {flags}"));
        fs::write(directory.path().join("result.json"), &first).unwrap();
        let second = answer(directory.path(), "sim result.json --json");
        assert_eq!(first, second, "{flags}");
    }
}

#[test]
fn the_heading_shows_all_that_differs_from_the_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let heading = |flags: &str| {
        let table = answer(directory.path(), &format!("sim {SHORT} {flags}"));
        table.split("\n\n").next().unwrap().to_owned()
    };
    let plain = heading("");
    for flags in [
        "--web down:1:30kb:1.3",
        "--sack",
        "--timestamps",
        "--byte-counting",
        "--links 3",
        "--mss 1000b",
        "--window 64kb",
        "--header 60b --mss 1440b",
        "--on-off 200kbit:500ms:500ms",
        "--regenerate 2",
        "--max-ack-wait 40ms",
        "--qdisc-down fq",
        "--ack-every 4",
        "--udp up:10kbit",
    ] {
        assert_ne!(heading(flags), plain, "{flags}");
    }
}
