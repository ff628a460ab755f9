//! No discipline, egress or regenerator allocates after construction, with any parts. A discipline's memory grows with
//! the link's rate; measured with packets of the kernel's size.

#[path = "common/traffic.rs"]
mod traffic;

use asymq_core::catalog::{Catalog, Config, Params, Place, Role, Standard, resolve};
use asymq_core::decide::ack::AckInfo;
use asymq_core::decide::random::SplitMix64;
use asymq_core::hold::{Egress, Regenerator, RegeneratorParams, Spacing};
use asymq_core::qdisc::Discard;
use asymq_core::units::{Duration, Instant, Limit};
use asymq_core::{Ecn, Header, Network, Packet};
use asymq_laws::{choice, golden};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does all the work. Counting allocates nothing: the counter is a
// constant-initialized static without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get().wrapping_add(layout.size()));
        // SAFETY: the caller's guarantees pass to the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's guarantees pass to the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A packet of the kernel's size, a header and an address, that can be filtered, marked and regenerated.
#[derive(Clone, Copy)]
struct Light {
    header: Header,
    _address: usize,
}

impl Light {
    const fn new(header: Header) -> Self {
        Self {
            header,
            _address: 0,
        }
    }
}

impl Packet for Light {
    fn header(&self) -> &Header {
        &self.header
    }
    fn network(&self) -> Network {
        traffic::network(&self.header)
    }
    fn ack_info(&self) -> Option<AckInfo> {
        self.header.is_pure_ack().then_some(AckInfo {
            ack: self.header.ack,
            flags: self.header.flags,
            ..AckInfo::default()
        })
    }
    fn mark_ce(&mut self) -> bool {
        let capable = self.header.ecn.is_capable();
        if capable {
            self.header.ecn = Ecn::Ce;
        }
        capable
    }
    fn rewrite_ack(&mut self, info: &AckInfo) {
        self.header.ack = info.ack;
    }
}

/// Counts the allocations during `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// More flows than any flow table holds.
const FLOWS: u64 = 5000;
const PACKETS: u64 = 8 * FLOWS;

/// Enqueues two packets for each dequeue, then dequeues all. The egress also observes the reverse path.
fn work(egress: &mut Egress<Light>) {
    let mut now = Instant::from_nanos(1);
    let step = Duration::from_micros(500);
    for number in 0..PACKETS {
        now += step;
        let header = traffic::packet(now, number, FLOWS);
        egress.enqueue(now, Light::new(header), &mut Discard);
        egress.observe(now, &header);
        if number % 2 == 0 {
            egress.dequeue(now, &mut Discard);
        }
    }
    egress.qdisc().probe(&mut |_, _| ());
    for _ in 0..PACKETS {
        let Some(next) = egress.next() else { break };
        egress.dequeue(next, &mut Discard);
    }
}

fn check(config: &Config) {
    let Ok(qdisc) = Standard.build(config) else {
        return;
    };
    let mut egress = Egress::new(qdisc, config.link);
    let count = allocations(|| work(&mut egress));
    assert_eq!(count, 0, "{count} allocations by {config:?}");
}

#[test]
fn no_discipline_allocates_after_construction() {
    for entry in Standard.of_role(Role::Qdisc) {
        check(&golden::config(&Standard, entry.name).unwrap());
    }
}

#[test]
fn no_choice_of_parts_allocates_after_construction() {
    let mut random = SplitMix64::new(7);
    for _ in 0..150 {
        let mut source = |bound: usize| (random.next() % bound as u64) as usize;
        check(&choice::config(&Standard, &mut source));
    }
}

#[test]
fn a_regenerator_allocates_nothing_after_construction() {
    // First more flows than the regenerator has entries; then few enough to regenerate ACKs of all flows.
    for (spacing, flows) in [
        (Spacing::AtOnce, FLOWS),
        (Spacing::Paced, FLOWS),
        (Spacing::Paced, 1000),
    ] {
        let params = RegeneratorParams {
            factor: 2,
            segment: 100,
            spacing,
            ..RegeneratorParams::default()
        };
        let mut regenerator = Regenerator::new(params).unwrap();
        let count = allocations(|| {
            let mut now = Instant::from_nanos(1);
            for number in 0..PACKETS {
                now += Duration::from_micros(10);
                let packet = Light::new(traffic::packet(now, number, flows));
                let data = Header {
                    flow: packet.header.flow.reverse(),
                    payload: 100,
                    ..packet.header
                };
                for _ in 0..8 {
                    regenerator.observe(now, &data);
                }
                regenerator.push(now, packet, &mut Discard);
                while regenerator.pop(now).is_some() {}
            }
        });
        assert_eq!(count, 0);
        let due = if flows == FLOWS { 0 } else { PACKETS };
        assert!(regenerator.regenerated() >= due, "it had nothing to do");
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

/// Allocated bytes of a discipline at an uplink of rate `up`.
fn bytes(name: &str, up: &str) -> usize {
    let link = up.parse().unwrap();
    let place = Place {
        link,
        reverse: Some(link),
        limit: Limit::Packets(50),
    };
    let config = resolve(&Standard, name, &Params::new(), &Params::new(), place).unwrap();
    let before = BYTES.get();
    let discipline = Standard.build::<Light>(&config).unwrap();
    let bytes = BYTES.get() - before;
    drop(discipline);
    assert_eq!(BYTES.get(), before, "{name} at {up} gives back");
    bytes
}

#[test]
fn memory_follows_the_line() {
    for (name, up, most) in [
        ("asymq", "1mbit", 115_000),
        ("asymq", "20mbit", 115_000),
        ("asymq", "1gbit", 350_000),
    ] {
        let bytes = bytes(name, up);
        assert!(
            bytes <= most,
            "{name} at {up}: {bytes} bytes, at most {most}"
        );
        assert!(
            bytes > most / 10 * 9,
            "{name} at {up}: {bytes} bytes: lower the bound of {most}"
        );
    }
}
