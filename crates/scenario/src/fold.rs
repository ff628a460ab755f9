//! Statistics over several runs, computed for each field.

use crate::grade::Grade;
use asymq_core::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// A statistic of one or more numbers.
pub(crate) type Statistic = fn(&[f64]) -> f64;

/// A part of a summary for which statistics over runs are computed.
pub(crate) trait Fold: Sized {
    /// The names of the structure's fields.
    #[cfg(test)]
    const FIELDS: &[&str] = &[];

    /// Computes `statistic` of each number over the `runs` in which the number is present.
    fn fold(runs: &[&Self], statistic: Statistic) -> Self;
}

/// Implements [`Fold`] for a structure. A missing field is a compile error.
macro_rules! by_field {
    ($($type:ident { $($field:ident),* $(,)? })*) => {$(
        impl Fold for $type {
            #[cfg(test)]
            const FIELDS: &[&str] = &[$(stringify!($field)),*];

            fn fold(runs: &[&Self], statistic: Statistic) -> Self {
                $(let $field: Vec<_> = runs.iter().map(|run| &run.$field).collect();)*
                Self { $($field: Fold::fold(&$field, statistic)),* }
            }
        }
    )*};
}

pub(crate) use by_field;

impl Fold for f64 {
    fn fold(runs: &[&Self], statistic: Statistic) -> Self {
        let numbers: Vec<Self> = runs.iter().map(|number| **number).collect();
        statistic(&numbers)
    }
}

impl<T: Fold> Fold for Option<T> {
    fn fold(runs: &[&Self], statistic: Statistic) -> Self {
        let present: Vec<&T> = runs.iter().filter_map(|part| part.as_ref()).collect();
        (!present.is_empty()).then(|| T::fold(&present, statistic))
    }
}

impl<T: Fold> Fold for Vec<T> {
    fn fold(runs: &[&Self], statistic: Statistic) -> Self {
        let item = |index: usize| {
            let items: Vec<&T> = runs.iter().filter_map(|list| list.get(index)).collect();
            T::fold(&items, statistic)
        };
        (0..runs.first().map_or(0, |list| list.len()))
            .map(item)
            .collect()
    }
}

impl Fold for BTreeMap<String, f64> {
    fn fold(runs: &[&Self], statistic: Statistic) -> Self {
        let names: BTreeSet<&String> = runs.iter().flat_map(|map| map.keys()).collect();
        let value = |name: &String| {
            let values: Vec<&f64> = runs.iter().filter_map(|map| map.get(name)).collect();
            f64::fold(&values, statistic)
        };
        names
            .into_iter()
            .map(|name| (name.clone(), value(name)))
            .collect()
    }
}

/// Implements [`Fold`] by the first run's value. The grade of a mean is computed from the mean later.
macro_rules! first {
    ($($type:ty),+) => {$(
        impl Fold for $type {
            fn fold(runs: &[&Self], _: Statistic) -> Self {
                *runs[0]
            }
        }
    )+};
}

first!(Direction, Grade);

/// Returns the mean of one or more numbers.
pub fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Returns the sample standard deviation; 0 for a single number.
pub fn standard_deviation(numbers: &[f64]) -> f64 {
    if numbers.len() < 2 {
        return 0.0;
    }
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|n| (n - mean) * (n - mean)).sum();
    (squares / (numbers.len() - 1) as f64).sqrt()
}
