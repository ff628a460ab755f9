//! The grammar of expressions and conditions.
//!
//! ```text
//! condition = ("rising" | "falling") sum [tolerance] | sum ("=" | ">" | "<") sum [tolerance]
//! tolerance = "within" number ("of" number | "as" "printed" number)
//! sum       = product {("+" | "-") product}
//! product   = value {("*" | "/") value}
//! value     = number | name | "(" sum ")" | function "(" sum {"," sum} ")"
//! ```
//!
//! All words are separated by spaces, because names contain `-` and `/`.

use super::relation::{Basis, Relation, Tolerance};
use super::{FUNCTIONS, Node, OPERATORS};

/// The parts of a condition: subject, relation, object and tolerance.
pub(super) type Parts = (Node, Relation, Option<Node>, Option<Tolerance>);

/// A parsed part, or an error with its position and a valid form.
type Parsed<T> = Result<T, String>;

pub(super) fn parse_expression(text: &str) -> Parsed<Node> {
    let mut words = Words::of(text);
    let node = words.sum()?;
    words.end().map(|()| node)
}

pub(super) fn parse_condition(text: &str) -> Parsed<Parts> {
    let mut words = Words::of(text);
    let trend = words.one_of(&[("rising", Relation::Rising), ("falling", Relation::Falling)]);
    let subject = words.sum()?;
    let (relation, object) = match trend {
        Some(trend) => (trend, None),
        None => (words.relation()?, Some(words.sum()?)),
    };
    let tolerance = match words.take("within") {
        true => Some(words.tolerance()?),
        false => None,
    };
    words.end().map(|()| (subject, relation, object, tolerance))
}

/// A text, and the rest that has not been parsed yet.
struct Words<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let rest = text.trim_start();
        Self { text, rest }
    }

    /// Returns the next word and the rest. A function's parenthesis may follow its name without a space.
    fn split(&self) -> Option<(&'a str, &'a str)> {
        let end = self
            .rest
            .find(char::is_whitespace)
            .unwrap_or(self.rest.len());
        let name = self.rest[..end].strip_suffix('(');
        let name = name.filter(|name| !name.is_empty() && !name.contains('('));
        let (word, rest) = self.rest.split_at(name.map_or(end, str::len));
        (!word.is_empty()).then(|| (word, rest.trim_start()))
    }

    fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = self.split()?;
        self.rest = rest;
        Some(word)
    }

    /// Consumes the next word if it is in `words`, and returns the value of the word.
    fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        let (next, rest) = self.split()?;
        let (_, value) = words.iter().find(|(word, _)| *word == next)?;
        self.rest = rest;
        Some(*value)
    }

    fn take(&mut self, word: &str) -> bool {
        self.one_of(&[(word, ())]).is_some()
    }

    /// Returns an error at the position of `rest`.
    fn fault(&self, rest: &str, message: &str) -> String {
        let text = self.text;
        let character = 1 + text[..text.len() - rest.len()].chars().count();
        format!("{message} (character {character} of \"{text}\")")
    }

    /// Error for a word that the grammar does not allow at this position.
    fn expected<T>(&self, wanted: &str) -> Parsed<T> {
        let found = self.split().map_or("the end", |(word, _)| word);
        Err(self.fault(self.rest, &format!("{found} where {wanted} was expected")))
    }

    fn end(&self) -> Parsed<()> {
        match self.rest {
            "" => Ok(()),
            _ => self.expected("the end"),
        }
    }

    fn close(&mut self) -> Parsed<()> {
        match self.take(")") {
            true => Ok(()),
            false => self.expected(")"),
        }
    }

    fn relation(&mut self) -> Parsed<Relation> {
        let known = [
            ("=", Relation::Equal),
            (">", Relation::Above),
            ("<", Relation::Below),
        ];
        self.one_of(&known)
            .map_or_else(|| self.expected("=, > or <"), Ok)
    }

    fn tolerance(&mut self) -> Parsed<Tolerance> {
        let within = self.size("within", "within 0.03 of 0.2")?;
        let basis = if self.take("of") {
            Basis::Effect(self.size("of", "within 0.03 of 0.2")?)
        } else if !self.take("as") {
            Basis::Unstated
        } else if self.take("printed") {
            Basis::Printed(self.size("printed", "within 0.05 as printed 0.1")?)
        } else {
            return self.expected("printed");
        };
        Ok(Tolerance { within, basis })
    }

    /// Reads a non-negative number after the word `after`.
    fn size(&mut self, after: &str, example: &str) -> Parsed<f64> {
        let at = self.rest;
        let number = self.next().and_then(|word| word.parse().ok());
        number
            .filter(|number: &f64| *number >= 0.0)
            .ok_or_else(|| self.fault(at, &format!("{after} needs a number; write {example}")))
    }

    fn sum(&mut self) -> Parsed<Node> {
        let mut sum = self.product()?;
        let [plus, minus, ..] = &OPERATORS;
        while let Some(sign) = self.one_of(&[("+", plus), ("-", minus)]) {
            sum = Node::Call(sign, vec![sum, self.product()?]);
        }
        Ok(sum)
    }

    fn product(&mut self) -> Parsed<Node> {
        let mut product = self.value()?;
        let [.., times, over] = &OPERATORS;
        while let Some(sign) = self.one_of(&[("*", times), ("/", over)]) {
            product = Node::Call(sign, vec![product, self.value()?]);
        }
        Ok(product)
    }

    fn value(&mut self) -> Parsed<Node> {
        let at = self.rest;
        let Some(found) = self.next() else {
            return self.expected("a value");
        };
        if found == "(" {
            let inner = self.sum()?;
            return self.close().map(|()| inner);
        }
        if self.take("(") {
            return self.call(found, at);
        }
        if let Ok(number) = found.parse() {
            return Ok(Node::Number(number));
        }
        if found.contains(['(', ')', ',']) {
            let advice = "put spaces inside the parentheses: max( a )";
            return Err(self.fault(at, &format!("{found}: {advice}")));
        }
        match found.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => Ok(Node::Name(found.to_owned())),
            false => Err(self.fault(at, &format!("{found} where a value was expected"))),
        }
    }

    /// Parses the arguments of the function `name`. `at` is the text from the name on, for error messages.
    fn call(&mut self, name: &str, at: &str) -> Parsed<Node> {
        let known = FUNCTIONS.iter().find(|known| known.name == name);
        let function = known.ok_or_else(|| {
            let names = FUNCTIONS
                .each_ref()
                .map(|function| function.name)
                .join(", ");
            self.fault(at, &format!("unknown function {name}; use {names}"))
        })?;
        let count = function.arity;
        let mut arguments = vec![self.sum()?];
        while arguments.len() < count {
            if !self.take(",") {
                let message = format!("{name} needs {count} values, separated by a comma");
                return Err(self.fault(self.rest, &message));
            }
            arguments.push(self.sum()?);
        }
        self.close().map(|()| Node::Call(function, arguments))
    }
}
