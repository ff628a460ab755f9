//! Numbers that `tc` and the Linux module exchange over netlink.
//!
//! Every number is part of the ABI: lists grow only at their end, and `tests/ids` records all numbers. The lists
//! contain the disciplines, parts and parameters of the qdisc. Other disciplines of the catalog have no number.
//!
//! [`Numbers`] contain a discipline with all its values, or only the values that a user gave. User space parses text
//! (`text`, `attributes`). The module converts numbers to a [`Config`](asymq_core::catalog::Config) with [`config`].
#![no_std]

extern crate alloc;

#[cfg(feature = "text")]
mod attributes;
mod encoding;
mod ids;
mod numbers;
pub mod statistics;
#[cfg(feature = "text")]
mod text;

#[cfg(feature = "text")]
pub use attributes::{ReadError, decode, decode_statistics, encode};
pub use ids::{
    ATTRIBUTES, Attribute, COUNT, FIRST_PARAMETER, PARAMETERS, VERSION, Width, id, names,
};
pub use numbers::{Numbers, Rule, WireError, config, derive, line, rates, rules, usual_buffer};
#[cfg(feature = "text")]
pub use text::{Device, describe, given, merge, numbers_of, range, shown, words};
