//! Sweeps: resuming, determinism, shards, and errors with their line.

mod common;

use asymq_args::Defaults;
use asymq_sim::congestion::{About, Catalog, CongestionControl};
use asymq_sim::{RunOptions, STANDARD};
use asymq_sweep::experiment::{self, Experiment, Place};
use asymq_sweep::extent::preview;
use asymq_sweep::folder::{self, Plan};
use asymq_sweep::outcome::{self, Outcome};
use asymq_sweep::report;
use asymq_sweep::report::Origin;
use asymq_sweep::runner;
use asymq_sweep::seeds::{self, Decided};
use asymq_sweep::store::{Job, RUNS, Results};
use asymq_sweep::tasks::{Runs, Shard, single_runs};
use asymq_sweep::verdict::Verdict;
use asymq_sweep::verdicts;
use common::SMALL;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

fn small() -> Experiment {
    experiment::read_text(
        "own/small",
        Path::new("small.toml"),
        SMALL,
        &Defaults::paper(),
    )
    .unwrap()
}

/// Files that a sweep writes.
fn published(results: &Results, folder: &Path) -> Vec<Vec<u8>> {
    let decided = Decided {
        outcomes: outcome::judge(&[small()], results).unwrap(),
        results: results.clone(),
    };
    let files = ["report.html", "runs.csv", "verdicts.toml"];
    let origin = Origin::of_this_build(false);
    folder::publish(folder, &decided, &origin).unwrap();
    let read = |file| std::fs::read(folder.join(file)).unwrap();
    files.into_iter().map(read).collect()
}

fn quietly(_: usize, _: usize) {}

/// Simulates the runs that are missing in a folder, and returns the results.
fn run(runs: &Runs<'_>, folder: &Path, threads: usize) -> Results {
    let known = Results::open(folder).unwrap();
    runner::run(STANDARD, runs, known, threads, &quietly).unwrap()
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, three] = [(&folders[0], 1), (&folders[1], 3)].map(|(folder, threads)| {
        let results = run(&single_runs(&[small()]), folder.path(), threads);
        published(&results, folder.path())
    });
    assert!(one == three);
}

#[test]
fn an_interrupted_sweep_makes_only_missing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = [small()];
    let runs_of_all = single_runs(&experiments);
    let whole = run(&runs_of_all, folder.path(), 1);
    let whole = published(&whole, folder.path());

    let runs = folder.path().join(RUNS);
    let text = std::fs::read_to_string(&runs).unwrap();
    let half: String = text
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&runs, half + "{\"key\":\"cut o").unwrap();
    let asked = AtomicUsize::new(0);
    let progress = |_: usize, all: usize| asked.store(all, Ordering::Relaxed);
    let resumed = {
        let known = Results::open(folder.path()).unwrap();
        runner::run(STANDARD, &runs_of_all, known, 1, &progress).unwrap()
    };
    assert_eq!(asked.into_inner(), runs_of_all.jobs().count() - 3);
    assert!(published(&resumed, folder.path()) == whole);
}

#[test]
fn shards_together_are_the_whole() {
    let whole = tempfile::tempdir().unwrap();
    let experiments = [small()];
    let results = run(&single_runs(&experiments), whole.path(), 1);
    let expected = published(&results, whole.path());

    let mut together = Results::default();
    for shard in ["1/3", "2/3", "3/3"] {
        assert!(
            outcome::judge(&[small()], &together).is_err(),
            "before {shard}"
        );
        let folder = tempfile::tempdir().unwrap();
        let part = single_runs(&experiments).part(shard.parse::<Shard>().unwrap());
        run(&part, folder.path(), 1);
        together.extend(Results::load(folder.path()).unwrap());
    }
    let merged = tempfile::tempdir().unwrap();
    assert!(published(&together, merged.path()) == expected);
}

#[test]
fn a_plan_contains_its_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::new(&[small()], true, Some(1001));
    plan.save(folder.path()).unwrap();
    let loaded = Plan::load(folder.path()).unwrap();
    assert_eq!(loaded, plan);
    let experiments = loaded.experiments(&Defaults::paper()).unwrap();
    assert_eq!(experiments[0].text, SMALL);
    assert_eq!(experiments[0].series[0].cells[0].scenario.seed, 1001);
    assert!(Plan::load(&folder.path().join("none")).is_err());
}

