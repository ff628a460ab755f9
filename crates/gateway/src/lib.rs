//! Real frames on Linux through asymq's disciplines.
#![cfg(target_os = "linux")]

pub mod net;
