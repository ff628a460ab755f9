//! Loss, delay, jitter and reordering of a path, in netem's words.

use crate::draw::fraction;
use crate::text::part;
use asymq_core::decide::random::SplitMix64;
use asymq_core::units::Duration;
use std::fmt;
use std::iter::Peekable;
use std::str::{FromStr, SplitWhitespace};

/// Loss, delay and reordering of a path; parameters and defaults are those of `tc-netem(8)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Netem {
    /// Loss of packets.
    pub loss: Option<Loss>,
    /// Delay of the others.
    pub delay: Option<Delay>,
    /// Choice of packets that are not delayed, and so overtake.
    pub reorder: Option<Reorder>,
}

/// Loss of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each with this probability, independently.
    Random(Percent),
    /// Gilbert and Elliott's two states.
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

/// A delay that packets have in addition; it keeps their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Its mean.
    pub mean: Duration,
    /// Its deviation: half the width of a uniform distribution, or the standard deviation of a
    /// normal one. No delay is below zero.
    pub jitter: Duration,
    /// True if it is distributed normally, and not uniformly.
    pub normal: bool,
}

/// Choice of packets that are sent on without delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The probability of each that may be.
    pub probability: Percent,
    /// At least so many less one are delayed between two of them.
    pub gap: u32,
}

/// A probability in percent, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(f64);

impl Percent {
    /// As a fraction.
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

