//! Expressions and conditions of measures and claims: `max( aq:down - droptail:down ) > 0.15 within 0.05`.
//!
//! Spaces separate words. A name is a metric of a run (`down.utilization`) where a measure is
//! defined, or `series:measure`, `series:measure@x`, `series:measure@x..y` in a claim. A value is a
//! list, one number per point of the sweep; a single number combines with every point.

mod condition;
mod grammar;

pub use condition::{Condition, Relation};
pub use grammar::SyntaxError;

/// A formula over named values.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    Call(Function, Vec<Node>),
    Binary(Operator, Box<(Node, Node)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Max,
    Min,
    Mean,
    First,
    Last,
    Least,
    Atm,
    AtmLlc,
}

const FUNCTIONS: [(&str, Function, usize); 8] = [
    ("max", Function::Max, 1),
    ("min", Function::Min, 1),
    ("mean", Function::Mean, 1),
    ("first", Function::First, 1),
    ("last", Function::Last, 1),
    ("least", Function::Least, 2),
    ("atm", Function::Atm, 1),
    ("atm-llc", Function::AtmLlc, 1),
];

/// Bytes of ATM cells that carry a packet with an AAL5 trailer of 8 bytes and `header` bytes before it.
fn cells(packet: f64, header: f64) -> f64 {
    53.0 * ((packet + header + 8.0) / 48.0).ceil()
}

impl Operator {
    /// The operation on two values.
    fn of(self, left: Node, right: Node) -> Node {
        Node::Binary(self, Box::new((left, right)))
    }
}

impl Function {
    /// The function of this name, and how many arguments it takes.
    fn named(name: &str) -> Option<(Self, usize)> {
        let known = FUNCTIONS.into_iter().find(|(known, ..)| *known == name);
        known.map(|(_, function, count)| (function, count))
    }

    fn names() -> [&'static str; FUNCTIONS.len()] {
        FUNCTIONS.map(|(name, ..)| name)
    }

    fn apply(self, arguments: &[Vec<f64>]) -> Option<Vec<f64>> {
        let list = arguments.first()?;
        let fold = |start, f: fn(f64, f64) -> f64| Some(vec![list.iter().copied().fold(start, f)]);
        match self {
            Self::Max => fold(f64::NEG_INFINITY, f64::max),
            Self::Min => fold(f64::INFINITY, f64::min),
            Self::Mean => Some(vec![list.iter().sum::<f64>() / list.len() as f64]),
            Self::First => list.first().map(|&x| vec![x]),
            Self::Last => list.last().map(|&x| vec![x]),
            Self::Least => pairwise(list, arguments.get(1)?, f64::min),
            Self::Atm => Some(list.iter().map(|&x| cells(x, 0.0)).collect()),
            Self::AtmLlc => Some(list.iter().map(|&x| cells(x, 8.0)).collect()),
        }
    }
}

/// `f` of each pair; a list of one number combines with every number of the other.
fn pairwise(left: &[f64], right: &[f64], f: impl Fn(f64, f64) -> f64) -> Option<Vec<f64>> {
    match (left, right) {
        (left, right) if left.len() == right.len() => {
            Some(left.iter().zip(right).map(|(&a, &b)| f(a, b)).collect())
        }
        (left, &[b]) => Some(left.iter().map(|&a| f(a, b)).collect()),
        (&[a], right) => Some(right.iter().map(|&b| f(a, b)).collect()),
        _ => None,
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// It does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        grammar::parse_expression(text).map(Self)
    }

    /// The names it uses.
    pub fn names(&self) -> Vec<&str> {
        fn collect<'a>(node: &'a Node, names: &mut Vec<&'a str>) {
            match node {
                Node::Number(_) => {}
                Node::Name(name) => names.push(name),
                Node::Call(_, arguments) => arguments.iter().for_each(|a| collect(a, names)),
                Node::Binary(_, pair) => {
                    collect(&pair.0, names);
                    collect(&pair.1, names);
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.0, &mut names);
        names
    }

    /// Evaluates it; `None` if `lookup` lacks a name or lists differ in length.
    pub fn value(&self, lookup: &dyn Fn(&str) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
        fn value(node: &Node, lookup: &dyn Fn(&str) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
            match node {
                Node::Number(number) => Some(vec![*number]),
                Node::Name(name) => lookup(name),
                Node::Call(function, arguments) => {
                    let values: Option<Vec<_>> =
                        arguments.iter().map(|a| value(a, lookup)).collect();
                    function.apply(&values?)
                }
                Node::Binary(operator, pair) => {
                    let (left, right) = (value(&pair.0, lookup)?, value(&pair.1, lookup)?);
                    pairwise(&left, &right, |a, b| match operator {
                        Operator::Add => a + b,
                        Operator::Subtract => a - b,
                        Operator::Multiply => a * b,
                        Operator::Divide => a / b,
                    })
                }
            }
        }
        value(&self.0, lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<Vec<f64>> {
        Expression::parse(text).unwrap().value(&|name| match name {
            "one" => Some(vec![1.0]),
            "rise" => Some(vec![1.0, 2.0, 4.0]),
            _ => None,
        })
    }

    #[test]
    fn products_bind_closer_than_sums_and_a_number_combines_with_every_point() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2").unwrap(), [5.0]);
        assert_eq!(value("( 1 + 2 ) * rise").unwrap(), [3.0, 6.0, 12.0]);
        assert_eq!(value("max( rise - one ) / last( rise )").unwrap(), [0.75]);
        assert_eq!(value("least( rise , 2 )").unwrap(), [1.0, 2.0, 2.0]);
        assert_eq!(value("stranger + 1"), None);
    }

    #[test]
    fn a_packet_fills_whole_atm_cells() {
        // 40 bytes and the trailer fill one cell; an LLC header makes it two.
        assert_eq!(value("atm( 40 )").unwrap(), [53.0]);
        assert_eq!(value("atm-llc( 40 )").unwrap(), [106.0]);
    }
}
