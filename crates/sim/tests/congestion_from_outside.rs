//! A congestion control of another crate runs like asymq's own.

use asymq_args::{Defaults, ScenarioArgs, ScenarioError};
use asymq_scenario::{Report, Scenario};
use asymq_sim::congestion::{About, AckSample, Catalog, CongestionControl, Connection, Lost};
use asymq_sim::{RunOptions, STANDARD};
use std::sync::atomic::{AtomicU64, Ordering};

/// The window of RFC 5681 and RFC 6582, implemented independently.
struct Reno {
    window: f64,
    threshold: f64,
    inflation: f64,
}

impl Reno {
    fn new() -> Self {
        Self {
            window: 1.0,
            threshold: f64::MAX,
            inflation: 0.0,
        }
    }

    fn halve(&mut self, flight: f64) {
        self.threshold = (flight / 2.0).floor().max(2.0);
    }
}

impl CongestionControl for Reno {
    fn window(&self) -> f64 {
        self.window + self.inflation
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn on_established(&mut self, initial_window: f64) {
        self.window = initial_window;
    }

    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {
        self.window += match self.window < self.threshold {
            true => 1.0,
            false => 1.0 / self.window,
        };
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.halve(flight);
        self.window = (flight / 2.0).max(1.0);
        self.inflation = 3.0;
    }

    fn on_duplicate_ack(&mut self) {
        self.inflation += 1.0;
    }

    fn on_partial_ack(&mut self, acked: u64) {
        let acked = acked as f64;
        if self.inflation > acked {
            self.inflation -= acked - 1.0;
        } else {
            self.window = (self.window - (acked - self.inflation)).max(1.0);
            self.inflation = 1.0;
        }
    }

    fn on_recovered(&mut self) {
        self.inflation = 0.0;
    }

    fn on_timeout(&mut self, flight: f64) {
        self.halve(flight);
        self.window = 1.0;
        self.inflation = 0.0;
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.window = self.window.min(restart_window);
    }
}

/// A catalog with one congestion control.
fn catalog(
    name: &str,
    about: About,
    make: impl Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync + 'static,
) -> Catalog {
    let mut catalog = Catalog::new();
    catalog.add(name, about, make).unwrap();
    catalog
}

fn reno(name: &str) -> Catalog {
    catalog(name, About::default(), |_| Box::new(Reno::new()))
}

fn resolve(
    catalog: &Catalog,
    words: impl IntoIterator<Item = String>,
) -> Result<Scenario, ScenarioError> {
    let args = ScenarioArgs::from_words(words).unwrap();
    args.resolve(&Defaults::paper().with(catalog.names().leak()))
}

fn scenario(catalog: &Catalog, words: &str) -> Scenario {
    resolve(catalog, words.split_whitespace().map(str::to_owned)).unwrap()
}

#[test]
fn the_same_rules_written_outside_give_the_same_bytes() {
    let catalog = reno("my-newreno");
    for words in [
        "--qdisc=droptail --sack=false",
        "--qdisc=aq --sack=true --timestamps --web=down:5:30kb:1.3",
        "--qdisc=aq --sack=false --on-off=200kbit:500ms:500ms --regenerate=2",
        "--qdisc=asymq --qdisc-down=red --param-down=ecn=true --tcp-ecn --sack=true --pacing",
    ] {
        let of = |tcp| {
            let words = format!("{words} --tcp={tcp} --duration=15s");
            let words = words.split_whitespace().chain(["--netem-up=loss 0.5%"]);
            resolve(&catalog, words.map(str::to_owned)).unwrap()
        };
        let (mine, own) = (of("my-newreno"), of("newreno"));
        let simulator = STANDARD.with(&catalog);
        let one = |scenario| simulator.run(scenario, 1, RunOptions::default()).unwrap();
        let summary = one(&own).summary;
        assert!(summary.goodput.down[0] > 0.0, "{words}");
        assert_eq!(one(&mine).summary, summary, "{words}");
    }
}

#[test]
fn results_say_its_name_and_read_back() {
    let catalog = reno("in-results");
    let scenario = scenario(&catalog, "--tcp=in-results --duration=6s --runs=2");
    assert!(scenario.sack);
    let report = STANDARD.with(&catalog).run_all(&scenario, false, |_| ());
    let report = report.unwrap();
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains(r#""tcp":"in-results""#));
    let again: Report = serde_json::from_str(&json).unwrap();
    assert_eq!((again.scenario, again.runs), (report.scenario, report.runs));
}

#[test]
fn a_name_that_is_not_in_the_catalog_is_refused_by_flags_and_by_the_simulator() {
    let catalog = reno("known");
    for words in ["--tcp=nobody", "--flow=down,tcp=nobody"] {
        let error = resolve(&catalog, [words.to_owned()]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("nobody: unknown; use reno, newreno, ") && error.ends_with(" or known"),
            "{error}"
        );
    }
    let known = scenario(&catalog, "--tcp=known --duration=6s");
    let error = STANDARD.run(&known, 1, RunOptions::default()).unwrap_err();
    assert!(error.to_string().contains("--tcp known"), "{error}");
}

#[test]
fn a_listed_flow_may_have_it_beside_others() {
    let catalog = reno("listed");
    let of = |tcp| {
        let words =
            format!("--flow=down,tcp={tcp},sack=true --flows-down=1 --flows-up=1 --duration=10s");
        STANDARD
            .with(&catalog)
            .run(&scenario(&catalog, &words), 1, RunOptions::default())
            .unwrap()
            .summary
    };
    assert_eq!(of("listed"), of("newreno"));
}

/// A congestion control that returns an impossible window.
struct Garbage(f64);

impl CongestionControl for Garbage {
    fn window(&self) -> f64 {
        self.0
    }
    fn on_established(&mut self, _initial_window: f64) {}
    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {}
    fn on_fast_retransmit(&mut self, _flight: f64) {}
    fn on_timeout(&mut self, _flight: f64) {}
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.0)
    }
    fn threshold(&self) -> f64 {
        self.0
    }
}

