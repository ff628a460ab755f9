//! Any sequence of operations on any named discipline: no law is broken.
#![no_main]

#[path = "../../crates/core/tests/common/laws.rs"]
mod laws;
#[path = "../../crates/core/tests/common/named.rs"]
mod named;

use asymq_core::classify::Classifier;
use asymq_core::disciplines::Entry;
use asymq_core::packet::{Flow, Header, Protocol};
use asymq_core::parts::controller::aq::AqParams;
use asymq_core::units::{Duration, Limit, Rate};
use laws::{Step, obey};
use libfuzzer_sys::fuzz_target;

/// Six bytes choose a discipline and its link, then six bytes each a step.
fn decode(bytes: &[u8]) -> Option<(Entry, AqParams, usize, Vec<Step>)> {
    let (&[which, up, down, limit, classifier, interval], rest) = bytes.split_first_chunk()?;
    let rate = |exponent: u8| Rate::from_bits_per_sec(1 << (exponent % 40));
    let params = AqParams {
        interval: Duration::from_nanos(1 << (interval % 40)),
        ..AqParams::new(rate(up)?, rate(down)?)
    };
    let entry = Entry {
        link: params.up,
        opposite: params.down,
        limit: match limit {
            0..=127 => Limit::Packets(limit.into()),
            _ => Limit::Bytes(u64::from(limit - 128) * 500),
        },
        classifier: match classifier {
            0..=127 => Classifier::PureAck,
            _ => Classifier::Size(classifier.into()),
        },
    };
    let steps = rest.as_chunks().0.iter().map(step).collect();
    Some((entry, params, which.into(), steps))
}

fn step(&[op, flow, a, b, c, d]: &[u8; 6]) -> Step {
    let number = u32::from_be_bytes([a, b, c, d]);
    let header = Header {
        flow: Flow((flow % 8).into()),
        len: 1 + u32::from(u16::from_be_bytes([c, d])),
        ip_len: u16::from_be_bytes([c, d]).into(),
        payload: if flow & 0x40 == 0 { 0 } else { c.into() },
        ack: number,
        flags: if flow & 0x20 == 0 { 0x10 } else { a.into() },
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

fuzz_target!(|bytes: &[u8]| {
    if let Some((entry, params, which, steps)) = decode(bytes) {
        let configs = named::named(entry, params, 0.7);
        let (_, config) = configs[which % configs.len()];
        obey(&config, &steps);
    }
});
