//! The runs of experiments as tasks for many machines: blocks of seeds, sized by predicted cost.
//!
//! The tasks depend on the experiments and on the size asked for, and on nothing else: neither on how
//! many machines there are nor on what is done already. So a task has the same name and the same result
//! wherever and however often it runs.

use crate::experiment::Experiment;
use crate::plan::{FINGERPRINT, Job, cost, fnv, text_of_run};
use crate::runner::simulate;
use crate::store::Results;
use asymq_scenario::Scenario;
use asymq_sim::SimError;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

/// Runs that are made and kept together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// A name that says which runs these are, for a file.
    pub name: String,
    /// How many runs.
    pub runs: u64,
    /// What they cost, in data packets at full links.
    pub packets: u64,
    /// Its parts, each of one scenario.
    pub(crate) blocks: Vec<Block>,
}

/// Consecutive seeds of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) seeds: Range<u64>,
    /// Whether to keep time series.
    course: bool,
    /// Where its runs belong.
    pub(crate) places: Vec<Place>,
}

/// A point of a series, and its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) experiment: usize,
    pub(crate) series: usize,
    pub(crate) point: usize,
    pub(crate) seeds: Range<u64>,
}

impl Place {
    pub(crate) fn scenario<'a>(&self, experiments: &'a [Experiment]) -> &'a Scenario {
        &experiments[self.experiment].series[self.series].scenarios[self.point]
    }
}

/// A scenario, and all that want runs of it.
struct Group {
    text: String,
    cost: u64,
    course: bool,
    places: Vec<Place>,
}

/// The runs of `experiments` as tasks of about `packets` each, or of a single run where that costs more;
/// the longest runs first. `before` are the same experiments with the seeds that earlier tasks ran; none
/// in the first `round`.
pub fn tasks(
    experiments: &[Experiment],
    before: Option<&[Experiment]>,
    round: u32,
    packets: u64,
) -> Vec<Task> {
    let mut groups = groups(experiments, before);
    groups.sort_by_key(|group| Reverse(group.cost));
    let mut tasks = Tasks {
        round,
        done: Vec::new(),
        open: Vec::new(),
        text: String::new(),
        packets: 0,
    };
    for group in &groups {
        for seeds in union(&group.places) {
            let mut first = seeds.start;
            while first < seeds.end {
                let room = packets.saturating_sub(tasks.packets) / group.cost.max(1);
                let end = seeds.end.min(first + room.max(1));
                tasks.add(group, first..end);
                first = end;
                if tasks.packets.saturating_add(group.cost) > packets {
                    tasks.close();
                }
            }
        }
    }
    tasks.close();
    tasks.done
}

fn groups(experiments: &[Experiment], before: Option<&[Experiment]>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (number, experiment) in experiments.iter().enumerate() {
        if experiment.is_arithmetic() {
            continue;
        }
        for (series, of_series) in experiment.series.iter().enumerate() {
            for (point, scenario) in of_series.scenarios.iter().enumerate() {
                let done = before.map_or(0, |before| {
                    before[number].series[series].scenarios[point].runs
                });
                let seeds =
                    scenario.seed + u64::from(done)..scenario.seed + u64::from(scenario.runs);
                if seeds.is_empty() {
                    continue;
                }
                let text = text_of_run(scenario, 0);
                let index = *known.entry(text.clone()).or_insert_with(|| {
                    groups.push(Group {
                        text,
                        cost: cost(scenario).max(1),
                        course: false,
                        places: Vec::new(),
                    });
                    groups.len() - 1
                });
                groups[index].course |= experiment.wants_course();
                groups[index].places.push(Place {
                    experiment: number,
                    series,
                    point,
                    seeds,
                });
            }
        }
    }
    groups
}

/// The seeds of all places, in order and without overlap.
fn union(places: &[Place]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = places.iter().map(|place| place.seeds.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let mut union: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match union.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
    }
    union
}

struct Tasks {
    round: u32,
    done: Vec<Task>,
    /// Of the task that is being filled.
    open: Vec<Block>,
    text: String,
    packets: u64,
}

