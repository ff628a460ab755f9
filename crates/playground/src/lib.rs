//! The simulator for a web page: a [`Player`] runs what words of the command line say, step by step,
//! and [`abi`] is how a page's worker calls it in WebAssembly.

pub mod abi;
mod frames;
mod player;

pub use player::{Player, catalog};
