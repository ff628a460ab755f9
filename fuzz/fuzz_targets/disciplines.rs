//! Any sequence of operations on any discipline of any parts and parameters: no law is broken.
#![no_main]

use asymq_core::catalog::Standard;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| asymq_laws::fuzz::one_input(&Standard, bytes));
