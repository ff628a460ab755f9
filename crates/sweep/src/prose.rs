//! Sentences that contain measured numbers: `AQ fills { aq:down@10mbit } of the downlink`.

/// Part of a sentence: text, or the expression in braces.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    Words(&'a str),
    Value(&'a str),
}

/// Returns the parts of a sentence: text and expressions in turn.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((words, tail)) = rest.split_once('{') {
        let (value, after) = tail.split_once('}').unwrap_or((tail, ""));
        parts.push(Part::Words(words));
        parts.push(Part::Value(value.trim()));
        rest = after;
    }
    parts.push(Part::Words(rest));
    parts
}

pub(crate) fn values(text: &str) -> impl Iterator<Item = &str> {
    parts(text).into_iter().filter_map(|part| match part {
        Part::Value(value) => Some(value),
        Part::Words(_) => None,
    })
}

/// Removes sentences that contain values.
pub(crate) fn without_values(text: &str) -> String {
    let sentences: Vec<&str> = text
        .split_inclusive(". ")
        .filter(|sentence| values(sentence).next().is_none())
        .collect();
    sentences.concat().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_hold_expressions() {
        assert_eq!(
            parts("from {a:b} to { max( c:d ) }."),
            [
                Part::Words("from "),
                Part::Value("a:b"),
                Part::Words(" to "),
                Part::Value("max( c:d )"),
                Part::Words(".")
            ]
        );
    }

    #[test]
    fn sentences_with_values_can_be_left_out() {
        let text = "The RTTs are ours. At 50 packets it is { a:b@50p }. Units are SI.";
        assert_eq!(without_values(text), "The RTTs are ours. Units are SI.");
        assert_eq!(without_values("It is { a:b }."), "");
    }
}
