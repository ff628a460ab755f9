//! The settings that a paper leaves open, searched as an inverse problem.
//!
//! A paper's `free.toml` lists them ([`Free`]). `search` tries settings and judges each by one half of
//! the paper's claims; the other half, [`held_out`], judges the fit. [`Found`] is the result as a file,
//! from which `asymq reproduce` takes its second column.

mod design;
mod evaluation;
mod found;
mod free;
mod search;

pub use evaluation::{Evaluation, Score};
pub use found::{Account, Found, Hits, Reach};
pub use free::{BadFree, Chosen, Free, Setting};
pub use search::{Effort, Rung, Search};

use crate::store::fnv;

/// The maximum number of free settings of a paper.
pub const MAX_FREE: usize = 6;

/// The claims of `ids` that judge a fit and have no part in the search: those in the upper half by the
/// hash of their name.
pub fn held_out<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_by_key(|id| fnv(id.bytes().chain(id.bytes().rev())));
    ids.split_off(ids.len().div_ceil(2))
}
