//! The last hour of a gateway, in bounded memory, for its page.

use crate::snapshot::{ClassSnapshot, DirectionSnapshot, Shared, Snapshot};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Seconds that are kept.
const HOUR: usize = 3600;

/// A column's name, and its value from two snapshots in a row.
type Column = (&'static str, fn(&Snapshot, &Snapshot) -> f64);

const COLUMNS: [Column; 29] = [
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
    ("dropped_ack", |was, now| dropped(was, now, |of| &of.ack)),
    ("dropped_data", |was, now| dropped(was, now, |of| &of.data)),
    ("dropped_other", |was, now| {
        dropped(was, now, |of| &of.other)
    }),
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

fn dropped(was: &Snapshot, now: &Snapshot, class: fn(&DirectionSnapshot) -> &ClassSnapshot) -> f64 {
    let of = |of: &Snapshot| class(&of.up).dropped;
    match now.interval > 0.0 {
        true => of(now).saturating_sub(of(was)) as f64 / now.interval,
        false => 0.0,
    }
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
    control: &'a std::collections::BTreeMap<&'static str, f64>,
    /// What to ask for after this.
    next: u64,
    rows: Vec<Vec<Rounded>>,
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
        state.last = Some(now.clone());
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
        // What is slow is done without the lock.
        drop(state);
        let answer = Answer {
            format: 1,
            id,
            title,
            capacity: Capacity {
                up: last.up.capacity,
                down: last.down.capacity,
            },
            columns: COLUMNS.map(|(name, _)| name).into(),
            control: &last.up.control,
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
        assert_eq!(all[0][column("dropped_ack")], 3);
    }
}
