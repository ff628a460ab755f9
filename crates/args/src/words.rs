//! A scenario as words of a command line, and as the text of a file: for programs that are no command.

use crate::bad_argument::BadArgument;
use crate::defaults::Defaults;
use crate::file::{ScenarioError, ScenarioFile, as_flag, in_order, items_of, parser};
use crate::scenario::ScenarioArgs;
use asymq_core::catalog::Catalog;
use asymq_scenario::Scenario;
use clap::FromArgMatches;
use std::path::Path;
use toml::de::DeTable;

impl ScenarioArgs {
    /// Reads words like `--up=1mbit`, as the command line does.
    ///
    /// # Errors
    /// The first word that is invalid.
    pub fn from_words(words: impl IntoIterator<Item = String>) -> Result<Self, BadArgument> {
        parser::<Self>()
            .try_get_matches_from(words)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| BadArgument::from(&error))
    }

    /// Resolves the text of a scenario file; `path` names it in errors, and files that it names are
    /// beside it.
    ///
    /// # Errors
    /// A line of it is wrong.
    pub fn resolve_text(
        path: &Path,
        text: &str,
        catalog: &dyn Catalog,
        defaults: &Defaults,
    ) -> Result<Scenario, ScenarioError> {
        let file = ScenarioFile::parse(path, text)?;
        let scenario = file.args.clone().complete(catalog, defaults);
        scenario.map_err(|error| file.locate(error))
    }
}

/// The words that say what the text of a scenario file says; `path` names it in errors, and files that
/// it names are beside it.
///
/// # Errors
/// A line of it is wrong.
pub fn words_of_text(path: &Path, text: &str) -> Result<Vec<String>, ScenarioError> {
    ScenarioFile::parse(path, text)?;
    let table = DeTable::parse(text).expect("it was parsed before");
    let mut words = Vec::new();
    for (key, value) in in_order(table.get_ref()) {
        for item in items_of(value) {
            let word = as_flag(key, item.get_ref()).expect("it was read before");
            words.push(match word.strip_prefix(&format!("--{key}=")) {
                Some(file) if TRACES.contains(&key) => {
                    let beside = path.parent().unwrap_or(Path::new("")).join(file);
                    format!("--{key}={}", beside.display())
                }
                _ => word,
            });
        }
    }
    Ok(words)
}

/// Keys whose values are files.
const TRACES: [&str; 2] = ["trace-up", "trace-down"];

/// The text of a scenario file that says what `words` say.
pub fn text_of_words(words: &[String]) -> String {
    let mut keys: Vec<(&str, Vec<toml::Value>)> = Vec::new();
    for word in words {
        let word = word.trim_start_matches('-');
        let (key, text) = word.split_once('=').unwrap_or((word, "true"));
        // What is no text in TOML either.
        let value = match (text.parse::<i64>(), text.parse::<bool>()) {
            (Ok(number), _) if number.to_string() == text => number.into(),
            (_, Ok(truth)) => truth.into(),
            _ => text.into(),
        };
        match keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        }
    }
    let lines = keys
        .into_iter()
        .map(|(key, mut values)| match values.len() {
            1 => format!("{key} = {}\n", values.remove(0)),
            _ => format!("{key} = {}\n", toml::Value::Array(values)),
        });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::catalog::Standard;

    fn words(line: &str) -> Result<ScenarioArgs, BadArgument> {
        ScenarioArgs::from_words(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_and_the_file_made_of_them_are_the_same_scenario() {
        let line = "--up=512kbit --rtt=20ms..80ms --qdisc=sad --data-share=0.3 --param-down=gamma=9 \
                    --tcp=cubic --delayed-ack=40ms --sack=false --udp=up:64kbit --udp=down:1mbit@2s..3s \
                    --flow=down,rtt=20ms,size=2mb --netem-up=loss;1% --seed=18446744073709551615 \
                    --readings=papers --steps-up=10s:2mbit --on-off=200kbit:500ms:500ms --web=down:1:30kb:1.3";
        let words = line.split_whitespace().map(|word| word.replace(';', " "));
        let words: Vec<String> = words.collect();
        let args = ScenarioArgs::from_words(words.clone()).unwrap();
        let text = text_of_words(&words);
        let path = Path::new("s.toml");
        assert!(text.contains("sack = false\n"), "{text}");
        let mut read = words_of_text(path, &text).unwrap();
        assert_eq!(ScenarioArgs::from_words(read.clone()).unwrap(), args);
        read.sort();
        let mut words = words;
        words.sort();
        assert_eq!(read, words, "{text}");
        let defaults = Defaults::paper();
        let scenario = ScenarioArgs::resolve_text(path, &text, &Standard, &defaults);
        assert_eq!(scenario.unwrap(), args.resolve(&defaults).unwrap());
    }

    #[test]
    fn a_listed_flow_and_a_trace_beside_the_file_become_words() {
        let text = "trace-up = \"lte.trace\"\n[[flow]]\ntoward = \"down\"\nrtt = \"20ms\"\n";
        let path = Path::new("folder/s.toml");
        let words = words_of_text(path, text).unwrap();
        assert_eq!(
            words,
            ["--trace-up=folder/lte.trace", "--flow=toward=down,rtt=20ms"]
        );
    }

    #[test]
    fn a_wrong_word_is_named_as_on_the_command_line() {
        let said = |line: &str| words(line).unwrap_err().to_string();
        assert_eq!(
            said("--up=1mbitt"),
            "--up 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit"
        );
        assert!(said("--upp=1mbit").starts_with("--upp: unknown argument; did you mean --up?"));
    }
}
