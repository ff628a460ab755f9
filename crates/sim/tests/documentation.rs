//! The examples of docs/research/scenarios.md and of scenarios/ run unchanged.

use asymq_args::{Defaults, ScenarioFlags};
use asymq_core::catalog::Standard;
use asymq_sim::RunOptions;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a file for 12 s. Panics with the reason if it cannot run.
fn run(path: &Path) {
    let mut flags = ScenarioFlags {
        file: Some(path.to_owned()),
        ..ScenarioFlags::default()
    };
    flags.given.words.set("duration", "12s");
    let scenario = flags.resolve(&Standard, &Defaults::paper());
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let json = serde_json::to_string(&scenario).unwrap();
    assert_eq!(
        serde_json::from_str::<asymq_scenario::Scenario>(&json).unwrap(),
        scenario
    );
    let run = asymq_sim::STANDARD
        .run(&scenario, 1, RunOptions::default())
        .unwrap();
    assert!(run.summary.up.utilization > 0.0 && run.summary.down.utilization > 0.0);
}

#[test]
fn every_example_of_the_page_on_scenarios_runs() {
    let page = std::fs::read_to_string(root().join("docs/research/scenarios.md")).unwrap();
    let folder = std::env::temp_dir().join(format!("asymq-scenarios-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(
        root().join("scenarios/varying.trace"),
        folder.join("varying.trace"),
    )
    .unwrap();
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let mut count = 0;
    for (number, block) in blocks.enumerate() {
        let path = folder.join(format!("example-{number}.toml"));
        std::fs::write(&path, block).unwrap();
        run(&path);
        count += 1;
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(count >= 5, "{count}");
}

#[test]
fn every_example_in_the_folder_of_scenarios_runs() {
    let files = std::fs::read_dir(root().join("scenarios")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let examples: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    assert!(examples.len() >= 7);
    for path in &examples {
        run(path);
    }
}
