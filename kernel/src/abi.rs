//! Functions that the C half calls; `module/asymq.h` declares the same functions.
//!
//! All memory of an instance is in C's arena, which is freed as a whole. Dropping a Rust value frees no memory.

use crate::frame::Frame;
use crate::host::{Handle, Host, Listener, lasts};
use crate::instance::Instance;
use crate::request::{Refusal, describe};
use alloc::boxed::Box;
use asymq_core::hold::capacity;
use asymq_core::{Direction, Instant, Limit, Rate};
use asymq_wire::{Numbers, derive, id, line, rates, usual_buffer};
use core::ffi::{c_char, c_void};

/// Request for an instance.
#[repr(C)]
pub(crate) struct Setup {
    now: u64,
    secret: [u64; 2],
    /// Options of the current instance if it may continue at other rates; null if a new instance is required.
    before: *const Numbers,
    numbers: *const Numbers,
    /// The user's values.
    given: *const Numbers,
    /// True if the device is an IFB, which handles a downlink.
    ifb: bool,
}

/// Result of building an instance.
#[repr(C)]
pub(crate) struct Built {
    /// New instance; null if refused, or if the current instance continues.
    instance: *mut Instance,
    /// Rates of the link and of the reverse direction in bit/s. The reverse rate is 0 if unknown.
    link: u64,
    reverse: u64,
    /// Reason for a refusal, zero-terminated, and the wrong attribute.
    error: *const c_char,
    attribute: u32,
    /// Maximum number of queued packets.
    limit: u32,
    /// True if the current instance continues at these rates.
    reuse: bool,
    /// True if the instance shapes to the link's rate.
    shaped: bool,
    /// True if the instance needs packets of the reverse path.
    observes: bool,
    /// True if the instance, at an IFB, also needs the packets that leave the device at which its packets arrived.
    follows: bool,
    /// True if hosts are identified by addresses before this machine's NAT.
    nat: bool,
    /// True if the instance learns its rate.
    learns: bool,
    /// True if the rates of a running instance may change.
    follows_rates: bool,
    /// True if packets may bypass the idle instance.
    bypass: bool,
    /// True if the request was refused for lack of memory.
    out_of_memory: bool,
}

impl Built {
    fn refuse(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Wrong(text, attribute) => {
                self.error = text.as_ptr();
                self.attribute = attribute.into();
            }
            Refusal::OutOfMemory => self.out_of_memory = true,
        }
    }

    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>, limit: Limit) {
        self.link = link.bits_per_sec();
        self.reverse = reverse.map_or(0, Rate::bits_per_sec);
        self.limit = capacity(limit).unwrap_or(u32::MAX);
    }
}

/// Builds an instance, or reports that the current instance can continue at other rates. The caller zeroes `built`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_build(setup: &Setup, built: &mut Built) {
    if let Err(refusal) = build(setup, built) {
        built.refuse(refusal);
    }
}

fn build(setup: &Setup, built: &mut Built) -> Result<(), Refusal> {
    // SAFETY: `before` is null or valid, the others are valid, and all are constant during this call.
    let (before, numbers, given) =
        unsafe { (setup.before.as_ref(), &*setup.numbers, &*setup.given) };
    if let Some(before) = before
        && numbers.get(id::UP_MIN).is_none()
        && before.differ_in_rates_alone(numbers)
    {
        let (link, reverse, limit) = rates(numbers)?;
        built.set_rates(link, reverse, limit);
        built.reuse = true;
        built.shaped = numbers.flag(id::SHAPED);
        return Ok(());
    }
    let direction = if setup.ifb {
        Direction::Down
    } else {
        Direction::Up
    };
    let description = describe(numbers, direction)?;
    let config = &description.config;
    built.set_rates(config.link, config.reverse, config.limit);
    (built.shaped, built.nat) = (description.shaped, description.nat);
    lasts();
    let now = Instant::from_nanos(setup.now);
    let mut instance = Instance::build(now, setup.secret, &description)?;
    instance.set_rules(numbers, given);
    built.observes = instance.observes();
    built.follows = instance.learns() == Some(Direction::Down);
    built.learns = instance.learns().is_some();
    built.follows_rates = instance.follows_rates();
    built.bypass = !description.shaped && instance.allows_bypass();
    built.instance = Box::into_raw(instance);
    Ok(())
}

