//! Parameters of disciplines as typed, and their flags.

use crate::settings::{Settings, optional};
use asymq_core::catalog::{Catalog, Entry, Kind, Parameter, Params, Role, known_parameters};
use asymq_core::units::suggestion;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgGroup, ArgMatches, Command, Id};

/// Clap's group of these flags. With the group, code finds the flags without a catalog.
const GROUP: &str = "parameters";

/// Returns the names of the discipline parameters that the user gave.
pub(crate) fn names(matches: &ArgMatches) -> Vec<&str> {
    let names = matches.try_get_many::<Id>(GROUP).ok().flatten();
    names.into_iter().flatten().map(Id::as_str).collect()
}

/// Returns the parameters of the downlink's discipline `name`: `own`, and otherwise the uplink's values, except the
/// choice of parts. On a downlink, `isolated` isolates destinations by default, since these are the hosts at home.
pub fn downlink_params(
    uplink: &Params,
    own: &[String],
    catalog: &dyn Catalog,
    name: &str,
) -> Params {
    let mut shared = uplink.clone();
    for role in Role::PARTS {
        shared.remove(role.key());
    }
    let own = own.iter().filter_map(|text| text.split_once('='));
    let given = own.collect::<Params>().or(shared);
    let queue = Role::DataQueue.key();
    let brought = catalog
        .entry(Role::Qdisc, name)
        .and_then(|entry| entry.brings.iter().find(|(key, _)| *key == queue));
    let has_accounts = given.get(queue).or(brought.map(|(_, name)| *name)) == Some("isolated");
    match has_accounts {
        true => given.or(Params::new().with("isolation", "dual-dsthost")),
        false => given,
    }
}

/// Parameters of disciplines, all optional; a discipline ignores parameters that it does not have. [`with_disciplines`]
/// adds their flags to a command.
impl Settings for Params {
    fn args() -> Vec<Arg> {
        Vec::new()
    }

    fn set(&mut self, _: &str, _: &str) -> Option<Result<(), String>> {
        None
    }

    fn params(&mut self) -> Option<&mut Params> {
        Some(self)
    }
}

/// Adds the flags for the catalog's disciplines and parameters to each subcommand that has a discipline. `with_help`
/// adds the help texts of the parameters.
pub fn with_disciplines(command: Command, catalog: &dyn Catalog, with_help: bool) -> Command {
    let listing = Listing::new(catalog);
    let known = listing.parameters.iter().filter(|_| with_help);
    let helps: Vec<String> = known.map(|known| listing.help(known)).collect();
    listing.add_to(command, &helps)
}

/// The names and parameters of a catalog, from which flags are made.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    entries: Vec<&'static Entry>,
    parameters: Vec<Parameter>,
}

impl Listing {
    pub(crate) fn new(catalog: &dyn Catalog) -> Self {
        Self {
            entries: catalog.entries(),
            parameters: known_parameters(catalog),
        }
    }

    /// Adds the flags. `helps` has the help texts in the order of the parameters, or is empty.
    pub(crate) fn add_to(&self, command: Command, helps: &[String]) -> Command {
        let chooses = command.get_arguments().any(|arg| arg.get_id() == "qdisc");
        let command = command.mut_subcommands(|command| self.add_to(command, helps));
        if !chooses {
            return command;
        }
        let name = |arg: Arg| {
            let first = arg.get_possible_values();
            arg.value_parser(self.choice(Role::Qdisc, first))
        };
        let flags = self.parameters.iter().enumerate();
        let flags = flags.map(|(place, parameter)| match helps.get(place) {
            Some(help) => self.flag(parameter).help(help),
            None => self.flag(parameter),
        });
        let names = self.parameters.iter().map(|parameter| parameter.name);
        command
            .mut_arg("qdisc", name)
            .mut_arg("qdisc_down", name)
            .args(flags)
            .group(ArgGroup::new(GROUP).args(names).multiple(true))
    }

