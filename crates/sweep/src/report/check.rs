//! A condition of a claim: both sides with their intervals, and where the left one had to lie.

use super::columns::Columns;
use super::contents::shown_for;
use super::verdict::{badge, reason};
use crate::experiment::Role;
use crate::expression::{Answer, Expression, Relation};
use crate::numbers::{number, with_interval};
use crate::outcome::Outcome;
use crate::statistics::Estimate;
use crate::verdict::{Check, Deciding, Finding, Verdict};
use horrorshow::{RenderOnce, owned_html};

/// A claim with the values that decided, and why it is not reproduced.
pub(super) fn claim(
    outcome: &Outcome,
    finding: &Finding<'_>,
    extent: Extent,
    columns: &Columns,
) -> impl RenderOnce {
    let reason = match finding.verdict {
        Verdict::Reproduced => String::new(),
        _ => reason(finding, columns),
    };
    let second = columns.second(finding);
    let changed = match extent {
        Extent::Whole => finding.claim.changed.as_ref(),
        Extent::Deciding => None,
    };
    let shown: Vec<&Check<'_>> = match extent {
        Extent::Whole => finding.checks.iter().collect(),
        Extent::Deciding => deciding(finding),
    };
    owned_html! {
        li(class=format_args!("claim {}", shown_for(finding.verdict))) {
            div(class="says") {
                @ if extent == Extent::Deciding {
                    a(class="place", href=format_args!("#{}", outcome.experiment.name)) : outcome.experiment.place();
                    : " ";
                }
                : &finding.claim.says;
                @ if !reason.is_empty() { span(class="because") : reason; }
                @ if let Some(changed) = changed { span(class="because") : format_args!("Changed: {changed}"); }
            }
            div(class="checks") { @ for check in shown { : condition(outcome, check, extent); } }
            div(class="badge") {
                : badge(finding.verdict);
                @ if let Some(second) = second {
                    div(class="small faint") { : "settings found: "; : badge(second); }
                }
            }
        }
    }
}

/// The conditions of a claim to show.
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

fn condition(outcome: &Outcome, check: &Check<'_>, extent: Extent) -> impl RenderOnce {
    let (sign, class) = match check.answer {
        Answer::Yes => ("✓", "holds"),
        Answer::No => ("✗", "fails"),
        Answer::Open => ("?", "undecided"),
    };
    owned_html! {
        div(class="check") {
            @ if extent == Extent::Whole {
                div { code : check.condition.to_string(); @ if let Some(note) = note(check.role) { span(class="faint") : note; } }
            }
            @ if let Some(deciding) = &check.deciding { : strip(class, deciding); }
            div(class="numbers") {
                span(class=class) : sign; : " ";
                @ if let Some(deciding) = &check.deciding {
                    : numbers(outcome, check, deciding);
                } else {
                    : "no value";
                }
            }
        }
    }
}

/// `AQ 0.965 ± 0.027 > DropTail 0.841 ± 0.010 at 10mbit`.
fn numbers(outcome: &Outcome, check: &Check<'_>, deciding: &Deciding) -> impl RenderOnce {
    let (found, expected) = (deciding.found, deciding.expected);
    let condition = check.condition;
    let left = name(outcome, &condition.subject);
    let right = condition.object.as_ref().and_then(|o| name(outcome, o));
    let not = not(check.answer);
    let relation = match condition.relation {
        Relation::Above => "> ",
        Relation::Below => "< ",
        Relation::Equal => "= ",
        Relation::Rising => "rising",
        Relation::Falling => "falling",
    };
    let wanted = owned_html! { span(class="wanted") : format_args!("{not}{relation}"); };
    let within = number(condition.within());
    let accepted = match condition.relation {
        Relation::Equal => format!(" ± {within} accepted"),
        Relation::Above | Relation::Below if condition.within() > 0.0 => {
            format!(" ({within} short of it accepted)")
        }
        _ => String::new(),
    };
    let difference = Some(deciding.difference).filter(|_| expected.half_width > 0.0);
    owned_html! {
        @ if condition.relation.is_trend() {
            : value(left, expected); : " to "; : value(None, found); : " "; : wanted;
        } else {
            : value(left, found); : " "; : wanted; : value(right, expected);
            @ if !accepted.is_empty() { span(class="faint") : accepted; }
        }
        @ if let Some(at) = &deciding.at { span(class="faint") : format_args!(" at {at}"); }
        @ if let Some(difference) = difference {
            span(class="faint") : format_args!(", difference {}", with_interval(difference));
        }
    }
}

/// The note on a condition's part in the verdict.
const fn note(role: Role) -> Option<&'static str> {
    match role {
        Role::Number => None,
        Role::Shape => Some(" (shape)"),
        Role::Precondition => Some(" (only if)"),
    }
}

/// The words before a relation.
pub(super) const fn not(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "",
        Answer::No => "not ",
        Answer::Open => "not surely ",
    }
}

fn value(name: Option<&str>, estimate: Estimate) -> impl RenderOnce {
    owned_html! {
        @ if let Some(name) = name { : name; : " "; }
        span(class="value") : with_interval(estimate);
    }
}

/// The title of the series, if an expression is a measure of one.
fn name<'a>(outcome: &'a Outcome, expression: &Expression) -> Option<&'a str> {
    let named = outcome.experiment.resolve(expression.as_name()?).ok()?;
    Some(&outcome.experiment.series[named.series].title)
}

/// Both sides on one axis: the accepted range as a band, the left side as a dot and the right side as
/// a ring with their intervals, or as a diamond if it is a number of the claim.
fn strip(class: &'static str, deciding: &Deciding) -> impl RenderOnce + use<> {
    const WIDTH: f64 = 200.0;
    let (found, expected) = (deciding.found, deciding.expected);
    let low = expected.mean + deciding.accepted.low;
    let high = expected.mean + deciding.accepted.high;
    let intervals = [found.low(), found.high(), expected.low(), expected.high()];
    let ends = intervals
        .into_iter()
        .chain([low, high])
        .filter(|end| end.is_finite());
    let minimum = ends.clone().fold(f64::INFINITY, f64::min);
    let maximum = ends.fold(f64::NEG_INFINITY, f64::max);
    let span = if maximum > minimum {
        maximum - minimum
    } else {
        1.0
    };
    let x = move |value: f64| {
        let share = (value - minimum) / span * 0.8 + 0.1;
        (share.clamp(0.0, 1.0) * WIDTH * 10.0).round() / 10.0
    };
    let has_interval = expected.half_width > 0.0;
    let at = x(expected.mean);
    let other = match has_interval {
        true => format!("M{} 14 H{}", x(expected.low()), x(expected.high())),
        false => format!("M{at} 4 L{} 10 L{at} 16 L{} 10 Z", at + 5.0, at - 5.0),
    };
    let y = if has_interval { 6 } else { 10 };
    owned_html! {
        svg(class="strip", viewBox="0 0 200 20", width="200", height="20", aria-hidden="true") {
            rect(class="accepted", x=x(low), y="1", width=x(high) - x(low), height="18") {}
            path(class="axis", d="M0 10 H200") {}
            path(class="other", d=other) {}
            @ if has_interval { circle(class="other", cx=at, cy="14", r="3.5") {} }
            g(class=format_args!("found {class}")) {
                path(d=format_args!("M{} {y} H{}", x(found.low()), x(found.high()))) {}
                circle(cx=x(found.mean), cy=y, r="3.5") {}
            }
        }
    }
}
