//! Parses settings files of other programs into sections of options.

use crate::output::listed;
use asymq_scenario::quoted;

/// Program to which a section belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqm,
    Qosmate,
    Autorate,
    Tc,
}

/// Options of one link.
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
            name: name.to_owned(),
            options: Vec::new(),
        }
    }

    /// Returns the value of an option; empty if it is absent.
    pub(super) fn get(&self, key: &str) -> &str {
        let mut options = self.options.iter();
        options
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    }

    /// Interface that the section shapes.
    pub(super) fn interface(&self) -> &str {
        let keys = ["interface", "WAN", "ul_if", "dev"].map(|key| self.get(key));
        keys.into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_default()
    }

    /// True if the section describes a link: it has an option; for cake-autorate, an option with `ul_` or `dl_`.
    fn is_of_a_link(&self) -> bool {
        let is_for_autorate = |key: &str| key.contains("ul_") || key.contains("dl_");
        let mut keys = self.options.iter().map(|(key, _)| key);
        match self.dialect {
            Dialect::Autorate => keys.any(|key| is_for_autorate(key)),
            _ => keys.next().is_some(),
        }
    }

    fn has_rate(&self) -> bool {
        !self.get("bandwidth").is_empty() || !self.get("rate").is_empty()
    }

    /// True if tc shows a downlink here: a qdisc at an IFB, or CAKE with the keyword for downlinks.
    pub(super) fn is_download(&self) -> bool {
        let mut options = self.options.iter();
        self.dialect == Dialect::Tc
            && (self.get("dev").starts_with("ifb") || options.any(|(key, _)| key == "ingress"))
    }

    fn push(&mut self, key: &str, value: &str) {
        self.options.push((quoted(key), quoted(value)));
    }
}

/// Splits a file into sections by its format. `config` marks UCI, `PACKAGE.SECTION=TYPE` marks `uci show`, and `qdisc`
/// marks tc. All other files are read as shell assignments.
pub(super) fn sections(text: &str, name: &str) -> Vec<Section> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let text = &text.replace('\r', "\n").replace("\\\n", " ");
    let has = |word: &str| {
        let mut lines = text.lines();
        lines.any(|line| line.split_whitespace().next() == Some(word))
    };
    let typed = text
        .lines()
        .any(|line| typed_qdisc(&shell_words(line)).is_some());
    let shown = uci_shown(text);
    let mut sections = match (has("config"), typed || has("qdisc")) {
        _ if !shown.is_empty() => uci(&shown),
        (true, _) => uci(text),
        (_, true) => tc(text),
        _ => vec![assignments(text, name)],
    };
    // With a link layer, SQM's default overhead is 0.
    for section in sections.iter_mut().filter(|of| of.dialect == Dialect::Sqm) {
        if section.get("overhead").is_empty() && !matches!(section.get("linklayer"), "" | "none") {
            section.push("overhead", "0");
        }
    }
    // OpenWrt's default configuration has a disabled example, which remains beside the real link.
    let is_on = |section: &Section| section.get("enabled") != "0";
    let any_is_on = sections.iter().any(is_on);
    sections.retain(|of| of.is_of_a_link() && (is_on(of) || !any_is_on));
    sections
}

/// Converts the output of `uci show`, or `uci set` commands, to a UCI file. Example: `sqm.eth1=queue`,
/// `sqm.eth1.upload='10000'`. The commands may omit the line with the section's type.
fn uci_shown(text: &str) -> String {
    let (mut lines, mut last) = (String::new(), "");
    for line in text.lines() {
        let line = line.trim().trim_start_matches("uci set ");
        let Some((path, value)) = line.split_once('=') else {
            continue;
        };
        let mut parts = path.splitn(3, '.');
        let (package, Some(section), key) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let kind = match key {
            None => Some(value),
            Some(_) => (section != last && package == Some("sqm")).then_some("queue"),
        };
        if let Some(kind) = kind {
            lines += &format!("config {kind} '{section}'\n");
        }
        last = section;
        if let Some(key) = key {
            lines += &format!("option {key} {value}\n");
        }
    }
    lines
}

