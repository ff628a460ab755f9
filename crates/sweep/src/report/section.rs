//! Section of the report about one experiment: quotation, figures, numbers, claims and settings.

use super::check::claim;
use super::columns::Columns;
use super::{figure, table};
use crate::outcome::{Outcome, Runs};
use crate::prose;
use crate::verdict::Finding;
use horrorshow::{RenderOnce, owned_html};

/// The section of an experiment with its claims.
pub(super) fn section(
    outcome: &Outcome,
    findings: &[Finding<'_>],
    columns: &Columns,
) -> impl RenderOnce {
    let experiment = &outcome.experiment;
    let own = experiment.is_own();
    let charts = experiment.charts.iter();
    let figures: Vec<_> = charts.map(|chart| figure::figure(outcome, chart)).collect();
    let numbers = table::table(outcome);
    let assumptions: Vec<String> = experiment
        .assumptions
        .iter()
        .map(|text| match columns.preview {
            // Sentences with values describe full runs; a preview's numbers may differ.
            true => prose::without_values(text),
            false => outcome.fill_in(text),
        })
        .filter(|text| !text.is_empty())
        .collect();
    owned_html! {
        section(class="figure", id=&experiment.name, aria-label=experiment.place()) {
            // The page of a user's experiment already has this title.
            @ if !own {
                h3 { : &experiment.title; : " "; a(class="up", href="#contents") : "Contents"; }
            }
            @ if !experiment.says.is_empty() { blockquote : &experiment.says; }
            @ for figure in figures { : figure; }
            @ if own || experiment.is_table || experiment.charts.is_empty() {
                : numbers;
            } else {
                details(class="numbers") { summary : "The numbers"; : numbers; }
            }
            @ if !findings.is_empty() {
                ul(class="claims") {
                    @ for finding in findings { : claim(outcome, finding, columns); }
                }
            }
            @ if !assumptions.is_empty() {
                p(class="small") : if own { "Assumptions:" } else { "Parameters that the text leaves open:" };
                ul(class="small") { @ for assumption in assumptions { li : assumption; } }
            }
            p(class="small faint") : settings(outcome);
            details(class="file") { summary : "The experiment’s file"; pre(tabindex="0") : &experiment.text; }
        }
    }
}

/// Describes the first scenario in one line. Tables show the values that vary.
fn settings(outcome: &Outcome) -> String {
    let experiment = &outcome.experiment;
    let scenario = &experiment.series[0].cells[0].scenario;
    let window = scenario
        .window
        .map_or(String::new(), |window| format!(", window {window}"));
    let first = match (experiment.series.len(), experiment.points.len()) {
        (1, 1) => "",
        (_, 1) => "First series: ",
        _ => "First series at its first point: ",
    };
    let maximum = outcome.all().map(Runs::count).max().unwrap_or(0);
    let runs = match outcome.runs() {
        minimum if minimum < maximum => format!("{minimum} to {maximum}"),
        all => all.to_string(),
    };
    format!(
        "{first}{} up, {} down, {} up + {} down flows, RTT {}, buffers {} up and {} down, \
         {} of {} bytes{window}, {} of which the first {} are warm-up, {runs} runs.",
        scenario.up,
        scenario.down,
        scenario.flows_up,
        scenario.flows_down,
        scenario.rtt,
        scenario.buffer,
        scenario.buffer_down,
        scenario.tcp,
        scenario.mss,
        scenario.duration,
        scenario.warmup
    )
}
