//! Loss, delay, jitter and reordering of a path, in netem's syntax.

use crate::text::part;
use asymq_core::units::Duration;
use std::fmt;
use std::iter::Peekable;
use std::str::{FromStr, SplitWhitespace};

/// Loss, delay and reordering of a path, with the parameters and defaults of `tc-netem(8)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Netem {
    /// Random loss of packets on the path.
    pub loss: Option<Loss>,
    /// Delay of packets that are not lost.
    pub delay: Option<Delay>,
    /// Packets that are not delayed, and therefore overtake others.
    pub reorder: Option<Reorder>,
}

/// Loss of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability, independently.
    Random(Percent),
    /// The model of Gilbert and Elliott, with two states.
    Gemodel {
        /// Probability, per packet, of going from the good state to the bad one.
        p: Percent,
        /// Probability, per packet, of going from the bad state to the good one.
        r: Percent,
        /// Probability of loss in the bad state.
        bad: Percent,
        /// Probability of loss in the good state.
        good: Percent,
    },
}

/// Additional delay; keeps the order of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Mean of the delay.
    pub mean: Duration,
    /// Deviation of the delay: half the width of a uniform distribution, or the standard deviation of a normal
    /// distribution. No delay is below zero.
    pub jitter: Duration,
    /// True if the delay has a normal distribution, false if a uniform one.
    pub normal: bool,
}

/// Packets that are sent without delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability that a packet is sent without delay, if `gap` permits.
    pub probability: Percent,
    /// Between two packets without delay, at least `gap` - 1 packets are delayed.
    pub gap: u32,
}

/// A probability in percent, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(f64);

impl Percent {
    /// Returns the probability as a fraction, 0 to 1.
    pub const fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Percent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "no probability; write it like 1%, from 0% to 100%";
        let number = text.strip_suffix('%').ok_or(WRONG)?;
        match number.parse::<f64>() {
            Ok(number) if (0.0..=100.0).contains(&number) => Ok(Self(number)),
            _ => Err(WRONG),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

const FORM: &str = "write it like loss 1%, loss gemodel 1% 10% 70% 0.1%, delay 10ms 5ms, \
                    delay 10ms 5ms distribution normal, or delay 10ms reorder 25% gap 5";

type Words<'a> = Peekable<SplitWhitespace<'a>>;

impl FromStr for Netem {
    type Err = String;

    /// Parses the arguments after `netem` in a `tc` command.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut netem = Self::default();
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let stood = match word {
                "loss" => netem.loss.replace(loss(&mut words)?).is_some(),
                "delay" => netem.delay.replace(delay(&mut words)?).is_some(),
                "reorder" => netem.reorder.replace(reorder(&mut words)?).is_some(),
                other => return Err(format!("unknown word '{other}'; {FORM}")),
            };
            if stood {
                return Err(format!("{word} is given twice; {FORM}"));
            }
        }
        if netem == Self::default() {
            return Err(format!("no impairment; {FORM}"));
        }
        let delays = |delay: Delay| delay.mean > Duration::ZERO;
        if netem.reorder.is_some() && !netem.delay.is_some_and(delays) {
            return Err(
                "reorder without a delay changes nothing; write delay 10ms before it".into(),
            );
        }
        let longest = |delay: Delay| delay.mean.max(delay.jitter);
        if netem.delay.map(longest).unwrap_or_default() > Duration::from_secs(60) {
            return Err("delay out of range; use at most 60s".into());
        }
        Ok(netem)
    }
}

/// Absent parameters of gemodel have netem's defaults: `r` is `100% - p`; all packets are lost in the bad state, and
/// none in the good state.
fn loss(words: &mut Words<'_>) -> Result<Loss, String> {
    if words.next_if_eq(&"gemodel").is_none() {
        words.next_if_eq(&"random");
        return part(words.next().unwrap_or_default()).map(Loss::Random);
    }
    let given = std::iter::from_fn(|| words.next_if(|word| word.ends_with('%')));
    let given: Vec<Percent> = given.map(part).collect::<Result<_, _>>()?;
    let nth = |index: usize, absent| given.get(index).copied().unwrap_or(Percent(absent));
    match given[..] {
        [] => Err(format!("gemodel without a probability; {FORM}")),
        [p, ..] if given.len() <= 4 => Ok(Loss::Gemodel {
            p,
            r: nth(1, 100.0 - p.0),
            bad: nth(2, 100.0),
            good: nth(3, 0.0),
        }),
        _ => Err(format!(
            "gemodel has four probabilities, p r 1-h 1-k; {FORM}"
        )),
    }
}

