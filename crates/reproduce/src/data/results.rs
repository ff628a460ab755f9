//! Tables of what was found: measures beside published values, claims with their verdicts.

use super::column::Row;
use super::runs::identity;
use super::{Cell, Table};
use crate::expression::Answer;
use crate::outcome::Outcome;
use crate::statistics::Estimate;

/// One row per series, point and measure: the mean over the runs with its 95 % confidence interval,
/// and the published value and ns-2's mean where there are any.
pub fn measures(outcomes: &[Outcome]) -> Table {
    let mut rows = Vec::new();
    for outcome in outcomes {
        let experiment = &outcome.experiment;
        for (index, series) in experiment.series.iter().enumerate() {
            for point in 0..experiment.points.len() {
                for (measure, about) in experiment.measures.iter().enumerate() {
                    let mut row = identity(experiment, series, point);
                    row.text("measure", &about.id);
                    row.text("title", &about.title);
                    row.text("unit", &about.unit);
                    put(&mut row, "value", outcome.estimate(index, point, measure));
                    let window = outcome.window(index, point);
                    row.number("settled_from_s", window.map(|window| window.from_s.mean));
                    row.put("runs", Cell::Whole(outcome.runs_at(index, point) as u64));
                    let published = series.paper.get(&(measure, point));
                    row.number("paper", published.copied());
                    let ns2 = outcome.ns2(index, point, measure);
                    row.number("ns2", ns2.map(|estimate| estimate.mean));
                    rows.push(row);
                }
            }
        }
    }
    Table::new("measures", rows)
}

/// One row per condition of each claim: both sides and their difference with the intervals, where
/// the difference must lie, and the claim's verdict.
pub fn claims(outcomes: &[Outcome]) -> Table {
    let mut rows = Vec::new();
    for outcome in outcomes {
        for finding in outcome.findings() {
            for check in &finding.checks {
                let mut row = Row::default();
                row.text("experiment", &outcome.experiment.name);
                row.text("claim", &finding.claim.id);
                row.text("says", &finding.claim.says);
                row.text("verdict", &finding.verdict.to_string());
                row.text("condition", &check.condition.to_string());
                row.put("shape_only", Cell::Truth(check.shape));
                row.text("answer", answer(check.answer));
                row.text("point", check.at.as_deref().unwrap_or_default());
                row.put("seeds", Cell::Whole(check.seeds as u64));
                put(&mut row, "found", check.found);
                put(&mut row, "expected", check.expected);
                put(&mut row, "difference", check.difference);
                row.number("accepted_low", check.accepted.map(|range| range.low));
                row.number("accepted_high", check.accepted.map(|range| range.high));
                rows.push(row);
            }
        }
    }
    Table::new("claims", rows)
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Open => "open",
    }
}

/// The mean in the column `name`, its interval in two more.
fn put(row: &mut Row, name: &str, estimate: Option<Estimate>) {
    row.number(name, estimate.map(|e| e.mean));
    row.number(&format!("{name}_low"), estimate.map(Estimate::low));
    row.number(&format!("{name}_high"), estimate.map(Estimate::high));
}
