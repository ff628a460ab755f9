//! Flags and keys as text, from the command line, files, requests and results. They are first merged, then parsed once.

use crate::bad_argument::BadArgument;
use crate::file::{KeyError, ScenarioError, as_text, in_file, in_order, items_of};
use crate::qdisc::{self, Listing};
use crate::settings::Settings;
use asymq_core::catalog::Catalog;
use asymq_core::units::suggestion;
use clap::builder::PossibleValue;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::marker::PhantomData;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A flag or key with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    key: String,
    text: String,
    /// Offset of the key in its file in bytes; `None` if it is not from a file.
    at: Option<usize>,
}

/// Flags and keys with their values as text, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Word>);

impl Words {
    /// Returns the last value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut words = self.0.iter().rev();
        words.find(|word| word.key == key).map(|word| &*word.text)
    }

    /// Sets a key to one value.
    pub fn set(&mut self, key: &str, text: &str) {
        self.0.retain(|word| word.key != key);
        self.push(key, text.to_owned(), None);
    }

    /// Returns all values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.0.iter().filter(move |word| word.key == key);
        words.map(|word| &*word.text)
    }

    /// Returns the flags whose keys satisfy `keep`.
    #[must_use]
    pub fn filtered(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|word| keep(&word.key));
        self
    }

    /// Returns these flags, and those flags of `under` whose keys are missing here.
    #[must_use]
    pub fn or(&self, under: &Self) -> Self {
        let mut words = under.clone().filtered(|key| self.get(key).is_none());
        words.0.extend_from_slice(&self.0);
        words
    }

    /// Returns the key of each value; a key with several values is repeated.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| &*word.key)
    }

    /// Formats each flag like `--up=1mbit`.
    pub fn to_flags(&self) -> Vec<String> {
        let flag = |Word { key, text, .. }: &Word| format!("--{key}={text}");
        self.0.iter().map(flag).collect()
    }

    /// Returns the text of an equivalent file.
    pub fn to_toml(&self) -> String {
        let mut keys: Vec<(&str, Vec<String>)> = Vec::new();
        for Word { key, text, .. } in &self.0 {
            let value = match (text.parse::<i64>(), text.parse::<bool>()) {
                (Ok(number), _) if number.to_string() == *text => text.clone(),
                (_, Ok(_)) => text.clone(),
                // A string of JSON is also a string of TOML, except for DEL.
                _ => serde_json::json!(text)
                    .to_string()
                    .replace('\u{7f}', r"\u007f"),
            };
            match keys.iter_mut().find(|(known, _)| known == key) {
                Some((_, values)) => values.push(value),
                None => keys.push((key, vec![value])),
            }
        }
        let lines = keys.iter().map(|(key, values)| match &values[..] {
            [value] => format!("{key} = {value}\n"),
            values => format!("{key} = [{}]\n", values.join(", ")),
        });
        lines.collect()
    }

    fn push(&mut self, key: &str, text: String, at: Option<usize>) {
        self.0.push(Word {
            key: key.to_owned(),
            text,
            at,
        });
    }

    /// Returns the offset in the file of the invalid argument.
    fn offset(&self, bad: &BadArgument) -> Option<usize> {
        let name = bad.argument.trim_start_matches('-');
        let of_name = || self.0.iter().filter(|word| word.key == name);
        let value = bad.value.as_deref();
        let mut same = of_name().filter(|word| Some(&*word.text) == value);
        same.next().or_else(|| of_name().next())?.at
    }

    /// Adds the line of the key to the error, if the key came from the file.
    pub fn locate(&self, path: &Path, text: &str, error: ScenarioError) -> ScenarioError {
        match error {
            ScenarioError::Value(bad) => match self.offset(&bad) {
                Some(offset) => {
                    let name = bad.argument.trim_start_matches('-');
                    KeyError {
                        offset,
                        message: in_file(name, &bad),
                    }
                    .in_file(path, text)
                }
                None => ScenarioError::Value(bad),
            },
            other => other,
        }
    }
}

