//! `asymq gateway try`: compares two settings on a running gateway.

use super::args::{LinkArgs, NONE, SetArgs, TryArgs};
use crate::output::{self, Table};
use crate::progress::ProgressBar;
use crate::signals::stop_on;
use anyhow::{Context as _, bail};
use asymq_args::{Flags, ScenarioError, Words};
use asymq_core::catalog::{Catalog, DEFAULT_QDISC};
use asymq_core::decide::random::SplitMix64;
use asymq_gateway::trial::{Effect, Loaded, Outcome, Pair, Quantity, Verdict, analyse};
use asymq_gateway::{DirectionSnapshot, Snapshot, Status, request_change, request_status};
use libc::{SIGHUP, SIGINT, SIGTERM};
use serde::Serialize;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Interval of polling for a new snapshot; the gateway creates one per second.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);
/// Number of polls without a new snapshot after which the gateway is considered stuck.
const MAX_POLLS: usize = 50;

/// Runs the trial, restores the settings, and prints the result. Ctrl-C ends it early.
pub(super) fn run(args: &TryArgs, catalog: &dyn Catalog) -> anyhow::Result<()> {
    let stop = stop_on(&[SIGINT, SIGTERM, SIGHUP])?;
    let settle = args.settle.as_secs_f64();
    let measured = args.hold.saturating_sub(args.settle).as_secs_f64();
    if measured < 1.0 {
        bail!(
            "--hold {}: leaves less than 1s after --settle {}; write a longer time",
            args.hold,
            args.settle
        );
    }
    let flags = Flags::<LinkArgs>::new(catalog);
    let SetArgs { control, link } = &args.set;
    flags.read(&link.words).map_err(ScenarioError::Value)?;
    let status = fresh_status(control)?;
    let kept = flags.text(Path::new("settings"), &status.settings)?;
    let mut typed = link.words.clone();
    if typed.keys().next().is_none() {
        typed.set("qdisc", NONE);
        typed.set("qdisc-down", NONE);
    }
    let tried = flags.merge(&typed, &kept);
    let arms = [kept, tried];
    let mut trial = Trial {
        control,
        names: names(&arms, &typed),
        arms,
        settle,
        measured,
        changes: status.snapshot.changes,
        stop: &stop,
        pairs: Vec::new(),
    };
    let capacity = [&status.snapshot.up, &status.snapshot.down].map(known_capacity);
    let seed = RandomState::new().build_hasher().finish();
    let ended = trial.run(args.pairs, capacity, seed);
    // Restores the settings before any other step can fail.
    let restored = match &ended {
        Ok(End::ChangedByOthers) => Ok(()),
        _ => trial.change(0),
    };
    let result = Answer {
        format: 1,
        names: &trial.names,
        ended: ended.as_ref().ok(),
        hold_s: args.hold.as_secs_f64(),
        settle_s: settle,
        seed,
        verdict: analyse(&trial.pairs, capacity, seed),
        pairs: &trial.pairs,
    };
    match args.json {
        true => output::print_json(&result)?,
        false => output::print(&result.text())?,
    }
    restored.context("settings not restored; run 'systemctl reload asymq'")?;
    ended.map(drop)
}

struct Trial<'a> {
    control: &'a Path,
    /// Original settings, and the settings to try.
    arms: [Words; 2],
    /// Names of the settings in `arms`.
    names: [String; 2],
    settle: f64,
    measured: f64,
    changes: u64,
    stop: &'a AtomicBool,
    pairs: Vec<Pair>,
}

/// Reason why a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Complete,
    Interrupted,
    ChangedByOthers,
}

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    names: &'a [String; 2],
    ended: Option<&'a End>,
    hold_s: f64,
    settle_s: f64,
    seed: u64,
    verdict: Verdict,
    pairs: &'a [Pair],
}

