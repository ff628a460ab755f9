//! The last hour of a gateway, in bounded memory, for its page.

use crate::snapshot::{ClassSnapshot, DirectionSnapshot, Shared, Snapshot};
use asymq_rates::Reason;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Seconds that are kept.
const HOUR: usize = 3600;

/// A column's name, and its value from two snapshots in a row.
type Column = (&'static str, fn(&Snapshot, &Snapshot) -> f64);

const COLUMNS: [Column; 30] = [
    ("time", |_, now| now.time),
    ("up_all", |_, now| now.up.rate),
    ("up_data", |_, now| now.up.data.rate),
    ("up_acked", |was, now| acked(&was.up, &now.up, now)),
    ("down_all", |_, now| now.down.rate),
    ("down_data", |_, now| now.down.data.rate),
    ("down_acked", |was, now| acked(&was.down, &now.down, now)),
    ("up_backlog_ack", |_, now| now.up.ack.backlog_packets.into()),
    ("up_backlog_data", |_, now| {
        now.up.data.backlog_packets.into()
    }),
    ("up_backlog_other", |_, now| {
        now.up.other.backlog_packets.into()
    }),
    ("down_backlog_ack", |_, now| {
        now.down.ack.backlog_packets.into()
    }),
    ("down_backlog_data", |_, now| {
        now.down.data.backlog_packets.into()
    }),
    ("down_backlog_other", |_, now| {
        now.down.other.backlog_packets.into()
    }),
    ("wait_ack", |_, now| now.up.ack.sojourn_p99_ms),
    ("wait_data", |_, now| now.up.data.sojourn_p99_ms),
    ("wait_other", |_, now| now.up.other.sojourn_p99_ms),
    ("down_wait_ack", |_, now| now.down.ack.sojourn_p99_ms),
    ("down_wait_data", |_, now| now.down.data.sojourn_p99_ms),
    ("down_wait_other", |_, now| now.down.other.sojourn_p99_ms),
    ("round_trip_ack", |_, now| now.up.ack.round_trip_p50_ms),
    ("round_trip_data", |_, now| now.up.data.round_trip_p50_ms),
    ("round_trip_other", |_, now| now.up.other.round_trip_p50_ms),
    ("acks_sent", |was, now| {
        per_second(was, now, |of| of.up.ack.packets)
    }),
    ("acks_filtered", |was, now| {
        per_second(was, now, |of| of.up.ack.filtered)
    }),
    ("up_learnt", |_, now| learnt(&now.up)),
    ("up_why", |_, now| why(&now.up)),
    ("down_learnt", |_, now| learnt(&now.down)),
    ("down_why", |_, now| why(&now.down)),
    ("changes", |_, now| now.changes as f64),
    ("lost", |_, now| {
        (now.losses.lan + now.losses.wan).total() as f64
    }),
];

fn per_second(was: &Snapshot, now: &Snapshot, count: fn(&Snapshot) -> u64) -> f64 {
    match now.interval > 0.0 {
        true => count(now).saturating_sub(count(was)) as f64 / now.interval,
        false => 0.0,
    }
}

/// The rate that is learnt; 0 if none is.
fn learnt(of: &DirectionSnapshot) -> f64 {
    of.control.get("auto_rate").copied().unwrap_or_default()
}

/// The place in [`Reason::ALL`] of why it was moved last.
fn why(of: &DirectionSnapshot) -> f64 {
    let holds = |reason: &Reason| of.control.contains_key(reason.variable());
    Reason::ALL.iter().position(holds).unwrap_or_default() as f64
}

/// In bit/s.
fn acked(was: &DirectionSnapshot, is: &DirectionSnapshot, now: &Snapshot) -> f64 {
    match now.interval > 0.0 {
        true => is.acknowledged.saturating_sub(was.acknowledged) as f64 * 8.0 / now.interval,
        false => 0.0,
    }
}

/// Written by one thread, read by that of the page.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    rows: VecDeque<[f64; COLUMNS.len()]>,
    /// Rows so far, those that are gone among them.
    count: u64,
    last: Option<Snapshot>,
    before: Option<Snapshot>,
}

/// An answer of the page's server.
#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    /// Of this gateway: another counts from the start.
    id: u64,
    title: &'a str,
    capacity: Capacity,
    columns: Vec<&'static str>,
    control: &'a BTreeMap<&'static str, f64>,
    control_down: &'a BTreeMap<&'static str, f64>,
    /// Reasons for which a learnt rate moves, by number.
    reasons: Vec<&'static str>,
    /// The last second.
    now: BothWays,
    /// The number of the first answer after this one.
    next: u64,
    rows: Vec<Vec<Rounded>>,
}

#[derive(Default, Serialize)]
struct BothWays {
    up: BTreeMap<&'static str, ClassNow>,
    down: BTreeMap<&'static str, ClassNow>,
}

