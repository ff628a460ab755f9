//! Numbers as netlink attributes, in native byte order.

use crate::ids::{self, ATTRIBUTES, COUNT, VERSION, Width, id};
use crate::numbers::Numbers;
use crate::statistics::{self, Unit};
use alloc::format;
use alloc::vec::Vec;

/// Flag bits in an attribute's type.
const FLAGS: u16 = 0xC000;
const NESTED: u16 = 0x8000;
/// Attribute of older modules, which exchanged text.
const WORDS: u16 = 1;

/// Error in received attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The sender has another version of the exchange.
    Version,
    /// The attributes are truncated.
    Cut,
}

fn width(id: u16) -> Option<Width> {
    let mut own = ATTRIBUTES.iter();
    let own = own.find(|own| own.id == id).map(|own| own.width);
    own.or_else(|| ids::parameter(id).map(|(_, width)| width))
}

fn put(to: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    let length = u16::try_from(4 + payload.len()).unwrap_or(u16::MAX);
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(payload);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn put_all(to: &mut Vec<u8>, numbers: &Numbers) {
    for (id, value) in numbers.iter() {
        match width(id) {
            Some(Width::U8) => put(to, id, &(value as u8).to_ne_bytes()),
            Some(Width::U32 | Width::S32) => put(to, id, &(value as u32).to_ne_bytes()),
            Some(Width::U64) => put(to, id, &value.to_ne_bytes()),
            None => {}
        }
    }
}

/// Encodes the payload of `TCA_OPTIONS`: effective values, and values given by the user.
pub fn encode(numbers: &Numbers, given: &Numbers) -> Vec<u8> {
    let (mut bytes, mut nest) = (Vec::new(), Vec::new());
    put(&mut bytes, id::VERSION, &VERSION.to_ne_bytes());
    put_all(&mut bytes, numbers);
    put_all(&mut nest, given);
    put(&mut bytes, id::GIVEN | NESTED, &nest);
    bytes
}

/// Type and payload of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let length = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let payload = bytes.get(4..length.into())?;
        let next = usize::from(length).next_multiple_of(4);
        bytes = bytes.get(next..).unwrap_or_default();
        Some((kind & !FLAGS, payload))
    })
}

fn number(payload: &[u8]) -> Option<u64> {
    Some(match *payload {
        [byte] => byte.into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(payload.try_into().ok()?),
    })
}

/// Returns the effective values, and the values given by the user.
///
/// # Errors
/// The sender has another version, or attributes are truncated.
pub fn decode(bytes: &[u8]) -> Result<(Numbers, Numbers), ReadError> {
    let (mut numbers, mut given) = (Numbers::default(), Numbers::default());
    let mut version = None;
    for (kind, payload) in attributes(bytes) {
        match kind {
            WORDS => return Err(ReadError::Version),
            id::GIVEN => {
                for (kind, payload) in attributes(payload) {
                    given.set(kind, number(payload).ok_or(ReadError::Cut)?);
                }
            }
            id::VERSION => version = number(payload),
            _ if usize::from(kind) < COUNT && kind != id::PAD => {
                numbers.set(kind, number(payload).ok_or(ReadError::Cut)?);
            }
            _ => {}
        }
    }
    match version {
        Some(version) if version == u64::from(VERSION) => Ok((numbers, given)),
        _ => Err(ReadError::Version),
    }
}

/// Decodes names, units and values from `TCA_STATS_APP`, in its order. Dots separate levels.
///
/// # Errors
/// The sender has another version of the exchange.
pub fn decode_statistics(
    bytes: &[u8],
    mut show: impl FnMut(&str, Unit, u64),
) -> Result<(), ReadError> {
    let mut found = attributes(bytes);
    let version = found.find(|(kind, _)| *kind == statistics::id::VERSION);
    if version.and_then(|(_, payload)| number(payload)) != Some(VERSION.into()) {
        return Err(ReadError::Version);
    }
    for (kind, payload) in attributes(bytes) {
        if kind == statistics::id::FAILED {
            show("failed", Unit::Count, number(payload).unwrap_or_default());
        }
        let Some((list, known)) = statistics::list(kind) else {
            continue;
        };
        for (kind, payload) in attributes(payload) {
            let place = kind.checked_sub(statistics::FIRST);
            let statistic = place.and_then(|place| known.get(usize::from(place)));
            let Some(((name, unit), value)) = statistic.zip(number(payload)) else {
                continue;
            };
            match list {
                "" => show(name, *unit, value),
                _ => show(&format!("{list}.{name}"), *unit, value),
            }
        }
    }
    Ok(())
}
