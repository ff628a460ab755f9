//! Passes millions of hostile frames through the parser and every discipline.
//!
//! `ASYMQ_FUZZ_FRAMES` sets the number of frames, `ASYMQ_FUZZ_SEED` the first seed. Each frame depends only on the seed
//! and the frame's number. A failure reports both.

use crate::facts;
use crate::frames;
use crate::mutate::{Dice, hostile};
use crate::sent::{Bytes, Frame};
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Role, Standard, resolve};
use asymq_core::decide::frame::{FlowKey, Parsed, parse};
use asymq_core::decide::overhead::Overhead;
use asymq_core::packet::Protocol;
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

#[derive(Default)]
struct Spare {
    dropped: u64,
    buffers: Vec<Vec<u8>>,
}

impl Sink<Frame> for Spare {
    fn dropped(&mut self, _now: Instant, frame: Frame, _reason: Reason) {
        self.dropped += 1;
        self.buffers.push(frame.bytes.bytes);
    }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// If etherparse finds TCP in a complete packet, our parser must find TCP with equal fields.
fn check_against_etherparse(parsed: &Parsed, frame: &[u8]) {
    let Ok(sliced) = SlicedPacket::from_ethernet(frame) else {
        return;
    };
    let (Some(TransportSlice::Tcp(tcp)), false) =
        (&sliced.transport, sliced.is_ip_payload_fragmented())
    else {
        return;
    };
    // etherparse reads a length of zero as "to the end", a jumbogram; our parser reports opaque.
    if let Some(NetSlice::Ipv6(ip)) = &sliced.net
        && ip.header().payload_length() == 0
    {
        return;
    }
    let header = &parsed.header;
    assert_eq!(header.protocol, Protocol::Tcp);
    assert_eq!(header.ack, tcp.acknowledgment_number());
    assert_eq!(header.payload as usize, tcp.payload().len());
}

#[test]
fn no_frame_brings_parser_or_disciplines_down() {
    let count = number("ASYMQ_FUZZ_FRAMES", 1_000_000);
    let seed = number("ASYMQ_FUZZ_SEED", 1);
    let seeds = frames::every_kind();
    let key = FlowKey::new([seed, !seed]);
    let overheads: [Overhead; 3] =
        ["", "docsis", "pppoe-llcsnap"].map(|text| text.parse().unwrap());
    let mut qdiscs: Vec<BoxedQdisc<Frame>> = Vec::new();
    for (limit, classifier) in [
        (Limit::Packets(50), "pure-ack"),
        (Limit::Bytes(30_000), "size<=40"),
    ] {
        let place = Place {
            link: "1mbit".parse().unwrap(),
            reverse: Some("10mbit".parse().unwrap()),
            limit,
        };
        let given = Params::new()
            .with("classifier", classifier)
            .with("ecn", "true");
        for entry in Standard.of_role(Role::Qdisc) {
            let config = resolve(&Standard, entry.name, &given, &Params::new(), place).unwrap();
            qdiscs.push(Standard.build(&config).unwrap());
        }
    }
    let mut now = Instant::ZERO;
    let mut spare = Spare::default();
    let (mut sent, mut tcp) = (0, 0);
    for number in 0..count {
        let mut dice = Dice::new(seed ^ number.rotate_left(32));
        let mut bytes = spare.buffers.pop().unwrap_or_default();
        hostile(&seeds, &mut dice, &mut bytes);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut parsed = parse(&bytes, &key);
            facts::check(&parsed, &bytes);
            check_against_etherparse(&parsed, &bytes);
            let overhead = &overheads[dice.below(overheads.len())];
            parsed.header.len = overhead.charge(&parsed, parsed.header.len);
            parsed.header.arrival = now;
            parsed
        }));
        let parsed =
            outcome.unwrap_or_else(|_| panic!("seed {seed}, frame {number}: {bytes:02x?}"));
        tcp += u64::from(parsed.header.protocol == Protocol::Tcp);
        now += Duration::from_nanos(dice.next() % 1_000_000);
        let count = qdiscs.len();
        let qdisc = &mut qdiscs[dice.below(count)];
        if dice.below(4) == 0 {
            qdisc.observe(now, &parsed.header);
        }
        qdisc.enqueue(
            now,
            Frame::new(now, &parsed, parsed.header.len, Bytes { index: 0, bytes }),
            &mut spare,
        );
        // Departures are a little slower than arrivals, so that queues fill and limits take effect.
        if dice.below(10) < 9
            && let Dequeue::Packet(frame) = qdisc.dequeue(now, &mut spare)
        {
            sent += 1;
            spare.buffers.push(frame.bytes.bytes);
        }
    }
    let mut drained = 0;
    for qdisc in &mut qdiscs {
        while qdisc.drain().is_some() {
            drained += 1;
        }
        assert_eq!(qdisc.backlog().packets, 0);
    }
    assert_eq!(sent + spare.dropped + drained, count);
    // Enough frames remain TCP after the damage to reach the deepest layers.
    assert!(tcp * 5 > count, "only {tcp} of {count} are TCP");
    println!(
        "{count} frames from seed {seed}: {tcp} TCP, {sent} sent, {} dropped",
        spare.dropped
    );
}
