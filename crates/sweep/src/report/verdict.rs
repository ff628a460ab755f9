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
        Verdict::Reproduced => "every interval lies within its range.",
        Verdict::InShape => "order, direction and trend hold; a number lies outside its range.",
        Verdict::NotReproduced => "an interval lies outside its range.",
        Verdict::Vacuous => "a precondition of the claim fails; it counts as not reproduced.",
        Verdict::NumberOpen => "a number's interval contains an end of its range after all seeds.",
        Verdict::ShapeOpen => "a direction, order or trend is still open after all seeds.",
        Verdict::DidNotConverge => "the mechanism was still changing when the runs ended.",
    }
}

/// Words of conditions and settings that a report uses, with their meaning.
const WORDS: &str = "\
within a of b: the tolerance is a; b is the effect that the text states, at least three times a.
as printed a: the paper prints values in steps of a; the tolerance is at most half a step.
not / not certainly (before a comparison): the interval lies outside the range / contains an end of the range.
settled: measured after the transient at the start of a run, which is at most half of the run (MSER-5). (not) means that most runs are not steady after it.
made-up: missed service that a class without borrowing may make up for.";

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
        reasons.push(format!("Still changing when the runs ended: {series}."));
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
            reasons.push(format!("{} seeds leave it open.", finding.seeds()));
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
