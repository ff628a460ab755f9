//! Every experiment file can be run and judged.

use asymq_papers::{Files, OURS};
use asymq_sweep::experiment::Evidence;
use asymq_sweep::extent::preview;

#[test]
fn every_experiment_can_be_run_and_judged() {
    let papers = Files::built_in().experiments("all").unwrap();
    let ours = OURS.map(|(group, ..)| {
        let ours = Files::built_in().experiments(group);
        let is_ours = |name: &str| name.starts_with(&format!("{group}/"));
        assert!(papers.iter().all(|experiment| !is_ours(&experiment.name)));
        ours.unwrap()
    });
    let ours = ours.concat();
    for experiment in papers.iter().chain(&ours) {
        assert!(experiment.title.contains(':'), "{}", experiment.name);
        for series in &experiment.series {
            let seeds = series.cells.iter().map(|c| c.scenario.runs).min();
            assert!(seeds >= Some(5), "{} {}", experiment.name, series.id);
        }
        // A preview must still contain all names in claims.
        let quick = preview(experiment.clone());
        for claim in &quick.claims {
            for name in claim
                .holds
                .iter()
                .chain(&claim.shape)
                .chain(claim.shown_by.iter().filter_map(Evidence::condition))
                .flat_map(|c| c.names())
            {
                assert!(quick.resolve(name).is_ok(), "{}: {name}", claim.id);
            }
        }
    }
}
