//! Shows a claim's conditions: the sides of each with their intervals, and the accepted range of the left side.

use super::columns::Columns;
use super::contents::shown_for;
use super::figure::ends;
use super::markdown::compared;
use super::verdict::{badge, reason};
use crate::experiment::Role;
use crate::expression::Answer;
use crate::outcome::Outcome;
use crate::verdict::{Check, Deciding, Finding, Verdict};
use horrorshow::{RenderOnce, owned_html};

/// A claim with the values that determined its verdict, and the reason why it is not reproduced.
pub(super) fn claim(
    outcome: &Outcome,
    finding: &Finding<'_>,
    columns: &Columns,
) -> impl RenderOnce {
    let reason = match finding.verdict {
        Verdict::Reproduced => String::new(),
        _ => reason(finding, columns),
    };
    let second = columns.second(finding);
    owned_html! {
        li(class=format_args!("claim {}", shown_for(finding.verdict))) {
            div(class="says") {
                : &finding.claim.says;
                @ if !reason.is_empty() { span(class="because") : reason; }
            }
            div(class="checks") { @ for check in &finding.checks { : condition(outcome, check); } }
            div(class="badge") {
                : badge(finding.verdict);
                @ if let Some(second) = second {
                    div(class="small faint") {
                        : "settings found: "; : badge(second);
                    }
                }
            }
        }
    }
}

fn condition(outcome: &Outcome, check: &Check<'_>) -> impl RenderOnce {
    let (sign, class) = match check.answer {
        Answer::Yes => ("✓", "holds"),
        Answer::No => ("✗", "fails"),
        Answer::Open => ("?", "undecided"),
    };
    owned_html! {
        div(class="check") {
            div { code : check.condition.to_string(); @ if let Some(note) = note(check.role) { span(class="faint") : note; } }
            @ if let Some(deciding) = &check.deciding { : strip(class, deciding); }
            div(class="numbers") {
                span(class=class) : sign; : " ";
                : compared(outcome, check).unwrap_or_else(|| "no value".to_owned());
            }
        }
    }
}

/// Note on the role of a condition in the verdict.
const fn note(role: Role) -> Option<&'static str> {
    match role {
        Role::Number => None,
        Role::Shape => Some(" (shape)"),
        Role::Precondition => Some(" (only if)"),
    }
}

/// Draws both sides on one axis: the accepted range as a band, the left side as a dot with an interval, the right side
/// as a ring with an interval, or as a diamond if it is a constant of the claim.
fn strip(class: &'static str, deciding: &Deciding) -> impl RenderOnce + use<> {
    const WIDTH: f64 = 200.0;
    let (found, expected) = (deciding.found, deciding.expected);
    let low = expected.mean + deciding.accepted.low;
    let high = expected.mean + deciding.accepted.high;
    let intervals = [found.low(), found.high(), expected.low(), expected.high()];
    let (minimum, maximum) = ends(intervals.into_iter().chain([low, high]));
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
