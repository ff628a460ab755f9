//! The two columns of verdicts: as the text says, and with the settings of `[found]`.

use crate::experiment::FOUND;
use crate::outcome::Outcome;
use crate::verdict::{Finding, Verdict};
use std::collections::HashMap;

/// The second column of verdicts.
pub(super) struct Columns {
    /// True for a preview.
    pub(super) preview: bool,
    /// The verdicts with the settings found, by claim.
    second: HashMap<String, Verdict>,
}

impl Columns {
    /// The outcomes as the text says, and the verdicts of the others.
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

    /// The verdict with the settings found, if the experiment has some.
    pub(super) fn second(&self, finding: &Finding<'_>) -> Option<Verdict> {
        self.second.get(&finding.claim.id).copied()
    }

    /// The number of claims with this verdict with the settings found.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.second.values().filter(|one| **one == verdict).count()
    }

    /// Claims held out from the search: their number, those reproduced with the settings found, and
    /// the mean number under random settings.
    pub(super) fn held_out<'a>(
        &self,
        outcomes: impl Iterator<Item = &'a (&'a Outcome, Vec<Finding<'a>>)>,
    ) -> (usize, usize, f64) {
        let (mut all, mut found, mut random) = (0, 0, 0.0);
        for (outcome, findings) in outcomes {
            let Some(null) = outcome.experiment.null else {
                continue;
            };
            for finding in findings.iter().filter(|one| one.claim.is_held_out()) {
                all += 1;
                found += usize::from(self.second(finding) == Some(Verdict::Reproduced));
                random += null;
            }
        }
        (all, found, random)
    }

    /// The number of claims that have a verdict with the settings found.
    pub(super) fn len(&self) -> usize {
        self.second.len()
    }
}