/// The flags of a command with the settings `A`, before they are parsed.
#[derive(Clone, Debug)]
pub struct Given<A> {
    /// The flags as text.
    pub words: Words,
    of: PhantomData<fn() -> A>,
}

impl<A> Default for Given<A> {
    fn default() -> Self {
        Self {
            words: Words::default(),
            of: PhantomData,
        }
    }
}

impl<A: Settings> Args for Given<A> {
    fn augment_args(command: Command) -> Command {
        command.args(A::args())
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.args(A::args())
    }
}

impl<A: Settings> FromArgMatches for Given<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let own = A::args();
        let own = own.iter();
        let own = own.filter_map(|arg| Some((arg.get_id().as_str(), arg.get_long()?)));
        let parameters = qdisc::names(matches).into_iter().map(|name| (name, name));
        for (id, key) in own.chain(parameters) {
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            for text in matches.get_raw(id).into_iter().flatten() {
                let text = text.to_string_lossy().into_owned();
                self.words.push(key, text, None);
            }
        }
        Ok(())
    }
}

/// Parser of flags and keys: the settings of `A` and the parameters of a catalog's disciplines.
#[derive(Debug)]
pub struct Flags<A> {
    command: Command,
    disciplines: Listing,
    of: PhantomData<fn() -> A>,
}

impl<A: Settings> Flags<A> {
    /// Makes the parser for `A` and this catalog.
    pub fn new(catalog: &dyn Catalog) -> Self {
        let command = Command::new("asymq")
            .no_binary_name(true)
            .disable_help_flag(true);
        let disciplines = Listing::new(catalog);
        Self {
            command: disciplines.add_to(Given::<A>::augment_args(command), &[]),
            disciplines,
            of: PhantomData,
        }
    }

    fn flag(&self, key: &str) -> Option<&Arg> {
        let mut flags = self.command.get_arguments();
        flags.find(|flag| flag.get_long() == Some(key))
    }

    /// True if there is a flag of this name.
    pub fn has(&self, key: &str) -> bool {
        self.flag(key).is_some()
    }

    /// Parses flags and keys.
    ///
    /// # Errors
    /// The first flag or key that is invalid.
    pub fn read(&self, words: &Words) -> Result<A, BadArgument> {
        self.read_each(words).map_err(|(_, bad)| bad)
    }

    /// Parses flags and keys; an error contains the index of the invalid one.
    fn read_each(&self, words: &Words) -> Result<A, (usize, BadArgument)> {
        let mut args = A::default();
        for (place, Word { key, text, .. }) in words.0.iter().enumerate() {
            let bad = |message: String| BadArgument::new(format!("--{key}"), message);
            let Some(flag) = self.flag(key) else {
                let keys = self.command.get_arguments().filter_map(Arg::get_long);
                let suggestion = suggestion(key, keys);
                return Err((place, bad(format!("unknown argument{suggestion}"))));
            };
            let others = self.command.get_arg_conflicts_with(flag);
            let mut others = others.into_iter().filter_map(Arg::get_long);
            if let Some(other) = others.find(|other| words.get(other).is_some()) {
                let message = format!("cannot be used with --{other}");
                return Err((place, bad(message)));
            }
            let read = self.put(&mut args, flag, key, text);
            read.map_err(|message| (place, bad(message).of_value(text)))?;
        }
        Ok(args)
    }

    /// Parses one value into its field.
    fn put(&self, args: &mut A, flag: &Arg, key: &str, text: &str) -> Result<(), String> {
        if let (Some(read), Some(params)) = (self.disciplines.read(key, text), args.params()) {
            params.set(key, read?);
            return Ok(());
        }
        let names = flag.get_possible_values();
        let mut names = names.iter().map(PossibleValue::get_name).peekable();
        if names.peek().is_some() && !names.clone().any(|name| name == text) {
            return Err(format!("unknown{}", suggestion(text, names)));
        }
        let text = match key {
            "param-down" => &self.disciplines.downlink_parameter(text)?,
            _ => text,
        };
        args.set(key, text).unwrap_or(Ok(()))
    }

