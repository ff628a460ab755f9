//! A scenario as a TOML file: the flags, without their dashes, as keys.

use crate::bad_argument::BadArgument;
use asymq_scenario::quoted;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An invalid key of a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Offset in the file, in bytes.
    pub offset: usize,
    /// The key, the error, and a valid form.
    pub message: String,
}

/// A scenario or an experiment that cannot be run.
#[derive(Debug)]
pub enum ScenarioError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line of the file is invalid.
    File {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The error, and a valid form.
        message: String,
    },
    /// A flag's value is invalid.
    Value(BadArgument),
}

asymq_core::error_texts!(ScenarioError {
    Self::Read { path, source } => ("{}: cannot be read", path.display()) from source,
    Self::File { path, line, message } => ("{}:{line}: {message}", path.display()),
    Self::Value(error) => ("{error}") from error,
});

impl From<BadArgument> for ScenarioError {
    fn from(error: BadArgument) -> Self {
        Self::Value(error)
    }
}

impl KeyError {
    /// Adds the file and the line of the key in its `text`.
    pub fn in_file(self, path: &Path, text: &str) -> ScenarioError {
        let before = &text[..self.offset.min(text.len())];
        ScenarioError::File {
            path: path.to_owned(),
            line: 1 + before.matches('\n').count(),
            message: self.message,
        }
    }
}

/// Returns the entries of a table in the order of the file.
pub(crate) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> impl Iterator<Item = (&'t str, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let named = |(key, value): (&'t Spanned<_>, _)| (key.get_ref() as &str, value);
    entries.into_iter().map(named)
}

/// Returns the values of an entry; each element of a list is one value of the flag.
pub(crate) fn items_of<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> &'t [Spanned<DeValue<'i>>] {
    match value.get_ref() {
        DeValue::Array(items) => items,
        _ => std::slice::from_ref(value),
    }
}