#[test]
fn claims_get_the_verdict_of_their_runs() {
    let folder = tempfile::tempdir().unwrap();
    let results = run(&single_runs(&[small()]), folder.path(), 1);
    let outcomes = outcome::judge(&[small()], &results).unwrap();
    let findings = outcomes[0].findings();
    assert_eq!(findings[0].verdict, Verdict::Reproduced);
    assert_eq!(findings[0].because, None);
    assert_eq!(findings[1].verdict, Verdict::NotReproduced);
    let reason = findings[1].because.clone().unwrap();
    assert!(
        reason.starts_with("It has 0.") && reason.ends_with(" at most."),
        "{reason}"
    );
    let summary = report::summary(&outcomes, &Origin::of_this_build(false));
    assert_eq!(findings[2].because, None, "the runs do not show it");
    assert!(summary.contains("3 claims: 1 reproduced, 2 not reproduced."));
}

#[test]
fn a_claim_whose_precondition_fails_is_vacuous() {
    let holds = "holds = [\"aq:down < 10 within 0.01\", \"droptail:down@2mbit < 10\"]";
    let with = |condition: &str| {
        let text = SMALL.replace(holds, &format!("{holds}\nonly-if = [\"{condition}\"]"));
        experiment::read_text(
            "own/small",
            Path::new("small.toml"),
            &text,
            &Defaults::paper(),
        )
        .unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let results = run(&single_runs(&[small()]), folder.path(), 1);
    for (condition, expected) in [
        ("aq:down > 0", Verdict::Reproduced),
        ("aq:down > 5", Verdict::Vacuous),
    ] {
        let outcomes = outcome::judge(&[with(condition)], &results).unwrap();
        assert_eq!(outcomes[0].findings()[0].verdict, expected, "{condition}");
        let summary = report::summary(&outcomes, &Origin::of_this_build(false));
        let says = summary.contains("The claim applies only if aq:down > 5.");
        assert_eq!(says, expected == Verdict::Vacuous, "{summary}");
    }
}

#[test]
fn a_check_fails_only_for_claims_that_held_and_fail_beyond_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let results = run(&single_runs(&[small()]), folder.path(), 1);
    let outcomes = outcome::judge(&[small()], &results).unwrap();
    let now = verdicts::of(&outcomes);
    assert_eq!(
        verdicts::compare(&now, &outcomes, false),
        Default::default()
    );

    let mut before = now.clone();
    before.get_mut("own/small/bounds").unwrap().verdict = "not reproduced".into();
    before.get_mut("own/small/impossible").unwrap().verdict = "reproduced".into();
    before.get_mut("own/small/untrue").unwrap().within = vec![0.2];
    let found = verdicts::compare(&before, &outcomes, false);
    assert_eq!(
        found.notes,
        ["own/small/bounds: was not reproduced, is reproduced"]
    );
    assert_eq!(
        found.failures,
        [
            "own/small/impossible: was reproduced, is not reproduced beyond doubt",
            "own/small/untrue: tolerances were [0.2], are [0.1]"
        ]
    );
}

/// Judges the claim that the downlink of the sweep's first scenario carries more than `than`. Starts with `runs` runs,
/// and takes up to `looks` looks.
fn decided(runs: u32, than: f64, looks: u32, folder: &Path) -> Outcome {
    let claim = format!("droptail:down@1mbit > {than}");
    let text = SMALL.replace("aq:down = 30 within 0.1", &claim);
    let text = text.replace("runs = 3", &format!("runs = {runs}"));
    let experiment = experiment::read_text(
        "own/small",
        Path::new("small.toml"),
        &text,
        &Defaults::paper(),
    )
    .unwrap();
    let known = Results::open(folder).unwrap();
    let run = |experiments: &[Experiment], known| {
        let runs = single_runs(experiments);
        Ok(runner::run(STANDARD, &runs, known, 2, &quietly)?)
    };
    let decided = seeds::decide(&[experiment], looks, known, run).unwrap();
    decided.outcomes.into_iter().next().unwrap()
}

fn at(series: usize, point: usize) -> Place {
    Place { series, point }
}

