//! Converts `tc`'s words to netlink's numbers and back, for `q_asymq.c`; `words.h` declares the functions.
#![no_std]

extern crate alloc;

use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use asymq_core::catalog::Params;
use asymq_core::{Direction, Rate};
use asymq_wire::{
    Device, Numbers, decode, decode_statistics, describe, encode, given, id, merge, numbers_of,
    shown, words,
};
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::slice;

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(place: *mut c_void);
    safe fn abort() -> !;
}

struct Memory;

/// Alignment of malloc: 16 bytes with pointers of 8, 8 with pointers of 4.
const ALIGNED: usize = 2 * size_of::<usize>();

// SAFETY: `alloc` refuses larger alignments than malloc's.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGNED {
            return core::ptr::null_mut();
        }
        // SAFETY: any size is allowed.
        unsafe { malloc(layout.size()).cast() }
    }

    unsafe fn dealloc(&self, place: *mut u8, _: Layout) {
        // SAFETY: the memory came from `malloc`.
        unsafe { free(place.cast()) }
    }
}

#[global_allocator]
static MEMORY: Memory = Memory;

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    abort()
}

/// The compiled standard library needs this symbol, but nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The compiled standard library needs this symbol too.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    abort()
}

/// Request of the C half.
#[repr(C)]
struct Request {
    words: *const *const c_char,
    count: usize,
    before: *const u8,
    before_len: usize,
    queue_len: u32,
    ifb: bool,
    numbers: bool,
}

const OTHER_VERSION: &str =
    "tc's plugin and the module have different versions; install both from one release";

fn read(request: &Request) -> Result<Vec<u8>, String> {
    let mut line = Vec::with_capacity(request.count);
    for place in 0..request.count {
        // SAFETY: C passes `count` words, each zero-terminated.
        let word = unsafe { CStr::from_ptr(*request.words.add(place)) };
        line.push(
            word.to_str()
                .map_err(|_| "invalid UTF-8 in a parameter".to_string())?,
        );
    }
    let options = words(&line)?;
    let (mut before, mut learnt) = (Params::new(), None);
    if !request.before.is_null() {
        // SAFETY: C passes that many bytes.
        let bytes = unsafe { slice::from_raw_parts(request.before, request.before_len) };
        let (numbers, was_given) = decode(bytes).map_err(|_| OTHER_VERSION.to_string())?;
        before = given(&was_given);
        if numbers.get(id::UP_MIN).is_some() {
            learnt = numbers.get(id::UP).and_then(Rate::from_bits_per_sec);
        }
    }
    let device = Device {
        queue_len: request.queue_len,
        direction: if request.ifb {
            Direction::Down
        } else {
            Direction::Up
        },
        learnt,
    };
    let given = merge(before, options);
    let numbers = describe(&given, &device)?;
    let given = numbers_of(&given)?;
    if request.numbers {
        return Ok(listed(&numbers).into_bytes());
    }
    Ok(encode(&numbers, &given))
}

/// Numbers and values, in the format of the module's parameter `defaults`.
fn listed(numbers: &Numbers) -> String {
    let pairs = numbers.iter().map(|(id, value)| format!("{id},{value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Copies as many bytes as fit, and appends a zero.
fn put(bytes: &[u8], to: &mut [u8]) {
    if let Some((last, room)) = to.split_last_mut() {
        *last = 0;
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        if let Some(end) = room.get_mut(len) {
            *end = 0;
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_read(request: &Request, to: *mut u8, room: usize) -> c_long {
    // SAFETY: C passes `room` writable bytes.
    let to = unsafe { slice::from_raw_parts_mut(to, room) };
    match read(request) {
        Ok(bytes) if bytes.len() < room => {
            put(&bytes, to);
            bytes.len() as c_long
        }
        Ok(_) => {
            put(b"too many options", to);
            -1
        }
        Err(error) => {
            put(error.as_bytes(), to);
            -1
        }
    }
}

type Say = extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_show(
    options: *const u8,
    len: usize,
    say: Say,
    to: *mut c_void,
) -> c_int {
    // SAFETY: C passes that many bytes.
    let bytes = unsafe { slice::from_raw_parts(options, len) };
    let Ok((numbers, _)) = decode(bytes) else {
        return -1;
    };
    for (name, value) in shown(&numbers) {
        if let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) {
            say(to, name.as_ptr(), value.as_ptr());
        }
    }
    0
}

type Tell = extern "C" fn(*mut c_void, *const c_char, c_int, u64);

#[unsafe(no_mangle)]
unsafe extern "C" fn asymq_tell(bytes: *const u8, len: usize, say: Tell, to: *mut c_void) -> c_int {
    // SAFETY: C passes that many bytes.
    let bytes = unsafe { slice::from_raw_parts(bytes, len) };
    let told = decode_statistics(bytes, |name, unit, value| {
        if let Ok(name) = CString::new(name) {
            say(to, name.as_ptr(), unit as c_int, value);
        }
    });
    match told {
        Ok(()) => 0,
        Err(_) => -1,
    }
}
