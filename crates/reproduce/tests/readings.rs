//! The papers' experiments run the papers' readings.

use std::path::Path;

#[test]
fn every_experiment_of_a_paper_runs_its_mechanisms_to_the_letter() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let mut count = 0;
    for folder in std::fs::read_dir(experiments).unwrap() {
        let Ok(files) = std::fs::read_dir(folder.unwrap().path()) else {
            continue;
        };
        for file in files {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            let group = file.parent().unwrap().file_name().unwrap();
            let ours = asymq_reproduce::OURS
                .iter()
                .any(|(name, ..)| group == *name);
            let runs = text.contains("qdisc") && !ours;
            assert!(
                !runs || text.contains("[scenario]\nreadings = \"papers\"\n"),
                "{}: write readings = \"papers\" in [scenario]",
                file.display()
            );
            count += u32::from(runs);
        }
    }
    assert!(count > 40, "{count}");
}
