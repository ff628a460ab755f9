//! The search: settings that fill the space, fewer and fewer of them at ever larger runs, then steps to better neighbours.

use super::evaluation::{Evaluation, Number};
use super::found::{Account, Found, Hits, reaches};
use super::{Free, Setting, design, halves};
use crate::Files;
use crate::experiment::{Claim, Experiment};
use crate::extent::{for_claims, reduced};
use crate::fnv::long;
use crate::lines::{self, Log};
use crate::outcome;
use crate::runner::pool;
use crate::store::{FINGERPRINT, Results};
use crate::tasks::single_runs;
use anyhow::Context;
use asymq_args::Defaults;
use asymq_core::units::Duration;
use asymq_sim::Simulator;
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The file of evaluations in an output folder.
const EVALUATIONS: &str = "evaluations.jsonl";

/// Seeds and duration of a setting's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Runs of each scenario.
    pub runs: u32,
    /// The seeds before the first.
    pub skip: u64,
    /// Maximum duration of a run, unless warm-up needs more or the duration is a free setting.
    pub longest: Duration,
}

/// The size of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Settings in the first rung.
    pub settings: usize,
    /// Random settings beside them, for the null; if 0, the settings of the first rung are the null, and the first
    /// rung's runs judge.
    pub random: usize,
    /// The rungs: the best quarter of each goes on to the next.
    pub rungs: Vec<Rung>,
    /// Maximum number of steps from the best of the last rung to its best neighbour.
    pub descent: usize,
    /// The runs, with seeds of their own, that judge the fit, today's file and the random settings.
    pub judge: Rung,
}

impl Effort {
    /// A whole search of this many settings in at most three steps.
    pub fn whole(settings: usize, random: usize, steps: usize) -> Self {
        let rung = |runs, skip, seconds| Rung {
            runs,
            skip,
            longest: Duration::from_secs(seconds),
        };
        Self {
            settings,
            random,
            rungs: [rung(1, 0, 500), rung(2, 100, 1000), rung(3, 200, 2000)]
                .into_iter()
                .take(steps.max(1))
                .collect(),
            descent: 5,
            judge: rung(2, 1000, 1000),
        }
    }

    /// A preview under a minute.
    pub fn quick() -> Self {
        let rung = |skip| Rung {
            runs: 1,
            skip,
            longest: Duration::from_secs(200),
        };
        Self {
            settings: 16,
            random: 8,
            rungs: vec![rung(0)],
            descent: 0,
            judge: rung(1000),
        }
    }
}

/// A search for the settings of a paper.
#[derive(Debug)]
pub struct Search<'a> {
    /// The experiments, and the settings that their paper leaves open.
    pub files: &'a Files,
    /// The paper's short name.
    pub paper: &'a str,
    /// Where scenarios start from.
    pub defaults: &'a Defaults,
    /// The folder of its evaluations.
    pub folder: &'a Path,
    /// Settings at a time.
    pub threads: usize,
    /// Its size.
    pub effort: Effort,
}

