//! Which settings a search tries: a low-discrepancy sequence, and random ones beside it.

use super::{Free, MAX_FREE, Setting};
use crate::fnv::fnv;
use asymq_core::decide::random::SplitMix64;
use std::collections::HashSet;

const BASES: [u64; MAX_FREE] = [2, 3, 5, 7, 11, 13];

/// Up to `count` different settings that fill the space evenly: Halton's sequence.
pub(super) fn halton(free: &[Free], count: usize) -> Vec<Setting> {
    let point = |index| {
        let bases = BASES[..free.len()].iter();
        bases.map(|&base| radical_inverse(index, base)).collect()
    };
    // The first points of large bases lie on a line.
    distinct(free, count, (20..).map(point))
}

/// Up to `count` different settings drawn at random, the same ones for each paper every time.
pub(super) fn random(free: &[Free], paper: &str, count: usize) -> Vec<Setting> {
    let mut random = SplitMix64::new(fnv(paper.bytes()));
    let mut unit = || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    let points = std::iter::repeat_with(|| free.iter().map(|_| unit()).collect());
    distinct(free, count, points)
}

/// The settings that differ from `setting` in one value.
pub(super) fn neighbours(free: &[Free], setting: &Setting) -> Vec<Setting> {
    let of_one = |one: &Free| {
        let others = one
            .labels()
            .filter(|label| setting.get(&one.name) != Some(label));
        let with = |label| {
            let mut changed = setting.clone();
            changed.insert(one.name.clone(), label);
            changed
        };
        others.map(with).collect::<Vec<_>>()
    };
    free.iter().flat_map(of_one).collect()
}

/// The settings at points of the unit cube, each once.
fn distinct(free: &[Free], count: usize, points: impl Iterator<Item = Vec<f64>>) -> Vec<Setting> {
    let all: usize = free.iter().map(|free| free.labels().count()).product();
    let (mut seen, mut settings) = (HashSet::new(), Vec::new());
    for point in points {
        if settings.len() >= count.min(all) {
            break;
        }
        let value = |(free, at): (&Free, f64)| {
            let labels: Vec<String> = free.labels().collect();
            let index = (at * labels.len() as f64) as usize;
            (free.name.clone(), labels[index].clone())
        };
        let setting: Setting = free.iter().zip(point).map(value).collect();
        if seen.insert(setting.clone()) {
            settings.push(setting);
        }
    }
    settings
}

/// The digits of `index` in this base, mirrored at the point: 0 to 1.
fn radical_inverse(mut index: u64, base: u64) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0);
    while index > 0 {
        digit /= base as f64;
        value += digit * (index % base) as f64;
        index /= base;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free() -> Vec<Free> {
        let one = |name: &str, values: &str| {
            format!(
                "[[free]]\nname = \"{name}\"\nkey = \"rtt\"\nvalues = {values}\nopen = \"\"\nprior = \"\"\n"
            )
        };
        Free::read_all(&(one("a", "[1, 2, 3]") + &one("b", "[1, 2, 3, 4]"))).unwrap()
    }

    #[test]
    fn a_design_as_large_as_the_space_has_every_setting_once() {
        for design in [halton(&free(), 99), random(&free(), "aq", 99)] {
            let different: HashSet<_> = design.iter().collect();
            assert_eq!((design.len(), different.len()), (12, 12));
        }
    }

    #[test]
    fn a_neighbour_differs_in_one_value() {
        let setting = halton(&free(), 1).remove(0);
        let around = neighbours(&free(), &setting);
        assert_eq!(around.len(), 2 + 3);
        for one in around {
            assert_eq!(one.iter().filter(|(k, v)| setting[*k] != **v).count(), 1);
        }
    }

    #[test]
    fn half_of_a_design_has_every_value() {
        let design = halton(&free(), 6);
        for value in ["1", "2", "3"] {
            assert!(design.iter().any(|setting| setting["a"] == value));
        }
    }
}
