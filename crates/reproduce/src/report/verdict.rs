//! How a verdict looks: a sign and a colour, so that neither is needed alone.

use crate::experiment::Evidence;
use crate::verdict::{Finding, Verdict};
use horrorshow::{RenderOnce, owned_html};

/// The class that gives a verdict its colour.
pub(super) const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "good",
        Verdict::InShape => "half",
        Verdict::NotReproduced => "bad",
        Verdict::Undecided => "open",
        Verdict::DidNotConverge => "moving",
    }
}

pub(super) const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "●",
        Verdict::InShape => "◐",
        Verdict::NotReproduced => "○",
        Verdict::Undecided => "?",
        Verdict::DidNotConverge => "~",
    }
}

/// What a verdict means.
pub(super) const fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "every interval lies within its range.",
        Verdict::InShape => "those of order, direction or trend do, that of a number lies outside.",
        Verdict::NotReproduced => "an interval lies outside its range.",
        Verdict::Undecided => "an interval contains an end of its range after all seeds.",
        Verdict::DidNotConverge => "the mechanism was still changing when the runs ended.",
    }
}

/// Sign and words.
pub(super) fn badge(verdict: Verdict) -> impl RenderOnce {
    owned_html! {
        span(class=format_args!("verdict {}", class(verdict))) {
            span(aria-hidden="true") : format_args!("{} ", sign(verdict));
            : verdict.to_string();
        }
    }
}

/// Why a claim was not reproduced, as far as runs show it. A preview gives no reason: it was written
/// for the numbers of whole runs, which the preview's may contradict.
pub(super) fn reason(finding: &Finding<'_>, preview: bool) -> String {
    let mut reasons = Vec::new();
    if !finding.unsettled.is_empty() {
        let series = finding.unsettled.join(", ");
        reasons.push(format!("Still changing when the runs ended: {series}."));
    }
    let elsewhere = finding
        .claim
        .shown_by
        .iter()
        .filter_map(Evidence::experiment);
    let elsewhere: Vec<&str> = elsewhere.collect();
    match &finding.because {
        Some(because) if !preview => {
            reasons.push(because.clone());
            if !elsewhere.is_empty() {
                reasons.push(format!("(Shown by {}.)", elsewhere.join(", ")));
            }
        }
        _ if finding.verdict == Verdict::Undecided => {
            reasons.push(format!("{} seeds leave it open.", finding.seeds()));
        }
        None if !preview && reasons.is_empty() => reasons.push("No run shows why.".into()),
        _ => {}
    }
    reasons.join(" ")
}

/// The verdicts that claims of `findings` have, each with their number, in the report's order.
pub(super) fn counts<'a>(
    findings: impl Iterator<Item = &'a Finding<'a>> + Clone,
) -> Vec<(Verdict, usize)> {
    let count = |verdict| findings.clone().filter(|f| f.verdict == verdict).count();
    let counts = Verdict::ALL.map(|verdict| (verdict, count(verdict)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}
