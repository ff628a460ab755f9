//! One run for a page.

use crate::frames::{record_queues, record_sample};
use asymq_args::{Defaults, ScenarioArgs};
use asymq_core::Duration;
use asymq_core::catalog::{Catalog, Role, Standard};
use asymq_scenario::{Run, Scenario, Tcp};
use asymq_sim::{RunOptions, Steps};
use serde_json::json;

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(20);

/// Maximum duration with frames every [`FRAME`]. In a longer run the interval is longer, to bound the number of frames.
const LONGEST: Duration = Duration::from_secs(120);

/// Number of frames per sample; with [`FRAME`] a sample is an interval of the time series.
const FRAMES_PER_SAMPLE: u64 = 10;

/// A run that a page displays.
pub struct Player {
    scenario: Scenario,
    steps: Steps<'static>,
    /// Number of intervals of the time series in a sample.
    intervals: u64,
    /// Number of frames so far.
    shown: u64,
    /// States of both queues every 20 ms (less often in runs over 120 s), since the last [`forget`](Self::forget).
    pub frames: Vec<u16>,
    /// Samples of the time series since the last [`forget`](Self::forget): one sample per ten frames.
    pub samples: Vec<f32>,
}

impl Player {
    /// Opens the first run of arguments like `--up=1mbit`, one per line, in the syntax of `asymq sim`.
    ///
    /// # Errors
    /// An argument is invalid; the error has the same text as on the command line.
    pub fn new(words: &str) -> Result<Self, String> {
        let args = ScenarioArgs::from_words(words.lines().map(str::to_owned));
        let args = args.map_err(|error| error.to_string())?;
        let scenario = args.resolve(&Defaults::sim());
        let scenario = scenario.map_err(|error| error.to_string())?;
        let options = RunOptions {
            series: true,
            ..RunOptions::default()
        };
        let steps = Steps::new(&scenario, scenario.seed, options);
        Ok(Self {
            steps: steps.map_err(|error| error.to_string())?,
            intervals: scenario.duration.as_nanos().div_ceil(LONGEST.as_nanos()),
            scenario,
            shown: 0,
            frames: Vec::new(),
            samples: Vec::new(),
        })
    }

    /// Facts of the scenario that a page needs before the run, as JSON.
    pub fn head(&self) -> String {
        let scenario = &self.scenario;
        let seconds = |time: Duration| time.as_secs_f64();
        let head = json!({
            "up": scenario.up.bits_per_sec(),
            "down": scenario.down.bits_per_sec(),
            "duration": seconds(scenario.duration),
            "warmup": seconds(scenario.warmup),
            "frame": seconds(self.frame(1)),
            "sample": seconds(self.frame(FRAMES_PER_SAMPLE)),
            "warnings": scenario.warnings().into_iter().collect::<Vec<_>>(),
        });
        head.to_string()
    }

    const fn frame(&self, number: u64) -> Duration {
        Duration::from_nanos(FRAME.as_nanos() * self.intervals * number)
    }

    /// Advances to `until` after the start, at most to the end of the run, and records all frames on the way.
    pub fn advance(&mut self, until: Duration) {
        loop {
            let next = self.frame(self.shown + 1);
            if next > until || next > self.scenario.duration {
                break;
            }
            self.steps.advance(next);
            self.shown += 1;
            record_queues(&self.steps, &mut self.frames);
            if self.shown.is_multiple_of(FRAMES_PER_SAMPLE)
                && let Some(series) = self.steps.series()
            {
                record_sample(
                    &self.steps,
                    series,
                    self.intervals as usize,
                    &mut self.samples,
                );
            }
        }
        self.steps.advance(until);
    }

    /// Current time of the run.
    pub const fn now(&self) -> Duration {
        self.steps.now()
    }

    /// Discards the frames and samples recorded so far.
    pub fn forget(&mut self) {
        self.frames.clear();
        self.samples.clear();
    }

    /// Completes this run and all others of the scenario. Returns the output of `asymq sim --json`.
    ///
    /// # Errors
    /// See [`asymq_sim::Simulator::run`].
    pub fn report(self) -> Result<String, String> {
        let Self {
            scenario, steps, ..
        } = self;
        let first = steps.finish().map(|run| Run {
            series: None,
            ..run
        });
        let others = scenario.seeds().skip(1);
        let others =
            others.map(|seed| asymq_sim::STANDARD.run(&scenario, seed, RunOptions::default()));
        let runs: Result<Vec<Run>, _> = std::iter::once(first).chain(others).collect();
        let report = asymq_sim::report(&scenario, runs.map_err(|error| error.to_string())?);
        let json = serde_json::to_string_pretty(&report);
        Ok(json.map_err(|error| error.to_string())? + "\n")
    }
}

