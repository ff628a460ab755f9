//! Appearance of a verdict: a sign and a colour. Each alone identifies the verdict.

use super::columns::Columns;
use crate::experiment::{Evidence, Role};
use crate::expression::Answer;
use crate::verdict::{Check, Finding, Verdict};
use horrorshow::{RenderOnce, owned_html};

/// CSS class with the colour of a verdict.
pub(super) const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "good",
        Verdict::InShape => "half",
        Verdict::NotReproduced => "bad",
        Verdict::Vacuous => "empty",
        Verdict::NumberOpen => "open",
        Verdict::ShapeOpen => "vague",
        Verdict::DidNotConverge => "moving",
    }
}

pub(super) const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "●",
        Verdict::InShape => "◐",
        Verdict::NotReproduced => "○",
        Verdict::Vacuous => "∅",
        Verdict::NumberOpen => "?",
        Verdict::ShapeOpen => "⁇",
        Verdict::DidNotConverge => "~",
    }
}

pub(super) const fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "each condition's interval lies within its accepted range.",
        Verdict::InShape => "a number is outside its range; order, direction or trend hold.",
        Verdict::NotReproduced => "a condition fails, and the claim is not reproduced in shape.",
        Verdict::Vacuous => "a precondition of the claim fails; counts as not reproduced.",
        Verdict::NumberOpen => "a number's interval contains an end of its range, after all seeds.",
        Verdict::ShapeOpen => "direction, order, trend or precondition undecided after all seeds.",
        Verdict::DidNotConverge => "the claim needs a steady state, which the runs did not reach.",
    }
}

/// Words of conditions and settings that a report uses, with their meaning.
const WORDS: &str = "\
a ± b = c (± d): a is the simulated value, ± b its confidence interval, c the required value, ± d the tolerance. > requires a above c − d, < requires a below c + d.
not, not certainly: the condition fails, or is undecided.
within a of b, within a as printed b: the tolerance a is at most a third of the effect b that the paper states, or at most half of the step b in which it prints values.
settled: after the transient at the start of a run (MSER-5). \"(not)\" marks runs that did not reach a steady state.
made-up: limit on the missed service that a class without borrowing may make up for.";

/// Returns [`WORDS`], each with its meaning.
pub(super) fn words() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.lines().filter_map(|line| line.split_once(": "))
}

/// Returns the verdict's sign and words.
pub(super) fn badge(verdict: Verdict) -> impl RenderOnce {
    owned_html! {
        span(class=format_args!("verdict {}", class(verdict))) {
            span(aria-hidden="true") : format_args!("{} ", sign(verdict));
            : verdict.to_string();
        }
    }
}

/// Returns the reason why a claim was not reproduced, if runs confirm it. Empty in a preview, because reasons describe
/// full runs, whose numbers may differ.
pub(super) fn reason(finding: &Finding<'_>, columns: &Columns) -> String {
    let preview = columns.preview;
    let mut reasons = Vec::new();
    if !finding.unsettled.is_empty() {
        let series = finding.unsettled.join(", ");
        reasons.push(format!("Runs that did not become steady: {series}."));
    }
    let unmet = |check: &&Check<'_>| check.role == Role::Precondition && check.answer == Answer::No;
    for check in finding.checks.iter().filter(unmet) {
        reasons.push(format!("The claim applies only if {}.", check.condition));
    }
    let elsewhere = finding.claim.shown_by.iter();
    let elsewhere: Vec<&str> = elsewhere.filter_map(Evidence::experiment).collect();
    match &finding.because {
        Some(because) if !preview => {
            reasons.push(because.clone());
            if !elsewhere.is_empty() {
                reasons.push(format!("(Shown by {}.)", elsewhere.join(", ")));
            }
        }
        _ if finding.verdict.is_open() => {
            reasons.push(format!("Still undecided after {} seeds.", finding.seeds()));
        }
        _ => {}
    }
    reasons.join(" ")
}

/// Number of claims in `findings` by verdict, in the report's order.
pub(super) fn counts<'a>(
    findings: impl Iterator<Item = &'a Finding<'a>> + Clone,
) -> Vec<(Verdict, usize)> {
    let count = |verdict| findings.clone().filter(|f| f.verdict == verdict).count();
    let counts = Verdict::ALL.map(|verdict| (verdict, count(verdict)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}
