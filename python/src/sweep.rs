//! Experiments: run on this machine like `asymq sweep`, or divided into tasks that others run.

use crate::congestion;
use crate::errors::{ScenarioError, bad_input, failure};
use crate::simulate::{interruptible, raised};
use crate::table::Columns;
use anyhow::Context as _;
use asymq_args::Defaults;
use asymq_core::units::either;
use asymq_sweep::data;
use asymq_sweep::data::parts;
use asymq_sweep::experiment::{self, Experiment};
use asymq_sweep::folder::{self, Plan};
use asymq_sweep::outcome::Outcome;
use asymq_sweep::report::Origin;
use asymq_sweep::seeds::{self, Decided};
use asymq_sweep::store::{FINGERPRINT, Results};
use asymq_sweep::tasks::{self, Task};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the folder with a sweep's parts, in the output folder.
const PARTS: &str = "runs";
/// Name of the file that lists the experiments of the parts.
const TASKS: &str = "tasks.json";

/// Experiments, and the part of them to run.
#[pyclass(frozen, module = "asymq._asymq")]
pub(crate) struct Sweep {
    plan: Plan,
}

#[pymethods]
impl Sweep {
    /// A user's experiment file.
    #[staticmethod]
    fn of_file(path: PathBuf, quick: bool, seed: Option<u64>) -> PyResult<Self> {
        let experiment = experiment::read(&path, &defaults()).map_err(|error| bad_input(&error))?;
        Ok(Self::of(&[experiment], quick, seed))
    }

    /// Reads the text of an experiment file; errors and tables contain `name` as the file's name.
    #[staticmethod]
    fn of_text(name: &str, text: &str, quick: bool, seed: Option<u64>) -> PyResult<Self> {
        let path = PathBuf::from(format!("{name}.toml"));
        let experiment = experiment::read_text(&format!("own/{name}"), &path, text, &defaults());
        let experiment = experiment.map_err(|error| bad_input(&error))?;
        Ok(Self::of(&[experiment], quick, seed))
    }

    /// The papers' experiments: `all`, a paper, or `PAPER/FIGURE`.
    #[staticmethod]
    fn of_papers(what: &str, quick: bool, seed: Option<u64>) -> PyResult<Self> {
        let experiments = asymq_papers::Files::built_in()
            .experiments(what)
            .map_err(|error| bad_input(&error))?;
        Ok(Self::of(&experiments, quick, seed))
    }

    /// Number of runs of the first round, before undecided claims add seeds.
    #[getter]
    fn runs(&self) -> PyResult<u64> {
        Ok(self.first_round()?.iter().map(|task| task.runs).sum())
    }

    /// Cost of the first round, in data packets at full links.
    #[getter]
    fn packets(&self) -> PyResult<u64> {
        let packets = self.first_round()?.into_iter().map(|task| task.packets);
        Ok(packets.fold(0, u64::saturating_add))
    }

    /// Simulates the runs that are missing in `out` on this machine, and writes its report.
    fn run_here(&self, py: Python<'_>, out: PathBuf, threads: Option<usize>) -> PyResult<Findings> {
        let threads = threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        let (plan, congestion) = (&self.plan, congestion::catalog());
        let simulator = asymq_sim::STANDARD.with(&congestion);
        let outcome = interruptible(py, Some(1), |stop| -> anyhow::Result<_> {
            let decided = plan.run(simulator, &defaults(), &out, threads, &|_, _, _| {
                stop.check()
            })?;
            publish(plan, &out, decided)
        })?;
        outcome.map_err(|error| failure(&*error))
    }

