//! Random configurations of a catalog. The numbers come from a random generator, a fuzzer's bytes, or proptest.

use asymq_core::catalog::{Catalog, Config, Kind, Params, Place, Role, known_parameters, resolve};
use asymq_core::units::{Limit, Rate};

/// Function that returns a number below a positive bound. 0 selects the first or most common choice.
pub type Source<'a> = dyn FnMut(usize) -> usize + 'a;

/// Makes a source from a list of 16-bit words. The source returns 0 after the end of the list.
pub fn from_words(words: impl IntoIterator<Item = u16>) -> impl FnMut(usize) -> usize {
    let mut words = words.into_iter();
    move |bound| usize::from(words.next().unwrap_or(0)) % bound.max(1)
}

/// Returns a discipline of the catalog with random parts and parameters, at a random place.
///
/// # Panics
/// The catalog does not resolve the values of its own entries.
pub fn config(catalog: &impl Catalog, source: &mut Source<'_>) -> Config {
    let discipline = pick(&catalog.of_role(Role::Qdisc), source).name;
    let mut given = Params::new();
    for role in Role::PARTS {
        if source(5) >= 3 {
            given.set(role.key(), pick(&catalog.of_role(role), source).name);
        }
    }
    for parameter in known_parameters(catalog) {
        let is_part = Role::PARTS.iter().any(|role| role.key() == parameter.name);
        if !is_part && source(3) == 2 {
            given.set(parameter.name, value(&parameter.kind, source));
        }
    }
    let place = Place {
        link: rate(source),
        reverse: Some(rate(source)),
        limit: limit(source),
    };
    let resolved = resolve(catalog, discipline, &given, &Params::new(), place);
    resolved.unwrap_or_else(|error| panic!("{discipline} with {given:?}: {error}"))
}

/// Returns a random valid value of a kind.
pub fn value(kind: &Kind, source: &mut Source<'_>) -> String {
    match kind {
        Kind::Rate => rate(source).to_string(),
        Kind::Time => pick(TIMES, source).to_string(),
        Kind::Period => pick(&TIMES[..TIMES.len() - 1], source).to_string(),
        Kind::Size(min, max) => {
            let between = min + source(1 << 16) as u64 % (max - min).saturating_add(1);
            let size = *pick(&[between, 40, 1500, *min, *max], source);
            format!("{}b", size.clamp(*min, *max))
        }
        Kind::Limit => limit(source).to_string(),
        Kind::Share => pick(SHARES, source).to_string(),
        Kind::Flag => pick(&["false", "true"], source).to_string(),
        Kind::Number(min, max) => {
            let between = min + (max - min) * source(1000) as f64 / 1000.0;
            let number: f64 = *pick(&[between, 1.0, 50.0, *min, *max], source);
            number.clamp(*min, *max).to_string()
        }
        Kind::Step(max) => match source(2) {
            0 => rate(source).to_string(),
            _ => value(&Kind::Number(0.0, *max), source),
        },
        Kind::Words(words) => pick(words, source).to_string(),
        Kind::Count(min, max) => {
            let between = min + source(1 << 16) as u32 % (max - min + 1);
            pick(&[between, *min, *max], source).to_string()
        }
        Kind::Either(choice) => match source(2) {
            0 => pick(choice.words, source).to_string(),
            _ => choice.label.to_owned() + &value(&choice.kind, source),
        },
        Kind::Part => panic!("a part is chosen by its role"),
    }
}

const TIMES: &[&str] = &[
    "100ms",
    "1ns",
    "10us",
    "5ms",
    "1s",
    "18446744073709551615ns",
    "0ns",
];

const SHARES: &[&str] = &[
    "0.5",
    "0.1",
    "0.27",
    "0.734",
    "0.9",
    "0.001",
    "0.999",
    "1e-9",
    "0.9999999",
];

fn pick<'a, T>(choices: &'a [T], source: &mut Source<'_>) -> &'a T {
    &choices[source(choices.len())]
}

fn rate(source: &mut Source<'_>) -> Rate {
    let bits = match source(5) {
        0 => 1_000_000,
        1 => 10_000_000,
        2 => 1_000 * (1 + source(1 << 16) as u64),
        3 => 1 << source(40),
        _ => *pick(&[1, 1_000_000_000_000], source),
    };
    Rate::from_bits_per_sec(bits).expect("within the range of rates")
}

/// Returns a random valid limit. Small limits are likely: they take effect, while large limits need memory.
fn limit(source: &mut Source<'_>) -> Limit {
    match source(16) {
        0..=5 => Limit::Packets(1 + source(60) as u32),
        6 => Limit::Packets(1),
        7 => Limit::Packets(2 + source(3000) as u32),
        8..=10 => Limit::Bytes(1 + source(4_000) as u64),
        11..=13 => Limit::Bytes(4_000 + source(60_000) as u64),
        14 => Limit::Bytes(1),
        _ => *pick(&[Limit::Packets(50_000), Limit::Bytes(1 << 32)], source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::catalog::Standard;
    use asymq_core::decide::random::SplitMix64;
    use std::collections::BTreeSet;

    #[test]
    fn every_parameter_that_is_more_than_one_text_gets_several_values() {
        let mut random = SplitMix64::new(1);
        let mut source = |bound: usize| (random.next() % bound as u64) as usize;
        for parameter in known_parameters(&Standard) {
            if Role::PARTS.iter().any(|role| role.key() == parameter.name) {
                continue;
            }
            let values: BTreeSet<String> = (0..200)
                .map(|_| value(&parameter.kind, &mut source))
                .collect();
            assert!(values.len() >= 2, "{}: {values:?}", parameter.name);
            for value in values {
                let checked = parameter.read(&value);
                assert!(checked.is_ok(), "{} {value}: {checked:?}", parameter.name);
            }
        }
    }

    #[test]
    fn every_discipline_and_every_part_is_chosen() {
        let mut random = SplitMix64::new(1);
        let mut source = |bound: usize| (random.next() % bound as u64) as usize;
        let mut chosen = BTreeSet::new();
        for _ in 0..2000 {
            let config = config(&Standard, &mut source);
            for role in Role::PARTS {
                let part = config.part(role).expect("a part").to_string();
                chosen.insert((role.key(), part));
            }
            chosen.insert((Role::Qdisc.key(), config.qdisc.to_string()));
        }
        for entry in Standard.entries() {
            let name = (entry.role.key(), entry.name.to_string());
            assert!(chosen.contains(&name), "{name:?}");
        }
    }
}