#[test]
fn only_undecided_claims_get_further_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let first = decided(3, 0.0, 1, folder.path());
    let mean = first.at(at(0, 0)).estimate(0).unwrap().mean;
    // A claim whose limit is the mean itself stays open.
    let outcome = decided(3, mean, 2, folder.path());
    assert_eq!(outcome.at(at(0, 0)).count(), 6, "the scenario in question");
    let others = [(0, 1), (1, 0), (1, 1)];
    assert_eq!(
        others.map(|(series, point)| outcome.at(at(series, point)).count()),
        [3; 3]
    );
    // Further seeds in the folder do not change the decision.
    assert_eq!(decided(3, mean, 2, folder.path()).at(at(0, 0)).count(), 6);
}

#[test]
fn a_claim_gets_no_seeds_that_are_unlikely_to_decide_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = decided(20, 0.0, 1, folder.path());
    let mean = first.at(at(0, 0)).estimate(0).unwrap().mean;
    // Ten runs are too few to decide. With twenty, the mean equals the claim's value.
    let outcome = decided(10, mean, 4, folder.path());
    assert_eq!(outcome.at(at(0, 0)).count(), 20);
}

#[test]
fn a_preview_keeps_the_points_that_claims_name() {
    let text = SMALL
        .replace(
            "[\"1mbit\", \"2mbit\"]",
            "[\"1mbit\", \"2mbit\", \"3mbit\", \"4mbit\", \"5mbit\", \"6mbit\"]",
        )
        .replace("droptail:down@2mbit <", "droptail:down@5mbit <");
    let whole = experiment::read_text(
        "own/small",
        Path::new("small.toml"),
        &text,
        &Defaults::paper(),
    )
    .unwrap();
    let quick = preview(whole);
    let labels: Vec<&str> = quick
        .points
        .iter()
        .map(|point| point.label.as_str())
        .collect();
    assert_eq!(labels, ["1mbit", "3mbit", "5mbit", "6mbit"]);
    assert_eq!(quick.series[0].cells.len(), 4);
    assert_eq!(quick.series[0].cells[0].paper[0], Some(0.26));
}

#[test]
fn a_point_may_set_several_keys_under_a_name() {
    let text = SMALL
        .replace(
            "\"1mbit\", \"2mbit\"]",
            "{ name = \"1/5\", up = \"1mbit\", down = \"5mbit\", flows-up = 3 }, { name = \"4/5\", up = \"4mbit\" }]",
        )
        .replace("\"1mbit\" = 0.26", "\"1/5\" = 0.26")
        .replace("@1mbit", "@1/5")
        .replace("@2mbit", "@4/5");
    let experiment = experiment::read_text(
        "own/small",
        Path::new("small.toml"),
        &text,
        &Defaults::paper(),
    )
    .unwrap();
    let labels: Vec<&str> = experiment
        .points
        .iter()
        .map(|point| &*point.label)
        .collect();
    assert_eq!(labels, ["1/5", "4/5"]);
    let set = |point: usize| {
        let scenario = &experiment.series[0].cells[point].scenario;
        (
            scenario.up.to_string(),
            scenario.down.to_string(),
            scenario.flows_up,
        )
    };
    assert_eq!(set(0), ("1mbit".into(), "5mbit".into(), 3));
    assert_eq!(set(1), ("4mbit".into(), "10mbit".into(), 1));
}