/// The choices, as JSON: disciplines with their titles and summaries, congestion controls with their titles.
pub fn catalog() -> String {
    let disciplines = Standard.of_role(Role::Qdisc).into_iter();
    let disciplines = disciplines
        .map(|entry| json!({ "name": entry.name, "title": entry.title, "summary": entry.summary }));
    let congestion = Tcp::simulated();
    let congestion = congestion.map(|tcp| json!({ "name": tcp.to_string(), "title": tcp.title() }));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "disciplines": disciplines.collect::<Vec<_>>(),
        "tcp": congestion.collect::<Vec<_>>(),
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "--qdisc=droptail\n--flows-up=1\n--flows-down=1\n--rtt=100ms\n--probe=100ms\n\
                         --duration=9s\n--warmup=2s\n--runs=2";

    fn report_at_once(words: &str) -> String {
        let args = ScenarioArgs::from_words(words.lines().map(str::to_owned)).unwrap();
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        let report = asymq_sim::STANDARD
            .run_all(&scenario, false, |_| ())
            .unwrap();
        serde_json::to_string_pretty(&report).unwrap() + "\n"
    }

    #[test]
    fn a_displayed_run_reports_the_output_of_the_command() {
        let mut player = Player::new(WORDS).unwrap();
        for ms in [0, 7, 1234, 5000, 5000, 60_000] {
            player.advance(Duration::from_millis(ms));
        }
        assert_eq!(player.now(), Duration::from_secs(9));
        assert_eq!(player.report().unwrap(), report_at_once(WORDS));
        let untouched = Player::new(WORDS).unwrap();
        assert_eq!(untouched.report().unwrap(), report_at_once(WORDS));
    }

    /// Queues of frames: (total, packet on the link, packets).
    fn queues(mut frames: &[u16]) -> Vec<(u16, u16, Vec<u16>)> {
        let mut queues = Vec::new();
        while let [total, shown, sent, rest @ ..] = frames {
            let (packets, rest) = rest.split_at(usize::from(*shown));
            queues.push((*total, *sent, packets.to_vec()));
            frames = rest;
        }
        queues
    }

    #[test]
    fn frames_show_both_queues_every_20_ms_and_samples_every_200_ms() {
        let mut player = Player::new(WORDS).unwrap();
        player.advance(Duration::from_millis(8010));
        let queues = queues(&player.frames);
        assert_eq!(queues.len(), 400 * 2);
        assert_eq!(player.samples.len(), 40 * 8);
        // The uplink carries an upload. ACKs of the download are queued between its data packets.
        let (total, sent, packets) = &queues[2 * 399];
        assert_eq!(usize::from(*total), packets.len());
        assert!(*sent > 0);
        let kinds = |kind| {
            packets
                .iter()
                .filter(|packet| *packet >> 14 == kind)
                .count()
        };
        assert!(kinds(0) > 0 && kinds(1) > 0, "{packets:x?}");
        let lens = packets.iter().map(|packet| packet & 0x3fff);
        assert!(
            lens.clone()
                .all(|len| len == 40 || len == 1500 || len < 200)
        );
        player.forget();
        player.advance(Duration::from_millis(8200));
        assert_eq!(
            (self::queues(&player.frames).len(), player.samples.len()),
            (20, 8)
        );
    }

    #[test]
    fn a_long_run_has_as_many_frames_as_one_of_two_minutes() {
        let words = WORDS.replace("--duration=9s", "--duration=290s");
        let mut player = Player::new(&words).unwrap();
        player.advance(Duration::from_millis(1250));
        assert_eq!(
            (queues(&player.frames).len(), player.samples.len()),
            (20 * 2, 2 * 8)
        );
        // The mean of three intervals.
        let (series, up) = (player.steps.series().unwrap(), player.samples[8]);
        let mean = series.up[3..6].iter().sum::<f64>() / 3.0;
        assert!(
            up > 0.1 && (f64::from(up) - mean).abs() < 1e-6,
            "{up}, {mean}"
        );
    }

    #[test]
    fn wrong_words_are_answered_as_the_command_line_does() {
        let error = |words| Player::new(words).err().unwrap();
        assert_eq!(
            error("--up=1mbitt"),
            "--up 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit"
        );
        assert!(error("--qdisc=asimq").contains("did you mean `asymq`?"));
        assert!(error("--warmup=70s").contains("--warmup 70s"));
        assert!(error("link.toml").contains("link.toml"));
    }

    #[test]
    fn the_catalog_names_every_discipline_and_congestion_control() {
        let catalog: serde_json::Value = serde_json::from_str(&catalog()).unwrap();
        let names = |key: &str| -> Vec<String> {
            let entries = catalog[key].as_array().unwrap().iter();
            entries
                .map(|entry| entry["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            names("disciplines").len(),
            Standard.of_role(Role::Qdisc).len()
        );
        for known in ["droptail", "fq_codel", "cake", "asymq"] {
            assert!(names("disciplines").contains(&known.to_owned()), "{known}");
        }
        assert!(names("tcp").contains(&"cubic".to_owned()));
    }
}
