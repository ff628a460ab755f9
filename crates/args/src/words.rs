//! Flags and keys as words: those of command line, file, request and result are merged first, and read
//! once.

use crate::bad_argument::BadArgument;
use crate::file::{KeyError, ScenarioError, as_text, in_file, in_order, items_of};
use crate::qdisc::{self, with_disciplines};
use asymq_core::catalog::Catalog;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::marker::PhantomData;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A flag or key with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    key: String,
    text: String,
    /// Where it stands in its file, in bytes from the start.
    at: Option<usize>,
}

/// Flags and keys with their values as text, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Word>);

impl Words {
    /// The last value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut words = self.0.iter().rev();
        words.find(|word| word.key == key).map(|word| &*word.text)
    }

    /// Sets a key to one value.
    pub fn set(&mut self, key: &str, text: &str) {
        self.0.retain(|word| word.key != key);
        self.push(key, text.to_owned(), None);
    }

    /// All values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.0.iter().filter(move |word| word.key == key);
        words.map(|word| &*word.text)
    }

    /// The words whose keys a rule keeps.
    #[must_use]
    pub fn filtered(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|word| keep(&word.key));
        self
    }

    /// These words, and those of `under` whose keys these lack.
    #[must_use]
    pub fn or(&self, under: &Self) -> Self {
        let mut words = under.clone().filtered(|key| self.get(key).is_none());
        words.0.extend_from_slice(&self.0);
        words
    }

    /// The keys, each as often as it has values.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| &*word.key)
    }

    /// `--up=1mbit` for each word.
    pub fn to_flags(&self) -> Vec<String> {
        let flag = |Word { key, text, .. }: &Word| format!("--{key}={text}");
        self.0.iter().map(flag).collect()
    }

    /// The text of a file that says the same.
    pub fn to_toml(&self) -> String {
        let mut keys: Vec<(&str, Vec<toml::Value>)> = Vec::new();
        for Word { key, text, .. } in &self.0 {
            // What is no text in TOML either.
            let value = match (text.parse::<i64>(), text.parse::<bool>()) {
                (Ok(number), _) if number.to_string() == *text => number.into(),
                (_, Ok(truth)) => truth.into(),
                _ => text.as_str().into(),
            };
            match keys.iter_mut().find(|(known, _)| known == key) {
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

    fn push(&mut self, key: &str, text: String, at: Option<usize>) {
        self.0.push(Word {
            key: key.to_owned(),
            text,
            at,
        });
    }

    /// Where the argument that is wrong stands in its file.
    fn offset(&self, bad: &BadArgument) -> Option<usize> {
        let name = bad.argument.trim_start_matches('-');
        let of_name = || self.0.iter().filter(|word| word.key == name);
        let value = bad.value.as_deref();
        let mut same = of_name().filter(|word| Some(&*word.text) == value);
        same.next().or_else(|| of_name().next())?.at
    }

    /// The error with the line of its key, if that was in the file.
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

/// The flags of a command that `A` describes, as words, to be merged before they are read.
#[derive(Clone, Debug)]
pub struct Given<A> {
    /// The words.
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

impl<A: Args> Args for Given<A> {
    fn augment_args(command: Command) -> Command {
        A::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

impl<A: Args> FromArgMatches for Given<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let command = A::augment_args(Command::new("flags"));
        let own = command.get_arguments();
        let own = own.filter_map(|arg| Some((arg.get_id().as_str(), arg.get_long()?)));
        let of_disciplines = qdisc::names(matches).into_iter().map(|name| (name, name));
        for (id, key) in own.chain(of_disciplines) {
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

/// The parser of the flags of `A`, with those of a catalog's disciplines among them.
#[derive(Debug)]
pub struct Flags<A> {
    command: Command,
    of: PhantomData<fn() -> A>,
}

impl<A: Args> Flags<A> {
    /// The flags of `A` and of the catalog's disciplines.
    pub fn of(catalog: &dyn Catalog) -> Self {
        let command = Command::new("asymq")
            .no_binary_name(true)
            .disable_help_flag(true);
        Self {
            command: with_disciplines(A::augment_args(command), catalog),
            of: PhantomData,
        }
    }

    /// True if there is a flag of this name.
    pub fn has(&self, key: &str) -> bool {
        let mut flags = self.command.get_arguments();
        flags.any(|flag| flag.get_long() == Some(key))
    }

    /// Reads words.
    ///
    /// # Errors
    /// The first word that is invalid.
    pub fn read(&self, words: &Words) -> Result<A, BadArgument> {
        self.parse(words.to_flags())
    }

    /// Reads flags as typed.
    ///
    /// # Errors
    /// The first flag that is invalid.
    pub fn parse(&self, typed: impl IntoIterator<Item = String>) -> Result<A, BadArgument> {
        self.matched(typed)
    }

    /// Takes flags as typed for words, all of which are valid.
    ///
    /// # Errors
    /// The first flag that is invalid.
    pub fn given(&self, typed: impl IntoIterator<Item = String>) -> Result<Words, BadArgument> {
        self.matched::<Given<A>>(typed).map(|given| given.words)
    }

    fn matched<T: FromArgMatches>(
        &self,
        typed: impl IntoIterator<Item = String>,
    ) -> Result<T, BadArgument> {
        let matches = self.command.clone().try_get_matches_from(typed);
        let read = matches.and_then(|matches| T::from_arg_matches(&matches));
        read.map_err(|error| BadArgument::from(&error))
    }

    /// The words of entries of a table, all of which are valid.
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
        let Err(mut bad) = self.read(&words) else {
            return Ok(words);
        };
        let name = bad.argument.trim_start_matches('-').to_owned();
        if words.all(&name).count() > 1 && self.is_single(&name) {
            bad.value = None;
            bad.message = "a list is not allowed here; write one value".into();
        }
        Err(KeyError {
            offset: words.offset(&bad).unwrap_or(0),
            message: in_file(&name, &bad),
        })
    }

    fn is_single(&self, key: &str) -> bool {
        let mut flags = self.command.get_arguments();
        let flag = flags.find(|flag| flag.get_long() == Some(key));
        flag.is_some_and(|flag| !matches!(flag.get_action(), ArgAction::Append))
    }

    /// The words of a table, all of which are valid.
    ///
    /// # Errors
    /// The first key that is invalid.
    pub fn table(&self, table: &DeTable<'_>) -> Result<Words, KeyError> {
        self.entries(in_order(table))
    }

    /// The words of a TOML file's text, all of which are valid; `path` names it in errors, and files
    /// that it names are beside it.
    ///
    /// # Errors
    /// A line of it is wrong.
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

    /// The words of a file, all of which are valid.
    ///
    /// # Errors
    /// It cannot be read, or a line of it is wrong.
    pub fn file(&self, path: &Path) -> Result<Words, ScenarioError> {
        self.text(path, &crate::file::text_of(path)?)
    }

    /// All words of `over`, and those of `under` whose keys `over` lacks. A key takes the place of those
    /// that cannot stand beside it, too.
    pub fn merge(&self, over: &Words, under: &Words) -> Words {
        let conflict = |one: &str, other: &str| {
            let mut flags = self.command.get_arguments();
            let one = flags.find(|flag| flag.get_long() == Some(one));
            let others = one.map(|one| self.command.get_arg_conflicts_with(one));
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

/// Keys whose values are files.
const TRACES: [&str; 2] = ["trace-up", "trace-down"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, ScenarioArgs};
    use asymq_core::catalog::Standard;

    fn flags() -> Flags<ScenarioArgs> {
        Flags::of(&Standard)
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
        assert_eq!(args.qdisc_params.0.get("gamma"), Some("7"));
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
        assert!(said("--upp=1mbit").starts_with("--upp: unknown argument; did you mean --up?"));
    }
}
