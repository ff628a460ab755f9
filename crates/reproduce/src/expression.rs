//! What is measured and claimed, as text: `max( aq:down - droptail:down ) > 0.15 within 0.05`.
//!
//! Words stand apart by spaces. A name is a metric of a run (`down.utilization`) where a measure is
//! defined, or `series:measure`, `series:measure@x`, `series:measure@x..y` in a claim. A value is a
//! list, one number per point of the sweep; a single number goes with every point.

use std::fmt;

/// A value that is computed from named values.
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

impl Function {
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

/// `f` of each pair; a list of one number goes with every number of the other.
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
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words::of(text);
        let node = words.sum()?;
        words.end()?;
        Ok(Self(node))
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

    /// Its value, where `lookup` knows every name; the lists it finds must be of equal length.
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

/// How two values, or the points of one, compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// As large as, at every point.
    Equal,
    /// Larger, at every point.
    Above,
    /// Smaller, at every point.
    Below,
    /// No point falls below one before it, and the last is above the first.
    Rising,
    /// No point rises above one before it, and the last is below the first.
    Falling,
}

/// Something that a claim says of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What is compared.
    pub subject: Expression,
    /// How.
    pub relation: Relation,
    /// With what; [`Relation::Rising`] and [`Relation::Falling`] compare with nothing.
    pub object: Option<Expression>,
    /// How far from it a value may be.
    pub within: f64,
    text: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Condition {
    /// Reads `a = b within c`, `a > b`, `a < b`, `rising a` or `falling a`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = Words::of(text);
        let trend = match words.peek() {
            Some("rising") => Some(Relation::Rising),
            Some("falling") => Some(Relation::Falling),
            _ => None,
        };
        if trend.is_some() {
            words.next();
        }
        let subject = Expression(words.sum()?);
        let (relation, object) = match trend {
            Some(relation) => (relation, None),
            None => {
                let relation = match words.next() {
                    Some("=") => Relation::Equal,
                    Some(">") => Relation::Above,
                    Some("<") => Relation::Below,
                    other => {
                        let found = other.unwrap_or("the end");
                        return Err(format!("{found} where =, > or < was expected"));
                    }
                };
                (relation, Some(Expression(words.sum()?)))
            }
        };
        let within = match words.peek() {
            Some("within") => {
                words.next();
                let number = words.next().and_then(|word| word.parse::<f64>().ok());
                number
                    .filter(|number| *number >= 0.0)
                    .ok_or("within needs a number, like within 0.03")?
            }
            _ => 0.0,
        };
        words.end()?;
        Ok(Self {
            subject,
            relation,
            object,
            within,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    /// The names it uses.
    pub fn names(&self) -> Vec<&str> {
        let mut names = self.subject.names();
        names.extend(self.object.iter().flat_map(Expression::names));
        names
    }

    /// Whether it holds, and the point where it is closest to not holding, or furthest from it.
    pub fn judge(&self, subject: &[f64], object: &[f64]) -> Option<(bool, usize)> {
        let mut margins: Vec<f64> = match self.relation {
            Relation::Equal => pairwise(subject, object, |a, b| self.within - (a - b).abs())?,
            Relation::Above => pairwise(subject, object, |a, b| a - b + self.within)?,
            Relation::Below => pairwise(subject, object, |a, b| b - a + self.within)?,
            Relation::Rising => steps(subject, 1.0, self.within)?,
            Relation::Falling => steps(subject, -1.0, self.within)?,
        };
        // What is not a number does not hold.
        for margin in margins.iter_mut().filter(|margin| margin.is_nan()) {
            *margin = f64::NEG_INFINITY;
        }
        let worst = (0..margins.len()).min_by(|&a, &b| margins[a].total_cmp(&margins[b]))?;
        let holds = match self.relation {
            Relation::Above | Relation::Below if self.within == 0.0 => margins[worst] > 0.0,
            _ => margins[worst] >= 0.0,
        };
        Some((holds, worst))
    }
}

/// How far each point is from stepping back by more than `within`, and the last from the first.
fn steps(list: &[f64], sign: f64, within: f64) -> Option<Vec<f64>> {
    let (first, last) = (*list.first()?, *list.last()?);
    let mut margins = vec![f64::INFINITY];
    let mut best = first;
    for &value in &list[1..] {
        margins.push(sign * (value - best) + within);
        best = if sign > 0.0 {
            best.max(value)
        } else {
            best.min(value)
        };
    }
    if sign * (last - first) <= 0.0 {
        *margins.last_mut()? = sign * (last - first) - f64::MIN_POSITIVE;
    }
    Some(margins)
}

struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let words = text.split_whitespace().flat_map(|word| {
            // A function's parenthesis may touch it.
            match word.strip_suffix('(') {
                Some(name) if !name.is_empty() => vec![name, "("],
                _ => vec![word],
            }
        });
        Self {
            words: words.collect(),
            next: 0,
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.next += 1;
        word
    }

    fn end(&mut self) -> Result<(), String> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(format!("{word} where the end was expected")),
        }
    }

    fn sum(&mut self) -> Result<Node, String> {
        let mut left = self.product()?;
        while let Some(operator) = match self.peek() {
            Some("+") => Some(Operator::Add),
            Some("-") => Some(Operator::Subtract),
            _ => None,
        } {
            self.next();
            left = Node::Binary(operator, Box::new((left, self.product()?)));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, String> {
        let mut left = self.atom()?;
        while let Some(operator) = match self.peek() {
            Some("*") => Some(Operator::Multiply),
            Some("/") => Some(Operator::Divide),
            _ => None,
        } {
            self.next();
            left = Node::Binary(operator, Box::new((left, self.atom()?)));
        }
        Ok(left)
    }

    fn atom(&mut self) -> Result<Node, String> {
        let word = self.next().ok_or("the end where a value was expected")?;
        if word == "(" {
            let inner = self.sum()?;
            self.close()?;
            return Ok(inner);
        }
        if self.peek() == Some("(") {
            let (_, function, count) = FUNCTIONS
                .into_iter()
                .find(|(name, ..)| *name == word)
                .ok_or_else(|| {
                    let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
                    format!("unknown function {word}; use {}", names.join(", "))
                })?;
            self.next();
            let mut arguments = vec![self.sum()?];
            while arguments.len() < count {
                match self.next() {
                    Some(",") => arguments.push(self.sum()?),
                    _ => return Err(format!("{word} needs {count} values, apart by a comma")),
                }
            }
            self.close()?;
            return Ok(Node::Call(function, arguments));
        }
        if let Ok(number) = word.parse() {
            return Ok(Node::Number(number));
        }
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Ok(Node::Name(word.to_owned()));
        }
        Err(format!("{word} where a value was expected"))
    }

    fn close(&mut self) -> Result<(), String> {
        match self.next() {
            Some(")") => Ok(()),
            other => Err(format!(
                "{} where ) was expected",
                other.unwrap_or("the end")
            )),
        }
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
    fn arithmetic_binds_as_on_paper_and_a_number_goes_with_every_point() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2").unwrap(), [5.0]);
        assert_eq!(value("( 1 + 2 ) * rise").unwrap(), [3.0, 6.0, 12.0]);
        assert_eq!(value("max( rise - one ) / last( rise )").unwrap(), [0.75]);
        assert_eq!(value("least( rise , 2 )").unwrap(), [1.0, 2.0, 2.0]);
        assert_eq!(value("stranger + 1"), None);
    }

    #[test]
    fn cells_are_whole() {
        // 40 bytes and the trailer fill one cell; an LLC header makes it two.
        assert_eq!(value("atm( 40 )").unwrap(), [53.0]);
        assert_eq!(value("atm-llc( 40 )").unwrap(), [106.0]);
    }

    #[test]
    fn conditions_hold_up_to_their_tolerance() {
        let judge = |text: &str, subject: &[f64], object: &[f64]| {
            Condition::parse(text)
                .unwrap()
                .judge(subject, object)
                .unwrap()
        };
        assert_eq!(judge("a = b within 0.5", &[1.0, 2.0], &[1.5]), (true, 0));
        assert_eq!(judge("a = b within 0.4", &[1.2, 2.0], &[1.5]), (false, 1));
        assert_eq!(judge("a > b", &[1.0, 2.0], &[1.0, 1.0]), (false, 0));
        assert_eq!(judge("a > b within 0.1", &[0.95, 2.0], &[1.0]), (true, 0));
        assert_eq!(judge("rising a", &[1.0, 3.0, 2.0], &[]), (false, 2));
        assert_eq!(judge("rising a within 1", &[1.0, 3.0, 2.0], &[]), (true, 2));
        assert!(!judge("rising a within 1", &[2.0, 2.0], &[]).0);
        assert!(judge("falling a", &[3.0, 2.0, 1.0], &[]).0);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let error = |text| Condition::parse(text).unwrap_err();
        assert_eq!(error("a ~ b"), "~ where =, > or < was expected");
        assert_eq!(error("a = "), "the end where a value was expected");
        assert_eq!(
            error("a = b within much"),
            "within needs a number, like within 0.03"
        );
        assert_eq!(error("a = b c"), "c where the end was expected");
        assert!(error("most( a ) = 1").starts_with("unknown function most; use max"));
    }
}
