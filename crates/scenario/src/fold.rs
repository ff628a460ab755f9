//! Statistics over several runs, computed for each field.

use crate::grade::Grade;
use asymq_core::Direction;
use std::collections::{BTreeMap, BTreeSet};

/// A statistic of one or more numbers.
pub(crate) type Statistic = fn(&[f64]) -> f64;

/// Receives the path, the unit and the value of a number.
pub(crate) type Put<'a> = dyn FnMut(&str, &'static str, f64) + 'a;

/// A part of a summary for which statistics over runs are computed.
pub(crate) trait Fold: Sized {
    /// The names of the structure's fields.
    #[cfg(test)]
    const FIELDS: &[&str] = &[];

    /// Computes `statistic` of each number over the `runs` in which the number is present.
    fn fold(runs: &[&Self], statistic: Statistic) -> Self;

    /// Returns a value in which every optional number is present; lists and maps are empty.
    fn full() -> Self;

    /// Passes each number outside of lists to `put`. `path` and `unit` belong to this part.
    fn each(&self, _path: &str, _unit: &'static str, _put: &mut Put<'_>) {}
}

/// Implements [`Fold`] for structures. Each unit precedes its fields; shares and indices have the unit `""`. A missing
/// field is a compile error.
macro_rules! by_field {
    ($($type:ident { $($unit:literal: $($field:ident),*;)* })*) => {$(
        impl Fold for $type {
            #[cfg(test)]
            const FIELDS: &[&str] = &[$($(stringify!($field)),*),*];

            fn fold(runs: &[&Self], statistic: Statistic) -> Self {
                $($(let $field: Vec<_> = runs.iter().map(|run| &run.$field).collect();)*)*
                Self { $($($field: Fold::fold(&$field, statistic)),*),* }
            }

            fn full() -> Self {
                Self { $($($field: Fold::full()),*),* }
            }

            fn each(&self, path: &str, _: &'static str, put: &mut Put<'_>) {
                $($(self.$field.each(&format!("{path}.{}", stringify!($field)), $unit, put);)*)*
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

    fn full() -> Self {
        0.0
    }

    fn each(&self, path: &str, unit: &'static str, put: &mut Put<'_>) {
        put(path, unit, *self);
    }
}

impl<T: Fold> Fold for Option<T> {
    fn fold(runs: &[&Self], statistic: Statistic) -> Self {
        let present: Vec<&T> = runs.iter().filter_map(|part| part.as_ref()).collect();
        (!present.is_empty()).then(|| T::fold(&present, statistic))
    }

    fn full() -> Self {
        Some(T::full())
    }

    fn each(&self, path: &str, unit: &'static str, put: &mut Put<'_>) {
        self.iter().for_each(|part| part.each(path, unit, put));
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

    fn full() -> Self {
        Self::new()
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

    fn full() -> Self {
        Self::new()
    }

    fn each(&self, path: &str, unit: &'static str, put: &mut Put<'_>) {
        for (name, value) in self {
            put(&format!("{path}.{name}"), unit, *value);
        }
    }
}

/// Implements [`Fold`] by the first run's value. The grade of a mean is computed from the mean later.
macro_rules! first {
    ($($type:ty),+) => {$(
        impl Fold for $type {
            fn fold(runs: &[&Self], _: Statistic) -> Self {
                *runs[0]
            }

            fn full() -> Self {
                Self::ALL[0]
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