/// Reads a file of at most 64 MiB, enough for results with all series.
///
/// # Errors
/// The file is unreadable, too long, or not text.
pub fn read_bounded(path: &Path) -> io::Result<String> {
    const MAX: u64 = 1 << 26;
    let mut text = String::new();
    File::open(path)?.take(MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX {
        true => Err(io::Error::other("it is longer than 64 MiB")),
        false => Ok(text),
    }
}

/// Like [`read_bounded`], with the path in the error.
///
/// # Errors
/// See [`read_bounded`].
pub fn read_file(path: &Path) -> Result<String, ScenarioError> {
    read_bounded(path).map_err(|source| ScenarioError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Formats an error like `up = 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit`.
pub(crate) fn in_file(name: &str, bad: &BadArgument) -> String {
    let message = bad.message.replace("argument", "key");
    let message = message.replace("--help", "-help").replace("--", "");
    let message = message.replace("-help", "--help");
    match &bad.value {
        Some(value) => format!("{name} = {}: {message}", quoted(value)),
        None => format!("{name}: {message}"),
    }
}

/// Keys whose values may be tables, like `[[flow]]`. The flag of such a key takes a list of `key=value`.
const IN_TABLES: [&str; 1] = ["flow"];

/// Formats the table `direction = "down"`, `rtt = "40ms"` as `direction=down,rtt=40ms`.
fn list_of_pairs(name: &str, table: &DeTable<'_>) -> Result<String, String> {
    let pairs: Result<Vec<String>, String> = in_order(table)
        .map(|(key, value)| {
            let text = as_text(key, value.get_ref());
            let text = text.map_err(|message| format!("{name}: {message}"))?;
            Ok(format!("{key}={text}"))
        })
        .collect();
    Ok(pairs?.join(","))
}

/// Formats the value of a key as the value of a flag.
pub(crate) fn as_text(name: &str, value: &DeValue<'_>) -> Result<String, String> {
    Ok(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Table(table) if IN_TABLES.contains(&name) => list_of_pairs(name, table)?,
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            return Err(format!(
                "{name}: {} is not allowed here; write text or a number, for example up = \"1mbit\"",
                match value {
                    DeValue::Array(_) => "a list in a list",
                    DeValue::Datetime(_) => "a date",
                    _ => "a table",
                }
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Flags, Words};
    use crate::{Defaults, ScenarioArgs, ScenarioFlags};
    use asymq_core::catalog::Standard;
    use asymq_core::units::Duration;
    use asymq_scenario::AckPolicy;

    fn parse(text: &str) -> Result<Words, ScenarioError> {
        Flags::<ScenarioArgs>::new(&Standard).text(Path::new("s.toml"), text)
    }

    fn scenario(text: &str) -> asymq_scenario::Scenario {
        let flags = Flags::<ScenarioArgs>::new(&Standard);
        let args = flags.read(&parse(text).unwrap()).unwrap();
        args.resolve(&Defaults::paper()).unwrap()
    }

    #[test]
    fn a_file_has_the_names_of_the_flags() {
        let text = r#"
            up = "512kbit"
            flows-up = 0
            rtt = "100ms"
            qdisc = "aq"
            mss = 1_000
            data-per-ack = 2.0
            classifier = "size<=40"
            delayed-ack = "100ms"
            udp = ["up:500kbit@60s..80s", "down:64kbit:200b"]
        "#;
        let scenario = scenario(text);
        assert_eq!((scenario.flows_up, scenario.mss), (0, 1000));
        assert_eq!(
            scenario.ack_policy,
            AckPolicy::Delayed(Duration::from_millis(100))
        );
        assert_eq!(scenario.udp[0], "up:500kbit@60s..80s".parse().unwrap());
        assert_eq!(scenario.udp[1], "down:64kbit:200b".parse().unwrap());
    }

    #[test]
    fn flows_are_listed_as_tables_or_as_text() {
        let text = r#"
            flow = ["down,rtt=40ms"]
        "#;
        let listed = |text: &str| scenario(text).flow;
        assert_eq!(listed(text), ["down,rtt=40ms".parse().unwrap()]);
        let text = r#"
            [[flow]]
            direction = "down"
            rtt = "40ms"
            ack-every = 2

            [[flow]]
            direction = "up"
            size = "1mb"
            tcp = "cubic"
        "#;
        let expected = ["down,rtt=40ms,ack-every=2", "up,size=1mb,tcp=cubic"];
        assert_eq!(listed(text), expected.map(|flow| flow.parse().unwrap()));
    }

    #[test]
    fn long_lists_and_names_take_time_by_their_length() {
        let started = std::time::Instant::now();
        let words = parse(&"[[flow]]\ndirection = \"up\"\n".repeat(60_000)).unwrap();
        assert_eq!(words.keys().count(), 60_000);
        let error = parse(&("a".repeat(1 << 20) + " = 1")).unwrap_err();
        assert!(error.to_string().ends_with("unknown key; --help lists all"));
        // Each case takes a minute if the code counts all values for each value, or compares the name with all flags.
        let took = started.elapsed();
        assert!(took.as_secs() < 20, "{took:?}");
    }

    #[test]
    fn errors_name_line_key_and_a_valid_form() {
        for (text, expected) in [
            (
                "down = \"10mbit\"\nup = \"1mbitt\"",
                "s.toml:2: up = 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit",
            ),
            (
                "# a comment\n\nflow-up = 3",
                "s.toml:3: flow-up: unknown key; did you mean `flows-up`?",
            ),
            (
                "zebra = \"red\"",
                "s.toml:1: zebra: unknown key; --help lists all",
            ),
            (
                "up = \"1mbit\"\ntcp = \"Cubic\"",
                "s.toml:2: tcp = Cubic: unknown; did you mean `cubic`?",
            ),
            (
                "flows-up = 2.5",
                "s.toml:1: flows-up = 2.5: not a whole number; write it like 5",
            ),
            (
                "rtt = 20",
                "s.toml:1: rtt = 20: no unit; use s, ms, us or ns",
            ),
            (
                "udp = [\"up:1mbit\",\n \"left:1mbit\"]",
                "s.toml:2: udp = left:1mbit: unknown direction 'left'; write it like up:500kbit, down:3mbit:200b@60s..80s, up:1mbit/2..3 or up:3mbit:60b:syns",
            ),
            (
                "runs = 2\nup = [\"1mbit\", \"2mbit\"]",
                "s.toml:2: up: a list is not allowed here; write one value",
            ),
            (
                "udp = [[1]]",
                "s.toml:1: udp: a list in a list is not allowed here; write text or a number, for example up = \"1mbit\"",
            ),
            (
                "runs = 1\n[[flow]]\ndirection = \"left\"",
                "s.toml:2: flow = direction=left: direction=left: unknown; use up or down",
            ),
            (
                "[[flow]]\ndirection = \"up\"\nrtt = [[1]]",
                "s.toml:1: flow: rtt: a list in a list is not allowed here; write text or a number, for example up = \"1mbit\"",
            ),
            ("sack = 1", "s.toml:1: sack = 1: unknown; use true or false"),
            (
                "[tcp]\nname = \"reno\"",
                "s.toml:1: tcp: a table is not allowed here; write text or a number, for example up = \"1mbit\"",
            ),
            (
                "up = ",
                "s.toml:1: string values must be quoted, expected literal string",
            ),
            ("up = \"1mbit\"\nup = \"2mbit\"", "s.toml:2: duplicate key"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_value_out_of_range_is_named_where_it_was_written() {
        let directory = std::env::temp_dir().join(format!("asymq-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("short.toml");
        std::fs::write(&path, "up = \"1mbit\"\nduration = \"4s\"\n").unwrap();
        let resolve = |duration: Option<&str>| {
            let mut flags = ScenarioFlags {
                file: Some(path.clone()),
                ..ScenarioFlags::default()
            };
            flags.given.words.set("warmup", "9s");
            if let Some(duration) = duration {
                flags.given.words.set("duration", duration);
            }
            let scenario = flags.resolve(&Standard, &Defaults::paper());
            scenario.map_err(|error| error.to_string())
        };
        assert_eq!(
            resolve(None).unwrap_err(),
            "--warmup 9s: not less than the duration, 4s"
        );
        std::fs::write(&path, "up = \"1mbit\"\nduration = \"0s\"\n").unwrap();
        assert_eq!(
            resolve(None).unwrap_err(),
            format!(
                "{}:2: duration = 0ns: out of range; use more than 0s and at most 200000s",
                path.display()
            )
        );
        assert!(resolve(Some("10s")).is_ok());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