    /// Simulates the runs by tasks. Calls `run` with the tasks whose parts are missing in `out`, as tuples of name, runs,
    /// cost and argument of `run_task`. `run` returns when all parts exist. It is called again if undecided claims need
    /// further seeds. With `report` false, only the parts are written.
    fn run_tasks(
        &self,
        py: Python<'_>,
        out: PathBuf,
        packets: u64,
        report: bool,
        run: Bound<'_, PyAny>,
    ) -> PyResult<Option<Findings>> {
        let io = |error: std::io::Error| failure(&error);
        fs::create_dir_all(out.join(PARTS)).map_err(io)?;
        self.claim(&out, packets)?;
        let first = self.experiments()?;
        let done = |task: &Task| part(&out, task).exists();
        let make = |tasks: Vec<Task>| -> PyResult<()> {
            let all: u64 = tasks.iter().map(|task| task.runs).sum();
            let missing: Vec<Task> = tasks.into_iter().filter(|task| !done(task)).collect();
            let specs: Vec<(String, u64, u64, String)> = missing
                .iter()
                .map(|task| {
                    let text = serde_json::to_string(task).expect("a task is plain values");
                    (task.name.clone(), task.runs, task.packets, text)
                })
                .collect();
            run.call1((specs, all))?;
            match missing.iter().find(|task| !done(task)) {
                Some(task) => Err(PyRuntimeError::new_err(format!(
                    "{}: not written; is {} the same folder on every worker?",
                    task.name,
                    out.display()
                ))),
                None => Ok(()),
            }
        };
        if !report {
            make(tasks::tasks(&first, None, 1, packets))?;
            return Ok(None);
        }
        let mut round = 0;
        let mut before: Option<Vec<Experiment>> = None;
        // Stores the parts' runs where `asymq sweep` stores runs, so that the command can resume this sweep.
        let (looks, known) = (self.plan.looks(), Results::open(&out).map_err(io)?);
        let decided = seeds::decide(&first, looks, known, |experiments, mut results| {
            round += 1;
            let tasks = tasks::tasks(experiments, before.as_deref(), round, packets);
            make(tasks.clone())?;
            for task in &tasks {
                let part = GzDecoder::new(File::open(part(&out, task))?);
                parts::read(part, &mut results)?;
            }
            before = Some(experiments.to_vec());
            Ok(results)
        });
        let decided = decided.map_err(|error| match error.downcast::<PyErr>() {
            Ok(error) => error,
            Err(error) => failure(&*error),
        })?;
        let plan = &self.plan;
        let published = py.detach(|| publish(plan, &out, decided));
        Ok(Some(published.map_err(|error| failure(&*error))?))
    }
}

impl Sweep {
    fn of(experiments: &[Experiment], quick: bool, seed: Option<u64>) -> Self {
        Self {
            plan: Plan::new(experiments, quick, seed),
        }
    }

    fn experiments(&self) -> PyResult<Vec<Experiment>> {
        self.plan
            .experiments(&defaults())
            .map_err(|error| bad_input(&error))
    }

    fn first_round(&self) -> PyResult<Vec<Task>> {
        Ok(tasks::tasks(&self.experiments()?, None, 1, u64::MAX))
    }

    /// Creates the output folder, or checks that it belongs to this sweep.
    fn claim(&self, out: &Path, packets: u64) -> PyResult<()> {
        let path = out.join(TASKS);
        let ours = serde_json::json!({
            "fingerprint": *FINGERPRINT,
            "packets": packets,
            "plan": self.plan,
        });
        let known = fs::read_to_string(&path).ok();
        let known: Option<serde_json::Value> =
            known.and_then(|text| serde_json::from_str(&text).ok());
        let differs = known.filter(|known| *known != ours).map(|known| {
            let differs = |key: &str| known[key] != ours[key];
            if differs("plan") {
                "another experiment"
            } else if differs("packets") {
                "tasks of another size (task_seconds)"
            } else {
                "another version of the simulator"
            }
        });
        if let Some(what) = differs {
            return Err(ScenarioError::new_err(format!(
                "{}: has parts of {what}; choose another folder, or delete this one",
                out.display()
            )));
        }
        let failed = |error: anyhow::Error| failure(&*error);
        self.plan.save(out).map_err(failed)?;
        let text = serde_json::to_string_pretty(&ours).expect("plain values") + "\n";
        whole(&path, |file| {
            Ok(std::io::Write::write_all(file, text.as_bytes())?)
        })
        .map_err(failed)
    }
}

/// Defaults of experiments: those of the papers, and the congestion controls registered by Python.
fn defaults() -> Defaults {
    Defaults::paper().with(congestion::names())
}

/// Experiments of the folder that was read last. A worker gets many tasks of one folder.
static READ: Mutex<Option<(String, Arc<Work>)>> = Mutex::new(None);

struct Work {
    experiments: Vec<Experiment>,
    columns: parts::Columns,
}

