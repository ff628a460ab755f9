//! Converts a fuzzer's bytes to a discipline and steps.

use crate::choice;
use crate::law::{Step, obey};
use asymq_core::catalog::Catalog;
use asymq_core::{Duration, Ecn, Flow, Header, Protocol};

/// Number of bytes for the choice of a discipline and its parts, two per choice. Each step uses six further bytes.
const CHOICE: usize = 128;

fn step(&[op, flow, a, b, c, d]: &[u8; 6]) -> Step {
    let number = u32::from_be_bytes([a, b, c, d]);
    let header = Header {
        flow: Flow((flow % 8).into()),
        len: 1 + u32::from(u16::from_be_bytes([c, d])),
        ip_len: u16::from_be_bytes([c, d]).into(),
        payload: if flow & 0x40 == 0 { 0 } else { c.into() },
        ack: number,
        flags: if flow & 0x20 == 0 { 0x10 } else { a.into() },
        ecn: Ecn::from_bits(b),
        protocol: match flow >> 6 {
            0 => Protocol::NonTcp,
            1 => Protocol::Opaque,
            _ => Protocol::Tcp,
        },
        ..Header::default()
    };
    match op % 16 {
        0..7 => Step::Enqueue(header),
        7..12 => Step::Dequeue,
        12 => Step::Observe(header),
        13 | 14 => Step::Wait(Duration::from_nanos(u64::from(number) << (op >> 4))),
        _ => Step::DrainAll,
    }
}

/// Reads a configuration of the catalog and steps from `bytes`, and applies the steps.
///
/// # Panics
/// A law is violated.
pub fn one_input(catalog: &impl Catalog, bytes: &[u8]) {
    let Some((chosen, rest)) = bytes.split_at_checked(CHOICE) else {
        return;
    };
    let words = chosen.as_chunks().0.iter().copied().map(u16::from_be_bytes);
    let config = choice::config(catalog, &mut choice::from_words(words));
    let steps: Vec<Step> = rest.as_chunks().0.iter().map(step).collect();
    obey(catalog, &config, &steps);
}