/// OpenWrt's UCI: `config TYPE 'NAME'`, then `option KEY 'VALUE'`. qosmate describes one link in several sections.
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
                let name = format!("sqm {}", shell_word(&name.unwrap_or(kind)));
                sections.push(Section::new(Dialect::Sqm, &name));
            }
            // cake-autorate has one instance per section.
            (Some("config"), Some(_), _) if !is_qosmate => {
                sections.push(Section::new(Dialect::Autorate, "cake-autorate"));
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

/// SQM's names in shell files (Debian's `/etc/sqm/eth0.iface.conf`) that differ from UCI's names by more than case.
const SQM_IN_SHELL: [(&str, &str); 9] = [
    ("UPLINK", "upload"),
    ("DOWNLINK", "download"),
    ("IFACE", "interface"),
    ("LLAM", "linklayer_adaptation_mechanism"),
    ("STAB_MTU", "tcMTU"),
    ("STAB_TSIZE", "tcTSIZE"),
    ("STAB_MPU", "tcMPU"),
    ("IECN", "ingress_ecn"),
    ("EECN", "egress_ecn"),
];

/// Reads shell assignments of SQM or cake-autorate.
fn assignments(text: &str, name: &str) -> Section {
    let pairs = pairs(text);
    if !pairs
        .iter()
        .any(|(key, _)| matches!(key.as_str(), "UPLINK" | "DOWNLINK"))
    {
        let mut section = Section::new(Dialect::Autorate, "cake-autorate");
        pairs
            .iter()
            .for_each(|(key, value)| section.push(key, value));
        return section;
    }
    let mut section = Section::new(Dialect::Sqm, "sqm");
    if let Some(interface) = name.strip_suffix(".iface.conf") {
        section.push("interface", interface);
    }
    for (key, value) in &pairs {
        let known = SQM_IN_SHELL.iter().find(|(name, _)| name == key);
        let key = known.map_or_else(|| key.to_lowercase(), |(_, uci)| (*uci).to_owned());
        section.push(&key, value);
    }
    section
}

/// Reads `key=value` lines of a shell. An array in parentheses, on one line or several, becomes `(...)`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut array = false;
    for line in text.lines() {
        if array {
            array = !line.trim_end().ends_with(')');
            continue;
        }
        let line = line.trim();
        let Some((key, value)) = line.strip_prefix("export ").unwrap_or(line).split_once('=')
        else {
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
            pairs.push((key.into(), "(...)".into()));
        } else {
            // Further assignments may follow after a semicolon.
            for word in shell_words(&format!("{key}={value}")) {
                match word.split_once('=') {
                    Some((key, value)) if is_name(key) => pairs.push((key.into(), value.into())),
                    _ => break,
                }
            }
        }
    }
    pairs
}

/// Qdiscs that the kernel adds by itself.
const NOT_CHOSEN: [&str; 6] = ["noqueue", "mq", "pfifo_fast", "ingress", "clsact", "noop"];

/// Returns the arguments after `tc qdisc add`, `replace` or `change`: `sudo tc qdisc replace dev eth0 root cake ...`.
fn typed_qdisc(words: &[String]) -> Option<&[String]> {
    let at = words.windows(3).position(|part| {
        part[0].rsplit('/').next() == Some("tc")
            && part[1] == "qdisc"
            && matches!(part[2].as_str(), "add" | "replace" | "change")
    })?;
    Some(&words[at + 3..])
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// Replaces `$NAME` and `${NAME}` by the values that a script assigns. A value may contain further variables.
fn expanded(line: &str, variables: &[(String, String)]) -> String {
    const MAX: (usize, usize) = (200, 256);
    let mut line = line.to_owned();
    let mut variables: Vec<_> = variables.iter().take(MAX.0).collect();
    // `$UP` is also the start of `$UPLINK`.
    variables.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, value) in variables.iter().chain(&variables) {
        if value.len() <= MAX.1 && line.len() <= 16 * MAX.1 && line.contains('$') {
            line = line.replace(&format!("${{{name}}}"), value);
            line = line.replace(&format!("${name}"), value);
        }
    }
    line
}

