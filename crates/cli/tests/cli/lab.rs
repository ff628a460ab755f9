//! `asymq lab`, if network namespaces can be created.

use crate::{answer, asymq};
use serde_json::Value;

/// Collects the paths of all numbers in `value`; a list counts as one number.
fn shape(path: &str, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                shape(&format!("{path}.{key}"), field, paths);
            }
        }
        Value::Array(_) => paths.push(format!("{path}[]")),
        _ => paths.push(path.to_owned()),
    }
}

#[test]
fn the_lab_answers_in_the_shape_of_the_simulator() {
    // asymq forwards a probe at once, so at least one returns, even on a busy machine.
    const LINE: &str =
        "--json --qdisc asymq --duration 3s --warmup 1s --runs 1 --probe 100ms --flows-up 1";
    let directory = tempfile::tempdir().unwrap();
    let lab = || asymq(directory.path(), &format!("lab {LINE} --flows-down 2"));
    let mut output = lab();
    // Repeats a run that a busy machine disturbed; such a run returns an error instead of an answer.
    for _ in 0..3 {
        if String::from_utf8_lossy(&output.stderr).contains("could not keep up") {
            output = lab();
        }
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("not permitted") || stderr.contains("could not keep up") {
        eprintln!("skipped: {stderr}");
        return;
    }
    assert!(output.status.success(), "{stderr}");
    let real: Value = serde_json::from_slice(&output.stdout).unwrap();
    let simulated = answer(directory.path(), &format!("sim {LINE} --flows-down 2"));
    let simulated: Value = serde_json::from_str(&simulated).unwrap();
    // Quantities that docs/reference/json.md lists for the simulator only.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|row| row.contains("(simulator"));
    let alone: Vec<String> = rows
        .filter_map(|row| row.split('`').nth(1))
        .flat_map(|name| [name.to_owned(), name.replacen("up.", "down.", 1)])
        .map(|name| format!("mean.{name}"))
        .collect();
    assert!(alone.contains(&"mean.down.access_dropped".to_owned()));
    let paths = |report: &Value| {
        let mut paths = Vec::new();
        shape("mean", &report["mean"], &mut paths);
        paths.retain(|path| !alone.iter().any(|name| path.starts_with(name)));
        paths
    };
    assert_eq!(paths(&real), paths(&simulated));
    assert_eq!(real["tool"]["driver"], "lab");
    assert!(real["tool"]["kernel"].is_string());
    assert_eq!(real["mean"]["goodput"]["down"].as_array().unwrap().len(), 2);
}
