//! Simulator for a web page. A [`Player`] runs an `asymq sim` command in steps. A web worker calls it through [`abi`].

pub mod abi;
mod frames;
mod player;

pub use player::{Player, catalog};
