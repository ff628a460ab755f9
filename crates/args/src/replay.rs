//! Runs the scenario of an earlier result again.

use crate::bad_argument::BadArgument;
use crate::check::check;
use crate::defaults::Defaults;
use crate::file::{ScenarioError, in_file};
use crate::settings;
use crate::words::{Flags, Words};
use asymq_core::catalog::{Catalog, known_parameters};
use asymq_core::units::Duration;
use asymq_scenario::Scenario;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

settings! {
    /// Settings that may change when a scenario runs again.
    struct Again: "" {
        /// Seed.
        seed: Option<u64> = "N";
        /// Number of runs.
        runs: Option<u32> = "N";
        /// Length of a run.
        duration: Option<Duration> = "TIME";
        /// Warm-up.
        warmup: Option<Duration> = "TIME";
    }
}

impl Words {
    /// Reads a scenario from a result in JSON, or from a file that contains only the scenario. Errors name the file
    /// `path`. Only seed, number of runs, duration and warm-up may be changed by these flags.
    ///
    /// # Errors
    /// The file is not a result, its scenario cannot be run, or other arguments are given.
    pub fn replay(
        &self,
        path: &Path,
        text: &str,
        catalog: &dyn Catalog,
        defaults: &Defaults,
    ) -> Result<Scenario, ScenarioError> {
        let wrong = |line: usize, message: String| ScenarioError::File {
            path: path.to_owned(),
            line: line.max(1),
            message,
        };
        let bad = |error: serde_json::Error| {
            let message =
                format!("not a result with a scenario ({error}); `asymq sim --json` writes one");
            wrong(error.line(), message)
        };
        let value: Value = serde_json::from_str(text).map_err(bad)?;
        if value.get("reports").is_some() {
            let message =
                "the result of several disciplines; save one of its reports, and run that";
            return Err(wrong(1, message.into()));
        }
        // Read from the text, so that errors contain the line number.
        let mut scenario = match value.get("scenario") {
            Some(_) => serde_json::from_str(text).map(|result: OfResult| result.scenario),
            None => serde_json::from_str(text),
        }
        .map_err(bad)?;
        let known = Flags::<Again>::new(catalog);
        if let Some(other) = self.keys().find(|key| !known.has(key)) {
            return Err(fixed(other, catalog).into());
        }
        let given = known.read(self)?;
        scenario.seed = given.seed.unwrap_or(scenario.seed);
        scenario.runs = given.runs.unwrap_or(scenario.runs);
        scenario.duration = given.duration.unwrap_or(scenario.duration);
        scenario.warmup = given.warmup.unwrap_or(scenario.warmup);
        check(&mut scenario, catalog, defaults).map_err(|error| match error {
            ScenarioError::Value(bad)
                if self.get(bad.argument.trim_start_matches('-')).is_none() =>
            {
                let name = bad.argument.trim_start_matches('-');
                let key = format!("\"{name}\":");
                let line = text.lines().position(|line| line.contains(&key));
                wrong(line.map_or(1, |line| line + 1), in_file(name, &bad))
            }
            other => other,
        })?;
        Ok(scenario)
    }
}

/// Fields of a result that are read.
#[derive(Deserialize)]
struct OfResult {
    scenario: Scenario,
}

fn fixed(key: &str, catalog: &dyn Catalog) -> BadArgument {
    let mut parameters = known_parameters(catalog).into_iter();
    let name = match parameters.any(|parameter| parameter.name == key) {
        true => "a discipline's parameter",
        false => "a flag of the scenario",
    };
    BadArgument::new(
        "",
        format!(
            "{name} cannot change the scenario of a result; use --seed, --runs, --duration or --warmup, or write a TOML file"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScenarioArgs, ScenarioFlags};
    use asymq_core::catalog::Standard;

    fn write(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn replay(file: &tempfile::NamedTempFile, words: &[&str]) -> Result<Scenario, String> {
        let words = words.iter().map(|word| (*word).to_owned());
        let mut flags = ScenarioFlags {
            file: Some(file.path().to_owned()),
            ..ScenarioFlags::default()
        };
        flags.given.words = Flags::<ScenarioArgs>::new(&Standard).given(words).unwrap();
        let scenario = flags.resolve(&Standard, &Defaults::paper());
        scenario.map_err(|error| error.to_string())
    }

    #[test]
    fn a_results_scenario_resolves_to_itself_and_flags_may_only_repeat_it() {
        let args = ScenarioArgs {
            qdisc: Some("e-dcbq".into()),
            udp: vec!["up:100kbit@1s..2s".parse().unwrap()],
            ..ScenarioArgs::default()
        };
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        let json = serde_json::json!({ "format": 2, "scenario": scenario });
        let file = write(&json.to_string());
        assert_eq!(replay(&file, &[]), Ok(scenario.clone()));
        assert_eq!(
            replay(&file, &["--seed=9"]),
            Ok(Scenario {
                seed: 9,
                ..scenario
            })
        );
        for (flag, said) in [
            ("--flows-up=9", "a flag of"),
            ("--gamma=9", "a discipline's"),
        ] {
            let error = replay(&file, &[flag]).unwrap_err();
            assert!(
                error.starts_with(said) && error.contains("cannot change"),
                "{error}"
            );
        }
    }

    #[test]
    fn other_files_are_rejected_in_one_line() {
        for text in ["{", "{}", "[1]", r#"{"scenario": {"up": "1mbit"}}"#] {
            let error = replay(&write(text), &[]).unwrap_err();
            assert!(error.contains("not a result with a scenario"), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_its_file_and_line() {
        let scenario = ScenarioArgs::default().resolve(&Defaults::paper()).unwrap();
        let scenario = serde_json::to_string_pretty(&scenario).unwrap();
        let text = format!("{{\n\"format\": 2,\n\"scenario\": {scenario}\n}}");
        for (from, to, expected) in [
            ("\"mss\": 1460", "\"mss\": 20", "mss = 20b: out of range"),
            (
                "\"mss\": 1460",
                "\"mss\": \"big\"",
                "not a result with a scenario",
            ),
            (
                "\"qdisc\": \"aq\"",
                "\"qdisc\": \"qa\"",
                "uplink = qa: qdisc qa: unknown",
            ),
        ] {
            assert!(text.contains(from));
            let file = write(&text.replacen(from, to, 1));
            let line = 1 + text[..text.find(from).unwrap()].matches('\n').count();
            let error = replay(&file, &[]).unwrap_err();
            let (place, message) = error.split_once(": ").unwrap();
            assert!(message.starts_with(expected), "{error}");
            assert!(
                place.starts_with(&*file.path().to_string_lossy()),
                "{error}"
            );
            let named: usize = place.rsplit_once(':').unwrap().1.parse().unwrap();
            // The description's line is that of its opening brace.
            assert!(named <= line && line <= named + 1, "{error}: {line}");
        }
    }

    #[test]
    fn a_result_of_several_disciplines_requires_a_single_report() {
        let error = replay(&write(r#"{"format": 2, "reports": {}}"#), &[]);
        assert!(error.unwrap_err().contains("save one of its reports"));
    }
}
