use super::*;

/// Random rates: normally distributed numbers (method of Irwin and Hall), made skewed and correlated like real traffic.
struct Traffic {
    random: SplitMix64,
    level: f64,
}

impl Traffic {
    fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            level: 0.0,
        }
    }

    fn normal(&mut self) -> f64 {
        let uniform = |random: &mut SplitMix64| (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| uniform(&mut self.random)).sum::<f64>() - 6.0
    }

    /// Returns an interval with rates multiplied by `factor`, and a sojourn time that is longer by `later_ms`.
    fn outcome(&mut self, factor: f64, later_ms: f64) -> Outcome {
        self.level = 0.7 * self.level + 0.07 * self.normal();
        let busy = self.level.exp();
        let noise = |of: &mut Self| (0.05 * of.normal()).exp();
        let wait = 20.0 * busy + (2.0 * self.normal()).exp().min(60.0) + later_ms;
        Outcome {
            delivered: [
                factor * 0.8e6 * busy.min(1.2) * noise(self),
                factor * 14e6 * noise(self) / busy,
            ],
            wait_ms: Some(wait),
            round_trip_ms: Some(40.0 + wait + self.normal()),
            ack_share: 0.1,
        }
    }

    fn trial(&mut self, pairs: usize, factor: f64, later_ms: f64) -> Vec<Pair> {
        let settings = [(1.0, 0.0), (factor, later_ms)];
        let pair = |of: &mut Self| {
            let first = (of.random.next() & 1) as usize;
            let mut pair = [Outcome::default(); 2];
            for arm in [first, 1 - first] {
                let (factor, later_ms) = settings[arm];
                pair[arm] = of.outcome(factor, later_ms);
            }
            pair
        };
        (0..pairs).map(|_| pair(self)).collect()
    }
}

const CAPACITY: [Option<f64>; 2] = [Some(1e6), None];

#[test]
fn without_a_difference_one_trial_in_twenty_shows_one() {
    let trials = match std::env::var_os("ASYMQ_LONG") {
        Some(_) => 4000,
        None => 300,
    };
    for pairs in [10, 30] {
        let shows = (0..trials).filter(|seed| {
            let trial = Traffic::new(1000 + seed).trial(pairs, 1.0, 0.0);
            let verdict = analyse(&trial, CAPACITY, *seed);
            assert!(verdict.effects.len() >= 3, "{verdict:?}");
            verdict.effects.iter().any(Effect::is_shown)
        });
        let share = shows.count() as f64 / trials as f64;
        println!("{pairs} pairs: {:.1} % of {trials}", share * 100.0);
        let deviation = (0.05f64 * 0.95 / trials as f64).sqrt();
        assert!(
            (share - 0.05).abs() < 3.0 * deviation,
            "{pairs} pairs: {share}"
        );
    }
}

#[test]
fn an_interval_holds_the_truth_and_tightens_with_pairs() {
    let (factor, later) = (1.0 / 1.2, 15.0);
    let widths = [10, 30, 120].map(|pairs| {
        let trials = 100;
        let mut held = 0;
        let mut width = 0.0;
        for seed in 0..trials {
            let trial = Traffic::new(seed).trial(pairs, factor, later);
            let verdict = analyse(&trial, CAPACITY, seed);
            let holds = |of: &Effect| {
                let truth = match of.quantity {
                    Quantity::Wait | Quantity::RoundTrip => -later,
                    _ => 0.2,
                };
                (of.low..=of.high).contains(&truth)
            };
            held += u64::from(verdict.effects.iter().all(holds));
            width += verdict.effects[0].high - verdict.effects[0].low;
        }
        assert!(held * 100 >= 88 * trials, "{pairs} pairs: {held}");
        width
    });
    assert!(
        widths[0] > 1.3 * widths[1] && widths[1] > 1.7 * widths[2],
        "{widths:?}"
    );
}

#[test]
fn idle_pairs_do_not_count_and_too_few_say_so() {
    let mut trial = Traffic::new(1).trial(7, 2.0, 0.0);
    trial.resize(50, Pair::default());
    let verdict = analyse(&trial, CAPACITY, 1);
    assert_eq!((verdict.loaded.up, verdict.pairs), (7, 50));
    assert_eq!(
        verdict.sentence(["asymq", "none"]),
        "Not enough load yet: of 50 pairs, 7 had a busy uplink, 7 a busy downlink and 7 both; 8 are needed."
    );
    assert_eq!(analyse(&[], CAPACITY, 1).effects, []);
}

#[test]
fn an_upload_alone_reports_only_the_upload() {
    let mut trial = Traffic::new(1).trial(20, 1.0, 0.0);
    for outcome in trial.iter_mut().flatten() {
        outcome.delivered[1] = 0.0;
        outcome.round_trip_ms = None;
    }
    let verdict = analyse(&trial, CAPACITY, 1);
    let quantities: Vec<Quantity> = verdict.effects.iter().map(|of| of.quantity).collect();
    assert_eq!(quantities, [Quantity::Upload, Quantity::Wait]);
}

#[test]
fn the_result_is_a_sentence_with_both_ends_of_each_interval() {
    let effect = |quantity, estimate, low, high| Effect {
        quantity,
        pairs: 30,
        means: [0.0; 2],
        estimate,
        low,
        high,
    };
    let verdict = Verdict {
        effects: vec![
            effect(Quantity::Upload, 0.11, 0.07, 0.15),
            effect(Quantity::Download, 0.004, -0.01, 0.018),
            effect(Quantity::Wait, -240.0, -262.0, -220.0),
        ],
        ..Verdict::default()
    };
    assert_eq!(
        verdict.sentence(["asymq", "no shaping"]),
        "Compared with no shaping, asymq delivers 11 % more upload (7.0 to 15); makes calls wait 240 ms less \
         (220 to 262). No difference was found in download (-1.0 to 1.8 %)."
    );
}