    fn flag(&self, parameter: &Parameter) -> Arg {
        let arg = Arg::new(parameter.name)
            .long(parameter.name)
            .value_name(parameter.kind.value_name())
            .help_heading("Discipline");
        match (parameter.kind, Role::of_part(parameter.name)) {
            (_, Some(role)) => arg.value_parser(self.choice(role, Vec::new())),
            (Kind::Flag, _) => optional(arg, "true"),
            _ => arg,
        }
    }

    /// Parses a parameter's value and returns its canonical text; `None` if there is no such parameter.
    pub(crate) fn read(&self, name: &str, text: &str) -> Option<Result<String, String>> {
        let mut known = self.parameters.iter();
        let parameter = known.find(|parameter| parameter.name == name)?;
        if let Some(role) = Role::of_part(name) {
            let mut names = self.of_role(role).map(|entry| entry.name);
            if !names.any(|name| name == text) {
                let suggestion = suggestion(text, self.of_role(role).map(|entry| entry.name));
                return Some(Err(format!("unknown{suggestion}")));
            }
        }
        Some(parameter.read(text).map(|value| value.to_string()))
    }

    fn of_role(&self, role: Role) -> impl Iterator<Item = &'static Entry> {
        let entries = self.entries.iter().copied();
        entries.filter(move |entry| entry.role == role)
    }

    /// Makes the possible values of a flag: `first`, then all parts of this role, with their summaries as help.
    fn choice(&self, role: Role, first: Vec<PossibleValue>) -> PossibleValuesParser {
        let named = self
            .of_role(role)
            .map(|entry| PossibleValue::new(entry.name).help(entry.summary));
        PossibleValuesParser::new(first.into_iter().chain(named))
    }

    /// Parses `data-share=0.3`, a parameter of the downlink's discipline.
    pub(crate) fn downlink_parameter(&self, text: &str) -> Result<String, String> {
        const FORM: &str = "write it like data-share=0.3";
        let (name, value) = text.split_once('=').ok_or(FORM)?;
        let value = self.read(name, value).unwrap_or_else(|| {
            let names = self.parameters.iter().map(|parameter| parameter.name);
            Err(format!("unknown parameter{}", suggestion(name, names)))
        })?;
        Ok(format!("{name}={value}"))
    }

    /// Returns the help text with the usual default, and with the disciplines and parts that have another default.
    fn help(&self, parameter: &Parameter) -> String {
        let (name, usual) = (parameter.name, parameter.default);
        // These defaults depend on the command; the help text describes them.
        if ["ack-size", "data-size", "data-per-ack"].contains(&name) {
            return parameter.help.to_owned();
        }
        // A discipline's summary contains the names of its parts.
        let brings = |entry: &Entry| match Role::of_part(name) {
            Some(_) => None,
            None => entry.brings.iter().find(|(key, _)| *key == name),
        };
        let mut others: Vec<(&str, Vec<&str>)> = Vec::new();
        for entry in &self.entries {
            let own = entry.parameters.iter().find(|own| own.name == name);
            let default =
                brings(entry).map_or(own.map(|own| own.default), |(_, value)| Some(*value));
            // A discipline's entry precedes the part of equal name.
            let is_known = others.iter().any(|(_, names)| names.contains(&entry.name));
            let Some(default) = default.filter(|default| *default != usual && !is_known) else {
                continue;
            };
            match others.iter_mut().find(|(other, _)| *other == default) {
                // cake includes cake+ack-filter.
                Some((_, names)) if names.iter().any(|known| is_variant(entry.name, known)) => {}
                Some((_, names)) => names.push(entry.name),
                None => others.push((default, vec![entry.name])),
            }
        }
        let titled = |name: &&str| match self.entries.iter().find(|entry| entry.name == *name) {
            Some(part) if part.role != Role::Qdisc => format!("{} {name}", part.role.key()),
            _ => (*name).to_owned(),
        };
        let mut each = String::new();
        for (default, names) in &others {
            let names: Vec<String> = names.iter().map(titled).collect();
            each += &format!("{default} for {}; ", names.join(", "));
        }
        let otherwise = if others.is_empty() { "" } else { " otherwise" };
        format!("{} [default: {each}{usual}{otherwise}]", parameter.help)
    }
}

