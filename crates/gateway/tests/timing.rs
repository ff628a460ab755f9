//! Delays and rates in real time, which other tests would disturb.

mod common;

mod neighbours;
mod rates;
