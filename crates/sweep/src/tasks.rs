//! Divides the runs of experiments into tasks: blocks of seeds with similar predicted cost.
//!
//! Tasks depend only on sources, experiments, round and size. A task therefore has the same name and result on every
//! machine and at every attempt. One machine executes single runs, a shard executes every Nth run, and a cluster
//! executes whole tasks.

use crate::experiment::{Experiment, Place};
use crate::fnv::{fnv, long};
use crate::store::{FINGERPRINT, Job, Results, text_of_run};
use asymq_scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Runs that are simulated and stored together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// File name of the task's part, unique to these runs.
    pub name: String,
    /// Number of runs.
    pub runs: u64,
    /// Cost of the runs, in data packets at fully used links.
    pub packets: u64,
    /// Blocks of the task, each of one scenario.
    pub(crate) blocks: Vec<Block>,
}

/// Consecutive seeds of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) seeds: Range<u64>,
    /// True if the time series are stored.
    recording: bool,
    pub(crate) wanted: Vec<Wanted>,
}

/// A place of an experiment, and the seeds that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) experiment: usize,
    pub(crate) at: Place,
    pub(crate) seeds: Range<u64>,
}

impl Wanted {
    pub(crate) fn scenario<'a>(&self, experiments: &'a [Experiment]) -> &'a Scenario {
        &experiments[self.experiment].cell(self.at).scenario
    }
}

impl Task {
    /// Returns the runs of this task.
    pub fn jobs<'a>(&'a self, experiments: &'a [Experiment]) -> impl Iterator<Item = Job<'a>> {
        self.blocks.iter().flat_map(|block| {
            let scenario = block.wanted[0].scenario(experiments);
            let seeds = block.seeds.clone();
            seeds.map(|seed| Job::new(scenario, seed, block.recording))
        })
    }
}

/// Adds to `folder` the results of these experiments that `folder` lacks, from `results`.
///
/// # Errors
/// The results cannot be read or written.
pub fn keep(folder: &mut Results, experiments: &[Experiment], results: &Results) -> io::Result<()> {
    let runs = single_runs(experiments);
    for job in runs.jobs() {
        if let Some(stored) = results.get(&job.key)? {
            folder.insert(stored)?;
        }
    }
    Ok(())
}

/// A scenario, and all places that need its runs.
struct Group {
    hash: u64,
    cost: u64,
    recording: bool,
    wanted: Vec<Wanted>,
}

/// Runs of experiments without duplicates, longest first. Memory grows with the number of scenarios, not of runs.
pub struct Runs<'a> {
    experiments: &'a [Experiment],
    groups: Vec<Group>,
    shard: Shard,
}

/// All runs of `experiments`.
pub fn single_runs(experiments: &[Experiment]) -> Runs<'_> {
    Runs {
        experiments,
        groups: groups(experiments, None),
        shard: Shard::default(),
    }
}

impl Runs<'_> {
    /// The runs of one shard.
    #[must_use]
    pub const fn part(mut self, shard: Shard) -> Self {
        self.shard = shard;
        self
    }

    /// The runs one by one.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'_>> + Send {
        let all = self.groups.iter().flat_map(|group| {
            let scenario = group.wanted[0].scenario(self.experiments);
            let seeds = union(&group.wanted).into_iter().flatten();
            seeds.map(|seed| Job::new(scenario, seed, group.recording))
        });
        all.skip(self.shard.number - 1).step_by(self.shard.of)
    }
}

/// Divides the runs of `experiments` into tasks, longest first. A task has about `packets` packets, and at least one
/// run. `before` holds the same experiments with the seeds of earlier rounds; it is `None` in the first `round`.
pub fn tasks(
    experiments: &[Experiment],
    before: Option<&[Experiment]>,
    round: u32,
    packets: u64,
) -> Vec<Task> {
    let groups = groups(experiments, before);
    let (mut done, mut open) = (Vec::new(), Open::default());
    for group in &groups {
        for seeds in union(&group.wanted) {
            let mut first = seeds.start;
            while first < seeds.end {
                let room = packets.saturating_sub(open.packets) / group.cost;
                let end = seeds.end.min(first + room.max(1));
                open.add(group, first..end);
                first = end;
                if open.packets.saturating_add(group.cost) > packets {
                    let whole = std::mem::take(&mut open);
                    done.push(whole.close(round, done.len()));
                }
            }
        }
    }
    if !open.blocks.is_empty() {
        done.push(open.close(round, done.len()));
    }
    done
}

fn groups(experiments: &[Experiment], before: Option<&[Experiment]>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let simulated = experiments
        .iter()
        .enumerate()
        .filter(|(_, e)| !e.is_arithmetic());
    let places = simulated.flat_map(|(index, e)| e.places().map(move |at| (index, at)));
    for (experiment, at) in places {
        let scenario = &experiments[experiment].cell(at).scenario;
        let done = before.map_or(0, |before| before[experiment].cell(at).scenario.runs);
        let seeds = scenario.seed + u64::from(done)..scenario.seed + u64::from(scenario.runs);
        if seeds.is_empty() {
            continue;
        }
        let text = text_of_run(scenario, 0);
        let index = *known.entry(long(&text)).or_insert_with(|| {
            groups.push(Group {
                hash: fnv(text.bytes()),
                cost: cost(scenario).max(1),
                recording: false,
                wanted: Vec::new(),
            });
            groups.len() - 1
        });
        groups[index].recording |= experiments[experiment].wants_recording();
        groups[index].wanted.push(Wanted {
            experiment,
            at,
            seeds,
        });
    }
    groups.sort_by_key(|group| Reverse(group.cost));
    groups
}

