//! What the C half calls; `module/asymq.h` declares the same.
//!
//! All memory of an instance is in an arena of C's, which is freed whole: nothing here is ever dropped for that.

use crate::frame::Frame;
use crate::host::{Handle, Host, Listener, lasts};
use crate::instance::Instance;
use crate::request::{Refusal, describe};
use alloc::boxed::Box;
use asymq_core::Direction;
use asymq_core::hold::capacity;
use asymq_core::units::{Instant, Limit, Rate};
use asymq_wire::{Numbers, id, line, rates};
use core::ffi::{c_char, c_void};

/// What is asked for.
#[repr(C)]
pub(crate) struct Setup {
    now: u64,
    secret: [u64; 2],
    /// The instance that is changed, if it is whole: had no fault; null for a new one.
    before: *const Instance,
    /// What that was made of.
    before_numbers: *const Numbers,
    numbers: *const Numbers,
    /// Whether the device is an IFB, through which a downlink passes.
    ifb: bool,
}

/// What was made of it.
#[repr(C)]
pub(crate) struct Built {
    /// Null if it was refused, or if the instance that is changed goes on.
    instance: *mut Instance,
    /// The link's rate and the other direction's in bit/s, the latter 0 if it is not known.
    link: u64,
    reverse: u64,
    /// Why it was refused, with a zero at its end, and which attribute is wrong.
    error: *const c_char,
    attribute: u32,
    /// Packets that may wait.
    limit: u32,
    /// Whether the instance that is changed goes on at these rates.
    goes_on: bool,
    /// Whether it is to shape to the link's rate.
    shaped: bool,
    observes: bool,
    /// Whether it is to see what leaves the device from which its packets come.
    follows: bool,
    /// Whether hosts are those before this machine's translation of addresses.
    nat: bool,
    /// Whether it learns its rate.
    learns: bool,
    /// Whether a packet that finds nothing waiting may pass it.
    bypass: bool,
    /// Whether memory is what it lacks, instead of sense.
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

/// Builds an instance, or says that the one before goes on at other rates. `built` is zeros.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_build(setup: &Setup, built: &mut Built) {
    if let Err(refusal) = build(setup, built) {
        built.refuse(refusal);
    }
}

fn build(setup: &Setup, built: &mut Built) -> Result<(), Refusal> {
    // SAFETY: each is null or what it says, and nobody else changes it.
    let (before, numbers) = unsafe {
        let before = setup.before.as_ref().zip(setup.before_numbers.as_ref());
        (before, &*setup.numbers)
    };
    if let Some((before, then)) = before
        && before.goes_on(then, numbers)
    {
        let (link, reverse, limit) = rates(numbers)?;
        built.set_rates(link, reverse, limit);
        built.goes_on = true;
        built.shaped = numbers.flag(id::SHAPED);
        built.observes = before.observes();
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
    let instance = Instance::build(now, setup.secret, &description)?;
    built.observes = instance.observes();
    built.follows = instance.learns() == Some(Direction::Down);
    built.learns = instance.learns().is_some();
    built.bypass = !description.shaped && instance.allows_bypass();
    built.instance = Box::into_raw(instance);
    Ok(())
}

/// Rates in bit/s, 0 for a reverse one that is not known, and the attribute of the buffer.
#[repr(C)]
pub(crate) struct Line {
    up: u64,
    down: u64,
    buffer: u64,
    /// Whether it is another than before.
    buffer_moves: bool,
}

/// Says whether an instance can go on at these rates, all else being as it was. `built` is zeros.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_goes_on(instance: &Instance, asked: &Line, built: &mut Built) {
    if instance.follows(asked.buffer_moves)
        && let Some((link, reverse, limit)) = line(asked.up, asked.down, asked.buffer)
    {
        built.set_rates(link, reverse, limit);
        built.goes_on = true;
    }
}

/// What a qdisc is where nothing is said, for a device whose queue holds so many packets. `numbers` is zeros.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_usual(numbers: &mut Numbers, queue_len: u32) {
    numbers.set_usual(queue_len.clamp(50, 10_000));
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

/// Goes on at other rates in bit/s, that of the reverse direction being 0 if it is not known.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_move(instance: &mut Instance, now: u64, link: u64, reverse: u64) {
    if let Some(link) = Rate::from_bits_per_sec(link) {
        let reverse = Rate::from_bits_per_sec(reverse);
        instance.move_rates(Instant::from_nanos(now), link, reverse);
    }
}

/// The rate that was learnt in bit/s, or 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_learnt(instance: &Instance) -> u64 {
    instance.learnt().map_or(0, Rate::bits_per_sec)
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

/// Tells counters and variables.
#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_show(instance: &Instance, now: u64, to: *mut c_void) {
    instance.show(Instant::from_nanos(now), Listener(to));
}
