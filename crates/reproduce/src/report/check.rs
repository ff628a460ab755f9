//! A condition of a claim: both sides with their intervals, and where the left one had to lie.

use super::contents::shown_for;
use super::verdict::{badge, reason};
use crate::expression::{Answer, Expression, Relation};
use crate::outcome::{Outcome, number};
use crate::statistics::Estimate;
use crate::verdict::{Check, Finding, Verdict};
use maud::{Markup, html};

/// A claim with the values that decided, and why it is not reproduced.
pub(super) fn claim(
    outcome: &Outcome,
    finding: &Finding<'_>,
    extent: Extent,
    preview: bool,
) -> Markup {
    let shown: Vec<&Check<'_>> = match extent {
        Extent::Whole => finding.checks.iter().collect(),
        Extent::Deciding => deciding(finding),
    };
    html! {
        li class=(format!("claim {}", shown_for(finding.verdict))) {
            div.says {
                @if extent == Extent::Deciding {
                    a.place href=(format!("#{}", outcome.experiment.name)) { (outcome.experiment.place()) } " "
                }
                (finding.claim.says)
                @if finding.verdict != Verdict::Reproduced {
                    @let reason = reason(finding, preview);
                    @if !reason.is_empty() { span.because { (reason) } }
                }
                @if let (Extent::Whole, Some(changed)) = (extent, &finding.claim.changed) {
                    span.because { "Changed: " (changed) }
                }
            }
            div.checks { @for check in shown { (condition(outcome, check, extent)) } }
            div.badge { (badge(finding.verdict)) }
        }
    }
}

/// How many conditions of a claim to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All, as they are written in the file.
    Whole,
    /// Those that decided.
    Deciding,
}

/// Up to three conditions that do not hold, else the first two.
fn deciding<'a>(finding: &'a Finding<'a>) -> Vec<&'a Check<'a>> {
    let fails = |check: &&Check<'_>| check.answer != Answer::Yes;
    let failing: Vec<&Check<'_>> = finding.checks.iter().filter(fails).take(3).collect();
    match failing.is_empty() {
        true => finding.checks.iter().take(2).collect(),
        false => failing,
    }
}

fn condition(outcome: &Outcome, check: &Check<'_>, extent: Extent) -> Markup {
    let (sign, class) = match check.answer {
        Answer::Yes => ("✓", "holds"),
        Answer::No => ("✗", "fails"),
        Answer::Open => ("?", "undecided"),
    };
    html! {
        div.check {
            @if extent == Extent::Whole {
                div { code { (check.condition) } @if check.shape { span.faint { " (shape)" } } }
            }
            (strip(check))
            div.numbers { span class=(class) { (sign) } " " (numbers(outcome, check)) }
        }
    }
}

/// `AQ 0.965 ± 0.027 > DropTail 0.841 ± 0.010 at 10mbit`.
fn numbers(outcome: &Outcome, check: &Check<'_>) -> Markup {
    let condition = check.condition;
    let left = name(outcome, &condition.subject);
    let right = condition.object.as_ref().and_then(|o| name(outcome, o));
    let (Some(found), Some(expected)) = (check.found, check.expected) else {
        return html! { "no value" };
    };
    let not = match check.answer {
        Answer::Yes => "",
        Answer::No => "not ",
        Answer::Open => "not surely ",
    };
    html! {
        @match condition.relation {
            Relation::Above | Relation::Below => {
                (value(left, found)) " " span.wanted {
                    (not) (if condition.relation == Relation::Above { "> " } else { "< " })
                }
                (value(right, expected))
                @if condition.within() > 0.0 { span.faint { " (" (number(condition.within())) " short of it accepted)" } }
            }
            Relation::Equal => {
                (value(left, found)) " " span.wanted { (not) "= " }
                (value(right, expected)) span.faint { " ± " (number(condition.within())) " accepted" }
            }
            Relation::Rising | Relation::Falling => {
                (value(left, expected)) " to " (value(None, found)) " "
                span.wanted { (not) (if condition.relation == Relation::Rising { "rising" } else { "falling" }) }
            }
        }
        @if let Some(at) = &check.at { span.faint { " at " (at) } }
        @if let Some(difference) = check.difference.filter(|_| expected.half_width > 0.0) {
            span.faint { ", difference " (with_interval(difference)) }
        }
    }
}

fn value(name: Option<&str>, estimate: Estimate) -> Markup {
    html! {
        @if let Some(name) = name { (name) " " }
        span.value { (with_interval(estimate)) }
    }
}

/// The title of the series, if an expression is a measure of one.
fn name<'a>(outcome: &'a Outcome, expression: &Expression) -> Option<&'a str> {
    let (series, ..) = outcome.experiment.resolve(expression.as_name()?).ok()?;
    Some(&outcome.experiment.series[series].title)
}

pub(super) fn with_interval(estimate: Estimate) -> String {
    match estimate.half_width > 0.0 {
        true => format!(
            "{} ± {}",
            number(estimate.mean),
            number(estimate.half_width)
        ),
        false => number(estimate.mean),
    }
}

/// Both sides on one axis: the accepted range as a band, the left side as a dot and the right side as
/// a ring with their intervals, or as a diamond if it is a number of the claim.
fn strip(check: &Check<'_>) -> Markup {
    const WIDTH: f64 = 200.0;
    let (Some(found), Some(expected)) = (check.found, check.expected) else {
        return html! {};
    };
    let accepted = check
        .accepted
        .map(|range| (expected.mean + range.low, expected.mean + range.high));
    let (low, high) = accepted.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let ends = [
        found.low(),
        found.high(),
        expected.low(),
        expected.high(),
        low,
        high,
    ];
    let ends = ends.into_iter().filter(|end| end.is_finite());
    let least = ends.clone().fold(f64::INFINITY, f64::min);
    let most = ends.fold(f64::NEG_INFINITY, f64::max);
    let span = if most > least { most - least } else { 1.0 };
    let x = |value: f64| {
        let share = (value - least) / span * 0.8 + 0.1;
        (share.clamp(0.0, 1.0) * WIDTH * 10.0).round() / 10.0
    };
    let class = match check.answer {
        Answer::Yes => "found holds",
        Answer::No => "found fails",
        Answer::Open => "found undecided",
    };
    html! {
        svg.strip viewBox="0 0 200 20" width="200" height="20" aria-hidden="true" {
            rect.accepted x=(x(low)) y="1" width=(x(high) - x(low)) height="18" {}
            path.axis d="M0 10 H200" {}
            @if expected.half_width > 0.0 {
                path.other d=(format!("M{} 14 H{}", x(expected.low()), x(expected.high()))) {}
                circle.other cx=(x(expected.mean)) cy="14" r="3.5" {}
            } @else {
                @let at = x(expected.mean);
                path.other d=(format!("M{at} 4 L{} 10 L{at} 16 L{} 10 Z", at + 5.0, at - 5.0)) {}
            }
            g class=(class) {
                @let y = if expected.half_width > 0.0 { 6 } else { 10 };
                path d=(format!("M{} {y} H{}", x(found.low()), x(found.high()))) {}
                circle cx=(x(found.mean)) cy=(y) r="3.5" {}
            }
        }
    }
}
