//! Table of an experiment's results beside the published values.

use super::figure::published;
use crate::experiment::Place;
use crate::numbers::with_digits;
use crate::outcome::Outcome;
use horrorshow::{RenderOnce, owned_html};

/// A column: index of the measure, its digits, and true if it has published values.
struct Column {
    measure: usize,
    digits: usize,
    published: bool,
}

/// One row per series and point, with two columns per measure: our value and the published value.
pub(super) fn table(outcome: &Outcome) -> impl RenderOnce {
    let experiment = &outcome.experiment;
    let swept = experiment.points.len() > 1;
    let columns = columns(outcome);
    let width = columns
        .iter()
        .map(|c| 1 + usize::from(c.published))
        .sum::<usize>();
    let settled = outcome.all().any(|runs| runs.window.is_some());
    let all = 1 + width + usize::from(settled);
    let label = format!("The numbers of {}", experiment.place());
    owned_html! {
        div(class="wide", role="region", aria-label=label, tabindex="0") { table {
            thead { tr {
                th(scope="col") { @ if swept { : &experiment.axis; } }
                @ for column in &columns {
                    th(class="n", scope="col") : experiment.measures[column.measure].label();
                    @ if column.published { th(class="n", scope="col") : published(experiment); }
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
                            @ for column in &columns { : cells(outcome, Place { series: index, point }, column); }
                            @ if settled {
                                td(class="n") { @ if let Some(window) = outcome.at(Place { series: index, point }).window {
                                    : with_digits(window.from_s.mean, 0);
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

fn columns(outcome: &Outcome) -> Vec<Column> {
    let experiment = &outcome.experiment;
    let cells = experiment.series.iter().flat_map(|series| &series.cells);
    let measures = experiment.measures.iter().enumerate();
    measures
        .map(|(measure, about)| Column {
            measure,
            digits: about.digits,
            published: cells.clone().any(|cell| cell.paper[measure].is_some()),
        })
        .collect()
}

fn cells(outcome: &Outcome, at: Place, column: &Column) -> impl RenderOnce {
    let text = |value: f64| with_digits(value, column.digits);
    let ours = match outcome.at(at).estimate(column.measure) {
        None => "–".to_owned(),
        Some(estimate) if outcome.runs() < 2 => text(estimate.mean),
        Some(estimate) => format!("{} ± {}", text(estimate.mean), text(estimate.half_width)),
    };
    let paper = outcome.experiment.cell(at).paper[column.measure].map(text);
    let has_paper = column.published;
    owned_html! {
        td(class="n") : ours;
        @ if has_paper { td(class="n paper") : paper; }
    }
}
