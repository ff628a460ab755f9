//! Tables of results: measures beside published values, claims with their verdicts.

use super::column::Row;
use super::runs::identity;
use super::{Cell, EachRow};
use crate::experiment::Role;
use crate::seeds::Decided;
use crate::statistics::Estimate;
use std::io;

/// One row per series, point and measure: mean over the runs, 95 % confidence interval, and published value, if any.
pub(super) fn measures(decided: &Decided, each: &mut EachRow<'_>) -> io::Result<()> {
    for outcome in &decided.outcomes {
        let experiment = &outcome.experiment;
        for at in experiment.places() {
            let runs = outcome.at(at);
            for (measure, about) in experiment.measures.iter().enumerate() {
                let mut row = identity(experiment, at);
                row.text("measure", &about.id);
                row.text("title", &about.title);
                row.text("unit", &about.unit);
                put(&mut row, "value", runs.estimate(measure));
                row.number(
                    "settled_from_s",
                    runs.window.map(|window| window.from_s.mean),
                );
                row.put("runs", Cell::Whole(runs.count() as u64));
                row.number("paper", experiment.cell(at).paper[measure]);
                each(row)?;
            }
        }
    }
    Ok(())
}

/// One row per condition of each claim. A row contains both sides and their difference with intervals, the accepted
/// range of the difference, and the verdict.
pub(super) fn claims(decided: &Decided, each: &mut EachRow<'_>) -> io::Result<()> {
    for outcome in &decided.outcomes {
        for finding in outcome.findings() {
            for check in &finding.checks {
                let deciding = check.deciding.as_ref();
                let mut row = Row::default();
                row.text("experiment", &outcome.experiment.name);
                row.text("claim", &finding.claim.id);
                row.text("says", &finding.claim.says);
                row.text("verdict", &finding.verdict.to_string());
                row.text("condition", &check.condition.to_string());
                row.put("shape_only", Cell::Truth(check.role == Role::Shape));
                row.put(
                    "precondition",
                    Cell::Truth(check.role == Role::Precondition),
                );
                row.text("answer", check.answer.name());
                row.text(
                    "point",
                    deciding.and_then(|d| d.at.as_deref()).unwrap_or_default(),
                );
                row.put("seeds", Cell::Whole(deciding.map_or(0, |d| d.seeds as u64)));
                put(&mut row, "found", deciding.map(|d| d.found));
                put(&mut row, "expected", deciding.map(|d| d.expected));
                put(&mut row, "difference", deciding.map(|d| d.difference));
                row.number("accepted_low", deciding.map(|d| d.accepted.low));
                row.number("accepted_high", deciding.map(|d| d.accepted.high));
                each(row)?;
            }
        }
    }
    Ok(())
}

/// Stores the mean in column `name`, and its interval in two further columns.
fn put(row: &mut Row, name: &str, estimate: Option<Estimate>) {
    row.number(name, estimate.map(|e| e.mean));
    row.number(&format!("{name}_low"), estimate.map(Estimate::low));
    row.number(&format!("{name}_high"), estimate.map(Estimate::high));
}
