//! The report as HTML.

use super::markdown::reason;
use super::{figure, table};
use crate::PAPERS;
use crate::expression::{Answer, Relation};
use crate::outcome::{Outcome, number};
use crate::statistics::Estimate;
use crate::verdict::{Check, Finding, Verdict};
use asymq_scenario::Scenario;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// How the runs were made, for the introduction.
#[derive(Clone, Debug)]
pub struct About {
    /// The tool's version.
    pub version: String,
    /// Whether it is a preview.
    pub quick: bool,
    /// The note on ns-2, if it was requested.
    pub ns2: Option<String>,
}

/// The report of experiments, as HTML.
///
/// # Errors
/// A figure cannot be drawn.
pub fn page(outcomes: &[Outcome], about: &About) -> anyhow::Result<String> {
    let findings: Vec<(&Outcome, Vec<Finding<'_>>)> = outcomes
        .iter()
        .map(|outcome| (outcome, outcome.findings()))
        .collect();
    let own = outcomes
        .iter()
        .all(|outcome| outcome.experiment.paper() == "own");
    let title = match outcomes {
        [only] if own => only.experiment.title.clone(),
        _ => "The papers, reproduced".to_owned(),
    };
    let mut sections = Vec::new();
    for (paper, name, authors) in groups(outcomes) {
        let mut parts = Vec::new();
        for (outcome, findings) in findings
            .iter()
            .filter(|(o, _)| o.experiment.paper() == paper)
        {
            parts.push(section(outcome, findings)?);
        }
        sections.push(html! {
            @if !own {
                h2 id=(paper) { (name) }
                p.faint { (authors) }
            }
            @for part in parts { (part) }
        });
    }
    let all: Vec<&Finding<'_>> = findings.iter().flat_map(|(_, findings)| findings).collect();
    let style = format!(
        "{}@media screen and (prefers-color-scheme:dark){{{}}}",
        include_str!("style.css"),
        asymq_charts::dark_rules()
    );
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { main {
                h1 { (title) }
                (introduction(outcomes, about))
                @if !all.is_empty() {
                    (counts(&all))
                    (front(outcomes, &findings, own))
                    (unreproduced(&findings))
                }
                @for section in sections { (section) }
            } }
        }
    };
    Ok(markup.into_string())
}

/// The papers among the experiments, in order: short name, name, authors.
fn groups(outcomes: &[Outcome]) -> Vec<(&str, &str, &str)> {
    let known = PAPERS.iter().copied();
    let own = ("own", "Experiments", "");
    known
        .chain([own])
        .filter(|(paper, ..)| outcomes.iter().any(|o| o.experiment.paper() == *paper))
        .collect()
}

fn introduction(outcomes: &[Outcome], about: &About) -> Markup {
    let runs = outcomes
        .iter()
        .filter(|o| !o.experiment.is_arithmetic())
        .map(Outcome::runs);
    let minimum = runs.min().unwrap_or(0);
    html! {
        p.faint {
            "asymq " (about.version) ". Every number is the mean over at least " (minimum) " seeded runs with its 95 % "
            "confidence interval (Student’s t). A verdict comes from intervals, 95 % for all comparisons of a claim "
            "together, and from tolerances that stand in the experiment’s file, at most a third of the effect. "
            b { "Reproduced" } ": every interval lies within its range. "
            b { "Reproduced in shape" } ": those of order, direction or trend do, one of a number lies outside. "
            b { "Not reproduced" } ": an interval lies outside. "
            b { "Undecided" } ": an interval contains an end of its range after all seeds. "
            b { "Did not converge" } ": the mechanism was still changing when the runs ended."
            @if about.quick {
                " This is a " b { "preview" } ": fewer seeds, shorter runs, fewer points."
            }
            @if let Some(ns2) = &about.ns2 { " " (ns2) }
        }
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "good",
        Verdict::InShape => "half",
        Verdict::NotReproduced => "bad",
        Verdict::Undecided | Verdict::DidNotConverge => "open",
    }
}

fn badge(verdict: Verdict) -> Markup {
    let sign = match verdict {
        Verdict::Reproduced => "●",
        Verdict::InShape => "◐",
        Verdict::NotReproduced => "○",
        Verdict::Undecided => "?",
        Verdict::DidNotConverge => "↝",
    };
    html! { span class=(format!("verdict {}", class(verdict))) { (sign) " " (verdict) } }
}

