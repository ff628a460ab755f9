//! Random bytes through the parser: no panic, and consistent facts.
#![no_main]

#[path = "../../crates/core/tests/common/facts.rs"]
mod facts;

use asymq_core::decide::frame::{FlowKey, ack_info, parse, rewrite_ack};
use asymq_core::decide::overhead::Overhead;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    let parsed = parse(frame, &FlowKey::new([1, 2]));
    facts::check(&parsed, frame);
    assert!(Overhead::default().charge(&parsed, parsed.header.len) > 0);
    if parsed.transport > 0
        && let Some(info) = ack_info(frame, parsed.transport)
    {
        let mut frame = frame.to_vec();
        rewrite_ack(&mut frame, parsed.transport, &info);
    }
});
