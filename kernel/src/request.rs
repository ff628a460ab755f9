//! From the words that `tc` sent to the description of a qdisc.

use crate::host::Listener;
use alloc::format;
use alloc::string::{String, ToString};
use asymq_core::Toward;
use asymq_core::catalog::{
    BUFFER_SPLIT, BufferSplit, Config, DEFAULT_QDISC, Params, Place, RATELESS_QDISC, Standard,
    default_buffer, link_rate, resolve, surroundings,
};
use asymq_core::control::rate::RateRange;
use asymq_core::overhead::Overhead;
use asymq_core::units::{Limit, Rate};

/// What the user gave, by name, over all changes.
pub(crate) type Given = Params;

/// Names that are the kernel's own; all others are the catalog's.
mod name {
    pub(super) const QDISC: &str = "qdisc";
    pub(super) const UP: &str = "up";
    pub(super) const DOWN: &str = "down";
    pub(super) const BUFFER: &str = "buffer";
    pub(super) const OVERHEAD: &str = "overhead";
    pub(super) const SHAPED: &str = "shaped";
    pub(super) const NAT: &str = "nat";
    pub(super) const ALL: [&str; 7] = [QDISC, UP, DOWN, BUFFER, OVERHEAD, SHAPED, NAT];
}

/// What a value is to be forgotten with.
const DEFAULT: &str = "default";

/// What a link is taken for where nothing is said of its rate.
const USUAL_RATE: &str = "1gbit";

/// A qdisc, complete.
pub(crate) struct Description {
    pub(crate) config: Config,
    /// Every value in force, as it could be given; made when there is memory for it.
    pub(crate) shown: Shown,
    pub(crate) overhead: Overhead,
    /// Whether its buffer bounds nothing but a FIFO after a fault: each queue has a limit of its own.
    pub(crate) separate: bool,
    /// Whether it shapes to the link's rate; otherwise whoever asks for packets does.
    pub(crate) shaped: bool,
    /// Whether hosts are those before this machine's translation of addresses.
    pub(crate) nat: bool,
    /// The range of its rate and the direction in which it is learnt, if it is.
    pub(crate) auto: Option<(RateRange, Toward)>,
}

/// What is known of the place of a qdisc, beside words.
pub(crate) struct Device {
    /// Packets that the device's queue holds.
    pub(crate) queue_len: u32,
    /// Direction of what passes: down at an IFB.
    pub(crate) toward: Toward,
    /// The rate that the qdisc before this one learnt.
    pub(crate) learnt: Option<Rate>,
}

/// What is wrong, and what to write instead.
pub(crate) struct Refusal(pub(crate) String);

/// What was given before, and what the words say anew: `up 1mbit`, `data-share default`.
#[inline(never)]
pub(crate) fn merge<'a>(
    before: Option<&Given>,
    words: impl Iterator<Item = Option<&'a str>>,
) -> Result<Given, Refusal> {
    let mut given = before.cloned().unwrap_or_default();
    for word in words {
        let word = word.ok_or_else(|| Refusal("a parameter is no text".to_string()))?;
        let (name, value) = word
            .split_once(' ')
            .ok_or_else(|| Refusal(format!("{word}: no value; write it like up 1mbit")))?;
        match value.trim() {
            DEFAULT => drop(given.remove(name)),
            value => given.set(name, value),
        }
    }
    Ok(given)
}

/// The range of the rate that is to be learnt, if it is.
fn auto(given: &Given) -> Result<Option<RateRange>, Refusal> {
    let text = given.get(name::UP).unwrap_or_default();
    let range = RateRange::of_auto(text).transpose();
    range.map_err(|error| Refusal(format!("{} {text}: {error}", name::UP)))
}

