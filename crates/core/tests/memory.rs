//! A discipline's memory grows with the link's rate; measured with packets of the kernel's size.

use asymq_core::catalog::{Catalog, Params, Place, Standard, resolve};
use asymq_core::units::Limit;
use asymq_core::{Header, Packet};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does all the work. Counting allocates nothing: the counter is a
// constant-initialised static without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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

/// A header, and the address of a packet.
struct Addressed {
    header: Header,
    _address: usize,
}

impl Packet for Addressed {
    fn header(&self) -> &Header {
        &self.header
    }
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
    let discipline = Standard.build::<Addressed>(&config).unwrap();
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