impl Work {
    fn read(out: &Path) -> anyhow::Result<Arc<Self>> {
        let text = fs::read_to_string(out.join(TASKS))
            .with_context(|| format!("{}: this worker cannot read the folder", out.display()))?;
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, work)) = &*read
            && *known == text
        {
            return Ok(Arc::clone(work));
        }
        let value: serde_json::Value = serde_json::from_str(&text)?;
        anyhow::ensure!(
            value["fingerprint"] == *FINGERPRINT,
            "this worker has another version of asymq's simulator; install the same everywhere"
        );
        let plan: Plan = serde_json::from_value(value["plan"].clone())?;
        let experiments = plan.experiments(&defaults())?;
        let columns = parts::Columns::of(&experiments, Origin::of_this_build(plan.quick));
        let work = Arc::new(Self {
            experiments,
            columns,
        });
        *read = Some((text, Arc::clone(&work)));
        Ok(work)
    }
}

/// Returns the file with the results of a task.
fn part(out: &Path, task: &Task) -> PathBuf {
    out.join(PARTS).join(format!("{}.csv.gz", task.name))
}

/// Runs a task of `Sweep.run_tasks` and writes its part to `out`, complete or not at all. An existing part is kept.
#[pyfunction]
pub(crate) fn run_task(py: Python<'_>, out: PathBuf, task: &str) -> PyResult<()> {
    let task: Task = serde_json::from_str(task).map_err(|error| bad_input(&error))?;
    let path = part(&out, &task);
    if path.exists() {
        return Ok(());
    }
    let write = || -> anyhow::Result<()> {
        let work = Work::read(&out)?;
        let (experiments, columns) = (&work.experiments, &work.columns);
        let congestion = congestion::catalog();
        let simulator = asymq_sim::STANDARD.with(&congestion);
        let mut results = Results::default();
        for job in task.jobs(experiments) {
            results.insert(job.simulate(simulator)?)?;
        }
        whole(&path, |file| {
            let mut part = GzEncoder::new(file, Compression::default());
            columns.write(experiments, &task, &results, &mut part)?;
            part.finish()?;
            Ok(())
        })
    };
    let written = py.detach(|| catch_unwind(AssertUnwindSafe(write)).map_err(raised))?;
    written.map_err(|error| failure(&*error))
}

/// Writes a file under a temporary name. Renames the file when it is complete and on disk.
fn whole(path: &Path, write: impl FnOnce(&mut File) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    // Readers of a folder of tables skip hidden files.
    let hidden = path.with_file_name(format!(".{name}.{random:016x}"));
    let written = (|| {
        let mut file = File::create(&hidden)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&hidden, path)?;
        Ok(())
    })();
    if written.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    written
}

fn publish(plan: &Plan, out: &Path, decided: Decided) -> anyhow::Result<Findings> {
    let origin = Origin {
        collection: &asymq_papers::COLLECTION,
        ..Origin::of_this_build(plan.quick)
    };
    let page = folder::publish(out, &decided, &origin)?;
    Ok(Findings {
        decided,
        page,
        origin,
    })
}

/// The results of experiments.
#[pyclass(frozen, module = "asymq._asymq")]
pub(crate) struct Findings {
    decided: Decided,
    page: PathBuf,
    origin: Origin,
}

#[pymethods]
impl Findings {
    /// The report, a page for the browser.
    #[getter]
    fn page(&self) -> &Path {
        &self.page
    }

    /// Id, verdict and text of each claim.
    #[getter]
    fn verdicts(&self) -> Vec<(String, String, String)> {
        let findings = self.decided.outcomes.iter().flat_map(Outcome::findings);
        findings
            .map(|finding| {
                let claim = &finding.claim;
                (
                    claim.id.clone(),
                    finding.verdict.to_string(),
                    claim.says.clone(),
                )
            })
            .collect()
    }

    /// Returns a table of docs/research/data.md by its name.
    fn table(&self, name: &str) -> PyResult<Columns> {
        let Some(table) = data::TABLES.iter().find(|table| table.name == name) else {
            let names = either(&data::TABLES.map(|table| table.name));
            let message = format!("table {name:?}: unknown; use {names}");
            return Err(ScenarioError::new_err(message));
        };
        let table = table.table(&self.decided, &self.origin);
        Ok(Columns::of(&table.map_err(|error| failure(&error))?))
    }
}
