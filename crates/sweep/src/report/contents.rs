//! Navigation in a long report without JavaScript: claims by verdict, a filter by verdict, and the table of contents.

use super::verdict::{badge, class, counts, sign};
use super::{Collection, Group, OWN};
use crate::outcome::Outcome;
use crate::verdict::{Finding, Verdict};
use horrorshow::{RenderOnce, owned_html};

pub(super) type Found<'a> = (&'a Outcome, Vec<Finding<'a>>);

pub(super) fn with_findings<'a>(outcomes: &[&'a Outcome]) -> Vec<Found<'a>> {
    outcomes
        .iter()
        .map(|&outcome| (outcome, outcome.findings()))
        .collect()
}

/// Style rules of the filter. A verdict's button hides elements without a claim of this verdict.
pub(super) fn filter_rules() -> String {
    let rule = |verdict| {
        let class = class(verdict);
        format!(
            "body:has(#show-{class}:checked) :is(.claim,.figure,.group,.entry):not(.is-{class},:has(.is-{class}))\
             {{display:none}}\n"
        )
    };
    Verdict::ALL.map(rule).concat()
}

/// Class of elements that the filter shows for a verdict.
pub(super) fn shown_for(verdict: Verdict) -> String {
    format!("is-{}", class(verdict))
}

/// Number of claims per verdict, each with a button that shows only these claims.
pub(super) fn filter(findings: &[Found<'_>]) -> impl RenderOnce {
    let all = findings.iter().flat_map(|(_, findings)| findings);
    let counts = counts(all.clone());
    owned_html! {
        fieldset(class="filter") {
            legend : "Claims by verdict: choose which to show";
            div(class="choices") {
                label(class="choice") {
                    input(type="radio", name="show", id="show-all", checked);
                    b : all.count(); span(class="verdict") : "all";
                }
                @ for &(verdict, count) in &counts {
                    label(class="choice") {
                        input(type="radio", name="show", id=format_args!("show-{}", class(verdict)));
                        b : count; : badge(verdict);
                    }
                }
            }
        }
        div(class="bar", aria-hidden="true") {
            @ for &(verdict, count) in &counts {
                div(class=class(verdict), style=format_args!("flex:{count}")) {}
            }
        }
    }
}

/// Links to every figure and table, with the verdicts of its claims.
pub(super) fn contents(findings: &[Found<'_>], groups: &[Group]) -> impl RenderOnce {
    owned_html! {
        nav(id="contents", aria-label="Contents") {
            @ for (paper, name, _) in groups {
                div(class="group") {
                    a(class="name", href=format_args!("#{paper}")) : name;
                    ul(class="entries") {
                        @ for (outcome, findings) in of_paper(findings, paper) {
                            li(class="entry") {
                                a(href=format_args!("#{}", outcome.experiment.name)) : outcome.experiment.place();
                                @ for (verdict, count) in counts(findings.iter()) { : " "; : dots(verdict, count); }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Draws one sign per claim with this verdict.
fn dots(verdict: Verdict, count: usize) -> impl RenderOnce {
    let classes = format!("dots {} {}", class(verdict), shown_for(verdict));
    owned_html! {
        span(class=classes, title=format_args!("{count} {verdict}")) {
            span(aria-hidden="true") : sign(verdict).repeat(count);
            span(class="unseen") : format_args!(", {count} {verdict}");
        }
    }
}

/// The groups of the experiments, in order.
pub(super) fn groups<'a>(
    outcomes: impl Iterator<Item = &'a Outcome> + Clone,
    collection: &Collection,
) -> Vec<Group> {
    let own = ("own", OWN.title, "");
    let all = collection.groups.iter().copied().chain([own]);
    let has = |paper: &str| outcomes.clone().any(|o| o.experiment.paper() == paper);
    all.filter(|(paper, ..)| has(paper)).collect()
}

/// Findings about the experiments of a paper.
pub(super) fn of_paper<'a>(
    findings: &'a [Found<'a>],
    paper: &str,
) -> impl Iterator<Item = &'a Found<'a>> {
    let mine = move |(outcome, _): &&Found<'_>| outcome.experiment.paper() == paper;
    findings.iter().filter(mine)
}
