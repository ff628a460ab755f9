//! The results of an experiment as a table beside the paper's values.

use crate::experiment::Series;
use crate::outcome::Outcome;
use maud::{Markup, html};

/// A row per series and point, a column per measure, and columns for values of the paper and of ns-2.
pub(super) fn table(outcome: &Outcome) -> Markup {
    let experiment = &outcome.experiment;
    let swept = experiment.points.len() > 1;
    let in_paper = |measure: usize| {
        let has = |series: &Series| series.paper.keys().any(|&(m, _)| m == measure);
        experiment.series.iter().any(has)
    };
    let in_ns2 = |measure: usize| {
        (0..experiment.series.len()).any(|series| {
            (0..experiment.points.len()).any(|point| outcome.ns2(series, point, measure).is_some())
        })
    };
    let measures: Vec<_> = experiment
        .measures
        .iter()
        .enumerate()
        .map(|(index, measure)| (index, measure, in_paper(index), in_ns2(index)))
        .collect();
    html! {
        div.wide { table {
            thead { tr {
                th { "" }
                @if swept { th.n { (experiment.axis) } }
                @for (_, measure, paper, ns2) in &measures {
                    th.n { (measure.title) }
                    @if *paper { th.n { "paper" } }
                    @if *ns2 { th.n { "ns-2" } }
                }
            } }
            tbody {
                @for (index, series) in experiment.series.iter().enumerate() {
                    @for (point, at) in experiment.points.iter().enumerate() {
                        tr {
                            td { @if point == 0 { (series.title) } }
                            @if swept { td.n { (at.label) } }
                            @for &(measure, number, paper, ns2) in &measures {
                                td.n { (cell(outcome, index, point, measure, number.digits)) }
                                @if paper {
                                    td.n.paper {
                                        @if let Some(value) = series.paper.get(&(measure, point)) {
                                            (digits(*value, number.digits))
                                        }
                                    }
                                }
                                @if ns2 {
                                    td.n.paper {
                                        @if let Some(value) = outcome.ns2(index, point, measure) {
                                            (digits(value.mean, number.digits))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        } }
    }
}

fn cell(
    outcome: &Outcome,
    series: usize,
    point: usize,
    measure: usize,
    digits_shown: usize,
) -> String {
    match outcome.estimate(series, point, measure) {
        None => "–".to_owned(),
        Some(estimate) if outcome.runs() < 2 => digits(estimate.mean, digits_shown),
        Some(estimate) => format!(
            "{} ± {}",
            digits(estimate.mean, digits_shown),
            digits(estimate.half_width, digits_shown)
        ),
    }
}

fn digits(value: f64, digits: usize) -> String {
    format!("{value:.digits$}").replace('-', "−")
}
