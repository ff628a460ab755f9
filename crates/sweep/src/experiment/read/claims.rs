//! Reads the claims of an experiment, and checks the expressions in its reasons and assumptions.

use super::file::{ClaimEntry, File};
use super::reader::{Read, Reader};
use crate::experiment::{Claim, Evidence, Experiment};
use crate::expression::{Condition, Expression};
use crate::prose;
use std::collections::HashSet;
use toml::Spanned;

impl Reader<'_> {
    pub(super) fn claims(&self, file: &File, experiment: &Experiment) -> Read<Vec<Claim>> {
        let mut ids = HashSet::new();
        let read = |entry| self.claim(entry, experiment, &mut ids);
        let claims = file.claim.iter().map(read).collect::<Read<_>>()?;
        let reasons = file.claim.iter().filter_map(|claim| claim.because.as_ref());
        for text in reasons.chain(&file.assumptions) {
            self.look_up(text, |text| check_sentence(experiment, text))?;
        }
        Ok(claims)
    }

    fn claim(
        &self,
        entry: &ClaimEntry,
        experiment: &Experiment,
        ids: &mut HashSet<String>,
    ) -> Read<Claim> {
        // Tolerances need a basis in a paper's claims, but not in a user's claims.
        let of_paper = !experiment.is_own();
        let condition = |text: &Spanned<String>, must_state: bool| {
            self.look_up(text, |text| {
                let condition = Condition::parse(text)?;
                for name in condition.names() {
                    experiment.resolve(name)?;
                }
                condition.check_tolerance(must_state)?;
                Ok(condition)
            })
        };
        let conditions = |texts: &[Spanned<String>]| -> Read<Vec<Condition>> {
            texts.iter().map(|text| condition(text, of_paper)).collect()
        };
        let evidence = |text: &Spanned<String>| match text.get_ref() {
            written if written.contains(' ') => condition(text, false).map(Evidence::Runs),
            written if of_paper => Ok(Evidence::Experiment(written.clone())),
            written => {
                let message = format!("shown-by {written}: no condition; write aq:down > 0.9");
                Err(self.at(text.span().start, message))
            }
        };
        if let (Some(because), true, []) = (&entry.because, of_paper, &entry.shown_by[..]) {
            let message = "because: no evidence; add shown-by = [\"series:measure > 1\"] or \
                           [\"PAPER/FIGURE\"]";
            return Err(self.at(because.span().start, message));
        }
        let claim = Claim {
            id: format!("{}/{}", experiment.name, self.id(&entry.id, ids)?),
            says: entry.says.clone(),
            holds: conditions(&entry.holds)?,
            shape: conditions(&entry.in_shape)?,
            only_if: conditions(&entry.only_if)?,
            because: entry.because.as_ref().map(|text| text.get_ref().clone()),
            shown_by: entry.shown_by.iter().map(evidence).collect::<Read<_>>()?,
        };
        if claim.holds.is_empty() && claim.shape.is_empty() {
            let message = "no conditions; write holds = [\"series:measure = 1 within 0.1\"]";
            return Err(self.at(entry.id.span().start, message));
        }
        Ok(claim)
    }
}

/// Checks that every expression in a sentence can be evaluated.
fn check_sentence(experiment: &Experiment, text: &str) -> Result<(), String> {
    for value in prose::values(text) {
        for name in Expression::parse(value)?.names() {
            experiment.resolve(name)?;
        }
    }
    Ok(())
}