    /// Splits typed flags and checks all of them.
    ///
    /// # Errors
    /// The first flag that is invalid.
    pub fn given(&self, typed: impl IntoIterator<Item = String>) -> Result<Words, BadArgument> {
        let matches = self.command.clone().try_get_matches_from(typed);
        let given = matches.and_then(|matches| Given::<A>::from_arg_matches(&matches));
        let given = given.map_err(|error| BadArgument::of_clap(&error, &self.command))?;
        self.read(&given.words).map(|_| given.words)
    }

    /// Converts entries of a table to text and checks all of them.
    ///
    /// # Errors
    /// The first key that is invalid.
    pub fn entries<'a, 'i: 'a>(
        &self,
        entries: impl IntoIterator<Item = (&'a str, &'a Spanned<DeValue<'i>>)>,
    ) -> Result<Words, KeyError> {
        let mut words = Words::default();
        for (key, value) in entries {
            for item in items_of(value) {
                let offset = item.span().start;
                let text = as_text(key, item.get_ref());
                let text = text.map_err(|message| KeyError { offset, message })?;
                words.push(key, text, Some(offset));
            }
        }
        let several = |key: &str| self.is_single(key) && words.all(key).count() > 1;
        if let Some(Word { key, at, .. }) = words.0.iter().find(|word| several(&word.key)) {
            return Err(KeyError {
                offset: at.unwrap_or(0),
                message: format!("{key}: a list is not allowed here; write one value"),
            });
        }
        match self.read_each(&words) {
            Ok(_) => Ok(words),
            Err((place, bad)) => Err(KeyError {
                offset: words.0[place].at.unwrap_or(0),
                message: in_file(&words.0[place].key, &bad),
            }),
        }
    }

    fn is_single(&self, key: &str) -> bool {
        let flag = self.flag(key);
        flag.is_some_and(|flag| !matches!(flag.get_action(), ArgAction::Append))
    }

    /// Converts a table to text and checks all of its keys.
    ///
    /// # Errors
    /// The first key that is invalid.
    pub fn table(&self, table: &DeTable<'_>) -> Result<Words, KeyError> {
        self.entries(in_order(table))
    }

    /// Converts a TOML text and checks all its keys. Errors name the file `path`; relative paths start at its folder.
    ///
    /// # Errors
    /// A line of the file is invalid.
    pub fn text(&self, path: &Path, text: &str) -> Result<Words, ScenarioError> {
        let table = DeTable::parse(text).map_err(|error| {
            KeyError {
                offset: error.span().map_or(0, |span| span.start),
                message: error.message().replace('\n', ", "),
            }
            .in_file(path, text)
        })?;
        let words = self.table(table.get_ref());
        let mut words = words.map_err(|error| error.in_file(path, text))?;
        let traces = words.0.iter_mut();
        for trace in traces.filter(|word| TRACES.contains(&&*word.key)) {
            let beside = path.parent().unwrap_or(Path::new("")).join(&trace.text);
            trace.text = beside.display().to_string();
        }
        Ok(words)
    }

    /// Reads a TOML file and checks all of its keys.
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid.
    pub fn file(&self, path: &Path) -> Result<Words, ScenarioError> {
        self.text(path, &crate::file::read_file(path)?)
    }

    /// Returns the flags of `over`, and those of `under` whose keys are missing in `over`. Omits flags of `under` that
    /// conflict with a flag of `over`.
    pub fn merge(&self, over: &Words, under: &Words) -> Words {
        let conflict = |one: &str, other: &str| {
            let others = self
                .flag(one)
                .map(|one| self.command.get_arg_conflicts_with(one));
            let mut others = others.into_iter().flatten();
            others.any(|arg| arg.get_long() == Some(other))
        };
        let gives_way = |key: &str| {
            over.keys()
                .any(|new| conflict(new, key) || conflict(key, new))
        };
        over.or(&under.clone().filtered(|key| !gives_way(key)))
    }
}

