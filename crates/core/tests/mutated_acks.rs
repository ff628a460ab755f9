//! Passes damaged ACKs through the parser and the ACK rules. Some ACKs get a correct checksum after the damage, to
//! reach the code behind the checksum tests.
//!
//! `ASYMQ_FUZZ_FRAMES` sets the number of frames, `ASYMQ_SEED` the first seed. The long run:
//! `cargo test --release -p asymq-core --test all mutated_acks:: -- --ignored --nocapture`.

use crate::acks::{AE, ECE, Extra, Path, Said};
use crate::facts;
use crate::frames;
use crate::mutate::{Dice, hostile};
use asymq_core::decide::frame::{FlowKey, ack_info, parse, rewrite_ack};
use asymq_core::packet::Protocol;

/// Frames of every kind, and ACKs of every kind.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = frames::every_kind();
    for path in 0..32u8 {
        let path = Path {
            v6: path & 1 > 0,
            vlan: (path & 2 > 0).then_some(5),
            pppoe: path & 4 > 0,
            tunnel: (path & 8 > 0).then_some(1),
            ip_options: path & 16 > 0,
            ..Path::default()
        };
        let base = Said {
            port: 5000,
            path,
            ack: 9000,
            window: 500,
            timestamps: Some((7, 8)),
            sack: [(10_000, 11_000), (12_000, 13_000), (0, 0), (0, 0)],
            ..Said::default()
        };
        for change in [
            |said: &mut Said| said.sacks = 2,
            |said: &mut Said| said.accecn = Some((172, 3, [1, 2, 3])),
            |said: &mut Said| (said.flags, said.accecn) = (AE | ECE, Some((174, 1, [1, 2, 3]))),
            |said: &mut Said| said.extra = Some(Extra::Md5),
            |said: &mut Said| said.extra = Some(Extra::Mptcp),
            |_: &mut Said| {},
        ] {
            let mut said = base;
            change(&mut said);
            seeds.push(said.frame());
        }
    }
    seeds
}

/// Searches the value of the 16 bits at `at` that makes the checksum correct.
fn mend(frame: &mut [u8], transport: u16) {
    let Some(field) = frame.get_mut(usize::from(transport) + 16..usize::from(transport) + 18)
    else {
        return;
    };
    field.fill(0);
    for number in 0..=u16::MAX {
        let at = usize::from(transport) + 16;
        frame[at..at + 2].copy_from_slice(&number.to_be_bytes());
        if ack_info(frame, transport).is_some() {
            return;
        }
    }
}

fn run(count: u64) {
    let seed = match std::env::var("ASYMQ_SEED") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => 1,
    };
    let seeds = seeds();
    let key = FlowKey::new([seed, 2]);
    let mut frame = Vec::new();
    let mut previous = None;
    let (mut tcp, mut believed) = (0u64, 0u64);
    for number in 0..count {
        let mut dice = Dice::new(seed ^ number.rotate_left(32));
        hostile(&seeds, &mut dice, &mut frame);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let parsed = parse(&frame, &key);
            facts::check(&parsed, &frame);
            tcp += u64::from(parsed.header.protocol == Protocol::Tcp);
            // Any offset, even if the parser cannot return it.
            let anywhere = dice.below(frame.len() + 2) as u16;
            let stray = ack_info(&frame, anywhere);
            assert!(stray.is_none() || anywhere == parsed.transport);
            // Only one ACK in a thousand gets a correct checksum, because the search is slow.
            if parsed.header.is_pure_ack() && dice.below(1000) == 0 {
                mend(&mut frame, parsed.transport);
            }
            let info = ack_info(&frame, parsed.transport)?;
            assert!(parsed.header.is_pure_ack());
            assert_eq!(
                (info.ack, info.flags),
                (parsed.header.ack, parsed.header.flags & 0x1ff)
            );
            assert!(info.keeps(&info, None).is_some());
            believed += 1;
            let newer = asymq_core::decide::ack::AckInfo {
                ack: info.ack.wrapping_add(1000),
                ..info
            };
            assert!(info.keeps(&newer, None).is_some());
            if let Some(previous) = &previous {
                assert!(
                    info.keeps(previous, None)
                        .or(previous.keeps(&info, None))
                        .is_some()
                );
            }
            rewrite_ack(&mut frame, parsed.transport, &newer);
            let rewritten = ack_info(&frame, parsed.transport);
            assert_eq!(rewritten.map(|info| info.ack), Some(newer.ack));
            Some(info)
        }));
        match outcome {
            Ok(info) => previous = info.or(previous),
            Err(_) => panic!("frame {number} of seed {seed}: {frame:02x?}"),
        }
    }
    println!("{count} frames from seed {seed}: {tcp} TCP, {believed} ACKs believed");
    assert!(
        tcp * 4 > count && believed * 50 > count,
        "too few ACKs reach the rules"
    );
}

#[test]
fn no_damaged_ack_brings_the_rules_down() {
    run(match std::env::var("ASYMQ_FUZZ_FRAMES") {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => 20_000,
    });
}

#[test]
#[ignore = "minutes in release mode"]
fn no_damaged_ack_brings_the_rules_down_in_ten_million() {
    run(10_000_000);
}
