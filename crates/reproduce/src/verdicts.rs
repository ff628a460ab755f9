//! Verdicts as a file that can be committed and compared.

use crate::outcome::{Outcome, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Verdicts by claim.
pub type Verdicts = BTreeMap<String, String>;

/// The verdict of every claim.
pub fn of(outcomes: &[Outcome]) -> Verdicts {
    let findings = outcomes.iter().flat_map(Outcome::findings);
    findings
        .map(|f| (f.claim.id.clone(), f.verdict.to_string()))
        .collect()
}

/// The verdicts as a TOML file.
pub fn write(verdicts: &Verdicts) -> String {
    let mut text =
        String::from("# Verdict by claim; `asymq reproduce --check` compares with it.\n");
    for (claim, verdict) in verdicts {
        writeln!(text, "\"{claim}\" = \"{verdict}\"").expect("writing to a String cannot fail");
    }
    text
}

/// Parses a file of verdicts.
///
/// # Errors
/// The line and what is wrong there.
pub fn read(text: &str) -> Result<Verdicts, String> {
    let verdicts: Verdicts = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text[..start].matches('\n').count();
        format!("{line}: {}", error.message())
    })?;
    let known = [
        Verdict::Reproduced,
        Verdict::InShape,
        Verdict::NotReproduced,
    ]
    .map(|v| v.to_string());
    match verdicts
        .iter()
        .find(|(_, verdict)| !known.contains(verdict))
    {
        Some((claim, verdict)) => Err(format!(
            "{claim}: unknown verdict {verdict}; use {}",
            known.join(", ")
        )),
        None => Ok(verdicts),
    }
}

/// The differences of `now` from `before`, one line each. With `partial`, claims that did not run are
/// skipped.
pub fn differences(before: &Verdicts, now: &Verdicts, partial: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (claim, verdict) in now {
        match before.get(claim) {
            Some(old) if old == verdict => {}
            Some(old) => lines.push(format!("{claim}: was {old}, is {verdict}")),
            None => lines.push(format!("{claim}: is {verdict}, was not in the file")),
        }
    }
    for claim in before
        .keys()
        .filter(|claim| !partial && !now.contains_key(*claim))
    {
        lines.push(format!("{claim}: has no result"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_verdict_is_reported_by_its_claim() {
        let before: Verdicts = [("a/1/x".into(), "reproduced".into())].into();
        let before = read(&write(&before)).unwrap();
        let now: Verdicts = [
            ("a/1/x".into(), "not reproduced".into()),
            ("a/1/y".into(), "reproduced".into()),
        ]
        .into();
        assert_eq!(
            differences(&before, &now, false),
            [
                "a/1/x: was reproduced, is not reproduced",
                "a/1/y: is reproduced, was not in the file"
            ]
        );
        assert_eq!(
            differences(&now, &before, true),
            ["a/1/x: was not reproduced, is reproduced"]
        );
        assert_eq!(differences(&now, &before, false).len(), 2);
    }

    #[test]
    fn an_unknown_verdict_is_refused() {
        assert!(
            read("\"a\" = \"perhaps\"")
                .unwrap_err()
                .starts_with("a: unknown verdict perhaps")
        );
        assert!(read("a = ").unwrap_err().starts_with("1: "));
    }
}
