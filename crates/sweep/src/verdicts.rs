//! Verdicts in a file that can be committed and compared with others.

use crate::expression::Condition;
use crate::outcome::Outcome;
use crate::verdict::{Finding, Verdict};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Entries by claim.
pub type Verdicts = BTreeMap<String, Entry>;

/// Verdict on a claim, and the tolerances that it used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the verdict.
    pub verdict: String,
    /// Tolerance of each condition; 0 if none is stated.
    pub within: Vec<f64>,
}

/// Probability, over all claims, that a comparison fails only because of other seeds.
const RISK: f64 = 0.01;

/// Differences from a file of verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Claims that now fail by more than chance explains, changed tolerances, and new or missing claims.
    pub failures: Vec<String>,
    /// Changed verdicts that other seeds can explain.
    pub notes: Vec<String>,
}

/// The entry of every claim.
pub fn of(outcomes: &[Outcome]) -> Verdicts {
    as_the_text_says(outcomes)
        .flat_map(Outcome::findings)
        .map(|finding| (finding.claim.id.clone(), entry(&finding)))
        .collect()
}

/// Outcomes with the settings of the text, not of `[found]`.
fn as_the_text_says(outcomes: &[Outcome]) -> impl Iterator<Item = &Outcome> + Clone {
    outcomes
        .iter()
        .filter(|outcome| !outcome.experiment.is_found())
}

fn entry(finding: &Finding<'_>) -> Entry {
    let conditions = finding.checks.iter().map(|check| check.condition);
    Entry {
        verdict: finding.verdict.to_string(),
        within: conditions.map(Condition::within).collect(),
    }
}

/// The verdicts as a TOML file.
pub fn write(verdicts: &Verdicts) -> String {
    let mut text = String::from(
        "# Verdict and tolerances by claim; `asymq reproduce --check` compares with it.\n",
    );
    for (claim, Entry { verdict, within }) in verdicts {
        writeln!(
            text,
            "\"{claim}\" = {{ verdict = \"{verdict}\", within = {within:?} }}"
        )
        .expect("writing to a String cannot fail");
    }
    text
}

/// Parses a file of verdicts.
///
/// # Errors
/// A line is invalid. The text names the line and the error.
pub fn read(text: &str) -> Result<Verdicts, String> {
    let verdicts: Verdicts = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text[..start].matches('\n').count();
        format!("{line}: {}", error.message())
    })?;
    let known = Verdict::ALL.map(|v| v.to_string());
    let strange = |(_, entry): &(&String, &Entry)| !known.contains(&entry.verdict);
    match verdicts.iter().find(strange) {
        Some((claim, entry)) => Err(format!(
            "{claim}: unknown verdict {}; use {}",
            entry.verdict,
            known.join(", ")
        )),
        None => Ok(verdicts),
    }
}

/// Compares the outcomes with a file. A claim that held in the file fails if an interval now lies outside its range.
/// The confidence is joint for all claims. `partial` skips claims that did not run.
pub fn compare(before: &Verdicts, outcomes: &[Outcome], partial: bool) -> Differences {
    let outcomes = as_the_text_says(outcomes);
    let claims: usize = outcomes.clone().map(|o| o.experiment.claims.len()).sum();
    let confidence = 1.0 - RISK / claims.max(1) as f64;
    let strict = outcomes.clone().flat_map(|o| o.findings_at(confidence));
    let found = outcomes.flat_map(Outcome::findings).zip(strict);
    let mut differences = Differences::default();
    let mut judged = BTreeSet::new();
    for (finding, strict) in found {
        let (claim, now) = (&finding.claim.id, entry(&finding));
        judged.insert(claim);
        let Some(was) = before.get(claim) else {
            let line = format!("{claim}: is {}, was not in the file", now.verdict);
            differences.failures.push(line);
            continue;
        };
        let left = left(claim, was, strict.verdict);
        if left.is_none() && was.verdict != now.verdict {
            let line = format!("{claim}: was {}, is {}", was.verdict, now.verdict);
            differences.notes.push(line);
        }
        let other = (was.within != now.within).then(|| {
            format!(
                "{claim}: tolerances were {:?}, are {:?}",
                was.within, now.within
            )
        });
        let lines = other.into_iter().chain(left);
        differences.failures.extend(lines);
    }
    let missing = before
        .keys()
        .filter(|claim| !partial && !judged.contains(claim));
    let missing = missing.map(|claim| format!("{claim}: has no result"));
    differences.failures.extend(missing);
    differences
}

/// Line about a claim that held in the file and now fails by more than chance explains.
fn left(claim: &str, was: &Entry, strict: Verdict) -> Option<String> {
    let was_one_of = |verdicts: &[Verdict]| verdicts.iter().any(|v| v.to_string() == was.verdict);
    let failed = match strict {
        Verdict::NotReproduced | Verdict::Vacuous => {
            was_one_of(&[Verdict::Reproduced, Verdict::InShape])
        }
        Verdict::InShape => was_one_of(&[Verdict::Reproduced]),
        Verdict::Reproduced
        | Verdict::NumberOpen
        | Verdict::ShapeOpen
        | Verdict::DidNotConverge => false,
    };
    failed.then(|| format!("{claim}: was {}, is {strict} beyond doubt", was.verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verdict: &str, within: &[f64]) -> Entry {
        Entry {
            verdict: verdict.into(),
            within: within.to_vec(),
        }
    }

    #[test]
    fn the_file_parses_as_written() {
        let verdicts: Verdicts = [
            ("a/1/x".into(), entry("reproduced", &[0.0, 0.05])),
            ("a/1/y".into(), entry("did not converge", &[])),
        ]
        .into();
        assert_eq!(read(&write(&verdicts)).unwrap(), verdicts);
    }

    #[test]
    fn a_claim_fails_only_where_it_held_and_no_longer_does() {
        let fails = |was: &str, strict| left("a", &entry(was, &[]), strict).is_some();
        assert!(fails("reproduced", Verdict::NotReproduced));
        assert!(fails("reproduced", Verdict::InShape));
        assert!(fails("reproduced", Verdict::Vacuous));
        assert!(fails("reproduced in shape", Verdict::NotReproduced));
        assert!(!fails("reproduced", Verdict::NumberOpen));
        assert!(!fails("undecided in number", Verdict::NotReproduced));
        assert!(!fails("not reproduced", Verdict::Reproduced));
    }

    #[test]
    fn an_unknown_verdict_is_refused() {
        let text = "\"a\" = { verdict = \"perhaps\", within = [] }";
        assert!(
            read(text)
                .unwrap_err()
                .starts_with("a: unknown verdict perhaps")
        );
        assert!(read("a = ").unwrap_err().starts_with("1: "));
    }
}
