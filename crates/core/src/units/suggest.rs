//! Suggestions of names in errors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Joins words: `fifo or af`, `a, b or c`.
pub fn either<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, [])) => (*last).into(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Maximum number of known names that an error lists if none of them is similar.
const FEW: usize = 8;

/// Returns the end of an error about an unknown name: at most three similar names, or all names if there are few.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    suggestion_of(name, known, "--help")
}

/// Like [`suggestion`], for names that the command `list` prints.
pub fn suggestion_of<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    list: &str,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("; did you mean {nearest}?"),
        None if (1..=FEW).contains(&known.len()) => format!("; use {}", either(&known)),
        None => format!("; {list} lists all"),
    }
}

/// Returns at most three known names similar to an unknown name. Names that begin like the unknown name come first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let length = name.chars().count();
    let max = length.div_ceil(3);
    let other_end = |known: &str| {
        let same = name.bytes().zip(known.bytes()).take_while(|(a, b)| a == b);
        name.len() - same.count()
    };
    let known = known
        .into_iter()
        .filter(|known| known.len() + max >= length);
    let near = known.map(|known| (distance(name, known), other_end(known), known));
    let mut near: Vec<_> = near.filter(|(distance, ..)| *distance <= max).collect();
    near.sort_unstable();
    near.dedup();
    let (least, ..) = *near.first()?;
    let near = near.iter().filter(|(distance, ..)| *distance <= least + 1);
    let near = near.take(3).map(|(.., known)| format!("`{known}`"));
    Some(either(&near.collect::<Vec<_>>()))
}

/// Number of characters to insert, remove or replace, or of neighbours to swap (optimal string alignment). Ignores
/// case, and treats `_` as `-`.
fn distance(one: &str, other: &str) -> usize {
    let letters = |word: &str| -> Vec<char> {
        let same = word.chars().map(|c| if c == '_' { '-' } else { c });
        same.map(|c| c.to_ascii_lowercase()).collect()
    };
    let (one, other) = (letters(one), letters(other));
    // Distances of the prefixes of `one`, one character longer in each row, to each prefix of `other`.
    let mut rows: Vec<Vec<usize>> = alloc::vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = alloc::vec![i];
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j].min(row[j - 1]) + 1);
            if i > 1 && j > 1 && one[i - 2] == other[j - 1] && one[i - 1] == other[j - 2] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_suggested() {
        let known = [
            "fq_codel", "codel", "fq", "red", "acq", "aq", "asymq", "sad", "wrr",
        ];
        for (name, expected) in [
            ("fqcodel", "; did you mean `fq_codel` or `codel`?"),
            ("FQ-CoDel", "; did you mean `fq_codel`?"),
            ("asymk", "; did you mean `asymq`?"),
            ("nothing-like-it", "; --help lists all"),
            ("q", "; did you mean `aq` or `fq`?"),
            ("rde", "; did you mean `red`?"),
            ("", "; --help lists all"),
        ] {
            assert_eq!(suggestion(name, known), expected, "{name}");
        }
        assert_eq!(suggestion("x", ["red", "sad"]), "; use red or sad");
        assert_eq!(
            ["kitten", "sitting", "", "a"].map(|word| distance("kitten", word)),
            [0, 3, 6, 6]
        );
        assert_eq!(distance("fq-codel", "FQ_Codel"), 0);
    }
}
