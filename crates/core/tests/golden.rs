//! Golden traces of every discipline of the catalog. They say that nothing changed, not that it is
//! right; a change is reviewed as a diff after
//! `ASYMQ_GOLDEN=write cargo test -p asymq-core --test golden`.

use asymq_core::catalog::{Catalog, Role, Standard};
use asymq_laws::golden;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn file_name(discipline: &str) -> String {
    format!("{}.txt", discipline.replace('/', "_"))
}

fn writes() -> bool {
    std::env::var("ASYMQ_GOLDEN").is_ok_and(|value| value == "write")
}

#[test]
fn every_discipline_treats_the_shared_trace_as_recorded() {
    let mut wrong = Vec::new();
    for entry in Standard.of_role(Role::Qdisc) {
        let path = folder().join(file_name(entry.name));
        let config = golden::config(&Standard, entry.name).unwrap();
        let now = golden::trace(&Standard, &config);
        if writes() {
            std::fs::write(&path, &now).unwrap();
        }
        let Ok(recorded) = std::fs::read_to_string(&path) else {
            wrong.push(format!("{}: {} is missing", entry.name, path.display()));
            continue;
        };
        let differs = now
            .lines()
            .zip(recorded.lines())
            .find(|(now, then)| now != then);
        if let Some((now, then)) = differs {
            wrong.push(format!("{}: now '{now}', recorded '{then}'", entry.name));
        } else if now != recorded {
            wrong.push(format!("{}: another length", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_golden_trace_is_of_a_discipline() {
    let names: BTreeSet<String> = Standard
        .of_role(Role::Qdisc)
        .iter()
        .map(|entry| file_name(entry.name))
        .collect();
    for file in std::fs::read_dir(folder()).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&file), "{file} is of no discipline");
    }
}