fn delay(words: &mut Words<'_>) -> Result<Delay, String> {
    let mut span = || {
        let digit = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let word = words.next_if(|word| digit(word) && !word.ends_with('%'));
        word.map(part).transpose()
    };
    let mean = span()?.ok_or_else(|| format!("delay without a time; {FORM}"))?;
    let jitter = span()?.unwrap_or(Duration::ZERO);
    let named = words.next_if_eq(&"distribution");
    let normal = match named.map(|_| words.next().unwrap_or_default()) {
        None | Some("uniform") => false,
        Some("normal") => true,
        Some(other) => {
            return Err(format!(
                "distribution {other}: unknown; use uniform or normal"
            ));
        }
    };
    Ok(Delay {
        mean,
        jitter,
        normal,
    })
}

fn reorder(words: &mut Words<'_>) -> Result<Reorder, String> {
    let probability = part(words.next().unwrap_or_default())?;
    let named = words.next_if_eq(&"gap");
    let gap = named.map_or(Ok(1), |_| words.next().unwrap_or_default().parse());
    match gap {
        Ok(gap @ 1..) => Ok(Reorder { probability, gap }),
        _ => Err(format!("gap without a number from 1; {FORM}")),
    }
}

impl fmt::Display for Netem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match self.loss {
            None => {}
            Some(Loss::Random(probability)) => parts.push(format!("loss {probability}")),
            Some(Loss::Gemodel { p, r, bad, good }) => {
                parts.push(format!("loss gemodel {p} {r} {bad} {good}"));
            }
        }
        if let Some(delay) = self.delay {
            let mut part = format!("delay {}", delay.mean);
            if delay.jitter > Duration::ZERO || delay.normal {
                part += &format!(" {}", delay.jitter);
            }
            if delay.normal {
                part += " distribution normal";
            }
            parts.push(part);
        }
        if let Some(reorder) = self.reorder {
            let gap = match reorder.gap {
                1 => String::new(),
                gap => format!(" gap {gap}"),
            };
            parts.push(format!("reorder {}{gap}", reorder.probability));
        }
        f.write_str(&parts.join(" "))
    }
}

crate::text::serde_as_string!(Netem);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netem_parses_as_printed() {
        for text in [
            "loss 1%",
            "loss gemodel 1% 10% 70% 0.1%",
            "delay 10ms",
            "delay 10ms 5ms",
            "delay 10ms 5ms distribution normal",
            "loss 0.5% delay 10ms reorder 25% gap 5",
            "delay 10ms 1ms reorder 2%",
        ] {
            assert_eq!(text.parse::<Netem>().unwrap().to_string(), text);
        }
        let read = |text: &str| text.parse::<Netem>().unwrap().to_string();
        assert_eq!(read("loss random 3%"), "loss 3%");
        assert_eq!(read("loss gemodel 2%"), "loss gemodel 2% 98% 100% 0%");
        assert_eq!(read("delay 1ms 1ms distribution uniform"), "delay 1ms 1ms");
    }

    #[test]
    fn a_wrong_part_of_netem_is_named() {
        let error = |text: &str| text.parse::<Netem>().unwrap_err();
        assert_eq!(
            error("loss 1"),
            "1: no probability; write it like 1%, from 0% to 100%"
        );
        assert!(error("loss 101%").starts_with("101%: no probability"));
        assert!(error("loss gemodel").starts_with("gemodel without a probability"));
        assert!(error("loss 1% loss 2%").starts_with("loss is given twice"));
        assert!(error("delay").starts_with("delay without a time"));
        assert!(error("delay 10").starts_with("10: no unit"));
        assert!(error("delay 10ms 5ms 25%").starts_with("unknown word '25%'"));
        assert!(error("delay 1ms 1ms distribution pareto").contains("use uniform or normal"));
        assert!(error("delay 61s").starts_with("delay out of range"));
        assert!(error("reorder 1%").starts_with("reorder without a delay"));
        assert!(error("delay 1ms reorder 1% gap 0").starts_with("gap without a number"));
        assert!(error("corrupt 1%").starts_with("unknown word 'corrupt'"));
        assert!(error("").starts_with("no impairment"));
    }
}
