//! Values of a gateway over the last hour, for its page.

use crate::lock::lock;
use crate::snapshot::{DirectionSnapshot, Shared, Snapshot};
use asymq_rates::Reason;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Maximum number of rows: one per snapshot, by default one per second.
const HOUR: usize = 3600;

/// A column's name, and its value from two consecutive snapshots.
type Column = (&'static str, fn(&Snapshot, &Snapshot) -> f64);

const COLUMNS: [Column; 18] = [
    ("time", |_, now| now.time),
    ("up_all", |_, now| now.up.rate),
    ("up_data", |_, now| now.up.data.rate),
    ("up_acked", |was, now| acked(was, now, |of| &of.up)),
    ("up_learnt", |_, now| learnt(&now.up)),
    ("up_why", |_, now| why(&now.up)),
    ("down_all", |_, now| now.down.rate),
    ("down_data", |_, now| now.down.data.rate),
    ("down_acked", |was, now| acked(was, now, |of| &of.down)),
    ("down_learnt", |_, now| learnt(&now.down)),
    ("down_why", |_, now| why(&now.down)),
    ("wait_ack", |_, now| now.up.ack.sojourn_p99_ms),
    ("wait_other", |_, now| now.up.other.sojourn_p99_ms),
    ("round_trip_ack", |_, now| now.up.ack.round_trip_p50_ms),
    ("round_trip_other", |_, now| now.up.other.round_trip_p50_ms),
    ("acks_sent", |was, now| {
        per_second(was, now, |of| of.up.ack.packets)
    }),
    ("acks_filtered", |was, now| {
        per_second(was, now, |of| of.up.ack.filtered)
    }),
    ("changes", |_, now| now.changes as f64),
];

fn per_second(was: &Snapshot, now: &Snapshot, count: impl Fn(&Snapshot) -> u64) -> f64 {
    match now.interval > 0.0 {
        true => count(now).saturating_sub(count(was)) as f64 / now.interval,
        false => 0.0,
    }
}

/// Acknowledged payload in bit/s between two snapshots.
fn acked(was: &Snapshot, now: &Snapshot, of: fn(&Snapshot) -> &DirectionSnapshot) -> f64 {
    8.0 * per_second(was, now, |snapshot| of(snapshot).acknowledged)
}

/// Learnt rate in bit/s; 0 if no rate is learnt.
fn learnt(of: &DirectionSnapshot) -> f64 {
    of.learnt_rate().unwrap_or_default()
}

/// Index in [`Reason::ALL`] of the reason for the last change of the learnt rate.
fn why(of: &DirectionSnapshot) -> f64 {
    let holds = |reason: &Reason| of.control.contains_key(reason.variable());
    Reason::ALL.iter().position(holds).unwrap_or_default() as f64
}

/// History that one thread writes and the page's thread reads.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    rows: VecDeque<[f64; COLUMNS.len()]>,
    /// Number of rows ever added.
    count: u64,
    last: Arc<Snapshot>,
    before: Option<Arc<Snapshot>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    /// Random number of this gateway. Row numbers of a new gateway restart at zero.
    id: u64,
    title: &'a str,
    columns: Vec<&'static str>,
    /// Names of the reasons in the columns `up_why` and `down_why`.
    reasons: Vec<&'static str>,
    /// Snapshot that precedes `now`.
    before: Option<&'a Snapshot>,
    now: &'a Snapshot,
    /// Row number for the page's next request.
    next: u64,
    rows: Vec<Vec<Rounded>>,
}

/// A number printed with at most two decimals, or with none from 1000 on. An hour thus takes a few hundred kilobytes.
struct Rounded(f64);

impl Serialize for Rounded {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.abs() < 1000.0 && self.0.fract() != 0.0 {
            true => to.serialize_f64((self.0 * 100.0).round() / 100.0),
            false => to.serialize_i64(self.0 as i64),
        }
    }
}

impl History {
    /// Adds a row for every snapshot until the last one.
    pub(crate) fn keep(&self, stats: &Shared) {
        let mut count = 0;
        while let Some(snapshot) = stats.next(&mut count) {
            self.add(snapshot);
        }
    }

