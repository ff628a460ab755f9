//! The settings that a paper leaves open, searched as an inverse problem.
//!
//! A paper's `free.toml` lists them ([`Free`]). `search` tries settings and judges each by one half of
//! the paper's numbers; the other half ([`halves`]) judges the fit. [`Found`] is the result as a file,
//! from which `asymq reproduce` takes its second column.

mod design;
mod evaluation;
mod found;
mod free;
mod search;

pub use evaluation::{Evaluation, Number, Score};
pub use found::{Account, Found, Hits, Reach};
pub use free::{BadFree, Chosen, Free, MAX_FREE, Setting};
pub use search::{Effort, Rung, Search};

use crate::fnv::fnv;

/// The numbers that choose a setting, and those held out, which judge it: the lower and the upper half by a hash
/// of claim and index.
pub fn halves(mut numbers: Vec<Number>) -> (Vec<Number>, Vec<Number>) {
    numbers.sort_by_cached_key(|number| {
        let name = format!("{}#{}", number.claim, number.index);
        fnv(name.bytes().chain(name.bytes().rev()))
    });
    let held_out = numbers.split_off(numbers.len().div_ceil(2));
    (numbers, held_out)
}
