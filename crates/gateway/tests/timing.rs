//! Delays and rates in real time, which the kernel's other tests would disturb.

mod common;

mod neighbours;
mod rates;
