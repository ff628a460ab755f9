//! Encodes parameter values as whole numbers.

use asymq_core::catalog::{Either, Kind, Value};
use asymq_core::units::{Bytes, Duration, Limit, Rate, Share};

/// Fractions are encoded in billionths.
const BILLION: u64 = 1_000_000_000;

/// Bit that is set for a limit in bytes, and clear for a limit in packets.
const LIMIT_BYTES: u64 = 1 << 63;

pub(crate) fn limit_number(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets.into(),
        Limit::Bytes(bytes) => bytes | LIMIT_BYTES,
    }
}

/// Reads a limit within the encodable range.
pub(crate) fn limit_from_number(number: u64) -> Option<Limit> {
    match (number & LIMIT_BYTES, number & !LIMIT_BYTES) {
        (0, packets @ 1..=1_000_000) => Some(Limit::Packets(packets as u32)),
        (LIMIT_BYTES, bytes @ 1..=0x1_0000_0000) => Some(Limit::Bytes(bytes)),
        _ => None,
    }
}

/// Encodes a number as billionths; negative numbers become 0.
pub(crate) fn billionths(number: f64) -> u64 {
    // The cast saturates, and maps NaN to 0.
    (number * BILLION as f64 + 0.5) as u64
}

/// Bit that is set if `gamma` is a rate.
const RATE: u64 = 1 << 63;

/// Numbers that encode keywords, for a parameter that also has numeric values.
enum Words {
    /// Keywords are numbered from 0 on. This number is added to each value.
    Low(u64),
    /// Keywords are numbered downwards from `u64::MAX`.
    High,
}

impl Words {
    fn new(choice: &Either) -> Self {
        let words = choice.words.len() as u64;
        let least = match choice.kind {
            Kind::Number(min, _) => billionths(min),
            Kind::Count(min, _) => min.into(),
            _ => return Self::High,
        };
        Self::Low(if least < words { words } else { 0 })
    }
}

/// Decodes a number, if the kind accepts the value.
pub(crate) fn value(kind: &Kind, number: u64) -> Option<Value> {
    let value = match kind {
        Kind::Rate => Value::Rate(Rate::from_bits_per_sec(number)?),
        Kind::Time | Kind::Period => Value::Time(Duration::from_nanos(number)),
        Kind::Size(..) => Value::Size(Bytes(number)),
        Kind::Limit => Value::Limit(limit_from_number(number)?),
        Kind::Share => match u32::try_from(number) {
            Ok(steps @ 1..Share::SCALE) => Value::Share(Share::from_steps(steps)),
            _ => return None,
        },
        Kind::Flag => Value::Flag((number <= 1).then_some(number == 1)?),
        Kind::Step(_) if number & RATE != 0 => Value::Rate(Rate::from_bits_per_sec(number ^ RATE)?),
        Kind::Number(..) | Kind::Step(_) => Value::Number(number as f64 / BILLION as f64),
        Kind::Count(..) => Value::Count(u32::try_from(number).ok()?),
        Kind::Words(words) => word(words, number)?,
        Kind::Either(choice) => either(choice, number)?,
        Kind::Part => return None,
    };
    kind.accepts(&value).then_some(value)
}

fn word(words: &[&'static str], place: u64) -> Option<Value> {
    let word = words.get(usize::try_from(place).ok()?)?;
    Some(Value::Word(word))
}

fn either(choice: &Either, number: u64) -> Option<Value> {
    let (place, offset) = match Words::new(choice) {
        Words::Low(offset) => (number, offset),
        Words::High => (u64::MAX - number, 0),
    };
    if let Some(word) = word(choice.words, place) {
        return Some(word);
    }
    let value = value(&choice.kind, number.checked_sub(offset)?)?;
    Some(match value {
        Value::Number(number) if !choice.label.is_empty() => Value::Labelled(choice.label, number),
        Value::Count(count) if !choice.label.is_empty() => {
            Value::Labelled(choice.label, count.into())
        }
        value => value,
    })
}

/// Encodes a value that the kind accepts.
pub(crate) fn number(kind: &Kind, value: &Value) -> Option<u64> {
    if !kind.accepts(value) {
        return None;
    }
    let place = |words: &[&str], word: &str| {
        let place = words.iter().position(|known| *known == word)?;
        Some(place as u64)
    };
    Some(match (kind, value) {
        (Kind::Words(words), Value::Word(word)) => place(words, word)?,
        (Kind::Either(choice), value) => match (Words::new(choice), value) {
            (Words::Low(_), Value::Word(word)) => place(choice.words, word)?,
            (Words::High, Value::Word(word)) => u64::MAX - place(choice.words, word)?,
            (Words::Low(offset), Value::Labelled(_, value)) => match choice.kind {
                Kind::Count(..) => *value as u64 + offset,
                _ => billionths(*value) + offset,
            },
            (Words::Low(offset), value) => number(&choice.kind, value)? + offset,
            (Words::High, value) => {
                number(&choice.kind, value)?.min(u64::MAX - choice.words.len() as u64)
            }
        },
        (Kind::Step(_), Value::Rate(rate)) => rate.bits_per_sec() | RATE,
        (_, Value::Rate(rate)) => rate.bits_per_sec(),
        (_, Value::Time(time)) => time.as_nanos(),
        (_, Value::Size(Bytes(bytes))) => *bytes,
        (_, Value::Limit(limit)) => limit_number(*limit),
        (_, Value::Share(share)) => share.steps().into(),
        (_, Value::Flag(flag)) => (*flag).into(),
        (_, Value::Number(value)) => billionths(*value),
        (_, Value::Count(count)) => (*count).into(),
        (_, Value::Word(_) | Value::Labelled(..) | Value::Text(_)) => return None,
    })
}

/// Minimum and maximum of the numbers of a kind.
#[cfg(feature = "text")]
pub(crate) fn range(kind: &Kind) -> (u64, u64) {
    match *kind {
        Kind::Rate | Kind::Period => (1, u64::MAX),
        Kind::Size(min, max) => (min, max),
        Kind::Share => (1, u64::from(Share::SCALE) - 1),
        Kind::Flag => (0, 1),
        Kind::Number(min, max) => (billionths(min), billionths(max)),
        Kind::Count(min, max) => (min.into(), max.into()),
        Kind::Words(words) => (0, words.len() as u64 - 1),
        Kind::Limit | Kind::Time | Kind::Step(_) | Kind::Either(_) | Kind::Part => (0, u64::MAX),
    }
}