fn counts(findings: &[&Finding<'_>]) -> Markup {
    let count = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    let all = Verdict::ALL;
    html! {
        div.counts {
            @for verdict in all { div { b { (count(verdict)) } (badge(verdict)) } }
        }
        div.bar role="presentation" {
            @for verdict in all {
                div class=(class(verdict)) style=(format!("flex:{}", count(verdict))) {}
            }
        }
    }
}

/// One row per claim.
fn front(outcomes: &[Outcome], findings: &[(&Outcome, Vec<Finding<'_>>)], own: bool) -> Markup {
    html! {
        @for (paper, name, _) in groups(outcomes) {
            @if !own { h3 { a href=(format!("#{paper}")) { (name) } } }
            table {
                thead { tr { th { "" } th { "Claim" } th { "Found" } th { "Verdict" } } }
                tbody {
                    @for (outcome, findings) in findings.iter().filter(|(o, _)| o.experiment.paper() == paper) {
                        @for (index, finding) in findings.iter().enumerate() {
                            tr {
                                td.place { @if index == 0 {
                                    a href=(format!("#{}", outcome.experiment.name)) { (place(outcome)) }
                                } }
                                td { (finding.claim.says) }
                                td { (found(finding)) }
                                td { (badge(finding.verdict)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `Fig. 5`: the title up to its colon.
fn place(outcome: &Outcome) -> &str {
    outcome
        .experiment
        .title
        .split(':')
        .next()
        .unwrap_or_default()
}

/// The deciding values: of failing conditions, else of the first two.
fn found(finding: &Finding<'_>) -> Markup {
    let failing = finding
        .checks
        .iter()
        .filter(|check| check.answer != Answer::Yes);
    let failing: Vec<&Check<'_>> = failing.collect();
    let shown: Vec<&Check<'_>> = match failing.as_slice() {
        [] => finding.checks.iter().take(2).collect(),
        failing => failing.iter().copied().take(3).collect(),
    };
    html! { @for check in shown { (check_line(check)) } }
}

fn check_line(check: &Check<'_>) -> Markup {
    let several = |estimate: &Estimate| estimate.half_width > 0.0;
    html! {
        span.check {
            (check.found.map_or("–".to_owned(), with_interval))
            @if let Some(expected) = check.expected.filter(several) { " against " (with_interval(expected)) }
            @if let Some(at) = &check.at { span.faint { " at " (at) } }
            @if check.answer != Answer::Yes {
                span.fails {
                    @if check.answer == Answer::Open { " not decided to be " } @else { " not " }
                    (wanted(check))
                }
            }
        }
    }
}

fn with_interval(estimate: Estimate) -> String {
    match estimate.half_width > 0.0 {
        true => format!(
            "{} ± {}",
            number(estimate.mean),
            number(estimate.half_width)
        ),
        false => number(estimate.mean),
    }
}

/// What the condition wants, in words.
fn wanted(check: &Check<'_>) -> String {
    let expected = check.expected.map_or(String::new(), |e| number(e.mean));
    match check.condition.relation {
        Relation::Above => format!("above {expected}"),
        Relation::Below => format!("below {expected}"),
        Relation::Equal => expected,
        Relation::Rising => format!("rising from {expected}"),
        Relation::Falling => format!("falling from {expected}"),
    }
}

/// What could not be reproduced, and why.
fn unreproduced(findings: &[(&Outcome, Vec<Finding<'_>>)]) -> Markup {
    let all = || {
        findings.iter().flat_map(|(outcome, findings)| {
            let differ = findings.iter().filter(|f| f.verdict != Verdict::Reproduced);
            differ.map(move |finding| (outcome, finding))
        })
    };
    html! {
        h2 id="differs" { "What we could not reproduce, and why" }
        @if all().next().is_none() { p { "Everything was reproduced." } }
        @for verdict in Verdict::ALL.into_iter().filter(|v| *v != Verdict::Reproduced) {
            @if all().any(|(_, f)| f.verdict == verdict) {
                h3 { (badge(verdict)) }
                ul {
                    @for (outcome, finding) in all().filter(|(_, f)| f.verdict == verdict) {
                        li {
                            a href=(format!("#{}", outcome.experiment.name)) {
                                (outcome.experiment.paper()) ", " (place(outcome))
                            }
                            ": " (finding.claim.says) " "
                            span.because { (reason(finding)) }
                        }
                    }
                }
            }
        }
    }
}

/// The section of an experiment: quotation, figures, table, claims and settings.
fn section(outcome: &Outcome, findings: &[Finding<'_>]) -> anyhow::Result<Markup> {
    let experiment = &outcome.experiment;
    let mut figures = Vec::new();
    for chart in &experiment.charts {
        let svg = figure::svg(outcome, chart);
        figures.push(svg.map_err(|error| anyhow::anyhow!("{}: {error}", experiment.name))?);
    }
    let numbers = table::table(outcome);
    Ok(html! {
        h3 id=(experiment.name) { (experiment.title) }
        @if !experiment.says.is_empty() { blockquote { (experiment.says) } }
        @for figure in figures { figure { (PreEscaped(figure)) } }
        @if experiment.is_table || experiment.charts.is_empty() {
            (numbers)
        } @else {
            details { summary { "The numbers" } (numbers) }
        }
        @if !findings.is_empty() { (claims(findings)) }
        @if !experiment.assumptions.is_empty() {
            p.small { "What the text leaves open:" }
            ul.small { @for assumption in &experiment.assumptions { li { (outcome.fill_in(assumption)) } } }
        }
        p.small.faint { (settings(&experiment.series[0].scenarios[0], outcome)) }
        details { summary { "The experiment’s file" } pre { (experiment.text) } }
    })
}

/// Every claim with all of its conditions.
fn claims(findings: &[Finding<'_>]) -> Markup {
    html! {
        table {
            thead { tr { th { "Claim" } th { "Conditions, as stated beforehand, and what was found" } th { "Verdict" } } }
            tbody {
                @for finding in findings {
                    tr {
                        td {
                            (finding.claim.says)
                            @if let Some(because) = &finding.because { span.because { (because) } }
                        }
                        td { @for check in &finding.checks {
                            div.check {
                                @match check.answer {
                                    Answer::Yes => { span.holds { "✓" } }
                                    Answer::No => { span.fails { "✗" } }
                                    Answer::Open => { span.fails { "?" } }
                                }
                                " " code { (check.condition) }
                                @if check.shape { span.faint { " (shape)" } }
                                br; (check_line(check))
                            }
                        } }
                        td { (badge(finding.verdict)) }
                    }
                }
            }
        }
    }
}

/// The first scenario in one line; tables show what is swept or differs between series.
fn settings(scenario: &Scenario, outcome: &Outcome) -> String {
    let window = scenario
        .window
        .map_or(String::new(), |window| format!(", window {window}"));
    format!(
        "First series at its first point: {} up, {} down, {} up + {} down flows, RTT {}, buffers {} up and {} down, \
         {} of {} bytes{window}, {} of which the first {} are warm-up, {} runs.",
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
        scenario.warmup,
        outcome.runs()
    )
}