/// Renames each `overhead` that follows the word `start`: tc's size table adds it to the frame, CAKE to the IP packet.
fn stab<'a>(words: &[&'a str], start: &str) -> Vec<&'a str> {
    let at = words.iter().position(|word| *word == start);
    let (before, table) = words.split_at(at.unwrap_or(words.len()));
    let table = table.iter().map(|word| match *word {
        "overhead" => "stab-overhead",
        word => word,
    });
    before.iter().copied().chain(table).collect()
}

/// Reads `qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 10Mbit ...`, or the tc command that creates it. Returns one
/// section per port and direction. If any qdisc has a rate, omits qdiscs without a rate.
fn tc(text: &str) -> Vec<Section> {
    const KINDS: [&str; 6] = ["cake", "cake_mq", "fq_codel", "tbf", "htb", "hfsc"];
    let mut sections: Vec<Section> = Vec::new();
    let variables = pairs(text);
    let lines = text.lines().flat_map(|line| line.split([';', '&', '|']));
    for line in lines.map(|line| expanded(line, &variables)) {
        let mut shown = shell_words(&line);
        shown.truncate(
            shown
                .iter()
                .position(|word| word.contains('>'))
                .unwrap_or(shown.len()),
        );
        let typed = typed_qdisc(&shown).map(strs);
        let (kind, words) = match (&typed, &strs(&shown)[..]) {
            (Some(words), _) => match words.iter().position(|word| KINDS.contains(word)) {
                Some(at) => (
                    words[at],
                    [&stab(&words[..at], "stab"), &words[at + 1..]].concat(),
                ),
                None => continue,
            },
            (None, ["qdisc", kind, _handle, rest @ ..]) => (*kind, stab(rest, "linklayer")),
            _ => continue,
        };
        if NOT_CHOSEN.contains(&kind) {
            continue;
        }
        let mut section = Section::new(Dialect::Tc, &format!("tc qdisc {}", shell_word(kind)));
        section.push("qdisc", kind);
        for (key, value) in tc_words(&words) {
            section.push(key, value);
        }
        // The children of cake_mq have equal options.
        let port = |known: &Section| {
            let of = |one: &Section| (one.get("dev").to_owned(), one.is_download());
            of(known) == of(&section)
        };
        match sections.iter_mut().find(|known| port(known)) {
            Some(known) if !known.has_rate() && section.has_rate() => *known = section,
            Some(_) => {}
            None => sections.push(section),
        }
    }
    if sections.iter().any(Section::has_rate) {
        sections.retain(Section::has_rate);
    }
    sections
}

/// Pairs tc's keywords with their values.
pub(super) fn tc_words<'a>(words: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    const WITH_VALUE: &str = "r2q default direct_packets_stat direct_qlen rate burst lat peakrate minburst dev \
        parent refcnt bandwidth rtt overhead mpu memlimit fwmark limit flows quantum target \
        interval memory_limit drop_batch ce_threshold handle latency buffer maxburst mtu \
        tsize linklayer stab-overhead total_overhead hard_header_len";
    let mut pairs = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // CAKE's `flows` has no value; fq_codel's `flows` has a number.
        let is_number = |next: &&str| next.starts_with(|letter: char| letter.is_ascii_digit());
        let has_value = listed(WITH_VALUE, word)
            && (*word != "flows" || words.as_slice().first().is_some_and(is_number));
        let value = match has_value {
            true => words.next().copied().unwrap_or_default(),
            false => "",
        };
        pairs.push((*word, value));
    }
    pairs
}

/// Quotes a word for a shell, unless all its characters are plain.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:,".contains(c);
    match word.chars().all(plain) {
        true => quoted(word),
        false => format!("'{}'", quoted(word).replace('\'', r"'\''")),
    }
}

/// Splits a line into words like a shell: removes quotes, and stops at a comment.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, '#') if !is_word => break,
            (None, _) if letter.is_whitespace() || letter == ';' => {
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