impl Search<'_> {
    /// Tries settings with `simulator` and judges the best. Evaluations that the folder has are not repeated. `progress` is called
    /// with the numbers of finished and of all evaluations of a step and its name, from any thread.
    ///
    /// # Errors
    /// A file or a setting is wrong, a run fails, or the folder cannot be read or written.
    pub fn run(
        &self,
        simulator: Simulator<'_>,
        progress: &(impl Fn(usize, usize, &str) + Sync),
    ) -> anyhow::Result<Found> {
        let free = self.files.free(self.paper)?;
        if free.is_empty() {
            let paper = self.paper;
            anyhow::bail!("{paper}: no free settings; list them in {paper}/free.toml");
        }
        let as_filed = self.files.under(self.paper, &[], self.defaults)?;
        let simulated = as_filed.iter().filter(|e| !e.is_arithmetic());
        let claims = simulated.flat_map(|experiment| &experiment.claims);
        let claims: Vec<&Claim> = claims.collect();
        let ids: Vec<String> = claims.iter().map(|claim| claim.id.clone()).collect();
        let numbers = claims.iter().flat_map(|claim| Number::all(claim));
        let (used, held_out) = halves(numbers.collect());
        let known = Known::open(self.folder)?;
        let evaluate = |settings: &[Setting], rung, shown: &(dyn Fn(usize, usize) + Sync)| {
            let one = |setting: &Setting| self.one(simulator, &free, setting, rung, &known);
            self.each(settings, one, shown)
        };

        let mut settings = design::halton(&free, self.effort.settings);
        let mut all: Vec<Evaluation> = Vec::new();
        let mut first = 0;
        for (index, rung) in self.effort.rungs.iter().enumerate() {
            let step = format!("step {} of {}", index + 1, self.effort.rungs.len());
            let shown = |done, of| progress(done, of, &step);
            let tried = evaluate(&settings, *rung, &shown)?;
            let mut order: Vec<&Evaluation> = tried.iter().collect();
            order.sort_by(|a, b| a.misfit(&used).total_cmp(&b.misfit(&used)));
            let best = order.iter().take(order.len().div_ceil(4));
            settings = best.map(|evaluation| evaluation.setting.clone()).collect();
            all.extend(tried);
            first = if index == 0 { all.len() } else { first };
        }
        let mut best = settings.swap_remove(0);
        let last = self.effort.rungs.last().copied();
        let last = last.unwrap_or(self.effort.judge);
        for round in 1..=self.effort.descent {
            let mut around = design::neighbours(&free, &best);
            around.push(best.clone());
            let shown = |done, of| progress(done, of, &format!("descent {round}"));
            let tried = evaluate(&around, last, &shown)?;
            let nearest = tried
                .iter()
                .min_by(|a, b| a.misfit(&used).total_cmp(&b.misfit(&used)));
            let nearest = nearest.map_or(best.clone(), |one| one.setting.clone());
            all.extend(tried);
            if nearest == best {
                break;
            }
            best = nearest;
        }

        // The best, the file as it is, and the null: with seeds that had no part in the choice.
        let random = design::random(&free, self.paper, self.effort.random);
        let judged: Vec<Setting> = [best.clone(), Setting::new()]
            .into_iter()
            .chain(random)
            .collect();
        let shown = |done, of| progress(done, of, "judging");
        let judge = match self.effort.random {
            0 => self.effort.rungs[0],
            _ => self.effort.judge,
        };
        let judged = evaluate(&judged, judge, &shown)?;
        let hits = |evaluation: &Evaluation| Hits {
            used: evaluation.hits(&used),
            held_out: evaluation.hits(&held_out),
        };
        // Without the setting found: it is no rival of itself.
        let mut null: Vec<&Evaluation> = match self.effort.random {
            0 => all[..first].iter().collect(),
            _ => judged[2..].iter().collect(),
        };
        null.retain(|evaluation| evaluation.setting != best);
        let best_random = null
            .iter()
            .min_by(|a, b| a.misfit(&used).total_cmp(&b.misfit(&used)))
            .copied();
        let account = Account {
            free: free.len(),
            used: used.len(),
            held_out: held_out.len(),
            tried: first,
            random: null.len(),
            found: hits(&judged[0]),
            file: hits(&judged[1]),
            best_random: best_random.map_or(Hits::default(), hits),
            null: null.iter().map(|one| one.hits(&held_out)).collect(),
        };
        all.extend(judged);
        Ok(Found {
            paper: self.paper.to_owned(),
            chosen: Free::choose(&free, &best)?,
            settings: best,
            reaches: reaches(&free, &all, &ids),
            account,
        })
    }

    /// The evaluation of each setting, in their order.
    fn each(
        &self,
        settings: &[Setting],
        one: impl Fn(&Setting) -> anyhow::Result<Evaluation> + Sync,
        shown: &(dyn Fn(usize, usize) + Sync),
    ) -> anyhow::Result<Vec<Evaluation>> {
        let done = AtomicUsize::new(0);
        shown(0, settings.len());
        let one = |setting: &Setting| {
            let evaluation = one(setting)?;
            shown(1 + done.fetch_add(1, Ordering::Relaxed), settings.len());
            Ok(evaluation)
        };
        pool(self.threads)?.install(|| settings.par_iter().with_max_len(1).map(one).collect())
    }

    /// The evaluation of a setting; an empty one is the file as it is.
    fn one(
        &self,
        simulator: Simulator<'_>,
        free: &[Free],
        setting: &Setting,
        rung: Rung,
        known: &Known,
    ) -> anyhow::Result<Evaluation> {
        let experiments = self.experiments(free, setting, rung)?;
        let key = key_of(&experiments);
        if let Some(before) = known.by_key.get(&key) {
            // The file as it is may run what a setting does.
            return Ok(Evaluation {
                setting: setting.clone(),
                ..before.clone()
            });
        }
        let mut results = Results::default();
        for task in single_runs(&experiments) {
            for job in task.jobs(&experiments) {
                results.insert(job.simulate(simulator)?);
            }
        }
        let outcomes = outcome::judge(&experiments, &results)?;
        let evaluation = Evaluation::of(key, setting.clone(), &outcomes);
        known.append(&evaluation)?;
        Ok(evaluation)
    }

    /// The paper's experiments under a setting, as far as this rung runs them.
    fn experiments(
        &self,
        free: &[Free],
        setting: &Setting,
        rung: Rung,
    ) -> anyhow::Result<Vec<Experiment>> {
        let under = match setting.is_empty() {
            true => Vec::new(),
            false => Free::choose(free, setting)?,
        };
        let longest = match free.iter().any(|free| free.sets("duration")) {
            true => Duration::MAX,
            false => rung.longest,
        };
        let read = self.files.under(self.paper, &under, self.defaults)?;
        let simulated = read.into_iter().filter(|e| !e.is_arithmetic());
        let fitted = simulated.map(|experiment| {
            let mut experiment = reduced(for_claims(experiment), rung.runs, longest);
            // A run cut short counts as it is.
            experiment.cut = 1.0;
            for scenario in experiment.scenarios_mut() {
                scenario.seed += rung.skip;
            }
            experiment
        });
        Ok(fitted.collect())
    }
}

/// The hash of what an evaluation runs and of the claims that it is judged by.
fn key_of(experiments: &[Experiment]) -> String {
    let mut text = FINGERPRINT.clone();
    for experiment in experiments {
        for cell in experiment.series.iter().flat_map(|series| &series.cells) {
            text += &serde_json::to_string(&cell.scenario).expect("a scenario is plain values");
        }
        for (condition, _) in experiment
            .claims
            .iter()
            .flat_map(|claim| claim.conditions())
        {
            text += &condition.to_string();
        }
    }
    long(&text)
}

/// The evaluations of a folder: an interrupted search goes on where it was.
struct Known {
    by_key: HashMap<String, Evaluation>,
    log: Mutex<Log>,
}

impl Known {
    fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(EVALUATIONS);
        let failed = || format!("cannot write {}", path.display());
        let log = Log::at(path.clone()).with_context(failed)?;
        let known = lines::read::<Evaluation>(&path).with_context(failed)?;
        let by_key = known.into_iter().map(|one| (one.key.clone(), one));
        Ok(Self {
            by_key: by_key.collect(),
            log: Mutex::new(log),
        })
    }

    fn append(&self, evaluation: &Evaluation) -> anyhow::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(log.append(evaluation)?)
    }
}
