//! The results of an experiment as a table beside the published values.

use super::figure::published;
use crate::experiment::Series;
use crate::outcome::Outcome;
use horrorshow::{RenderOnce, owned_html};

/// A column: the measure by index, its digits, and whether a published value and ns-2's stand beside it.
struct Column {
    measure: usize,
    digits: usize,
    published: bool,
    ns2: bool,
}

/// A row per series and point, columns per measure: ours, the published value and ns-2's.
pub(super) fn table(outcome: &Outcome) -> impl RenderOnce {
    let experiment = &outcome.experiment;
    let swept = experiment.points.len() > 1;
    let columns = columns(outcome);
    let width = columns
        .iter()
        .map(|c| 1 + usize::from(c.published) + usize::from(c.ns2))
        .sum::<usize>();
    let settled = settled(outcome);
    let all = 1 + width + usize::from(settled);
    let label = format!("The numbers of {}", experiment.place());
    owned_html! {
        div(class="wide", role="region", aria-label=label, tabindex="0") { table {
            thead { tr {
                th(scope="col") { @ if swept { : &experiment.axis; } }
                @ for column in &columns {
                    th(class="n", scope="col") : experiment.measures[column.measure].label();
                    @ if column.published { th(class="n", scope="col") : published(experiment); }
                    @ if column.ns2 { th(class="n", scope="col") : "ns-2"; }
                }
                @ if settled { th(class="n", scope="col") : "settled at, s"; }
            } }
            @ for (index, series) in experiment.series.iter().enumerate() {
                tbody {
                    @ if swept {
                        tr { th(class="series", scope="rowgroup", colspan=all) : &series.title; }
                    }
                    @ for (point, at) in experiment.points.iter().enumerate() {
                        tr {
                            th(scope="row") : if swept { &at.label } else { &series.title };
                            @ for column in &columns { : cells(outcome, (index, point), column); }
                            @ if settled {
                                td(class="n") { @ if let Some(window) = outcome.window(index, point) {
                                    : digits(window.from_s.mean, 0);
                                    @ if !window.converged() { : " (not)"; }
                                } }
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// Whether the results say when runs settled.
fn settled(outcome: &Outcome) -> bool {
    let experiment = &outcome.experiment;
    (0..experiment.series.len())
        .any(|s| (0..experiment.points.len()).any(|point| outcome.window(s, point).is_some()))
}

fn columns(outcome: &Outcome) -> Vec<Column> {
    let experiment = &outcome.experiment;
    let in_paper = |measure: usize| {
        let has = |series: &Series| series.paper.keys().any(|&(m, _)| m == measure);
        experiment.series.iter().any(has)
    };
    let in_ns2 = |measure: usize| {
        (0..experiment.series.len()).any(|series| {
            (0..experiment.points.len()).any(|point| outcome.ns2(series, point, measure).is_some())
        })
    };
    let measures = experiment.measures.iter().enumerate();
    measures
        .map(|(measure, about)| Column {
            measure,
            digits: about.digits,
            published: in_paper(measure),
            ns2: in_ns2(measure),
        })
        .collect()
}

fn cells(outcome: &Outcome, (series, point): (usize, usize), column: &Column) -> impl RenderOnce {
    let ours = match outcome.estimate(series, point, column.measure) {
        None => "–".to_owned(),
        Some(estimate) if outcome.runs() < 2 => digits(estimate.mean, column.digits),
        Some(estimate) => format!(
            "{} ± {}",
            digits(estimate.mean, column.digits),
            digits(estimate.half_width, column.digits)
        ),
    };
    let paper = &outcome.experiment.series[series].paper;
    let paper = paper.get(&(column.measure, point)).copied();
    let ns2 = outcome.ns2(series, point, column.measure).map(|e| e.mean);
    let text = |value: Option<f64>| value.map(|value| digits(value, column.digits));
    owned_html! {
        td(class="n") : ours;
        @ if column.published { td(class="n paper") : text(paper); }
        @ if column.ns2 { td(class="n paper") : text(ns2); }
    }
}

fn digits(value: f64, digits: usize) -> String {
    format!("{value:.digits$}").replace('-', "−")
}
