//! Resolution of a discipline's name and the given parameters to a complete description.

use super::{
    BUFFER_SPLIT, BufferSplit, COMMON, Catalog, Config, Context, Entry, Kind, LIMITS, Parameter,
    Params, Role, Value, Values,
};
use crate::{Limit, Rate, suggestion};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

/// The link at which a discipline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Capacity of the link.
    pub link: Rate,
    /// Assumed capacity of the reverse direction.
    pub reverse: Option<Rate>,
    /// The limit of the backlog.
    pub limit: Limit,
}

/// An invalid name or parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter, or `qdisc`.
    pub parameter: String,
    /// The parameter's value.
    pub value: String,
    /// The error, and a valid form.
    pub message: String,
}

impl ConfigError {
    /// Creates an error about a parameter's value.
    pub fn new(parameter: &str, value: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self {
            parameter: parameter.into(),
            value: value.to_string(),
            message: message.to_string(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} {}: {}", self.parameter, self.value, self.message)
    }
}

impl core::error::Error for ConfigError {}

/// Returns the complete description of a discipline at a place. A parameter's value comes from the first source that
/// has the parameter: `given`, the discipline's values, the parts' values, `surroundings` (such as packet sizes), the
/// default. Given parameters that the discipline lacks are omitted, so the result shows only effective values.
///
/// # Errors
/// The name is not in the catalog, a given value is invalid, or a needed rate of the reverse direction is missing.
pub fn resolve(
    catalog: &dyn Catalog,
    name: &str,
    given: &Params,
    surroundings: &Params,
    place: Place,
) -> Result<Config, ConfigError> {
    let discipline = find(catalog, Role::Qdisc, Role::Qdisc.key(), name)?;
    check_names(catalog, given)?;
    let mut resolution = Resolution {
        given,
        surroundings,
        place,
        brings: discipline.brings.to_vec(),
        values: Values::default(),
    };
    let mut chosen = Vec::new();
    for role in Role::PARTS {
        let key = role.key();
        let part = resolution
            .before_default(key)
            .unwrap_or(role.default_part());
        let part = find(catalog, role, key, part)?;
        resolution.values.set(key, Value::Word(part.name));
        chosen.push(part);
    }
    // Later parts override earlier ones: a controller overrides a queue.
    for part in chosen.iter().rev() {
        resolution.brings.extend(part.brings);
    }
    let moved = |parameter: &Parameter| {
        let moves = |part: &&Entry| part.moves.contains(&parameter.name);
        chosen.iter().any(moves)
    };
    let own = discipline.parameters.iter();
    let of_parts = chosen.iter().rev().flat_map(|part| part.parameters);
    // A class's limit is effective if each class has its own limit, or if a controller uses the limit.
    let in_force = |parameter: &Parameter, values: &Values| {
        let is = |other: &Parameter| other.name == parameter.name;
        let controllers = chosen.iter().filter(|part| part.role == Role::Controller);
        let mut computed = controllers.flat_map(|part| part.parameters);
        !LIMITS.iter().any(is) || is_separate(values) || computed.any(is)
    };
    for parameter in COMMON.iter().chain(own).chain(of_parts) {
        if !moved(parameter) && in_force(parameter, &resolution.values) {
            resolution.add(parameter)?;
        }
    }
    if is_separate(&resolution.values) {
        for parameter in LIMITS {
            resolution.add(parameter)?;
        }
    }
    let config = Config {
        qdisc: discipline.name.into(),
        link: place.link,
        reverse: place.reverse,
        limit: place.limit,
        params: resolution.values,
    };
    if config.reverse.is_none() && needs_reverse(catalog, &config) {
        return Err(ConfigError::new(Role::Qdisc.key(), name, REVERSE_MISSING));
    }
    Ok(config)
}

/// True if ACKs and data have separate limits.
fn is_separate(values: &Values) -> bool {
    values.read(BUFFER_SPLIT.parameter.name) == Some(BufferSplit::Separate)
}

const REVERSE_MISSING: &str =
    "needs the downlink's rate; add it (down 10mbit), or use asymq, which learns it";

/// True if the discipline or one of its parts needs the rate of the reverse direction.
pub fn needs_reverse(catalog: &dyn Catalog, config: &Config) -> bool {
    let qdisc = catalog.entry(Role::Qdisc, &config.qdisc);
    let mut entries = catalog.parts(config).into_iter().chain(qdisc);
    entries.any(|entry| entry.needs_reverse)
}

struct Resolution<'a> {
    given: &'a Params,
    surroundings: &'a Params,
    place: Place,
    brings: Vec<(&'static str, &'static str)>,
    values: Values,
}

impl Resolution<'_> {
    /// Returns the value given by the user, the discipline or its parts; `None` if the default applies.
    fn before_default(&self, name: &str) -> Option<&str> {
        let brought = || self.brings.iter().find(|(key, _)| *key == name);
        self.given
            .get(name)
            .or_else(|| brought().map(|(_, value)| *value))
    }

    fn add(&mut self, parameter: &Parameter) -> Result<(), ConfigError> {
        let name = parameter.name;
        if self.values.get(name).is_some() {
            return Ok(());
        }
        let read = |text: &str| {
            let value = parameter.read(text);
            value.map_err(|message| ConfigError::new(name, text, message))
        };
        // Ignores a value of the surroundings that is invalid for this parameter.
        let suggested = || parameter.read(self.surroundings.get(name)?).ok();
        let value = match self.before_default(name) {
            Some(text) => read(text)?,
            None => match (suggested(), parameter.computed) {
                (Some(value), _) => value,
                (None, None) => read(parameter.default)?,
                (None, Some(value)) => value(&Context {
                    link: self.place.link,
                    reverse: self.place.reverse,
                    limit: self.place.limit,
                    values: &self.values,
                }),
            },
        };
        self.values.set(name, value);
        Ok(())
    }
}

fn find(
    catalog: &dyn Catalog,
    role: Role,
    key: &str,
    name: &str,
) -> Result<&'static Entry, ConfigError> {
    catalog.entry(role, name).ok_or_else(|| {
        let entries = catalog.of_role(role).into_iter();
        let suggestion = suggestion(name, entries.map(|entry| entry.name));
        ConfigError::new(key, name, format_args!("unknown{suggestion}"))
    })
}

/// Checks that each given name is a parameter of some entry.
fn check_names(catalog: &dyn Catalog, given: &Params) -> Result<(), ConfigError> {
    if given.is_empty() {
        return Ok(());
    }
    let known = known_parameters(catalog);
    for (name, value) in given.iter() {
        if !known.iter().any(|parameter| parameter.name == name) {
            let suggestion = suggestion(name, known.iter().map(|parameter| parameter.name));
            let message = format_args!("unknown parameter{suggestion}");
            return Err(ConfigError::new(name, value, message));
        }
    }
    Ok(())
}

/// Returns each parameter of the catalog once, in the order of `--help`. Includes the parameters that select parts.
pub fn known_parameters(catalog: &dyn Catalog) -> Vec<Parameter> {
    let parts = Role::PARTS
        .iter()
        .map(|role| Parameter::new(role.key(), role.help(), Kind::Part, "the discipline's own"));
    let entries = catalog.entries();
    let own = entries.iter().flat_map(|entry| entry.parameters).copied();
    let mut known: Vec<Parameter> = Vec::new();
    let common = COMMON.iter().chain(LIMITS).copied();
    for parameter in parts.chain(common).chain(own) {
        if !known.iter().any(|other| other.name == parameter.name) {
            known.push(parameter);
        }
    }
    known
}
