//! The catalog as flags and help see it.

use asymq_core::catalog::{Catalog, Entry, Group, Parameter, Role, Standard, known_parameters};
use clap::Arg;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::sync::{OnceLock, RwLock};

/// Names, summaries and parameters: what flags are made of.
pub(crate) struct Listing {
    pub(crate) entries: Vec<&'static Entry>,
    pub(crate) parameters: Vec<Parameter>,
    /// The flag of each parameter: several commands have them all.
    flags: OnceLock<Vec<Arg>>,
}

static LISTING: RwLock<Option<&'static Listing>> = RwLock::new(None);

impl Listing {
    fn of(catalog: &dyn Catalog) -> Self {
        Self {
            entries: catalog.entries(),
            parameters: known_parameters(catalog),
            flags: OnceLock::new(),
        }
    }

    /// The installed catalog's, or the standard one's.
    pub(crate) fn get() -> &'static Self {
        let installed = *LISTING.read().unwrap_or_else(|e| e.into_inner());
        installed.unwrap_or_else(|| {
            static OWN: OnceLock<Listing> = OnceLock::new();
            OWN.get_or_init(|| Self::of(&Standard))
        })
    }

    /// The flags of all parameters, each made once by `flag`.
    pub(crate) fn flags(&self, flag: impl Fn(&Self, Parameter) -> Arg) -> &[Arg] {
        let made = || self.parameters.iter().map(|p| flag(self, *p)).collect();
        self.flags.get_or_init(made)
    }

    pub(crate) fn of_role(&self, role: Role) -> impl Iterator<Item = &'static Entry> {
        let entries = self.entries.iter().copied();
        entries.filter(move |entry| entry.role == role)
    }

    /// The names in a role, with their summaries as help, after `first`.
    pub(crate) fn choice(&self, role: Role, first: Option<PossibleValue>) -> PossibleValuesParser {
        let named = self
            .of_role(role)
            .map(|entry| PossibleValue::new(entry.name).help(entry.summary));
        PossibleValuesParser::new(first.into_iter().chain(named))
    }
}

/// The names of all disciplines as the choice of a flag, after `first`.
pub fn qdisc_choice(first: Option<PossibleValue>) -> PossibleValuesParser {
    Listing::get().choice(Role::Qdisc, first)
}

/// Makes flags and help know the disciplines of `catalog` from now on: before anything is parsed, by a
/// program with a catalog of its own, and again when that catalog has grown. What was known before is
/// kept in memory, since flags refer to it.
pub fn install(catalog: &dyn Catalog) {
    let listing: &'static Listing = Box::leak(Box::new(Listing::of(catalog)));
    *LISTING.write().unwrap_or_else(|e| e.into_inner()) = Some(listing);
}

/// The names of all disciplines in a group, or of all, in the order of `--help`.
pub fn qdisc_names(group: impl Fn(Group) -> bool) -> Vec<&'static str> {
    Listing::get()
        .of_role(Role::Qdisc)
        .filter(|entry| group(entry.group))
        .map(|entry| entry.name)
        .collect()
}

/// A discipline's name as the papers spell it.
pub fn title(qdisc: &str) -> &str {
    let mut entries = Listing::get().of_role(Role::Qdisc);
    entries
        .find(|entry| entry.name == qdisc)
        .map_or(qdisc, |entry| entry.title)
}
