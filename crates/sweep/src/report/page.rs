//! The report as HTML.

use super::Origin;
use super::columns::Columns;
use super::contents::{Found, contents, filter, filter_rules, groups, of_paper, with_findings};
use super::section::section;
use super::verdict::{badge, counts, meaning, words};
use crate::outcome::Outcome;
use horrorshow::helper::doctype;
use horrorshow::{Raw, RenderOnce, Template, html, owned_html};

/// Writes the report of experiments as HTML. The report links to the data `files` beside it.
///
/// # Errors
/// The report cannot be written.
pub fn page(outcomes: &[Outcome], origin: &Origin, files: &[String]) -> anyhow::Result<String> {
    let (outcomes, columns) = Columns::of(outcomes, origin.preview);
    let (outcomes, columns) = (&outcomes[..], &columns);
    let findings = with_findings(outcomes);
    let own = outcomes.iter().all(|outcome| outcome.experiment.is_own());
    let title = match outcomes {
        [only] if own => only.experiment.title.as_str(),
        _ => origin.collection.title,
    };
    let mut sections = Vec::new();
    let groups = groups(outcomes.iter().copied(), origin.collection);
    for &(paper, name, authors) in &groups {
        let mut parts = Vec::new();
        for (outcome, findings) in of_paper(&findings, paper) {
            parts.push(section(outcome, findings, columns));
        }
        sections.push(owned_html! {
            @ if own {
                @ for part in parts { : part; }
            } else {
                section(class="group", id=paper, aria-label=name) {
                    h2 : name;
                    p(class="faint") : authors;
                    @ for part in parts { : part; }
                }
            }
        });
    }
    let has_claims = findings.iter().any(|(_, findings)| !findings.is_empty());
    let style = format!(
        "{}{}@media screen and (prefers-color-scheme:dark){{{}}}",
        include_str!("style.css"),
        filter_rules(),
        asymq_charts::dark_rules()
    );
    let markup = html! {
        : doctype::HTML;
        html(lang="en") {
            head {
                meta(charset="utf-8");
                meta(name="viewport", content="width=device-width, initial-scale=1");
                meta(name="color-scheme", content="light dark");
                title : title;
                style : Raw(style);
            }
            body {
                @ if !own { a(class="skip", href="#contents") : "Contents"; }
                main {
                    h1 : title;
                    : introduction(outcomes, origin, has_claims);
                    @ if has_claims {
                        : filter(&findings);
                        : meanings(&findings);
                    }
                    : data(files);
                    @ if !own {
                        : contents(&findings, &groups);
                    }
                    @ for section in sections { : section; }
                }
            }
        }
    };
    Ok(markup.into_string()?)
}

fn introduction(outcomes: &[&Outcome], origin: &Origin, has_claims: bool) -> impl RenderOnce {
    let simulated = || outcomes.iter().filter(|o| !o.experiment.is_arithmetic());
    let minimum = simulated().map(|outcome| outcome.runs()).min();
    let source = match minimum {
        Some(1) => "Every number comes from at least one run. ".to_owned(),
        Some(minimum) => format!(
            "Every number is the mean over at least {minimum} seeded runs with its 95 % confidence \
             interval (Student’s t). "
        ),
        None => "Every number follows from the settings alone. ".to_owned(),
    };
    owned_html! {
        p(class="faint") {
            : format_args!("asymq {}. ", origin.version);
            : source;
            @ if has_claims {
                : "A verdict compares confidence intervals (95 % jointly for all comparisons of a claim) with the \
                   tolerances in the experiment’s file. ";
            }
            @ if origin.preview {
                : "This is a "; b : "preview"; : ": fewer seeds, shorter runs, fewer points, and no reasons, \
                    because reasons describe full runs. ";
            }
        }
    }
}

/// Explains the verdicts, the words of conditions, and the strip beside a claim.
fn meanings(findings: &[Found<'_>]) -> impl RenderOnce {
    let all = findings.iter().flat_map(|(_, findings)| findings);
    let shown = counts(all).into_iter().map(|(verdict, _)| verdict);
    owned_html! {
        details(class="meanings") {
            summary : "Meaning of the verdicts, words and strips";
            dl {
                @ for verdict in shown { dt : badge(verdict); dd : meaning(verdict); }
                @ for (word, meaning) in words() { dt : word; dd : meaning; }
                dt : "Strips";
                dd : "The band is the accepted range of the left side of the condition. The dot is the left side, with the \
                      interval that decides. The ring is the right side, with its interval; a diamond is a number of \
                      the claim.";
            }
        }
    }
}

fn data(files: &[String]) -> impl RenderOnce {
    owned_html! {
        @ if !files.is_empty() {
            p(class="small data") {
                : "The data: ";
                @ for (index, file) in files.iter().enumerate() {
                    @ if index > 0 { : ", "; }
                    a(href=file) : file;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "../../../charts/src/contrast.rs"]
mod contrast;

#[cfg(test)]
mod tests {
    use super::contrast::contrast;

    #[test]
    fn text_has_wcags_contrast_on_screen_by_day_and_night_and_on_paper() {
        let themes = include_str!("style.css").split(":root{").skip(1);
        let themes: Vec<&str> = themes.filter_map(|rest| rest.split('}').next()).collect();
        assert_eq!(themes.len(), 3, "light, dark, print");
        for theme in themes {
            let value = |name: &str| {
                let (_, rest) = theme.split_once(&format!("--{name}:"))?;
                rest.split(';').next().map(str::trim)
            };
            let backgrounds = ["paper", "raised"].map(value);
            for text in [
                "text", "faint", "link", "good", "half", "bad", "open", "moving",
            ] {
                let Some(colour) = value(text) else { continue };
                for background in backgrounds.into_iter().flatten() {
                    let ratio = contrast(colour, background).unwrap();
                    // WCAG level AA (1.4.3).
                    assert!(ratio >= 4.5, "{text} {colour} on {background}: {ratio:.2}");
                }
            }
        }
    }
}