/// A class of traffic in one direction, packets per second.
#[derive(Serialize)]
struct ClassNow {
    sent: f64,
    filtered: f64,
    dropped: f64,
    marked: f64,
    sojourn_p99_ms: f64,
    round_trip_p50_ms: f64,
}

impl BothWays {
    fn new(was: &Snapshot, now: &Snapshot) -> Self {
        let way = |was: &DirectionSnapshot, is: &DirectionSnapshot| {
            let classes = was.classes().into_iter().zip(is.classes());
            let classes = classes.map(|((class, was), (_, is))| {
                let rate = |of: fn(&ClassSnapshot) -> u64| {
                    let count = of(is).saturating_sub(of(was)) as f64;
                    (count / now.interval.max(1e-3)).round()
                };
                let row = ClassNow {
                    sent: rate(|of| of.packets),
                    filtered: rate(|of| of.filtered),
                    dropped: rate(|of| of.dropped),
                    marked: rate(|of| of.marked),
                    sojourn_p99_ms: is.sojourn_p99_ms,
                    round_trip_p50_ms: is.round_trip_p50_ms,
                };
                (class.name(), row)
            });
            classes.collect()
        };
        Self {
            up: way(&was.up, &now.up),
            down: way(&was.down, &now.down),
        }
    }
}

#[derive(Serialize)]
struct Capacity {
    up: u64,
    down: u64,
}

/// Without digits that nobody sees: an hour is some hundred kilobytes.
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
    /// Keeps every snapshot until the last.
    pub(crate) fn keep(&self, stats: &Shared) {
        let mut seen = 0;
        while let Some(snapshot) = stats.next(&mut seen) {
            self.add(&snapshot);
        }
    }

    pub(crate) fn add(&self, now: &Snapshot) {
        let mut state = self.lock();
        if let Some(was) = &state.last {
            let row = COLUMNS.map(|(_, value)| value(was, now));
            if state.rows.len() == HOUR {
                state.rows.pop_front();
            }
            state.rows.push_back(row);
            state.count += 1;
        }
        state.before = state.last.replace(now.clone());
    }

    /// All rows after the `after`-th, as JSON.
    pub(crate) fn json(&self, after: u64, id: u64, title: &str) -> String {
        let state = self.lock();
        let first = state.count - state.rows.len() as u64;
        // One who asks for more than there is knows another gateway.
        let after = if after > state.count { 0 } else { after };
        let gone = usize::try_from(after.saturating_sub(first)).unwrap_or(HOUR);
        let rows = state.rows.iter().skip(gone);
        let rows: Vec<Vec<Rounded>> = rows.map(|row| row.map(Rounded).into()).collect();
        let (next, last) = (state.count, state.last.clone().unwrap_or_default());
        let before = state.before.clone();
        // What is slow is done without the lock.
        drop(state);
        let answer = Answer {
            format: 2,
            id,
            title,
            capacity: Capacity {
                up: last.up.capacity,
                down: last.down.capacity,
            },
            columns: COLUMNS.map(|(name, _)| name).into(),
            control: &last.up.control,
            control_down: &last.down.control,
            reasons: Reason::ALL.iter().map(|reason| reason.name()).collect(),
            now: before.map_or_else(BothWays::default, |before| BothWays::new(&before, &last)),
            next,
            rows,
        };
        serde_json::to_string(&answer).unwrap_or_default()
    }

    /// Each row is whole before it is added, so that a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(seconds: u64) -> History {
        let history = History::default();
        for second in 0..=seconds {
            let mut snapshot = Snapshot {
                time: second as f64,
                interval: 1.0,
                ..Snapshot::default()
            };
            snapshot.up.acknowledged = second * 1000;
            snapshot.up.ack.dropped = second * 3;
            snapshot.up.ack.filtered = second * 5;
            snapshot.down.data.packets = second * 7;
            history.add(&snapshot);
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
    fn it_has_an_hour_and_no_more_and_answers_with_what_is_new() {
        let history = history(5000);
        let (all, next) = rows(&history, 0);
        assert_eq!((all.len(), next), (HOUR, 5000));
        assert_eq!(all[0][0], 1401);
        let (new, _) = rows(&history, 4998);
        assert_eq!((new.len(), &new[0][0]), (2, &4999.into()));
        assert_eq!(rows(&history, 5000).0.len(), 0);
        // Of a gateway before.
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
        assert_eq!(answer["now"]["up"]["ack"]["dropped"], 3.0);
        assert_eq!(answer["now"]["up"]["ack"]["filtered"], 5.0);
        assert_eq!(answer["now"]["down"]["data"]["sent"], 7.0);
    }

    #[test]
    fn a_learnt_rate_has_its_reason() {
        let history = history(1);
        let mut snapshot = Snapshot {
            interval: 1.0,
            ..Snapshot::default()
        };
        snapshot.up.control.insert("auto_rate", 3e6);
        let reason = Reason::Search;
        snapshot.up.control.insert(reason.variable(), 1.0);
        history.add(&snapshot);
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
