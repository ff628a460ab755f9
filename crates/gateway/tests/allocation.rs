//! A queued frame costs one allocation, for its buffer. A frame that is sent at once costs none.

#[path = "common/disciplines.rs"]
mod disciplines;

use asymq_core::Direction;
use asymq_core::catalog::Standard;
use asymq_core::decide::frame::FlowKey;
use asymq_core::units::{Duration, Instant};
use asymq_gateway::{Forwarder, LinkConfig, PacketIo, Stage};
use disciplines::{discipline, names};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller obeys the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller obeys the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nowhere;

impl PacketIo for Nowhere {
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        Ok(0)
    }

    fn send(&mut self, _: &[u8]) {}

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_frame_costs_no_allocation_but_its_own_buffer() {
    const FRAMES: u64 = 2_000;
    let (up, down) = ("10mbit".parse().unwrap(), "20mbit".parse().unwrap());
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[17] = 40;
    frame[23] = 6;
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    for name in names() {
        let link = LinkConfig {
            up,
            down: Some(down),
            auto: [None; 2],
            rate_probe: None,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(discipline(name, up, down, 50)),
            downlink: Stage::Direct,
        };
        let mut forwarder = Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2]));
        let before = ALLOCATIONS.with(Cell::get);
        for number in 1..=FRAMES {
            // In every second round, one more ACK arrives than the link carries, so that some are dropped or filtered.
            let now = Instant::ZERO + Duration::from_micros(30 * number);
            frame[42..46].copy_from_slice(&(number as u32).to_be_bytes());
            forwarder.take(now, Direction::Up, &frame, &mut Nowhere);
            forwarder.take(now, Direction::Down, &frame, &mut Nowhere);
            forwarder.transmit(now, Direction::Up, 64, &mut Nowhere);
        }
        let allocated = ALLOCATIONS.with(Cell::get) - before;
        assert_eq!(allocated, FRAMES, "{name}");
    }
}