/// Keys whose values are paths; in a file, relative to the file's folder.
const TRACES: [&str; 2] = ["trace-up", "trace-down"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, ScenarioArgs};
    use asymq_core::catalog::Standard;

    fn flags() -> Flags<ScenarioArgs> {
        Flags::new(&Standard)
    }

    fn words(line: &str) -> Result<ScenarioArgs, BadArgument> {
        ScenarioArgs::from_words(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_and_the_file_made_of_them_are_the_same_scenario() {
        let line = "--up=512kbit --rtt=20ms..80ms --qdisc=sad --data-share=0.3 --param-down=gamma=9 \
                    --tcp=cubic --delayed-ack=40ms --sack=false --udp=up:64kbit --udp=down:1mbit@2s..3s \
                    --flow=down,rtt=20ms,size=2mb --netem-up=loss;1% --seed=18446744073709551615 \
                    --ack-segments=3 --steps-up=10s:2mbit --on-off=200kbit:500ms:500ms --web=down:1:30kb:1.3";
        let words = line.split_whitespace().map(|word| word.replace(';', " "));
        let words: Vec<String> = words.collect();
        let args = ScenarioArgs::from_words(words.clone()).unwrap();
        let given = flags().given(words.clone()).unwrap();
        let text = given.to_toml();
        assert!(text.contains("sack = false\n"), "{text}");
        let read = flags().text(Path::new("s.toml"), &text).unwrap();
        assert_eq!(flags().read(&read).unwrap(), args);
        let mut read = read.to_flags();
        read.sort();
        let mut words = words;
        words.sort();
        assert_eq!(read, words, "{text}");
    }

    #[test]
    fn a_file_escapes_every_text() {
        let mut words = flags().given(Vec::new()).unwrap();
        let text: String = ('\u{1}'..='\u{2028}').collect();
        words.set("tc", &text);
        let table: toml::Table = words.to_toml().parse().unwrap();
        assert_eq!(table["tc"].as_str(), Some(&*text));
    }

    #[test]
    fn a_listed_flow_and_a_trace_beside_the_file_become_words() {
        let text = "trace-up = \"lte.trace\"\n[[flow]]\ndirection = \"down\"\nrtt = \"20ms\"\n";
        let words = flags().text(Path::new("folder/s.toml"), text).unwrap();
        assert_eq!(
            words.to_flags(),
            [
                "--trace-up=folder/lte.trace",
                "--flow=direction=down,rtt=20ms"
            ]
        );
    }

    #[test]
    fn merged_words_are_read_once_and_a_parameter_is_one_of_them() {
        let given = |line: &str| {
            let words = line.split_whitespace().map(str::to_owned);
            flags().given(words).unwrap()
        };
        let under = given("--up 1mbit --gamma 7 --udp=up:1mbit --udp=up:2mbit --delayed-ack");
        let over = given("--up=2mbit --udp=down:3mbit");
        let merged = flags().merge(&over, &under);
        let args = flags().read(&merged).unwrap();
        assert_eq!(args.up, "2mbit".parse().ok());
        assert_eq!(args.udp, ["down:3mbit".parse().unwrap()]);
        assert_eq!(args.delayed_ack, "100ms".parse().ok());
        assert_eq!(args.qdisc_params.get("gamma"), Some("7"));
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        assert_eq!(scenario.down.to_string(), "10mbit");
    }

    #[test]
    fn a_wrong_word_is_named_as_on_the_command_line() {
        let said = |line: &str| words(line).unwrap_err().to_string();
        assert_eq!(
            said("--up=1mbitt"),
            "--up 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit"
        );
        assert!(said("--upp=1mbit").starts_with("--upp: unknown argument; did you mean `--up`"));
    }
}