/// Rates in bit/s (`down` is 0 if unknown), and the buffer attribute.
#[repr(C)]
pub(crate) struct Line {
    up: u64,
    down: u64,
    buffer: u64,
    /// True if the buffer attribute changed.
    buffer_moves: bool,
}

/// Sets `reuse` and the rates of `built` if the instance can continue at these rates. The caller zeroes `built`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_fits_rates(instance: &Instance, wanted: &Line, built: &mut Built) {
    if let Some((link, reverse, limit)) = line(wanted.up, wanted.down, wanted.buffer)
        && instance.follows((link, reverse, limit), wanted.buffer_moves)
    {
        built.set_rates(link, reverse, limit);
        built.reuse = true;
    }
}

/// Default options for a device with this queue length. The caller zeroes `numbers`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_usual(numbers: &mut Numbers, queue_len: u32) {
    numbers.set_usual(queue_len.clamp(50, 10_000));
}

/// Recomputes the defaults that depend on the link. `given` are the user's values. Sets only an error in `built`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_derive(numbers: &mut Numbers, given: &Numbers, built: &mut Built) {
    if let Err(error) = derive(numbers, given) {
        built.refuse(error.into());
    }
}

/// Returns the default buffer at a rate in bit/s, encoded as an attribute's value.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_usual_buffer(up: u64) -> u64 {
    Rate::from_bits_per_sec(up).map_or(0, usual_buffer)
}

/// Takes over the counters of `old`. If `old` had no fault (`whole`), removes the packets of `old`.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_take_over(instance: &mut Instance, old: &mut Instance, whole: bool) {
    if whole {
        old.empty();
    } else {
        old.settle();
    }
    instance.take_over(old);
}

/// Changes the rates in bit/s; `reverse` is 0 if unknown.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_move(instance: &mut Instance, now: u64, link: u64, reverse: u64) {
    if let Some(link) = Rate::from_bits_per_sec(link) {
        let reverse = Rate::from_bits_per_sec(reverse);
        instance.move_rates(Instant::from_nanos(now), link, reverse);
    }
}

/// Returns the learnt rate in bit/s; 0 if no rate is learnt.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_learnt(instance: &Instance) -> u64 {
    instance.learnt().map_or(0, Rate::bits_per_sec)
}

/// Handles a fault: subtracts the queued packets from the arrival counters. Returns the learnt rate in bit/s, or 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_settle(instance: &mut Instance) -> u64 {
    instance.settle();
    instance.learnt().map_or(0, Rate::bits_per_sec)
}

/// Returns the number of queued packets.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_waiting(instance: &Instance) -> u32 {
    instance.waiting()
}

/// Enqueues a packet that arrived at the qdisc at `arrival`.
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

/// Returns the packet to send now, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_dequeue(instance: &mut Instance, host: *mut c_void, now: u64) -> Handle {
    let packet = instance.dequeue(Host(host), Instant::from_nanos(now));
    packet.unwrap_or(core::ptr::null_mut())
}

/// Returns the time of the next dequeue; `u64::MAX` if the queue is empty.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_next(instance: &Instance) -> u64 {
    instance.next().map_or(u64::MAX, Instant::as_nanos)
}

/// Handles a packet of the reverse path.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_observe(instance: &mut Instance, now: u64, frame: &Frame) {
    instance.observe(Instant::from_nanos(now), frame);
}

/// Handles a packet that leaves the device at which this qdisc's packets arrived.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_depart(instance: &mut Instance, now: u64, frame: &Frame) {
    instance.departs(Instant::from_nanos(now), frame);
}

/// Removes all packets from the instance; C frees the packets.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_reset(instance: &mut Instance) {
    instance.empty();
}

/// Writes the counters and the discipline's variables to a netlink message.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_show(instance: &Instance, now: u64, to: *mut c_void) {
    instance.show(Instant::from_nanos(now), Listener(to));
}