    pub(crate) fn add(&self, now: Arc<Snapshot>) {
        let mut state = lock(&self.0);
        let was = std::mem::replace(&mut state.last, now);
        if was.format > 0 {
            let row = COLUMNS.map(|(_, value)| value(&was, &state.last));
            if state.rows.len() == HOUR {
                state.rows.pop_front();
            }
            state.rows.push_back(row);
            state.count += 1;
            state.before = Some(was);
        }
    }

    pub(crate) fn json(&self, after: u64, id: u64, title: &str) -> String {
        let state = lock(&self.0);
        let first = state.count - state.rows.len() as u64;
        // A row number above `count` comes from an earlier gateway.
        let after = if after > state.count { 0 } else { after };
        let gone = usize::try_from(after.saturating_sub(first)).unwrap_or(HOUR);
        let rows = state.rows.iter().skip(gone);
        let rows: Vec<Vec<Rounded>> = rows.map(|row| row.map(Rounded).into()).collect();
        let (next, now, before) = (state.count, state.last.clone(), state.before.clone());
        // Serialization needs no lock.
        drop(state);
        let answer = Answer {
            format: 3,
            id,
            title,
            columns: COLUMNS.map(|(name, _)| name).into(),
            reasons: Reason::ALL.iter().map(|reason| reason.name()).collect(),
            before: before.as_deref(),
            now: &now,
            next,
            rows,
        };
        serde_json::to_string(&answer).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(seconds: u64) -> History {
        let history = History::default();
        for second in 0..=seconds {
            let mut snapshot = Snapshot {
                format: 1,
                time: second as f64,
                interval: 1.0,
                ..Snapshot::default()
            };
            snapshot.up.acknowledged = second * 1000;
            snapshot.up.ack.dropped = second * 3;
            snapshot.up.ack.filtered = second * 5;
            snapshot.down.data.packets = second * 7;
            history.add(Arc::new(snapshot));
        }
        history
    }

    fn rows(history: &History, after: u64) -> (Vec<serde_json::Value>, u64) {
        let answer: serde_json::Value =
            serde_json::from_str(&history.json(after, 7, "it")).unwrap();
        let rows = answer["rows"].as_array().unwrap().clone();
        (rows, answer["next"].as_u64().unwrap())
    }

    #[test]
    fn it_has_one_hour_at_most_and_returns_new_values() {
        let history = history(5000);
        let (all, next) = rows(&history, 0);
        assert_eq!((all.len(), next), (HOUR, 5000));
        assert_eq!(all[0][0], 1401);
        let (new, _) = rows(&history, 4998);
        assert_eq!((new.len(), &new[0][0]), (2, &4999.into()));
        assert_eq!(rows(&history, 5000).0.len(), 0);
        // A row number of an earlier gateway.
        assert_eq!(rows(&history, 9000).0.len(), HOUR);
    }

    #[test]
    fn counters_become_rates() {
        let history = history(10);
        let (all, _) = rows(&history, 9);
        let column = |name| COLUMNS.iter().position(|(of, _)| *of == name).unwrap();
        assert_eq!(all[0][column("up_acked")], 8000);
        let answer = history.json(9, 7, "it");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        for (snapshot, second) in [("before", 9), ("now", 10)] {
            assert_eq!(answer[snapshot]["up"]["ack"]["filtered"], second * 5);
            assert_eq!(answer[snapshot]["down"]["data"]["packets"], second * 7);
        }
    }

    #[test]
    fn a_learnt_rate_has_its_reason() {
        let history = history(1);
        let mut snapshot = Snapshot {
            format: 1,
            interval: 1.0,
            ..Snapshot::default()
        };
        snapshot.up.control.insert("auto_rate", 3e6);
        let reason = Reason::Search;
        snapshot.up.control.insert(reason.variable(), 1.0);
        history.add(Arc::new(snapshot));
        let answer = history.json(1, 7, "it");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let column = |name| COLUMNS.iter().position(|(of, _)| *of == name).unwrap();
        let row = &answer["rows"][0];
        assert_eq!(row[column("up_learnt")], 3_000_000);
        let why = row[column("up_why")].as_u64().unwrap() as usize;
        assert_eq!(answer["reasons"][why], reason.name());
        assert_eq!(row[column("down_learnt")], 0);
    }
}
