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

/// If no name is similar, an error lists all known names, up to this number.
const FEW: usize = 8;

/// Returns the end of an error about an unknown name: at most three similar names, or all names if there are few.
pub fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    suggestion_of(name, known, "--help")
}

/// Like [`suggestion`], with the list of names from `list`.
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

/// Returns at most three known names similar to an unknown name. Names with an equal start come first.
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

/// Number of characters to insert, remove or replace (Levenshtein); ignores case, and treats `_` as `-`.
fn distance(one: &str, other: &str) -> usize {
    let same = |c: char| match c {
        '_' => '-',
        c => c.to_ascii_lowercase(),
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
        let known = [
            "fq_codel", "codel", "fq", "red", "acq", "aq", "asymq", "sad", "wrr",
        ];
        for (name, expected) in [
            ("fqcodel", "; did you mean `fq_codel` or `codel`?"),
            ("FQ-CoDel", "; did you mean `fq_codel`?"),
            ("asymk", "; did you mean `asymq`?"),
            ("nothing-like-it", "; --help lists all"),
            ("q", "; did you mean `aq` or `fq`?"),
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
