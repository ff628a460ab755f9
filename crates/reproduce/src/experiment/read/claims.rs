//! The claims of an experiment, and the sentences around them.

use super::file::File;
use super::{Read, Reader};
use crate::experiment::{Claim, Experiment};
use crate::expression::Condition;
use crate::prose;
use std::collections::HashSet;
use toml::Spanned;

impl Reader<'_> {
    pub(super) fn claims(&self, file: &File, experiment: &mut Experiment) -> Read<()> {
        let mut ids = HashSet::new();
        for entry in &file.claim {
            let conditions = |texts: &[Spanned<String>]| -> Read<Vec<Condition>> {
                let condition = |text: &Spanned<String>| {
                    let fail = |message: String| self.at(text.span().start, message);
                    let condition =
                        Condition::parse(text.get_ref()).map_err(|error| fail(error.into()))?;
                    for name in condition.names() {
                        experiment.resolve(name).map_err(fail)?;
                    }
                    Ok(condition)
                };
                texts.iter().map(condition).collect()
            };
            let claim = Claim {
                id: format!("{}/{}", experiment.name, self.id(&entry.id, &mut ids)?),
                says: entry.says.clone(),
                holds: conditions(&entry.holds)?,
                shape: conditions(&entry.in_shape)?,
                because: entry.because.as_ref().map(|text| text.get_ref().clone()),
            };
            if claim.holds.is_empty() && claim.shape.is_empty() {
                let message = "no conditions; write holds = [\"series:measure = 1 within 0.1\"]";
                return Err(self.at(entry.id.span().start, message));
            }
            experiment.claims.push(claim);
        }
        let reasons = file.claim.iter().filter_map(|claim| claim.because.as_ref());
        for text in reasons.chain(&file.assumptions) {
            prose::check(experiment, text.get_ref())
                .map_err(|message| self.at(text.span().start, message))?;
        }
        let assumptions = file.assumptions.iter();
        experiment.assumptions = assumptions.map(|text| text.get_ref().clone()).collect();
        Ok(())
    }
}
