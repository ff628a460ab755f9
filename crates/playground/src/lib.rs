//! The simulator for a web page: a [`Player`] runs words of the command line step by step, and a page's worker calls it
//! in WebAssembly through [`abi`].

pub mod abi;
mod frames;
mod player;

pub use player::{Player, catalog};