impl Tasks {
    fn add(&mut self, group: &Group, seeds: Range<u64>) {
        let overlaps =
            |place: &&Place| place.seeds.start < seeds.end && seeds.start < place.seeds.end;
        self.text += &format!("{} {seeds:?}\n", group.text);
        let cost = group.cost.saturating_mul(seeds.end - seeds.start);
        self.packets = self.packets.saturating_add(cost);
        self.open.push(Block {
            course: group.course,
            places: group.places.iter().filter(overlaps).cloned().collect(),
            seeds,
        });
    }

    fn close(&mut self) {
        let blocks = std::mem::take(&mut self.open);
        if blocks.is_empty() {
            return;
        }
        let places = serde_json::to_string(&blocks).expect("blocks are plain values");
        let text = format!(
            "{} {places} {}",
            *FINGERPRINT,
            std::mem::take(&mut self.text)
        );
        let index = self.done.len();
        self.done.push(Task {
            name: format!("part-{}-{index:06}-{:016x}", self.round, fnv(text.bytes())),
            runs: blocks.iter().map(|b| b.seeds.end - b.seeds.start).sum(),
            packets: std::mem::take(&mut self.packets),
            blocks,
        });
    }
}

impl Task {
    /// Simulates its runs.
    ///
    /// # Errors
    /// The simulator cannot run a scenario.
    pub fn simulate(&self, experiments: &[Experiment]) -> Result<Results, SimError> {
        let mut results = Results::default();
        for block in &self.blocks {
            let scenario = block.places[0].scenario(experiments);
            for seed in block.seeds.clone() {
                results.insert(simulate(&Job::new(scenario, seed, block.course))?);
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::plan;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Two series that share a scenario, at two points of very different cost.
    const FILE: &str = r#"
title = "Fig. 1: one"
measure = [{ id = "m", title = "m", of = "up.data" }]
[scenario]
runs = 7
duration = "10s"
[[sweep]]
key = "down"
values = ["2mbit", "200mbit"]
[[series]]
id = "a"
set.qdisc = "aq"
[[series]]
id = "b"
set = { qdisc = "aq", runs = 3 }
[[series]]
id = "c"
set = { qdisc = "sad" }
"#;

    fn read() -> Vec<Experiment> {
        vec![experiment::read_text("own/one", Path::new("one.toml"), FILE).unwrap()]
    }

    fn keys(experiments: &[Experiment], tasks: &[Task]) -> Vec<String> {
        let blocks = tasks.iter().flat_map(|task| &task.blocks);
        let of_block = |block: &Block| {
            let scenario = block.places[0].scenario(experiments).clone();
            let keys = block
                .seeds
                .clone()
                .map(move |seed| plan::key(&scenario, seed));
            keys.collect::<Vec<_>>()
        };
        blocks.flat_map(of_block).collect()
    }

    #[test]
    fn the_tasks_are_the_runs_of_the_experiment_each_once() {
        let experiments = read();
        let jobs: BTreeSet<String> = plan::jobs(&experiments)
            .into_iter()
            .map(|j| j.key)
            .collect();
        for packets in [1, 5_000, 1_000_000] {
            let tasks = tasks(&experiments, None, 1, packets);
            let keys = keys(&experiments, &tasks);
            assert_eq!(keys.len(), 28, "{packets}");
            assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), jobs);
        }
    }

    #[test]
    fn a_task_costs_what_was_asked_for_or_is_one_run() {
        let tasks = tasks(&read(), None, 1, 20_000);
        for task in &tasks {
            assert!(task.packets <= 20_000 || task.runs == 1, "{task:?}");
        }
        // A run at 2 Mbit/s costs 2500, one at 200 Mbit/s 167 500.
        assert!(tasks.iter().any(|task| task.runs == 8), "{tasks:?}");
        let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names.len(), tasks.len());
    }

    #[test]
    fn a_later_round_has_the_further_seeds_only() {
        let first = read();
        let mut second = first.clone();
        second[0].series[2].scenarios[1].runs = 14;
        let tasks = tasks(&second, Some(&first), 2, 10_000_000);
        assert_eq!(tasks.iter().map(|task| task.runs).sum::<u64>(), 7);
        assert_eq!(tasks[0].blocks[0].seeds, 8..15);
    }
}
