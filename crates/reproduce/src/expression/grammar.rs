//! The grammar of expressions and conditions.
//!
//! ```text
//! condition = ("rising" | "falling") sum [tolerance] | sum ("=" | ">" | "<") sum [tolerance]
//! tolerance = "within" number ("of" number | "as" "printed" number)
//! sum       = value {("+" | "-" | "*" | "/") value}, * and / first
//! value     = number | name | "(" sum ")" | function "(" sum {"," sum} ")"
//! ```
//!
//! Spaces separate all words, because names contain `-` and `/`.

use super::{Basis, Function, Node, Operator, Relation, Tolerance};
use winnow::combinator::{Infix, alt, eof, expression, opt, peek, preceded, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location};
use winnow::token::{take_till, take_while};

/// An expression or condition that does not follow the grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (character {character} of \"{text}\")")]
pub struct SyntaxError {
    /// What is wrong, and what to write instead.
    pub message: String,
    /// Where, in characters from 1.
    pub character: usize,
    text: String,
}

impl From<SyntaxError> for String {
    fn from(error: SyntaxError) -> Self {
        error.to_string()
    }
}

/// The parts of a condition: subject, relation, object and tolerance.
pub(super) type Parts = (Node, Relation, Option<Node>, Option<Tolerance>);

type Input<'a> = LocatingSlice<&'a str>;
type Parsed<T> = Result<T, ErrMode<Fault>>;

/// A message and the byte that it is about.
#[derive(Debug)]
struct Fault {
    message: String,
    at: usize,
}

impl ParserError<Input<'_>> for Fault {
    type Inner = Self;

    fn from_input(input: &Input<'_>) -> Self {
        Self {
            message: "invalid value".into(),
            at: input.current_token_start(),
        }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

/// Parses an expression.
pub(super) fn parse_expression(text: &str) -> Result<Node, SyntaxError> {
    parse(text, sum)
}

/// Parses a condition.
pub(super) fn parse_condition(text: &str) -> Result<Parts, SyntaxError> {
    parse(text, condition)
}

fn parse<'a, T>(
    text: &'a str,
    rule: impl FnMut(&mut Input<'a>) -> Parsed<T>,
) -> Result<T, SyntaxError> {
    let mut input = LocatingSlice::new(text);
    let parsed = preceded(space, rule)
        .parse_next(&mut input)
        .and_then(|parsed| end(&mut input).map(|()| parsed));
    parsed.map_err(|error| {
        let Fault { message, at } = match error {
            ErrMode::Backtrack(fault) | ErrMode::Cut(fault) => fault,
            ErrMode::Incomplete(_) => Fault::from_input(&input),
        };
        SyntaxError {
            message,
            character: 1 + text[..at].chars().count(),
            text: text.to_owned(),
        }
    })
}

fn condition(input: &mut Input<'_>) -> Parsed<Parts> {
    let trend = alt((
        symbol("rising").value(Relation::Rising),
        symbol("falling").value(Relation::Falling),
    ));
    let trend = opt(trend).parse_next(input)?;
    let subject = sum(input)?;
    let (relation, object) = match trend {
        Some(trend) => (trend, None),
        None => (relation(input)?, Some(sum(input)?)),
    };
    let tolerance = opt(preceded(symbol("within"), tolerance)).parse_next(input)?;
    Ok((subject, relation, object, tolerance))
}

fn relation(input: &mut Input<'_>) -> Parsed<Relation> {
    let relation = alt((
        symbol("=").value(Relation::Equal),
        symbol(">").value(Relation::Above),
        symbol("<").value(Relation::Below),
    ));
    match opt(relation).parse_next(input)? {
        Some(relation) => Ok(relation),
        None => expected(input, "=, > or <"),
    }
}

fn tolerance(input: &mut Input<'_>) -> Parsed<Tolerance> {
    let within = size(input, "within", "within 0.03 of 0.2")?;
    let basis = opt(alt((symbol("of"), symbol("as")))).parse_next(input)?;
    let basis = match basis {
        None => Basis::Unstated,
        Some("of") => Basis::Effect(size(input, "of", "within 0.03 of 0.2")?),
        Some(_) => match opt(symbol("printed")).parse_next(input)? {
            Some(_) => Basis::Printed(size(input, "printed", "within 0.05 as printed 0.1")?),
            None => return expected(input, "printed"),
        },
    };
    Ok(Tolerance { within, basis })
}

/// A number that is not negative, after `word`.
fn size(input: &mut Input<'_>, after: &str, example: &str) -> Parsed<f64> {
    let at = input.current_token_start();
    let number = opt(word).parse_next(input)?;
    number
        .and_then(|word| word.parse().ok())
        .filter(|number: &f64| *number >= 0.0)
        .ok_or_else(|| fault(at, format!("{after} needs a number, like {example}")))
}

fn sum(input: &mut Input<'_>) -> Parsed<Node> {
    expression(value).infix(operator).parse_next(input)
}

fn operator<'a>(input: &mut Input<'a>) -> Parsed<Infix<Input<'a>, Node, ErrMode<Fault>>> {
    const SUM: i64 = 1;
    const PRODUCT: i64 = 2;
    match word(input)? {
        "+" => Ok(Infix::Left(SUM, |_, a, b| Ok(Operator::Add.of(a, b)))),
        "-" => Ok(Infix::Left(SUM, |_, a, b| Ok(Operator::Subtract.of(a, b)))),
        "*" => Ok(Infix::Left(PRODUCT, |_, a, b| {
            Ok(Operator::Multiply.of(a, b))
        })),
        "/" => Ok(Infix::Left(
            PRODUCT,
            |_, a, b| Ok(Operator::Divide.of(a, b)),
        )),
        _ => Err(ErrMode::from_input(input)),
    }
}

