//! Settings files of others, read into sections of options.

use asymq_scenario::quoted;

/// The program that a section is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqm,
    Qosmate,
    Autorate,
    Tc,
}

/// Options that belong together: a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) dialect: Dialect,
    pub(super) name: String,
    pub(super) options: Vec<(String, String)>,
}

impl Section {
    fn new(dialect: Dialect, name: &str) -> Self {
        Self {
            dialect,
            name: quoted(name),
            options: Vec::new(),
        }
    }

    /// The value of an option; empty where it is absent.
    pub(super) fn get(&self, key: &str) -> &str {
        let mut options = self.options.iter();
        options
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    }

    /// True for what tc shows of a downlink: a qdisc at an IFB, or CAKE's word for one.
    pub(super) fn is_download(&self) -> bool {
        let mut options = self.options.iter();
        self.dialect == Dialect::Tc
            && (self.get("dev").starts_with("ifb") || options.any(|(key, _)| key == "ingress"))
    }

    fn push(&mut self, key: &str, value: &str) {
        self.options.push((quoted(key), quoted(value)));
    }
}

/// The sections of a file, by its form: UCI has `config`, tc has `qdisc`, and the rest is a shell's assignments.
pub(super) fn sections(text: &str) -> Vec<Section> {
    let has = |word: &str| {
        let mut lines = text.lines();
        lines.any(|line| line.split_whitespace().next() == Some(word))
    };
    let sections = match (has("config"), has("qdisc")) {
        (true, _) => uci(text),
        (_, true) => tc(text),
        _ => assignments(text),
    };
    let filled = |section: &Section| !section.options.is_empty();
    sections.into_iter().filter(filled).collect()
}

/// OpenWrt's UCI: `config TYPE 'NAME'`, then `option KEY 'VALUE'`. qosmate has one link in several sections.
fn uci(text: &str) -> Vec<Section> {
    let is_qosmate = text.contains("config settings");
    let mut sections = match is_qosmate {
        true => vec![Section::new(Dialect::Qosmate, "qosmate")],
        false => Vec::new(),
    };
    for line in text.lines() {
        let mut words = shell_words(line).into_iter();
        match (words.next().as_deref(), words.next(), words.next()) {
            (Some("config"), Some(kind), name) if kind == "queue" => {
                let name = format!("sqm {}", name.unwrap_or(kind));
                sections.push(Section::new(Dialect::Sqm, &name));
            }
            (Some("option" | "list"), Some(key), Some(value)) => {
                if let Some(section) = sections.last_mut() {
                    section.push(&key, &value);
                }
            }
            _ => {}
        }
    }
    sections
}

/// A shell's `key=value`, arrays in parentheses over several lines among them.
fn assignments(text: &str) -> Vec<Section> {
    let mut section = Section::new(Dialect::Autorate, "cake-autorate");
    let mut array = false;
    for line in text.lines() {
        if array {
            array = !line.trim_end().ends_with(')');
            continue;
        }
        let Some((key, value)) = line.trim().split_once('=') else {
            continue;
        };
        let is_name = |key: &str| {
            let mut letters = key.chars();
            !key.is_empty() && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !is_name(key) {
            continue;
        }
        if value.starts_with('(') {
            array = !value.contains(')');
            section.push(key, "(...)");
        } else {
            let value = shell_words(value).into_iter().next();
            section.push(key, &value.unwrap_or_default());
        }
    }
    vec![section]
}

/// Qdiscs that the kernel adds by itself.
const NOT_CHOSEN: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "ingress", "clsact", "noop"];

/// `qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 10Mbit ...`: words, of which some take a value.
fn tc(text: &str) -> Vec<Section> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with("qdisc "));
    let mut sections = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let [kind, _handle, rest @ ..] = &words[..] else {
            continue;
        };
        if NOT_CHOSEN.contains(kind) {
            continue;
        }
        let mut section = Section::new(Dialect::Tc, &format!("tc qdisc {kind}"));
        section.push("qdisc", kind);
        for (key, value) in tc_words(rest) {
            section.push(key, value);
        }
        sections.push(section);
    }
    sections
}

/// tc's words with their values.
pub(super) fn tc_words<'a>(words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    const WITH_VALUE: [&str; 23] = [
        "rate",
        "burst",
        "lat",
        "peakrate",
        "minburst",
        "dev",
        "parent",
        "refcnt",
        "bandwidth",
        "rtt",
        "overhead",
        "mpu",
        "memlimit",
        "fwmark",
        "limit",
        "flows",
        "quantum",
        "target",
        "interval",
        "memory_limit",
        "drop_batch",
        "ce_threshold",
        "handle",
    ];
    let mut pairs = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = match WITH_VALUE.contains(word) {
            true => words.next().copied().unwrap_or_default(),
            false => "",
        };
        pairs.push((*word, value));
    }
    pairs
}

/// Words as a shell splits them, quotes removed, up to a comment.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, '#') if !is_word => break,
            (None, _) if letter.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (None, _) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}
