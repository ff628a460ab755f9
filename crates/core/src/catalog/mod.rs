//! All disciplines and parts by name: description, parameters, construction.
//!
//! Flags, files, `--help`, documentation, laws, golden traces, fuzzing and benchmarks are generated from this catalog.
//! Another crate adds a discipline with its own [`Catalog`], which resolves its own names and delegates all others to
//! [`Standard`]; `docs/research/extending.md` shows an example.

mod aqms;
mod asymq;
mod config;
mod controllers;
mod disciplines;
mod entry;
mod parameter;
mod params;
mod parts;
mod peers;
mod queues;
mod real;
mod registry;
#[cfg(feature = "text")]
mod resolve;
mod role;
mod services;
mod value;
mod values;

pub use asymq::DEFAULT_QDISC;
pub use config::Config;
use disciplines::paper;
pub use entry::{BoxedAqm, BoxedQueue, Entry, Group, Maker, Shown, StartedController};
use entry::{entries, queue};
pub use parameter::{Context, Parameter, Typed};
use parameter::{listed, parameters};
pub use params::Params;
pub use parts::{
    ACK_LIMIT, BORROW, BUFFER_SPLIT, BufferSplit, CLASSIFIER, COMMON, DATA_LIMIT, DATA_SHARE,
    LIMITS,
};
use parts::{DATA_SIZE, ECN, MAX_GAP, MAX_STRETCH, max_stretch, narrow};
pub use real::{default_buffer, is_link_rate, link_rate, nearest_link_rate, surroundings};
pub use registry::{BoxedQdisc, Build, Catalog, Standard, compose};
#[cfg(feature = "text")]
pub use resolve::{ConfigError, Place, known_parameters, needs_reverse, resolve};
pub use role::Role;
use value::words;
pub use value::{Either, FromValue, Kind, Value};
pub use values::Values;

/// Default discipline if the link's rate is unknown; asymq needs the rate.
pub const RATELESS_QDISC: &str = "sad";
