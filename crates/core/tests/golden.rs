//! Golden traces of every discipline in the catalog. They detect changes, not errors. To write new
//! traces: `ASYMQ_GOLDEN=write cargo test -p asymq-core --test all golden::`, then review the diff.

use asymq_core::catalog::{Catalog, Config, Group, Params, Role, Standard, resolve};
use asymq_laws::golden;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The papers' values of parameters whose defaults differ for safety or performance.
const TO_THE_LETTER: [(&str, &str); 7] = [
    ("max-stretch", "none"),
    ("max-gap", "none"),
    ("made-up", "own"),
    ("max-credit", "none"),
    ("beyond-limit", "starve-acks"),
    ("min-share", "0"),
    ("unused-share", "follow"),
];

/// Every discipline with its defaults; also with the paper's values if these differ.
fn configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    let none = Params::new();
    for entry in Standard.of_role(Role::Qdisc) {
        let ours = golden::config(&Standard, entry.name).unwrap();
        let mut given: Params = TO_THE_LETTER
            .into_iter()
            .filter(|(name, _)| entry.group == Group::Paper && ours.params.get(name).is_some())
            .collect();
        match entry.name {
            "aq" => given = given.with("classifier", "size<=40"),
            "vaq" => given = given.with("ack-queue", "fifo").with("ack-limit", "10p"),
            "afvq" => given = given.with("ack-queue", "fifo"),
            "acq" | "acq+af/ar" => given = given.with("borrow", "false").with("gamma", "50"),
            "dcbq" => given = given.with("borrow", "false").with("gamma", "10"),
            "e-dcbq" => {
                given = given
                    .with("borrow", "false")
                    .with("gamma", "10")
                    .with("data-per-ack", "1");
            }
            _ => {}
        }
        if let "acq" | "dcbq" | "e-dcbq" = entry.name {
            given = given.with("ack-queue", "fifo");
        }
        let name = entry.name.replace('/', "_");
        if !given.is_empty() {
            let papers = resolve(&Standard, entry.name, &given, &none, golden::place()).unwrap();
            configs.push((format!("{name}-papers.txt"), papers));
        }
        configs.push((format!("{name}.txt"), ours));
    }
    // With equal shares, a discipline that swaps the shares would have the same trace.
    let uneven = Params::new().with("data-share", "0.9");
    let wrr = resolve(&Standard, "wrr", &uneven, &none, golden::place()).unwrap();
    configs.push(("wrr-data-share-0.9.txt".to_owned(), wrr));
    configs
}

fn writes() -> bool {
    std::env::var("ASYMQ_GOLDEN").is_ok_and(|value| value == "write")
}

#[test]
fn every_discipline_treats_the_shared_trace_as_recorded() {
    let mut wrong = Vec::new();
    for (name, config) in configs() {
        let path = folder().join(&name);
        let now = golden::trace(&Standard, &config);
        if writes() {
            std::fs::write(&path, &now).unwrap();
        }
        let Ok(recorded) = std::fs::read_to_string(&path) else {
            wrong.push(format!(
                "{name}: {} is missing; write it with ASYMQ_GOLDEN=write, and review it",
                path.display()
            ));
            continue;
        };
        let differs = now
            .lines()
            .zip(recorded.lines())
            .find(|(now, then)| now != then);
        if let Some((now, then)) = differs {
            wrong.push(format!("{name}: now '{now}', recorded '{then}'"));
        } else if now != recorded {
            wrong.push(format!("{name}: another length"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_golden_trace_is_of_a_discipline() {
    let names: BTreeSet<String> = configs().into_iter().map(|(name, _)| name).collect();
    for file in std::fs::read_dir(folder()).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&file), "{file} is of no discipline");
    }
}
