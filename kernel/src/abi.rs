//! What the C half calls; `module/asymq.h` declares the same.
//!
//! C calls each under a guard: a panic returns to C, which goes on without the instance. All memory of
//! an instance is in an arena of C's, which is freed whole: nothing here is ever dropped for that.

use crate::frame::{Bytes, Frame};
use crate::host::{Handle, Host, Listener};
use crate::instance::{Instance, NewValues};
use crate::request::{Device, Refusal, describe, merge};
use alloc::boxed::Box;
use asymq_core::Toward;
use asymq_core::hold::BuildError;
use asymq_core::units::{Instant, Rate};
use core::ffi::c_void;
use core::slice;

/// What is asked for.
#[repr(C)]
pub(crate) struct Setup {
    now: u64,
    secret: [u64; 2],
    /// The instance that is changed; null for a new one.
    before: *const Instance,
    words: *const Bytes,
    count: usize,
    queue_len: u32,
    /// Whether the instance that is changed is whole: had no fault.
    whole: bool,
    /// Whether the device is an IFB, through which a downlink passes.
    ifb: bool,
}

/// What was made of it.
#[repr(C)]
pub(crate) struct Built {
    /// Null if it was refused, or if the instance that is changed goes on.
    instance: *mut Instance,
    /// New values of the instance that goes on.
    values: *mut NewValues,
    /// Bit/s to shape to; 0 if it is not to be shaped.
    rate: u64,
    /// Packets that may wait.
    limit: u32,
    observes: bool,
    /// Whether it is to see what leaves the device from which its packets come.
    follows: bool,
    /// Whether hosts are those before this machine's translation of addresses.
    nat: bool,
    /// Whether memory is what it lacks, instead of sense.
    out_of_memory: bool,
    /// Why it was refused.
    error: [u8; 320],
}

impl Built {
    fn refuse(&mut self, text: &str) {
        let room = self.error.len() - 1;
        for (slot, byte) in self.error.iter_mut().take(room).zip(text.bytes()) {
            *slot = byte;
        }
    }
}

/// Builds an instance. `built` is zeros.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_build(setup: &Setup, built: &mut Built) {
    // SAFETY: null, or an instance whose lock or whose only changer the caller is.
    let before = unsafe { setup.before.as_ref() };
    let words = match setup.count {
        0 => &[],
        // SAFETY: C has so many.
        count => unsafe { slice::from_raw_parts(setup.words, count) },
    };
    let words = words.iter().map(|word| {
        // SAFETY: C has so many bytes of it.
        let bytes = unsafe { slice::from_raw_parts(word.place, word.len) };
        core::str::from_utf8(bytes).ok()
    });
    let given = merge(before.map(|instance| &instance.given), words);
    let described = given.and_then(|given| {
        let device = Device {
            queue_len: setup.queue_len,
            toward: if setup.ifb { Toward::Down } else { Toward::Up },
            learnt: before.and_then(Instance::learnt),
        };
        let description = describe(&given, &device)?;
        Ok((given, description))
    });
    let (given, description) = match described {
        Ok(described) => described,
        Err(Refusal(text)) => return built.refuse(&text),
    };
    let (rate, limit) = (description.config.link, description.config.limit);
    let (shaped, nat) = (description.shaped, description.nat);
    let whole = before.filter(|_| setup.whole);
    if let Some(before) = whole.filter(|before| before.goes_on_as(&description)) {
        built.rate = if shaped { rate.bits_per_sec() } else { 0 };
        built.limit = asymq_core::hold::capacity(limit).unwrap_or(u32::MAX);
        built.observes = before.observes();
        built.nat = nat;
        built.values = Box::into_raw(Box::new(NewValues::new(given, description)));
        return;
    }
    let now = Instant::from_nanos(setup.now);
    match Instance::build(now, setup.secret, given, description) {
        Ok(instance) => {
            built.rate = if shaped { rate.bits_per_sec() } else { 0 };
            built.limit = asymq_core::hold::capacity(limit).unwrap_or(u32::MAX);
            built.observes = instance.observes();
            built.nat = nat;
            built.follows = instance.learns() == Some(Toward::Down);
            built.instance = Box::into_raw(instance);
        }
        Err(error) => {
            built.out_of_memory = matches!(error, BuildError::OutOfMemory);
            built.refuse(&alloc::string::ToString::to_string(&error));
        }
    }
}

/// Counts on where `old` stopped, which is emptied if it is whole: had no fault.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_take_over(instance: &mut Instance, old: &mut Instance, whole: bool) {
    if whole {
        old.empty();
    } else {
        old.settle();
    }
    instance.take_over(old);
}

/// Goes on with new values; `values` gets the old ones.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_move(instance: &mut Instance, now: u64, values: &mut NewValues) {
    instance.go_on_with(Instant::from_nanos(now), values);
}

/// Frees values that no instance has.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_discard(values: *mut NewValues) {
    // SAFETY: it came from `asymq_build`, and C has it no longer.
    drop(unsafe { Box::from_raw(values) });
}

/// Takes what waits out of the counters, after a fault; the rate that was learnt in bit/s, or 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_settle(instance: &mut Instance) -> u64 {
    instance.settle();
    instance.learnt().map_or(0, Rate::bits_per_sec)
}

/// Packets that wait.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_waiting(instance: &Instance) -> u32 {
    instance.waiting()
}

/// Takes a packet, which arrived at the qdisc at `arrival`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_enqueue(
    instance: &mut Instance,
    host: *mut c_void,
    now: u64,
    arrival: u64,
    packet: Handle,
    frame: &Frame,
) {
    let (now, arrival) = (Instant::from_nanos(now), Instant::from_nanos(arrival));
    instance.enqueue(Host(host), now, arrival, packet, frame);
}

/// The packet to send now, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_dequeue(instance: &mut Instance, host: *mut c_void, now: u64) -> Handle {
    let packet = instance.dequeue(Host(host), Instant::from_nanos(now));
    packet.unwrap_or(core::ptr::null_mut())
}

/// When to ask again; `u64::MAX` if nothing waits.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_next(instance: &Instance) -> u64 {
    instance.next().map_or(u64::MAX, Instant::as_nanos)
}

/// Shows a packet of the reverse path.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_observe(instance: &mut Instance, now: u64, frame: &Frame) {
    instance.observe(Instant::from_nanos(now), frame);
}

/// Shows a packet that leaves the device from which this qdisc's packets come.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_depart(instance: &mut Instance, now: u64, frame: &Frame) {
    instance.departs(Instant::from_nanos(now), frame);
}

/// Forgets all packets.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_reset(instance: &mut Instance) {
    instance.empty();
}

/// Tells all values in force.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_describe(instance: &Instance, to: *mut c_void) {
    instance.describe(Listener(to));
}

/// Tells counters and variables.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_show(instance: &Instance, now: u64, to: *mut c_void) {
    instance.show(Instant::from_nanos(now), Listener(to));
}