#[test]
fn a_window_that_cannot_be_is_bounded() {
    for (name, window) in [
        ("nan", f64::NAN),
        ("zero", 0.0),
        ("negative", -1e9),
        ("endless", f64::INFINITY),
    ] {
        let about = About {
            paces: true,
            ..About::default()
        };
        let catalog = catalog(name, about, move |_| Box::new(Garbage(window)));
        let words = format!(
            "--tcp={name} --flows-down=1 --flows-up=0 --duration=6s --pacing=true --mss=9000b"
        );
        let scenario = scenario(&catalog, &words);
        let simulator = STANDARD.with(&catalog);
        simulator.run(&scenario, 1, RunOptions::default()).unwrap();
    }
}

#[test]
fn a_run_with_a_pulse_is_the_same_run() {
    let scenario = scenario(&Catalog::new(), "--duration=6500ms --warmup=2100ms");
    let beats = std::cell::Cell::new(0);
    let pulse = || beats.set(beats.get() + 1);
    let options = |pulse| RunOptions {
        series: true,
        pulse,
        ..RunOptions::default()
    };
    let with = STANDARD.run(&scenario, 1, options(Some(&pulse))).unwrap();
    assert_eq!(with, STANDARD.run(&scenario, 1, options(None)).unwrap());
    assert_eq!(beats.get(), 7);
}

static SAMPLES: AtomicU64 = AtomicU64::new(0);
static LOSSES: AtomicU64 = AtomicU64::new(0);
static SEEDS: AtomicU64 = AtomicU64::new(0);

/// A congestion control with a constant window, which counts samples and losses.
struct Looks;

impl CongestionControl for Looks {
    fn window(&self) -> f64 {
        100.0
    }
    fn on_established(&mut self, _initial_window: f64) {}
    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {}
    fn on_fast_retransmit(&mut self, _flight: f64) {}
    fn on_timeout(&mut self, _flight: f64) {}
    fn on_sample(&mut self, sample: &AckSample) {
        assert!(sample.rtt.is_none_or(|rtt| rtt >= 100_000_000));
        SAMPLES.fetch_add(sample.newly, Ordering::Relaxed);
    }
    fn on_lost(&mut self, _now: u64, lost: &Lost) {
        assert!(lost.lost > 0);
        LOSSES.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn it_gets_deliveries_and_losses_on_request_and_each_connection_has_its_seed() {
    let looks = About {
        measures_deliveries: true,
        ..About::default()
    };
    let catalog = catalog("looks", looks, |connection| {
        assert_eq!(connection.payload, 1460);
        SEEDS.fetch_xor(connection.seed, Ordering::Relaxed);
        Box::new(Looks)
    });
    let words = "--tcp=looks --flows-up=1 --flows-down=1 --rtt=100ms --duration=6s";
    let scenario = scenario(&catalog, words);
    let simulator = STANDARD.with(&catalog);
    simulator.run(&scenario, 1, RunOptions::default()).unwrap();
    let (samples, losses) = (
        SAMPLES.load(Ordering::Relaxed),
        LOSSES.load(Ordering::Relaxed),
    );
    assert!(samples > 1000, "{samples}");
    assert!(losses > 10, "{losses}");
    assert_ne!(SEEDS.load(Ordering::Relaxed), 0, "two that differ");
}
