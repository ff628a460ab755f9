//! Expressions and conditions of measures and claims: `max( aq:down - droptail:down ) > 0.15 within 0.05`.
//!
//! Spaces separate words. In the definition of a measure, a name is a metric of a run (`down.utilization`). In a
//! claim, a name is `series:measure`, `series:measure@x` or `series:measure@x..y`. A value is a list with one number
//! per point of the sweep. A single number combines with every point.

use asymq_core::control::model::{AckDemand, Amp, Capacities};
use asymq_core::decide::overhead::Overhead;
use asymq_scenario::mean;

mod condition;
mod grammar;
mod relation;
mod sample;

pub use condition::{Answer, Comparison, Condition, Range};
pub use relation::{Basis, Relation, Tolerance};
pub use sample::Sample;

/// A formula over named values.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Name(String),
    Call(&'static Function, Vec<Node>),
}

/// A function or operator with a fixed number of arguments.
#[derive(Debug)]
struct Function {
    name: &'static str,
    arity: usize,
    rule: Rule,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Method of evaluating a call.
#[derive(Debug)]
enum Rule {
    /// Reduces one list to a number; `None` for an empty list.
    Fold(fn(&[Sample]) -> Option<Sample>),
    /// Computes a number from one number of each list.
    Each(fn(&[f64]) -> f64),
}

static FUNCTIONS: [Function; 12] = [
    fold("max", |list| extreme(list, 1.0)),
    fold("min", |list| extreme(list, -1.0)),
    fold("mean", |list| {
        let points: Vec<_> = list.iter().collect();
        (!list.is_empty()).then(|| Sample::computed(&points, mean))
    }),
    fold("median", |list| {
        let mut sorted: Vec<_> = list.iter().collect();
        sorted.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        sorted.get(sorted.len() / 2).copied().cloned()
    }),
    fold("first", |list| list.first().cloned()),
    fold("last", |list| list.last().cloned()),
    each("least", 2, |of| of[0].min(of[1])),
    each("atm", 1, |of| {
        Overhead::AAL5.charge_len(of[0] as u32).into()
    }),
    each("atm-llc", 1, |of| {
        Overhead::AAL5_LLC.charge_len(of[0] as u32).into()
    }),
    // Data's share of the uplink by AQ's eq. 7: `eq7( up , down , ack , data )`.
    each("eq7", 4, eq7),
    // Normalized asymmetry: `k( up , down , ack , data )`.
    each("k", 4, |of| amp(of).asymmetry(&Overhead::default())),
    // The AMP model's bound in bit/s: `amp( up , down , ack , packet , m )`.
    each("amp", 5, |of| amp(of).throughput()),
];

static OPERATORS: [Function; 4] = [
    each("+", 2, |of| of[0] + of[1]),
    each("-", 2, |of| of[0] - of[1]),
    each("*", 2, |of| of[0] * of[1]),
    each("/", 2, |of| of[0] / of[1]),
];

const fn fold(name: &'static str, rule: fn(&[Sample]) -> Option<Sample>) -> Function {
    Function {
        name,
        arity: 1,
        rule: Rule::Fold(rule),
    }
}

const fn each(name: &'static str, arity: usize, rule: fn(&[f64]) -> f64) -> Function {
    Function {
        name,
        arity,
        rule: Rule::Each(rule),
    }
}

/// Returns the point with the largest or smallest mean, with all its runs.
fn extreme(list: &[Sample], sign: f64) -> Option<Sample> {
    let by_mean = |a: &&Sample, b: &&Sample| (sign * a.mean).total_cmp(&(sign * b.mean));
    list.iter().max_by(by_mean).cloned()
}

/// Applies the AMP model to `[up, down, ack, packet]` and M. In each direction, only one class uses the link.
fn amp(arguments: &[f64]) -> Amp {
    let at = |place: usize| arguments.get(place).copied().unwrap_or(1.0);
    Amp {
        capacities: Capacities {
            up: at(0),
            down: at(1),
        },
        ack_size: at(2) as u32,
        packet_size: at(3) as u32,
        packets_per_ack: at(4),
        reverse_share: 0.0,
        forward_share: 1.0,
    }
}

/// Data's share of the uplink by AQ's eq. 7; 0 if eq. 11 does not hold.
fn eq7(arguments: &[f64]) -> f64 {
    let link = amp(arguments);
    let demand = AckDemand::new(link.ack_size, link.packet_size, 1.0);
    let rates = link.capacities.full_rates(demand, demand);
    rates.map_or(0.0, |rates| rates.data_share())
}

/// Number of points when lists of these lengths are combined. A list with one number combines with every point; `None`
/// if other lengths differ.
fn points(lengths: impl IntoIterator<Item = usize>) -> Option<usize> {
    let mut longer = lengths.into_iter().filter(|length| *length != 1);
    let count = longer.next().unwrap_or(1);
    longer.all(|length| length == count).then_some(count)
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The text does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, String> {
        grammar::parse_expression(text).map(Self)
    }

    /// Returns the name, if the expression is only a name.
    pub fn as_name(&self) -> Option<&str> {
        match &self.0 {
            Node::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Names that occur in the expression.
    pub fn names(&self) -> Vec<&str> {
        fn collect<'a>(node: &'a Node, names: &mut Vec<&'a str>) {
            match node {
                Node::Number(_) => {}
                Node::Name(name) => names.push(name),
                Node::Call(_, arguments) => arguments.iter().for_each(|a| collect(a, names)),
            }
        }
        let mut names = Vec::new();
        collect(&self.0, &mut names);
        names
    }

    /// True if the expression reduces a list of points to one number.
    pub fn folds(&self) -> bool {
        fn folds(node: &Node) -> bool {
            match node {
                Node::Number(_) | Node::Name(_) => false,
                Node::Call(function, arguments) => {
                    matches!(function.rule, Rule::Fold(_)) || arguments.iter().any(folds)
                }
            }
        }
        folds(&self.0)
    }

    /// Evaluates the expression. Returns `None` if `lookup` does not find a name, or if lists differ in length.
    pub fn value(&self, lookup: &dyn Fn(&str) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
        let lookup = |name: &str| {
            let values = lookup(name)?;
            Some(values.into_iter().map(Sample::constant).collect())
        };
        let samples = self.samples(&lookup)?;
        Some(samples.iter().map(|sample| sample.mean).collect())
    }

    /// Evaluates the expression for the means and for each run.
    pub fn samples(&self, lookup: &dyn Fn(&str) -> Option<Vec<Sample>>) -> Option<Vec<Sample>> {
        fn samples(
            node: &Node,
            lookup: &dyn Fn(&str) -> Option<Vec<Sample>>,
        ) -> Option<Vec<Sample>> {
            match node {
                Node::Number(number) => Some(vec![Sample::constant(*number)]),
                Node::Name(name) => lookup(name),
                Node::Call(function, arguments) => {
                    let lists: Option<Vec<_>> =
                        arguments.iter().map(|a| samples(a, lookup)).collect();
                    let lists = lists?;
                    match function.rule {
                        Rule::Fold(fold) => Some(vec![fold(lists.first()?)?]),
                        Rule::Each(rule) => {
                            let count = points(lists.iter().map(Vec::len))?;
                            let point = |place| {
                                let at = lists.iter().map(|list| &list[place % list.len()]);
                                Sample::computed(&at.collect::<Vec<_>>(), rule)
                            };
                            Some((0..count).map(point).collect())
                        }
                    }
                }
            }
        }
        samples(&self.0, lookup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_a_maximum_is_that_of_the_point_with_the_largest_mean() {
        let lookup = |_: &str| {
            let points = [[1.0, 9.0], [6.0, 6.0]];
            Some(points.iter().map(|runs| Sample::of(runs)).collect())
        };
        let evaluate = |text: &str| Expression::parse(text).unwrap().samples(&lookup).unwrap();
        assert_eq!(evaluate("max( a )"), [Sample::of(&[6.0, 6.0])]);
        assert_eq!(evaluate("min( a ) + 1"), [Sample::of(&[2.0, 10.0])]);
        // Two values: the median is the larger one.
        assert_eq!(evaluate("median( a )"), [Sample::of(&[6.0, 6.0])]);
    }

    #[test]
    fn a_difference_is_taken_seed_by_seed_over_the_seeds_that_both_have() {
        let (long, short) = (Sample::of(&[1.0, 2.0, 30.0]), Sample::of(&[0.5, 1.5]));
        let difference = Sample::computed(&[&long, &short], |of| of[0] - of[1]);
        assert_eq!(difference, Sample::of(&[0.5, 0.5]));
    }

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
        assert_eq!(value("median( rise )").unwrap(), [2.0]);
        assert_eq!(value("least( rise , 2 )").unwrap(), [1.0, 2.0, 2.0]);
        assert_eq!(value("stranger + 1"), None);
    }

    #[test]
    fn a_packet_fills_whole_atm_cells() {
        // 40 bytes and the trailer fill one cell; with an LLC header they need two.
        assert_eq!(value("atm( 40 )").unwrap(), [53.0]);
        assert_eq!(value("atm-llc( 40 )").unwrap(), [106.0]);
    }
}