#[test]
fn errors_name_the_line_and_a_valid_form() {
    for (from, to, expected) in [
        (
            "rtt = \"40ms\"",
            "rtt = \"40\"",
            "small.toml:7: rtt = 40: no unit; use s, ms, us or ns",
        ),
        (
            "\"2mbit\"]",
            "\"2mbitt\"]",
            "small.toml:14: up = 2mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit",
        ),
        (
            "\"2mbit\"]",
            "\"1mbit\"]",
            "small.toml:14: \"1mbit\": listed twice",
        ),
        (
            "\"2mbit\"]",
            "{ up = \"2mbit\" }]",
            "small.toml:14: a point without a name; write { name = \"1/10\", up = \"1mbit\" }",
        ),
        (
            "\"2mbit\"]",
            "{ name = \"a\", upp = \"2mbit\" }]",
            "small.toml:14: upp: unknown key; did you mean `up`",
        ),
        (
            "set.qdisc = \"aq\"",
            "set.qdsic = \"aq\"",
            "small.toml:23: qdsic: unknown key; did you mean `qdisc` or `quic`?",
        ),
        (
            "{ \"1mbit\" = 0.26 }",
            "0.26",
            "small.toml:19: no point given; write it like { \"10mbit\" = 0.97 }",
        ),
        (
            "of = \"down.utilization\"",
            "of = \"down.utilisation\"",
            "small.toml:28: unknown metric down.utilisation; did you mean `down.utilization`?",
        ),
        (
            "measures = [\"down\"]",
            "measures = [\"dwn\"]",
            "small.toml:31: unknown measure dwn; did you mean `down`?",
        ),
        (
            "measures = [\"down\"]",
            "measures = [\"down\"]\ny-range = [[0, 1], [0, 2]]",
            "small.toml:32: y-range: 2 values for 1 panel; write one value for all, or one for each",
        ),
        (
            "shown-by = [\"aq:down < 10.1\"]",
            "shown-by = [\"aq/figure-03\"]",
            "small.toml:47: shown-by aq/figure-03: no condition; write aq:down > 0.9",
        ),
        (
            "aq:down = 20 within 0.1",
            "aq:down = 20 within 0.1 of 0.2",
            "small.toml:45: within 0.1: wider than a third of the effect, 0.2",
        ),
        (
            "aq:down < 1",
            "aq:down ~ 1",
            "small.toml:40: ~ where =, > or < was expected",
        ),
        (
            "aq:down < 1",
            "qa:down < 1",
            "small.toml:40: unknown series qa; did you mean `aq`?",
        ),
        (
            "aq:down < 1",
            "aq:down@9mbit < 1",
            "small.toml:40: unknown point 9mbit; did you mean `1mbit` or `2mbit`?",
        ),
        (
            "{ aq:down@1mbit }",
            "{ aq:up }",
            "small.toml:46: unknown measure up; use down",
        ),
        (
            "warmup = \"1s\"",
            "warmup = \"3s\"",
            "small.toml:17: warmup 3s: not less than the duration, 3s",
        ),
        (
            "title = \"Fig",
            "titel = \"Fig",
            "small.toml:2: unknown field `titel`",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let text = SMALL.replacen(from, to, 1);
        let error = experiment::read_text(
            "own/small",
            Path::new("small.toml"),
            &text,
            &Defaults::paper(),
        );
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\nis not\n{expected}");
    }
}

#[test]
fn a_plan_of_too_many_runs_is_refused_before_it_takes_memory() {
    let axis = |key: &str, unit: &str, count: u32| {
        let values: Vec<String> = (1..=count)
            .map(|value| format!("\"{value}{unit}\""))
            .collect();
        format!(
            "[[sweep]]\nkey = \"{key}\"\nvalues = [{}]\n",
            values.join(", ")
        )
    };
    let read = |axes: &str, runs: &str| {
        let small = SMALL.replace("runs = 3", runs);
        let [head, tail] = small.split("[[sweep]]").collect::<Vec<_>>()[..] else {
            panic!("one sweep");
        };
        let tail = &tail[tail.find("[[series]]").unwrap()..];
        let tail = tail
            .split("[[claim]]")
            .next()
            .unwrap()
            .replace("paper", "#");
        let text = format!("{head}{axes}{tail}");
        let experiment = experiment::read_text(
            "own/small",
            Path::new("small.toml"),
            &text,
            &Defaults::paper(),
        );
        experiment.map_err(|error| error.to_string())
    };
    let huge = axis("up", "mbit", 999) + &axis("down", "mbit", 999) + &axis("mss", "b", 999);
    let error = read(&huge, "runs = 1").unwrap_err();
    let expected = "at least 997002999 runs; a plan has at most 1000000: write fewer values or runs, or split the file";
    assert!(error.ends_with(expected), "{error}");
    let many = axis("up", "mbit", 400) + &axis("down", "mbit", 400);
    let error = read(&many, "runs = 1").unwrap_err();
    assert!(error.contains("at least 160000 scenarios"), "{error}");
    // The second series exceeds the limit, because a swept number of runs counts too.
    let runs = |most: &str| format!("[[sweep]]\nkey = \"runs\"\nvalues = [{most}]\n");
    for (values, count) in [("1000, 9001", "at least 1000100 runs"), ("1000, 9000", "")] {
        let axes = axis("up", "mbit", 50) + &runs(values);
        let error = read(&axes, "runs = 3").err().unwrap_or_default();
        assert!(
            error.contains(count) && error.is_empty() == count.is_empty(),
            "{error}"
        );
    }
}

/// Congestion control with a constant window of four segments.
struct Four;

impl CongestionControl for Four {
    fn window(&self) -> f64 {
        4.0
    }

    fn on_established(&mut self, _: f64) {}
    fn on_ack(&mut self, _: u64, _: u64, _: u64) {}
    fn on_fast_retransmit(&mut self, _: f64) {}
    fn on_timeout(&mut self, _: f64) {}
}

#[test]
fn an_experiment_runs_congestion_controls_from_outside() {
    let text = SMALL.replacen("[scenario]", "[scenario]\ntcp = \"four\"", 1);
    let read = |defaults: &Defaults| {
        experiment::read_text("own/small", Path::new("small.toml"), &text, defaults)
    };
    let unknown = read(&Defaults::paper()).unwrap_err().to_string();
    assert!(unknown.contains("tcp four: unknown"), "{unknown}");

    let mut catalog = Catalog::new();
    let four = catalog
        .add("four", About::default(), |_| Box::new(Four))
        .unwrap();
    let defaults = Defaults::paper().with(vec![four].leak());
    let plan = Plan::new(&[read(&defaults).unwrap()], true, None);
    let run = |simulator, folder: &Path| plan.run(simulator, &defaults, folder, 1, &|_, _, _| {});

    let folder = tempfile::tempdir().unwrap();
    let refused = run(STANDARD, folder.path()).unwrap_err().to_string();
    assert!(refused.contains("four"), "{refused}");

    let decided = run(STANDARD.with(&catalog), folder.path()).unwrap();
    let experiments = decided.experiments();
    let scenario = &experiments[0].series[0].cells[0].scenario;
    let job = Job::new(scenario, scenario.seed, false);
    let alone = STANDARD
        .with(&catalog)
        .run(scenario, scenario.seed, RunOptions::default());
    assert_eq!(
        decided.results.get(&job.key).unwrap().unwrap().flows,
        alone.unwrap().summary.flows
    );
}

#[test]
fn found_settings_are_a_second_run_and_series_keep_their_own() {
    let text = SMALL
        .replace(
            "[[sweep]]",
            "[found]\nrtt = \"60ms\"\nup = \"9mbit\"\n\n[[sweep]]",
        )
        .replace(
            "set.qdisc = \"aq\"",
            "set = { qdisc = \"aq\", rtt = \"80ms\" }",
        );
    let defaults = Defaults::paper();
    let path = Path::new("small.toml");
    let read = experiment::read_text("own/small", path, &text, &defaults).unwrap();
    let both = Plan::new(&[read], false, None)
        .experiments(&defaults)
        .unwrap();
    let names: Vec<&str> = both.iter().map(|experiment| &*experiment.name).collect();
    assert_eq!(names, ["own/small", "found/own/small"]);
    let setting = |experiment: &Experiment, series: usize| {
        let scenario = &experiment.series[series].cells[0].scenario;
        format!("{} {}", scenario.rtt, scenario.up)
    };
    assert_eq!(setting(&both[0], 0), "40ms 1mbit");
    let second = |id: &str| {
        both[1]
            .series
            .iter()
            .position(|series| series.id == id)
            .unwrap()
    };
    assert_eq!(setting(&both[1], second("droptail")), "60ms 1mbit");
    assert_eq!(setting(&both[1], second("aq")), "80ms 1mbit");

    let folder = tempfile::tempdir().unwrap();
    let results = run(&single_runs(&both), folder.path(), 1);
    let outcomes = outcome::judge(&both, &results).unwrap();
    let decided = Decided { outcomes, results };
    folder::publish(folder.path(), &decided, &Origin::of_this_build(false)).unwrap();
    let table = std::fs::read_to_string(folder.path().join("runs.csv")).unwrap();
    assert!(table.starts_with("experiment,settings_found,"), "{table}");
    for (name, found) in [("own/small", false), ("found/own/small", true)] {
        let start = format!("{name},{found},");
        assert!(
            table.lines().any(|line| line.starts_with(&start)),
            "{start}"
        );
    }
}
