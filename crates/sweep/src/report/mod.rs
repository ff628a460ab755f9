//! The report: a self-contained HTML page that works without JavaScript, and its summary as Markdown.

mod check;
mod columns;
mod contents;
mod figure;
mod markdown;
mod page;
mod panel;
mod section;
mod table;
mod verdict;

pub use markdown::summary;
pub use page::page;

use crate::store::FINGERPRINT;

/// A group of experiments: its folder, its name, and its authors.
pub type Group = (&'static str, &'static str, &'static str);

/// Experiments that are published together.
#[derive(Debug)]
pub struct Collection {
    /// The title of the report.
    pub title: &'static str,
    /// The command that creates the report.
    pub command: &'static str,
    /// The groups in the order of the report.
    pub groups: &'static [Group],
}

/// Collection of a user's own experiments.
pub static OWN: Collection = Collection {
    title: "Experiments",
    command: "asymq sweep",
    groups: &[],
};

/// Origin of results: the build, the extent of the runs, and the collection.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The tool's version.
    pub version: String,
    /// Fingerprint of the sources of simulator and disciplines.
    pub fingerprint: String,
    /// True if the results are a preview.
    pub preview: bool,
    /// Collection to which the experiments belong.
    pub collection: &'static Collection,
}

impl Origin {
    /// Origin of results of this build, for a user's experiments.
    pub fn of_this_build(preview: bool) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            fingerprint: FINGERPRINT.clone(),
            preview,
            collection: &OWN,
        }
    }
}
