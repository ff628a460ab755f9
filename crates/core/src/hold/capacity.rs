//! Memory of queues, which is allocated once.

use crate::Limit;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use fallible_collections::FallibleBox;

/// Maximum number of packets in any queue.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Maximum number of packets in a queue limited in bytes.
const MAX_PACKETS_OF_BYTES: u64 = 1 << 17;

/// Length of the shortest TCP packet in bytes.
const SHORTEST: u64 = 40;

/// Reason why a discipline cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// There is not enough memory.
    OutOfMemory,
    /// The limit exceeds [`MAX_PACKETS`].
    LimitTooLarge(Limit),
    /// A part or a parameter is invalid. The text names the part or parameter, and a valid form.
    Description(alloc::string::String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("not enough memory for the queues; use lower limits"),
            Self::LimitTooLarge(limit) => {
                write!(f, "limit {limit}: too large; use at most {MAX_PACKETS}p")
            }
            Self::Description(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for BuildError {}

/// Returns the number of packets for which a queue with this limit has room. A queue limited in bytes has room for one
/// packet per 40 bytes and four more, at most 131 072. Packets shorter than 40 bytes may use up this room below the limit.
///
/// # Errors
/// The limit exceeds [`MAX_PACKETS`].
pub fn capacity(limit: Limit) -> Result<u32, BuildError> {
    match limit {
        Limit::Packets(packets) if packets > MAX_PACKETS => Err(BuildError::LimitTooLarge(limit)),
        Limit::Packets(packets) => Ok(packets),
        Limit::Bytes(bytes) => Ok((bytes / SHORTEST + 4).min(MAX_PACKETS_OF_BYTES) as u32),
    }
}

/// Allocates a value on the heap.
///
/// # Errors
/// There is not enough memory. Unlike `Box::new`, this does not panic.
#[inline]
pub fn boxed<T>(value: T) -> Result<Box<T>, BuildError> {
    FallibleBox::try_new(value).map_err(|_| BuildError::OutOfMemory)
}

/// Allocates exactly `count` values; `value` is called with each index.
///
/// # Errors
/// There is not enough memory.
pub fn slots<T>(count: usize, mut value: impl FnMut(usize) -> T) -> Result<Box<[T]>, BuildError> {
    let mut slots = Vec::new();
    slots
        .try_reserve_exact(count)
        .map_err(|_| BuildError::OutOfMemory)?;
    slots.extend((0..count).map(&mut value));
    Ok(slots.into_boxed_slice())
}

/// Allocates an array filled with `value`, without a copy on the stack, because a kernel's stack is small.
///
/// # Errors
/// There is not enough memory.
pub fn array<T: Copy, const N: usize>(value: T) -> Result<Box<[T; N]>, BuildError> {
    let slots = slots(N, |_| value)?;
    slots.try_into().map_err(|_| BuildError::OutOfMemory)
}