impl Trial<'_> {
    /// Adds pairs until `wanted` of them had load.
    fn run(&mut self, wanted: usize, capacity: [Option<f64>; 2], seed: u64) -> anyhow::Result<End> {
        let bar = ProgressBar::new(wanted as u64);
        let mut random = SplitMix64::new(seed);
        loop {
            let loaded = Loaded::count(&self.pairs, capacity);
            let counted = match loaded.both {
                0 => loaded.up.max(loaded.down),
                both => both,
            };
            bar.set_position(counted as u64);
            // Shows no interim results, because a user who ends the trial at a good result would bias it.
            let more = match counted == self.pairs.len() {
                true => String::new(),
                false => format!(", {} more without enough load", self.pairs.len() - counted),
            };
            bar.set_message(format!("{counted} of {wanted} pairs{more}"));
            if counted >= wanted {
                bar.finish_and_clear();
                return Ok(End::Complete);
            }
            let first = (random.next() >> 63) as usize;
            let mut pair = [Outcome::default(); 2];
            for arm in [first, 1 - first] {
                pair[arm] = match self.interval(arm)? {
                    Ok(outcome) => outcome,
                    Err(end) => {
                        bar.finish_and_clear();
                        return Ok(end);
                    }
                };
            }
            self.pairs.push(pair);
        }
    }

    fn change(&mut self, arm: usize) -> anyhow::Result<()> {
        let words = format!("{REPLACE}\n{}", self.arms[arm].to_toml());
        request_change(self.control, &words)?;
        self.changes += 1;
        Ok(())
    }

    /// Measures an interval. Returns the reason if the trial ends during the interval.
    fn interval(&mut self, arm: usize) -> anyhow::Result<Result<Outcome, End>> {
        self.change(arm)?;
        let (mut settled, mut measured) = (0.0, 0.0);
        let mut before: Option<Snapshot> = None;
        let mut sums = Sums::default();
        let mut polls = 0;
        while measured < self.measured {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Err(End::Interrupted));
            }
            thread::sleep(POLL_INTERVAL);
            let now = status(self.control)?.snapshot;
            if now.changes > self.changes {
                return Ok(Err(End::ChangedByOthers));
            }
            if now.changes < self.changes || before.as_ref().is_some_and(|of| of.time == now.time) {
                polls += 1;
                if polls > MAX_POLLS {
                    bail!("{}: no new snapshot within 10s", self.control.display());
                }
                continue;
            }
            polls = 0;
            // The first snapshot includes time before the change, so that it belongs to the settling time.
            if settled < self.settle {
                settled += now.interval;
            } else if let Some(before) = &before {
                measured += now.interval;
                sums.add(before, &now);
            }
            before = Some(now);
        }
        let shapes = self.arms[arm].get("qdisc") != Some(NONE);
        Ok(Ok(sums.outcome(measured, shapes)))
    }
}

/// First word of a request to replace all settings.
pub(super) const REPLACE: &str = "replace";

fn status(control: &Path) -> anyhow::Result<Status> {
    let text = request_status(control)?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: another version runs; restart it", control.display()))
}

/// Returns the status with the next snapshot, because the latest one may predate a recent change.
fn fresh_status(control: &Path) -> anyhow::Result<Status> {
    let latest = status(control)?;
    for _ in 0..MAX_POLLS {
        thread::sleep(POLL_INTERVAL);
        let next = status(control)?;
        if next.snapshot.time != latest.snapshot.time {
            return Ok(next);
        }
    }
    bail!("{}: no new snapshot within 10s", control.display());
}

/// Sums over one interval.
#[derive(Default)]
struct Sums {
    /// Delivered bytes, up and down.
    delivered: [u64; 2],
    acks: u64,
    sent: u64,
    waits: Vec<f64>,
    round_trips: Vec<f64>,
}

impl Sums {
    fn add(&mut self, before: &Snapshot, now: &Snapshot) {
        for (sum, [before, now]) in self
            .delivered
            .iter_mut()
            .zip([[&before.up, &now.up], [&before.down, &now.down]])
        {
            // Other packets count when they are sent, because their acknowledgements cannot be read.
            *sum += now.acknowledged - before.acknowledged + now.other.bytes - before.other.bytes;
        }
        let (was, is) = (&before.up, &now.up);
        let bytes = |of: &DirectionSnapshot| of.ack.bytes + of.data.bytes + of.other.bytes;
        self.acks += is.ack.bytes - was.ack.bytes;
        self.sent += bytes(is) - bytes(was);
        if is.other.packets > was.other.packets {
            self.waits.push(is.other.sojourn_p99_ms);
        }
        // Round trips of ACKs, or of handshakes if the uplink carries no ACKs.
        let round_trips = [&is.ack, &is.other].map(|class| class.round_trip_p50_ms);
        self.round_trips
            .extend(round_trips.into_iter().find(|ms| *ms > 0.0));
    }