    /// Reads what stands after `netem` in a line of `tc`.
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
                return Err(format!("{word} stands twice; {FORM}"));
            }
        }
        if netem == Self::default() {
            return Err(format!("nothing is asked for; {FORM}"));
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

/// Absent parameters of gemodel are netem's: `r` is `100% - p`, everything is lost in the bad state, and
/// nothing in the good one.
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

/// A path that does so, with the random numbers of one run.
#[derive(Clone, Debug)]
pub struct Impairment {
    netem: Netem,
    random: SplitMix64,
    /// True in Gilbert and Elliott's bad state.
    bad: bool,
    /// Packets delayed since the last that was not.
    delayed: u32,
    /// Arrival of the last delayed packet, in ns.
    last: u64,
}

impl Impairment {
    /// A path that has seen no packet.
    pub fn new(netem: Netem, seed: u64) -> Self {
        Self {
            netem,
            random: SplitMix64::new(seed),
            bad: false,
            delayed: 0,
            last: 0,
        }
    }

    /// Arrival of a packet that would arrive at `at` without the path, in ns; `None` if it is lost. Calls
    /// are in order of `at`. Only where [`reorders`](Self::reorders) holds may a time be less than
    /// the one before.
    pub fn pass(&mut self, at: u64) -> Option<u64> {
        if self.loses() {
            return None;
        }
        let Some(delay) = self.netem.delay else {
            return Some(at);
        };
        if let Some(Reorder { probability, gap }) = self.netem.reorder {
            // As netem does: the counter first, then the dice.
            if self.delayed >= gap - 1 && self.happens(probability) {
                self.delayed = 0;
                return Some(at);
            }
            self.delayed += 1;
        }
        self.last = self.last.max(at.saturating_add(self.draw(delay)));
        Some(self.last)
    }

    /// True if packets may overtake others.
    pub const fn reorders(&self) -> bool {
        self.netem.reorder.is_some()
    }

    fn loses(&mut self) -> bool {
        match self.netem.loss {
            None => false,
            Some(Loss::Random(probability)) => self.happens(probability),
            Some(Loss::Gemodel { p, r, bad, good }) => {
                // As netem does: the state changes first, the loss is the former state's.
                let (change, loss) = match self.bad {
                    true => (r, bad),
                    false => (p, good),
                };
                self.bad ^= self.happens(change);
                self.happens(loss)
            }
        }
    }

    fn draw(&mut self, delay: Delay) -> u64 {
        let (mean, jitter) = (delay.mean.as_nanos(), delay.jitter.as_nanos());
        if jitter == 0 {
            return mean;
        }
        let deviation = match delay.normal {
            false => 2.0 * self.uniform() - 1.0,
            true => {
                // Box and Muller (1958).
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
                radius * libm::cos(core::f64::consts::TAU * self.uniform())
            }
        };
        (mean as f64 + deviation * jitter as f64).max(0.0) as u64
    }

    fn happens(&mut self, probability: Percent) -> bool {
        self.uniform() < probability.fraction()
    }

    /// In 0..1.
    fn uniform(&mut self) -> f64 {
        fraction(self.random.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impairment(text: &str) -> Impairment {
        Impairment::new(text.parse().unwrap(), 7)
    }

    #[test]
    fn netem_reads_as_it_is_written() {
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
        assert!(error("loss 1% loss 2%").starts_with("loss stands twice"));
        assert!(error("delay").starts_with("delay without a time"));
        assert!(error("delay 10").starts_with("10: no unit"));
        assert!(error("delay 10ms 5ms 25%").starts_with("unknown word '25%'"));
        assert!(error("delay 1ms 1ms distribution pareto").contains("use uniform or normal"));
        assert!(error("delay 61s").starts_with("delay out of range"));
        assert!(error("reorder 1%").starts_with("reorder without a delay"));
        assert!(error("delay 1ms reorder 1% gap 0").starts_with("gap without a number"));
        assert!(error("corrupt 1%").starts_with("unknown word 'corrupt'"));
        assert!(error("").starts_with("nothing is asked for"));
    }

    #[test]
    fn losses_have_the_rate_and_the_bursts_of_their_model() {
        let count = 200_000u64;
        let lost = |text: &str| {
            let mut path = impairment(text);
            let lost: Vec<bool> = (0..count).map(|at| path.pass(at).is_none()).collect();
            let share = lost.iter().filter(|lost| **lost).count() as f64 / count as f64;
            let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            (share, share * count as f64 / bursts as f64)
        };
        let (share, burst) = lost("loss 5%");
        // Bursts of independent losses: 1 / (1 - 0.05).
        assert!((share - 0.05).abs() < 0.003, "{share}");
        assert!((burst - 1.0 / 0.95).abs() < 0.02, "{burst}");
        // In the bad state p / (p + r) = 1 / 11 of the time, 10 packets at a time.
        let (share, burst) = lost("loss gemodel 1% 10%");
        assert!((share - 1.0 / 11.0).abs() < 0.005, "{share}");
        assert!((burst - 10.0).abs() < 0.5, "{burst}");
        let (share, _) = lost("loss gemodel 1% 10% 50% 2%");
        assert!(
            (share - (0.5 + 10.0 * 0.02) / 11.0).abs() < 0.005,
            "{share}"
        );
    }

    #[test]
    fn jitter_keeps_the_order_and_has_its_mean_and_deviation() {
        for (text, deviation) in [
            ("delay 10ms 3ms", 3.0 / 3f64.sqrt()),
            ("delay 10ms 2ms distribution normal", 2.0),
        ] {
            let mut path = impairment(text);
            // A second apart: none waits for the one before.
            let delays: Vec<f64> = (0..50_000u64)
                .map(|n| n * 1_000_000_000)
                .map(|at| (path.pass(at).unwrap() - at) as f64 / 1e6)
                .collect();
            let mean = delays.iter().sum::<f64>() / delays.len() as f64;
            let squares: f64 = delays.iter().map(|d| (d - mean) * (d - mean)).sum();
            let seen = (squares / delays.len() as f64).sqrt();
            assert!((mean - 10.0).abs() < 0.05, "{text}: {mean}");
            assert!((seen - deviation).abs() < 0.05, "{text}: {seen}");
            let close = (60_000_000..70_000_000u64).map(|n| n * 1_000_000);
            let times: Vec<u64> = close
                .take(10_000)
                .map(|at| path.pass(at).unwrap())
                .collect();
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn of_each_gap_at_most_one_packet_overtakes_with_its_probability() {
        let early = |text: &str| {
            let mut path = impairment(text);
            let passes = (0..100_000u64).map(|n| n * 1000);
            let early = passes.map(|at| path.pass(at) == Some(at));
            early.collect::<Vec<bool>>()
        };
        let share = |early: &[bool]| early.iter().filter(|early| **early).count() as f64 / 1e5;
        let quarter = early("delay 10ms reorder 25%");
        assert!((share(&quarter) - 0.25).abs() < 0.01);
        let fifth = early("delay 10ms reorder 100% gap 5");
        assert!(
            fifth
                .chunks(5)
                .all(|five| five == [false, false, false, false, true])
        );
        // Four are delayed, then each is early with 50 %: one of 4 + 2.
        let sixth = share(&early("delay 10ms reorder 50% gap 5"));
        assert!((sixth - 1.0 / 6.0).abs() < 0.005, "{sixth}");
    }

    #[test]
    fn a_seed_gives_the_same_path_and_another_another() {
        let passes = |seed| {
            let netem = "loss 30% delay 10ms 3ms".parse().unwrap();
            let mut path = Impairment::new(netem, seed);
            (0..100u64).map(|at| path.pass(at)).collect::<Vec<_>>()
        };
        assert_eq!(passes(1), passes(1));
        assert_ne!(passes(1), passes(2));
    }
}
