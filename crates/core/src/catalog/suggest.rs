//! Suggestions for names that are unknown.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The end of an error about an unknown name: at most three known ones like it, or where all are listed.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let max = name.chars().count().div_ceil(3);
    let near = known
        .into_iter()
        .map(|known| (distance(name, known), known));
    let mut near: Vec<_> = near.filter(|(distance, _)| *distance <= max).collect();
    near.sort_unstable();
    near.dedup();
    let near: Vec<_> = near.iter().map(|(_, known)| format!("`{known}`")).collect();
    match &near[..] {
        [] => "; --help lists all".into(),
        [one] => format!("; did you mean {one}?"),
        [one, two] => format!("; did you mean {one} or {two}?"),
        [one, two, three, ..] => format!("; did you mean {one}, {two} or {three}?"),
    }
}

/// Number of characters to insert, remove or replace (Levenshtein); ignores case, and takes `_` for `-`.
fn distance(one: &str, other: &str) -> usize {
    let same = |c: char| {
        if c == '_' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    };
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (line, a) in one.chars().map(same).enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], line + 1);
        let mut left = line + 1;
        for (above, b) in row.iter_mut().skip(1).zip(other.chars().map(same)) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *above;
            left = replaced.min(left.min(diagonal) + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or(one.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_suggested() {
        let known = ["fq_codel", "codel", "fq", "red", "acq", "aq", "asymq"];
        for (name, expected) in [
            ("fqcodel", "; did you mean `fq_codel` or `codel`?"),
            ("FQ-CoDel", "; did you mean `fq_codel` or `codel`?"),
            ("asymk", "; did you mean `asymq`?"),
            ("nothing-like-it", "; --help lists all"),
            ("q", "; did you mean `aq` or `fq`?"),
            ("", "; --help lists all"),
        ] {
            assert_eq!(suggestion(name, known), expected, "{name}");
        }
        assert_eq!(
            ["kitten", "sitting", "", "a"].map(|word| distance("kitten", word)),
            [0, 3, 6, 6]
        );
    }
}