/// Approximate cost of a run, in data packets at fully used links.
fn cost(scenario: &Scenario) -> u64 {
    let bits = u128::from(scenario.up.bits_per_sec()) + u128::from(scenario.down.bits_per_sec());
    let bits_per_packet = 8 * (u128::from(scenario.mss) + 40);
    let packets = bits * u128::from(scenario.duration.as_nanos()) / 1_000_000_000 / bits_per_packet;
    u64::try_from(packets * u128::from(scenario.links)).unwrap_or(u64::MAX)
}

/// Merges the seeds of all places, in order and without overlap.
fn union(wanted: &[Wanted]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = wanted.iter().map(|wanted| wanted.seeds.clone()).collect();
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

/// A task to which blocks are still added.
#[derive(Default)]
struct Open {
    blocks: Vec<Block>,
    scenarios: String,
    packets: u64,
}

impl Open {
    fn add(&mut self, group: &Group, seeds: Range<u64>) {
        let overlaps = |w: &&Wanted| w.seeds.start < seeds.end && seeds.start < w.seeds.end;
        self.scenarios += &format!("{:x} ", group.hash);
        let cost = group.cost.saturating_mul(seeds.end - seeds.start);
        self.packets = self.packets.saturating_add(cost);
        self.blocks.push(Block {
            recording: group.recording,
            wanted: group.wanted.iter().filter(overlaps).cloned().collect(),
            seeds,
        });
    }

    fn close(self, round: u32, index: usize) -> Task {
        let blocks = serde_json::to_string(&self.blocks).expect("blocks are plain values");
        let text = format!("{} {blocks} {}", *FINGERPRINT, self.scenarios);
        let seeds = self.blocks.iter().map(|block| &block.seeds);
        Task {
            name: format!("part-{round}-{index:06}-{:016x}", fnv(text.bytes())),
            runs: seeds.map(|seeds| seeds.end - seeds.start).sum(),
            packets: self.packets,
            blocks: self.blocks,
        }
    }
}

/// A part of the runs, for one of several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { number: 1, of: 1 }
    }
}

impl Shard {
    /// True if the shard contains all runs.
    pub const fn is_whole(self) -> bool {
        self.of == 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)))
            .filter(|&(number, of)| (1..=of).contains(&number))
            .map(|(number, of)| Self { number, of })
            .ok_or_else(|| "not a shard; write it like 3/16, from 1/16 to 16/16".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Two series that share a scenario. The costs of the two points differ widely.
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
        vec![
            experiment::read_text(
                "own/one",
                Path::new("one.toml"),
                FILE,
                &asymq_args::Defaults::paper(),
            )
            .unwrap(),
        ]
    }

    fn keys(experiments: &[Experiment], tasks: &[Task]) -> Vec<String> {
        let jobs = tasks.iter().flat_map(|task| task.jobs(experiments));
        jobs.map(|job| job.key).collect()
    }

    #[test]
    fn the_tasks_are_the_runs_of_the_experiment_each_once() {
        let experiments = read();
        let single = single_runs(&experiments);
        let in_order: Vec<String> = single.jobs().map(|job| job.key).collect();
        assert_eq!(
            in_order,
            keys(&experiments, &tasks(&experiments, None, 1, 0))
        );
        let jobs: BTreeSet<String> = in_order.into_iter().collect();
        for packets in [1, 5_000, 1_000_000] {
            let tasks = tasks(&experiments, None, 1, packets);
            let keys = keys(&experiments, &tasks);
            assert_eq!(keys.len(), 28, "{packets}");
            assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), jobs);
        }
    }

    #[test]
    fn a_task_has_the_requested_cost_or_is_one_run() {
        let tasks = tasks(&read(), None, 1, 20_000);
        for task in &tasks {
            assert!(task.packets <= 20_000 || task.runs == 1, "{task:?}");
        }
        // A run costs 2500 packets at 2 Mbit/s, and 167 500 at 200 Mbit/s.
        assert!(tasks.iter().any(|task| task.runs == 8), "{tasks:?}");
        let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names.len(), tasks.len());
    }

    #[test]
    fn a_later_round_has_the_further_seeds_only() {
        let first = read();
        let mut second = first.clone();
        let cell = &mut second[0].series[2].cells[1];
        std::sync::Arc::make_mut(&mut cell.scenario).runs = 14;
        let tasks = tasks(&second, Some(&first), 2, 10_000_000);
        assert_eq!(tasks.iter().map(|task| task.runs).sum::<u64>(), 7);
        assert_eq!(tasks[0].blocks[0].seeds, 8..15);
    }
}