/// The qdisc that is meant, at a device.
#[inline(never)]
pub(crate) fn describe(given: &Given, device: &Device) -> Result<Description, Refusal> {
    let auto = auto(given)?;
    let rate = |name: &str| match given.get(name) {
        None => Ok(None),
        Some(text) => match link_rate(text) {
            Ok(rate) => Ok(Some(rate)),
            Err(message) => Err(Refusal(format!("{name} {text}: {message}"))),
        },
    };
    let first = |range: RateRange| match device.learnt {
        Some(rate) => range.clamp(rate),
        None => range.first(device.toward),
    };
    let up = match auto {
        Some(range) => Some(first(range)),
        None => rate(name::UP)?,
    };
    let down = rate(name::DOWN)?;
    let overhead: Overhead = parse(given, name::OVERHEAD)?.unwrap_or_default();
    let shaped = parse_flag(given, name::SHAPED)?.unwrap_or(up.is_some());
    let nat = parse_flag(given, name::NAT)?.unwrap_or(false);
    let buffer: Option<Limit> = parse(given, name::BUFFER)?;
    let usual = match up {
        Some(_) => DEFAULT_QDISC,
        None => RATELESS_QDISC,
    };
    let qdisc = given.get(name::QDISC).unwrap_or(usual);
    if shaped && up.is_none() {
        return Err(missing(name::UP, "1mbit", "to shape to it"));
    }
    let link = match up {
        Some(rate) => rate,
        None => USUAL_RATE.parse::<Rate>().unwrap_or(Rate::MAX),
    };
    let limit = buffer.unwrap_or_else(|| match up {
        Some(rate) => default_buffer(rate),
        None => Limit::Packets(device.queue_len.clamp(50, 10_000)),
    });
    let place = Place {
        link,
        reverse: down,
        limit,
    };
    let own = given.iter().filter(|(name, _)| !name::ALL.contains(name));
    let own: Params = own.collect();
    let config =
        resolve(&Standard, qdisc, &own, &surroundings(&overhead), place).map_err(|error| {
            Refusal(format!(
                "{} {}: {}",
                error.parameter, error.value, error.message
            ))
        })?;
    if up.is_none() && config.parts().any(|part| part.needs_link) {
        return Err(missing(name::UP, "1mbit", qdisc));
    }
    let mut shown = Shown(String::with_capacity(1000));
    let mut show = |name: &str, value: &str| shown.add(name, value);
    show(name::QDISC, &config.qdisc);
    match auto {
        Some(range) => show(name::UP, &range.to_string()),
        None => show(name::UP, &config.link.to_string()),
    }
    if let Some(down) = down {
        show(name::DOWN, &down.to_string());
    }
    show(name::BUFFER, &config.limit.to_string());
    show(name::SHAPED, &shaped.to_string());
    show(name::NAT, &nat.to_string());
    show(name::OVERHEAD, &overhead.to_string());
    for (name, value) in config.params.iter() {
        show(name, value);
    }
    Ok(Description {
        separate: matches!(config.get(BUFFER_SPLIT), Ok(BufferSplit::Separate)),
        config,
        shown,
        overhead,
        shaped,
        nat,
        auto: auto.map(|range| (range, device.toward)),
    })
}

fn missing(name: &str, example: &str, who: &str) -> Refusal {
    Refusal(format!(
        "{name}: missing for {who}; write it like {name} {example}"
    ))
}

fn parse<T: core::str::FromStr<Err: core::fmt::Display>>(
    given: &Given,
    name: &str,
) -> Result<Option<T>, Refusal> {
    let text = given.get(name);
    let parsed = text.map(|text| {
        text.parse()
            .map_err(|error| Refusal(format!("{name} {text}: {error}")))
    });
    parsed.transpose()
}

fn parse_flag(given: &Given, name: &str) -> Result<Option<bool>, Refusal> {
    match given.get(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => Err(Refusal(format!("{name} {text}: use true or false"))),
    }
}

/// Names and values, each pair in a line, as one piece of memory.
pub(crate) struct Shown(String);

impl Shown {
    fn add(&mut self, name: &str, value: &str) {
        for text in [name, " ", value, "\n"] {
            self.0.push_str(text);
        }
    }

    /// Names and values. Without `lines`, whose steps may panic where the compiler keeps them together.
    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut rest = self.0.as_str();
        core::iter::from_fn(move || {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            line.split_once(' ')
        })
    }

    /// Whether no other value than a rate of the line differs, or the buffer where that is `separate`.
    pub(crate) fn differs_in_rates_alone(&self, other: &Self, separate: bool) -> bool {
        let moves = |name: &str| match name {
            name::UP | name::DOWN => true,
            name::BUFFER => separate,
            _ => false,
        };
        let mut others = other.iter();
        let all = self.iter().all(|(name, value)| {
            let other = others.next();
            other.is_some_and(|other| other.0 == name && (other.1 == value || moves(name)))
        });
        all && others.next().is_none()
    }

    pub(crate) fn show(&self, to: Listener) {
        for (name, value) in self.iter() {
            to.word(name, value);
        }
    }
}
