//! The two columns of verdicts: as the text says, and under the settings that a search found.

use crate::data::Origin;
use crate::experiment::FOUND;
use crate::fit::{Found, Reach};
use crate::outcome::Outcome;
use crate::verdict::{Finding, Verdict};
use std::collections::HashMap;

/// The results of searches that a report shows.
pub(super) struct Columns<'a> {
    origin: &'a Origin,
    /// The verdicts under the settings found, by claim.
    second: HashMap<String, Verdict>,
}

impl<'a> Columns<'a> {
    /// The outcomes as the text says, and what was found beside them.
    pub(super) fn of(outcomes: &'a [Outcome], origin: &'a Origin) -> (Vec<&'a Outcome>, Self) {
        let (found, text): (Vec<_>, Vec<_>) =
            outcomes.iter().partition(|o| o.experiment.is_found());
        let findings = found.into_iter().flat_map(Outcome::findings);
        let second = findings.map(|finding| {
            let claim = finding.claim.id.strip_prefix(FOUND).unwrap_or_default();
            (claim.trim_start_matches('/').to_owned(), finding.verdict)
        });
        let second = second.collect();
        (text, Self { origin, second })
    }

    /// True if it is a preview.
    pub(super) fn is_preview(&self) -> bool {
        self.origin.preview
    }

    /// The result of the search for a paper.
    pub(super) fn found(&self, paper: &str) -> Option<&'a Found> {
        self.origin.found.iter().find(|found| found.paper == paper)
    }

    /// The verdict under the settings found; none where no fit counts, or no run has a part in the claim.
    pub(super) fn second(&self, finding: &Finding<'_>) -> Option<Verdict> {
        self.second.get(&finding.claim.id).copied()
    }

    /// The number of claims with this verdict under the settings found.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.second.values().filter(|one| **one == verdict).count()
    }

    /// The number of claims that have a verdict under settings found.
    pub(super) fn len(&self) -> usize {
        self.second.len()
    }

    /// The distance of the search from a claim.
    pub(super) fn reach(&self, finding: &Finding<'_>) -> Option<&'a Reach> {
        let reaches = |found: &'a Found| found.reaches.get(&finding.claim.id);
        self.origin.found.iter().find_map(reaches)
    }
}
