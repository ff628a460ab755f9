//! The two columns of verdicts: under the settings of the paper's text, and under the settings of `[found]`.

use crate::experiment::FOUND;
use crate::outcome::Outcome;
use crate::verdict::{Finding, Verdict};
use std::collections::HashMap;

/// The second column of verdicts.
pub(super) struct Columns {
    pub(super) preview: bool,
    /// Verdicts with the settings of `[found]`, by claim.
    second: HashMap<String, Verdict>,
}

impl Columns {
    /// Returns the outcomes under the paper's settings, and the verdicts under the settings of `[found]`.
    pub(super) fn of(outcomes: &[Outcome], preview: bool) -> (Vec<&Outcome>, Self) {
        let (found, text): (Vec<_>, Vec<_>) =
            outcomes.iter().partition(|o| o.experiment.is_found());
        let findings = found.into_iter().flat_map(Outcome::findings);
        let second = findings.map(|finding| {
            let claim = finding.claim.id.strip_prefix(FOUND).unwrap_or_default();
            (claim.trim_start_matches('/').to_owned(), finding.verdict)
        });
        let second = second.collect();
        (text, Self { preview, second })
    }

    /// Verdict with the settings of `[found]`, if the experiment has such settings.
    pub(super) fn second(&self, finding: &Finding<'_>) -> Option<Verdict> {
        self.second.get(&finding.claim.id).copied()
    }

    /// Number of claims that have a verdict under the settings of `[found]`.
    pub(super) fn len(&self) -> usize {
        self.second.len()
    }
}
