//! Golden traces of every discipline of the catalog. They say that nothing changed, not that it is
//! right; a change is reviewed as a diff after
//! `ASYMQ_GOLDEN=write cargo test -p asymq-core --test golden`.

use asymq_core::catalog::{Catalog, Config, Params, Readings, Role, Standard, resolve};
use asymq_laws::golden;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Every discipline as it comes, and to the letter of its paper where that is another.
fn configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    for entry in Standard.of_role(Role::Qdisc) {
        let by = |readings| golden::config_by(readings, &Standard, entry.name).unwrap();
        let (ours, papers) = (by(Readings::Ours), by(Readings::Papers));
        let name = entry.name.replace('/', "_");
        if papers != ours {
            configs.push((format!("{name}-papers.txt"), papers));
        }
        configs.push((format!("{name}.txt"), ours));
    }
    // With equal shares, a discipline that swaps them has the same trace.
    let uneven = Params::new().with("data-share", "0.9");
    let none = Params::new();
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
            wrong.push(format!("{name}: {} is missing", path.display()));
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
