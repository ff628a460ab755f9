//! Sends mutated and random frames through all user-space code of a gateway.

use super::tunnels::{cases, segment_of, tcp_case};
use super::*;
use crate::{Forwarder, LinkConfig, PacketIo, Stage};
use asymq_core::Direction;
use asymq_core::catalog::{Params, Place, Standard, resolve};
use asymq_core::decide::frame::FlowKey;
use asymq_core::decide::random::SplitMix64;
use asymq_core::hold::RegeneratorParams;
use asymq_core::units::{Duration, Instant, Limit};
use std::io;

/// Number of frames to send.
#[derive(Default)]
struct Counter {
    frames: u64,
    longest: usize,
}

impl PacketIo for Counter {
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, frame: &[u8]) {
        self.frames += 1;
        self.longest = self.longest.max(frame.len());
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const LIMIT: u32 = 500;

fn forwarder(name: Option<&str>) -> Forwarder {
    let (up, down) = ("20mbit".parse().unwrap(), "1gbit".parse().unwrap());
    let none = Params::new();
    let place = Place {
        link: up,
        reverse: Some(down),
        limit: Limit::Packets(LIMIT),
    };
    let queue = |name| Stage::Queue(resolve(&Standard, name, &none, &none, place).unwrap());
    let link = LinkConfig {
        up,
        down: Some(down),
        auto: [None; 2],
        rate_probe: None,
        overhead: "".parse().unwrap(),
        uplink: match name {
            Some(name) => queue(name),
            None => Stage::Regenerator(RegeneratorParams::default()),
        },
        downlink: match name {
            Some(_) => queue("fq"),
            None => Stage::Direct,
        },
    };
    Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]))
}

/// Bytes of memory that the process occupies.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * PAGE
}

/// Superpackets and ACKs in every tunnel.
fn templates() -> Vec<Superpacket> {
    cases()
        .iter()
        .flat_map(|(_, parts)| {
            let large = tcp_case(parts, 2500, 700).0;
            let alone = |payload| Superpacket {
                header: [0; 10],
                frame: segment_of(parts, payload),
            };
            [large, alone(0), alone(100)]
        })
        .collect()
}

/// Number of frames by fate.
#[derive(Debug, Default)]
struct Outcome {
    refused: u64,
    shown: u64,
    sent: u64,
    grown: u64,
}

fn fuzz(frames: u64, seed: u64) -> Outcome {
    let mut random = SplitMix64::new(seed);
    let templates = templates();
    let mut forwarders = [Some("sad"), Some("aq"), None].map(forwarder);
    let (mut outcome, mut scratch, mut frame) = (Outcome::default(), Vec::new(), Vec::new());
    let mut port = Counter::default();
    let mut before = 0;
    for number in 0..frames {
        if number == frames / 10 {
            before = resident();
        }
        let now = Instant::from_nanos(1) + Duration::from_micros(20 * number);
        let mut below = |bound: usize| (random.next() % bound.max(1) as u64) as usize;
        let template = &templates[below(templates.len())];
        let mut header = template.header;
        frame.clear();
        if below(16) == 0 {
            let len = below(200);
            frame.extend((0..len).map(|_| below(256) as u8));
            header = std::array::from_fn(|_| below(256) as u8);
        } else {
            frame.extend_from_slice(&template.frame);
            for _ in 0..below(5) {
                let at = below(frame.len().min(140));
                frame[at] = match below(4) {
                    0 => frame[at] ^ (1 << below(8)),
                    1 => 0xff,
                    2 => 0,
                    _ => below(256) as u8,
                };
            }
            if below(4) == 0 {
                frame.truncate(below(frame.len() + 1));
            }
            if below(4) == 0 {
                header[below(10)] = below(256) as u8;
            }
        }
        let (whole, direction) = (frame.len(), [Direction::Up, Direction::Down][below(2)]);
        let undone = Offload::read(&header).undo(&mut frame, &mut scratch, &mut |segment| {
            assert!(segment.len() <= whole, "a segment is longer than all");
            outcome.shown += 1;
            for forwarder in &mut forwarders {
                forwarder.take(now, direction, segment, &mut port);
            }
        });
        outcome.refused += u64::from(undone.is_err());
        for forwarder in &mut forwarders {
            for direction in [Direction::Up, Direction::Down] {
                forwarder.transmit(now, direction, 64, &mut port);
            }
        }
    }
    for forwarder in &forwarders[..2] {
        for direction in [Direction::Up, Direction::Down] {
            let waiting = forwarder.backlog(direction).packets;
            assert!(waiting <= 4 * LIMIT, "{waiting} wait");
        }
    }
    assert!(scratch.capacity() <= 1 << 16);
    assert!(port.longest < 4000);
    outcome.sent = port.frames;
    outcome.grown = resident().saturating_sub(before);
    outcome
}

#[test]
fn mutated_frames_are_refused_or_carried_without_panic() {
    let outcome = fuzz(20_000, 1);
    assert!(
        outcome.refused > 1000 && outcome.shown > 20_000,
        "{outcome:?}"
    );
    assert!(outcome.sent > 10_000, "{outcome:?}");
}

/// `cargo test --release -p asymq-gateway --lib ten_million -- --ignored --nocapture`
#[test]
#[ignore = "takes half a minute of a core in release"]
fn ten_million_mutated_frames_are_survived_without_growth() {
    let start = std::time::Instant::now();
    let outcome = fuzz(10_000_000, 2);
    eprintln!("{outcome:?} in {:?}", start.elapsed());
    // The live memory is bounded; the allocator's overhead may vary.
    assert!(outcome.grown < 16 << 20, "{outcome:?}");
}
