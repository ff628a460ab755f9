//! Millions of hostile frames through the parser and every discipline.
//!
//! `ASYMQ_FUZZ_FRAMES` sets their number, `ASYMQ_FUZZ_SEED` where they begin; each frame depends on
//! the seed and its number only, and a failure names both.

#[path = "common/facts.rs"]
mod facts;
#[path = "common/frames.rs"]
mod frames;
#[path = "common/mutate.rs"]
mod mutate;
#[path = "common/named.rs"]
mod named;

use asymq_core::ack::AckInfo;
use asymq_core::classify::Classifier;
use asymq_core::disciplines::Entry;
use asymq_core::frame::{FlowKey, Parsed, ack_info, parse, rewrite_ack};
use asymq_core::overhead::Overhead;
use asymq_core::packet::{Header, Packet, Protocol};
use asymq_core::parts::controller::aq::AqParams;
use asymq_core::qdisc::{Dequeue, DropReason, Qdisc, Sink};
use asymq_core::units::{Duration, Instant, Limit, Rate};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use mutate::{Dice, hostile};

struct Frame {
    bytes: Vec<u8>,
    parsed: Parsed,
}

impl Packet for Frame {
    fn header(&self) -> &Header {
        &self.parsed.header
    }
    fn ack_info(&self) -> Option<AckInfo> {
        ack_info(&self.bytes, self.parsed.transport)
    }
    fn rewrite_ack(&mut self, newer: &AckInfo) {
        rewrite_ack(&mut self.bytes, self.parsed.transport, newer);
    }
}

#[derive(Default)]
struct Spare {
    dropped: u64,
    buffers: Vec<Vec<u8>>,
}

impl Sink<Frame> for Spare {
    fn dropped(&mut self, _now: Instant, frame: Frame, _reason: DropReason) {
        self.dropped += 1;
        self.buffers.push(frame.bytes);
    }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Where etherparse sees TCP in a whole packet, so do we, and it says the same.
fn check_against_etherparse(parsed: &Parsed, frame: &[u8]) {
    let Ok(sliced) = SlicedPacket::from_ethernet(frame) else {
        return;
    };
    let (Some(TransportSlice::Tcp(tcp)), false) =
        (&sliced.transport, sliced.is_ip_payload_fragmented())
    else {
        return;
    };
    // It reads a length of zero as "to the end", a jumbogram; we call that opaque.
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
    let link = Rate::from_bits_per_sec(1_000_000).unwrap();
    let opposite = Rate::from_bits_per_sec(10_000_000).unwrap();
    let mut qdiscs: Vec<Box<dyn Qdisc<Frame> + Send>> = Vec::new();
    for (limit, classifier) in [
        (Limit::Packets(50), Classifier::PureAck),
        (Limit::Bytes(30_000), Classifier::Size(40)),
    ] {
        let entry = Entry {
            link,
            opposite,
            limit,
            classifier,
        };
        let configs = named::named(entry, AqParams::new(link, opposite), 0.7);
        qdiscs.extend(configs.iter().map(|(_, config)| config.build()));
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
        qdisc.enqueue(now, Frame { bytes, parsed }, &mut spare);
        // A little slower than the arrivals, so that queues fill and limits bite.
        if dice.below(10) < 9
            && let Dequeue::Packet(frame) = qdisc.dequeue(now, &mut spare)
        {
            sent += 1;
            spare.buffers.push(frame.bytes);
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
    // The damage leaves enough frames alive to reach the deepest layers.
    assert!(tcp * 5 > count, "only {tcp} of {count} are TCP");
    println!(
        "{count} frames from seed {seed}: {tcp} TCP, {sent} sent, {} dropped",
        spare.dropped
    );
}