fn value(input: &mut Input<'_>) -> Parsed<Node> {
    let at = input.current_token_start();
    let Some(found) = opt(word).parse_next(input)? else {
        return expected(input, "a value");
    };
    if found == "(" {
        let inner = sum(input)?;
        return close(input).map(|()| inner);
    }
    if opt(symbol("(")).parse_next(input)?.is_some() {
        return call(input, found, at);
    }
    if let Ok(number) = found.parse() {
        return Ok(Node::Number(number));
    }
    if found.contains(['(', ')', ',']) {
        let message =
            format!("{found}: put spaces around what stands in parentheses, like max( a )");
        return Err(fault(at, message));
    }
    if found.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok(Node::Name(found.to_owned()));
    }
    Err(fault(at, format!("{found} where a value was expected")))
}

/// The arguments of the function `name`, which stands at `at`.
fn call(input: &mut Input<'_>, name: &str, at: usize) -> Parsed<Node> {
    let (function, count) = Function::named(name).ok_or_else(|| {
        let names = Function::names().join(", ");
        fault(at, format!("unknown function {name}; use {names}"))
    })?;
    let mut arguments = vec![sum(input)?];
    while arguments.len() < count {
        if opt(symbol(",")).parse_next(input)?.is_none() {
            let message = format!("{name} needs {count} values, separated by a comma");
            return Err(fault(input.current_token_start(), message));
        }
        arguments.push(sum(input)?);
    }
    close(input)?;
    Ok(Node::Call(function, arguments))
}

fn close(input: &mut Input<'_>) -> Parsed<()> {
    match opt(symbol(")")).parse_next(input)? {
        Some(_) => Ok(()),
        None => expected(input, ")"),
    }
}

fn end(input: &mut Input<'_>) -> Parsed<()> {
    match opt(eof).parse_next(input)? {
        Some(_) => Ok(()),
        None => expected(input, "the end"),
    }
}

/// The word `text`.
fn symbol<'a>(text: &'static str) -> impl Parser<Input<'a>, &'a str, ErrMode<Fault>> {
    word.verify(move |word: &str| word == text)
}

/// A word and the space after it. The parenthesis of a function may touch its name.
fn word<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    let blank = char::is_whitespace;
    let name = take_till(1.., |c: char| c.is_whitespace() || c == '(');
    let parenthesis = ('(', alt((take_while(1.., blank).void(), eof.void())));
    let word = alt((terminated(name, peek(parenthesis)), take_till(1.., blank)));
    terminated(word, space).parse_next(input)
}

fn space(input: &mut Input<'_>) -> Parsed<()> {
    take_while(0.., char::is_whitespace)
        .void()
        .parse_next(input)
}

/// Fails because the next word is not what the grammar wants there.
fn expected<T>(input: &mut Input<'_>, wanted: &str) -> Parsed<T> {
    let at = input.current_token_start();
    let found = opt(word).parse_next(input)?.unwrap_or("the end");
    Err(fault(at, format!("{found} where {wanted} was expected")))
}

/// An error after which no other rule is tried.
fn fault(at: usize, message: String) -> ErrMode<Fault> {
    ErrMode::Cut(Fault { message, at })
}
