//! Delays and rates in real time. The tests are separate, because the other kernel tests would disturb them.

mod common;

mod neighbours;
mod rates;
