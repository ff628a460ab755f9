//! Random operations on random disciplines, with random parts and parameters, keep every law.
#![no_main]

use asymq_core::catalog::Standard;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| asymq_laws::fuzz::one_input(&Standard, bytes));