/// True if `part` is a variant of `of`, like `asymq+thin-opaque` of `asymq`.
fn is_variant(part: &str, of: &str) -> bool {
    part.strip_prefix(of)
        .is_some_and(|added| added.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Given, ScenarioArgs};
    use asymq_core::catalog::Standard;
    use clap::Args as _;

    fn help_of(flag: &str) -> String {
        let command = Given::<ScenarioArgs>::augment_args(Command::new("test"));
        let command = with_disciplines(command, &Standard, true);
        let mut flags = command.get_arguments();
        let flag = flags.find(|arg| arg.get_long() == Some(flag)).unwrap();
        flag.get_help().unwrap().to_string()
    }

    #[test]
    fn help_names_the_default_of_every_part() {
        assert_eq!(
            help_of("interval"),
            "Interval between the controller's changes; for CoDel, time for which the sojourn time must exceed the target before a drop [default: 10s for acq; 5s for dcbq; 100ms for codel, fq_codel; 200ms otherwise]"
        );
        assert_eq!(
            help_of("ack-size"),
            "Bytes of an ACK on the link (AQ's S_A); by default computed from headers and overhead"
        );
        assert_eq!(
            help_of("ecn"),
            "Mark ECN-capable packets where the AQM would drop them [default: true for fq_codel; false otherwise]"
        );
        assert_eq!(
            help_of("data-share"),
            "Share of the link for data, 0 to 1; ACKs get the rest (SAD's g for the uplink, f for the downlink) [default: 0.5]"
        );
        assert_eq!(
            help_of("ack-limit"),
            "Maximum backlog of the ACK queue [default: 30p for vaq; (--down / --up) packets for afvq; 80p (256p above 20mbit) for asymq; the buffer otherwise]"
        );
    }

    #[test]
    fn every_parameter_of_the_catalog_is_a_flag() {
        let words = [
            "--ack-queue",
            "sad",
            "--interval",
            "0.1s",
            "--data-share=0.30",
        ];
        let args = ScenarioArgs::from_words(words.map(str::to_owned)).unwrap();
        let params = args.qdisc_params;
        let given: Vec<(&str, &str)> = params.iter().collect();
        assert_eq!(
            given,
            [
                ("ack-queue", "sad"),
                ("data-share", "0.3"),
                ("interval", "100ms")
            ]
        );
    }

    #[test]
    fn the_downlink_shares_all_parameters_but_the_parts() {
        let uplink = [("ack-queue", "sad"), ("interval", "1s"), ("gamma", "7")];
        let params = uplink.into_iter().collect();
        let down = downlink_params(&params, &["gamma=9".to_owned()], &Standard, "aq");
        let down: Vec<(&str, &str)> = down.iter().collect();
        assert_eq!(down, [("gamma", "9"), ("interval", "1s")]);
        let isolation = |words: &[&str], name| {
            let own: Vec<String> = words.iter().map(|&word| word.into()).collect();
            let down = downlink_params(&params, &own, &Standard, name);
            down.get("isolation").map(str::to_owned)
        };
        assert_eq!(isolation(&[], "asymq").as_deref(), Some("dual-dsthost"));
        assert_eq!(
            isolation(&["isolation=flows"], "asymq").as_deref(),
            Some("flows")
        );
        assert_eq!(isolation(&["data-queue=cake"], "asymq"), None);
        assert_eq!(isolation(&[], "cake"), None);
        let read = |text: &str| {
            let args = ScenarioArgs::from_words([format!("--param-down={text}")]);
            args.map(|args| args.param_down).map_err(|bad| bad.message)
        };
        assert_eq!(read("gamma=9.0"), Ok(vec!["gamma=9".to_owned()]));
        assert_eq!(
            read("ack-queue=nope").unwrap_err(),
            "unknown; use fifo, af, sad or slots"
        );
        assert!(read("gama=9").is_err());
        assert!(read("gamma").is_err());
    }
}
