//! The claims of an experiment, and the sentences around them.

use super::file::File;
use super::{Read, Reader};
use crate::experiment::{Claim, Evidence, Experiment};
use crate::expression::Condition;
use crate::prose;
use std::collections::HashSet;
use toml::Spanned;

impl Reader<'_> {
    pub(super) fn claims(&self, file: &File, experiment: &mut Experiment) -> Read<()> {
        let mut ids = HashSet::new();
        // A paper's claim is judged by others; a user's own need not say why it is so narrow.
        let of_paper = experiment.paper() != "own";
        for entry in &file.claim {
            let condition = |text: &Spanned<String>, must_state: bool| -> Read<Condition> {
                let fail = |message: String| self.at(text.span().start, message);
                let condition =
                    Condition::parse(text.get_ref()).map_err(|error| fail(error.into()))?;
                for name in condition.names() {
                    experiment.resolve(name).map_err(fail)?;
                }
                condition.check_tolerance(must_state).map_err(fail)?;
                Ok(condition)
            };
            let conditions = |texts: &[Spanned<String>]| -> Read<Vec<Condition>> {
                texts.iter().map(|text| condition(text, of_paper)).collect()
            };
            let evidence = |text: &Spanned<String>| -> Read<Evidence> {
                let written = text.get_ref();
                match (written.contains(' '), of_paper) {
                    (true, _) => condition(text, false).map(Evidence::Runs),
                    (false, true) => Ok(Evidence::Experiment(written.clone())),
                    (false, false) => Err(self.at(
                        text.span().start,
                        format!("shown-by {written}: not a condition, like aq:down > 0.9"),
                    )),
                }
            };
            if let (Some(because), true, []) = (&entry.because, of_paper, &entry.shown_by[..]) {
                let message = "because: what shows it? add shown-by = [\"series:measure > 1\"] or \
                               [\"PAPER/FIGURE\"]";
                return Err(self.at(because.span().start, message));
            }
            let claim = Claim {
                id: format!("{}/{}", experiment.name, self.id(&entry.id, &mut ids)?),
                says: entry.says.clone(),
                holds: conditions(&entry.holds)?,
                shape: conditions(&entry.in_shape)?,
                because: entry.because.as_ref().map(|text| text.get_ref().clone()),
                shown_by: entry.shown_by.iter().map(evidence).collect::<Read<_>>()?,
                changed: entry.changed.clone(),
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