    fn outcome(self, seconds: f64, shapes: bool) -> Outcome {
        let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
        Outcome {
            delivered: self.delivered.map(|bytes| bytes as f64 * 8.0 / seconds),
            wait_ms: mean(&self.waits).filter(|_| shapes),
            round_trip_ms: mean(&self.round_trips),
            ack_share: self.acks as f64 / self.sent.max(1) as f64,
        }
    }
}

/// Names of the settings in `arms`: the disciplines, or the settings that differ.
fn names(arms: &[Words; 2], typed: &Words) -> [String; 2] {
    let qdisc = |words: &Words| match words.get("qdisc").unwrap_or(DEFAULT_QDISC) {
        NONE => "no shaping".to_owned(),
        name => name.to_owned(),
    };
    let names = [qdisc(&arms[0]), qdisc(&arms[1])];
    if names[0] != names[1] {
        return names;
    }
    let [_, qdisc] = names;
    let differing = typed.keys().map(|key| {
        let value = |words: &Words| words.get(key).map_or("default".to_owned(), str::to_owned);
        [value(&arms[0]), value(&arms[1])].map(|value| format!("{key} {value}"))
    });
    let differing: Vec<[String; 2]> = differing.collect();
    [0, 1].map(|arm| {
        let parts: Vec<&str> = differing.iter().map(|of| of[arm].as_str()).collect();
        format!("{qdisc} with {}", parts.join(", "))
    })
}

/// Returns the configured rate in bit/s. A learnt rate is far above the line's until the line first has a queue.
fn known_capacity(of: &DirectionSnapshot) -> Option<f64> {
    let is_known = of.capacity > 0 && of.learnt_rate().is_none();
    is_known.then_some(of.capacity as f64)
}

impl Answer<'_> {
    fn text(&self) -> String {
        let [kept, tried] = self.names;
        let Verdict { loaded, pairs, .. } = &self.verdict;
        let heading = format!(
            "{kept} against {tried}: {pairs} pairs of intervals of {} s; both directions were busy in {}, the uplink \
             in {}, the downlink in {}",
            self.hold_s, loaded.both, loaded.up, loaded.down
        );
        let mut table = Table::new(["", kept, tried, "difference", "95 % interval", "pairs"]);
        for effect in &self.verdict.effects {
            table.row(row(effect));
        }
        let share = self
            .verdict
            .ack_share
            .map(|share| format!("{:.1} %", share * 100.0));
        let [kept_share, tried_share] = share;
        table.row(["ACK share", &kept_share, &tried_share, "", "", ""]);
        let end = match self.ended {
            Some(End::Complete) => "",
            Some(End::Interrupted) => "Interrupted: the result so far.\n",
            Some(End::ChangedByOthers) => {
                "Ended early: another client changed the settings, which stay as they are now.\n"
            }
            None => "Ended early: the result so far.\n",
        };
        let sentence = self.verdict.sentence([kept, tried]);
        let sentence = output::wrapped(&sentence, 80);
        format!(
            "{}\n{table}\n{end}{sentence}",
            output::wrapped(&heading, 80)
        )
    }
}

fn row(effect: &Effect) -> [String; 6] {
    let (name, scale, digits, unit) = match effect.quantity {
        Quantity::Upload => ("upload", 1e-6, 2, " Mbit/s"),
        Quantity::Download => ("download", 1e-6, 2, " Mbit/s"),
        Quantity::Utility => ("utility", 1.0, 3, ""),
        Quantity::Wait => ("calls wait", 1.0, 1, " ms"),
        Quantity::RoundTrip => ("round trip", 1.0, 1, " ms"),
    };
    let [kept, tried] = effect
        .means
        .map(|mean| format!("{:.digits$}{unit}", mean * scale));
    let (factor, sign) = effect.scale();
    let values = [effect.estimate, effect.low, effect.high];
    let [difference, low, high] = values.map(|value| value * factor);
    [
        name.into(),
        kept,
        tried,
        format!("{difference:+.1} {sign}"),
        format!("{low:+.1} to {high:+.1}"),
        effect.pairs.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_learnt_or_absent_is_not_a_capacity() {
        let mut of = DirectionSnapshot::default();
        assert_eq!(known_capacity(&of), None);
        of.capacity = 1_000_000;
        assert_eq!(known_capacity(&of), Some(1e6));
        of.control.insert("auto_rate", 1e6);
        assert_eq!(known_capacity(&of), None);
    }
}
