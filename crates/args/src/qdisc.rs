//! The parameters of disciplines as typed.

use crate::bad_argument::either;
use crate::listing::Listing;
use asymq_core::catalog::{Default as ParameterDefault, Parameter, Params, Role};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use serde::{Serialize, Serializer};

/// The parameters of disciplines, all optional; each is ignored by disciplines that lack it. The
/// flags are the catalog's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QdiscParams(pub Params);

impl Serialize for QdiscParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

impl QdiscParams {
    /// These parameters, and `other`'s where these are absent.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    /// What of the uplink's parameters holds for the downlink's discipline too: all but its parts,
    /// which are the uplink's own.
    pub fn for_downlink(&self, own: &[String]) -> Params {
        let mut shared = self.0.clone();
        for role in Role::PARTS {
            shared.remove(role.key());
        }
        let own = own.iter().filter_map(|text| text.split_once('='));
        own.collect::<Params>().or(shared)
    }
}

/// Reads `data-share=0.3`: a parameter of the downlink's discipline.
///
/// # Errors
/// It is no parameter, or not a value of it.
pub fn downlink_parameter(text: &str) -> Result<String, String> {
    const FORM: &str = "write it like data-share=0.3";
    let (name, value) = text.split_once('=').ok_or(FORM)?;
    let listing = Listing::get();
    let known = &listing.parameters;
    let parameter = known.iter().find(|parameter| parameter.name == name);
    let parameter = parameter.ok_or(format!("unknown parameter '{name}'; {FORM}"))?;
    if let Some(role) = Role::PARTS.iter().find(|role| role.key() == name) {
        let entries = listing.entries.iter();
        let names = entries.filter(|entry| entry.role == *role);
        let names: Vec<&str> = names.map(|entry| entry.name).collect();
        if !names.contains(&value) {
            return Err(format!("unknown; use {name}= with {}", either(&names)));
        }
    }
    let value = parameter.check(value)?;
    Ok(format!("{name}={value}"))
}

impl FromArgMatches for QdiscParams {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut params = Self::default();
        params.update_from_arg_matches(matches)?;
        Ok(params)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for parameter in &Listing::get().parameters {
            if let Some(value) = matches.get_one::<String>(parameter.name) {
                self.0.set(parameter.name, value);
            }
        }
        Ok(())
    }
}

impl Args for QdiscParams {
    fn augment_args(command: Command) -> Command {
        command.args(Listing::get().flags(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(listing: &Listing, parameter: Parameter) -> Arg {
    let arg = Arg::new(parameter.name)
        .long(parameter.name)
        .value_name(parameter.kind.value_name())
        .help_heading("Discipline")
        .help(help(listing, &parameter));
    match Role::PARTS.iter().find(|role| role.key() == parameter.name) {
        Some(role) => arg.value_parser(listing.choice(*role, None)),
        None => arg.value_parser(move |text: &str| parameter.check(text)),
    }
}

/// The help, and the default of each part that has one of its own.
fn help(listing: &Listing, parameter: &Parameter) -> String {
    let mut defaults: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut add = |default: &'static str, part: &'static str| match defaults
        .iter_mut()
        .find(|(other, _)| *other == default)
    {
        Some((_, parts)) => parts.push(part),
        None => defaults.push((default, vec![part])),
    };
    for entry in &listing.entries {
        let own = entry.parameters.iter();
        for own in own.filter(|own| own.name == parameter.name) {
            let ours = entry.our(own.name);
            add(ours.unwrap_or(own.default.words()), entry.name);
        }
        let brought = entry.brings.iter().filter(|_| entry.role != Role::Qdisc);
        for (_, value) in brought.filter(|(name, _)| *name == parameter.name) {
            add(value, entry.name);
        }
    }
    let words = default_words(&parameter.default);
    let default = match &defaults[..] {
        [] => words.to_owned(),
        [(default, _)] if *default == words => words.to_owned(),
        several => {
            let each = |(default, parts): &(&str, Vec<&str>)| {
                format!("{default} for {}", parts.join(", "))
            };
            let mut each: Vec<String> = several.iter().map(each).collect();
            if several.iter().all(|(default, _)| *default != words) {
                each.push(format!("{words} otherwise"));
            }
            each.join("; ")
        }
    };
    format!("{} [default: {default}]", parameter.help)
}

const fn default_words(default: &ParameterDefault) -> &'static str {
    default.words()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_of(flag: &str) -> String {
        let command = QdiscParams::augment_args(Command::new("test"));
        let mut flags = command.get_arguments();
        let flag = flags.find(|arg| arg.get_id() == flag).unwrap();
        flag.get_help().unwrap().to_string()
    }

    #[test]
    fn help_names_the_default_of_every_part() {
        assert_eq!(
            help_of("interval"),
            "How often the settings are moved [default: 200ms for aq; 10s for acq; 5s for dcbq; 100ms for codel, fq_codel]"
        );
        assert_eq!(
            help_of("data-share"),
            "Data's share of the link (SAD's g) [default: 0.5]"
        );
        assert_eq!(
            help_of("ack-limit"),
            "Maximum backlog of the ACK queue [default: 10p for vaq; down/up for afvq; the buffer otherwise]"
        );
    }

    #[test]
    fn every_parameter_of_the_catalog_is_a_flag() {
        let command = QdiscParams::augment_args(Command::new("test").no_binary_name(true));
        let matches = command
            .try_get_matches_from([
                "--ack-queue",
                "sad",
                "--interval",
                "0.1s",
                "--data-share=0.30",
            ])
            .unwrap();
        let params = QdiscParams::from_arg_matches(&matches).unwrap().0;
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
        let params = QdiscParams(uplink.into_iter().collect());
        let down = params.for_downlink(&["gamma=9".to_owned()]);
        let down: Vec<(&str, &str)> = down.iter().collect();
        assert_eq!(down, [("gamma", "9"), ("interval", "1s")]);
        assert_eq!(downlink_parameter("gamma=9.0").as_deref(), Ok("gamma=9"));
        assert_eq!(
            downlink_parameter("ack-queue=nope").unwrap_err(),
            "unknown; use ack-queue= with fifo, af, sad or slots"
        );
        assert!(downlink_parameter("gama=9").is_err());
        assert!(downlink_parameter("gamma").is_err());
    }
}
