//! Columns of `asymq.Table`, which Arrow's readers import without a copy.

use crate::errors::failure;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, StringArray, UInt64Array,
};
use arrow_schema::{Field, Schema, SchemaRef};
use asymq_sweep::data::{self, Cell};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList};
use std::sync::Arc;

/// Named columns of equal length.
#[pyclass(frozen, eq, module = "asymq._asymq")]
#[derive(PartialEq)]
pub(crate) struct Columns {
    schema: SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: usize,
}

impl Columns {
    pub(crate) fn of(table: &data::Table) -> Self {
        let names = table.columns.iter().cloned().enumerate();
        let column = |(index, name)| (name, table.rows.iter().map(|row| &row[index]).collect());
        Self::new(names.map(column), table.rows.len())
    }

    fn new<'a>(
        columns: impl Iterator<Item = (String, Vec<&'a Option<Cell>>)>,
        rows: usize,
    ) -> Self {
        let arrays = columns.map(|(name, cells)| (name, array(&cells)));
        let (names, arrays): (Vec<String>, Vec<ArrayRef>) = arrays.unzip();
        let fields = names.into_iter().zip(&arrays);
        let fields = fields.map(|(name, array)| Field::new(name, array.data_type().clone(), true));
        Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            arrays,
            rows,
        }
    }
}

/// Converts cells to an array of their kind. If kinds are mixed, converts them to texts.
fn array(cells: &[&Option<Cell>]) -> ArrayRef {
    macro_rules! if_all {
        ($($kind:ident: $array:ty),*) => {
            $(if cells.iter().all(|cell| matches!(cell, None | Some(Cell::$kind(_)))) {
                let values = cells.iter().map(|cell| match cell {
                    Some(Cell::$kind(value)) => Some(*value),
                    _ => None,
                });
                return Arc::new(values.collect::<$array>());
            })*
        };
    }
    if_all!(Number: Float64Array, Whole: UInt64Array, Truth: BooleanArray);
    let texts = cells.iter().map(|cell| Some(cell.as_ref()?.to_string()));
    Arc::new(texts.collect::<StringArray>())
}

/// Reads a cell of a pickled column.
fn cell(value: &Bound<'_, PyAny>) -> PyResult<Option<Cell>> {
    Ok(if value.is_none() {
        None
    } else if value.is_instance_of::<PyBool>() {
        Some(Cell::Truth(value.extract()?))
    } else if value.is_instance_of::<PyInt>() {
        Some(Cell::Whole(value.extract()?))
    } else if value.is_instance_of::<PyFloat>() {
        Some(Cell::Number(value.extract()?))
    } else {
        Some(Cell::Text(value.extract::<String>()?.into()))
    })
}

#[pymethods]
impl Columns {
    #[new]
    fn restored(columns: &Bound<'_, PyDict>, rows: usize) -> PyResult<Self> {
        let mut all = Vec::new();
        for (name, values) in columns {
            let cells = values.try_iter()?.map(|value| cell(&value?));
            all.push((name.extract()?, cells.collect::<PyResult<Vec<_>>>()?));
        }
        let columns = all.iter();
        let columns =
            columns.map(|(name, cells): &(String, _)| (name.clone(), cells.iter().collect()));
        Ok(Self::new(columns, rows))
    }

    fn names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    /// Values of a column; `None` in rows without a value.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.schema.index_of(name);
        let index = index.map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        let column = self.arrays[index].as_any();
        macro_rules! list {
            ($($kind:ty),*) => {
                $(if let Some(values) = column.downcast_ref::<$kind>() {
                    return PyList::new(py, values.iter().collect::<Vec<_>>());
                })*
            };
        }
        list!(Float64Array, UInt64Array, BooleanArray, StringArray);
        Ok(PyList::empty(py))
    }

    /// Exports Arrow's C stream (the PyCapsule interface).
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let (schema, arrays) = (self.schema.clone(), self.arrays.clone());
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        let batch = batch.map_err(|error| failure(&error))?;
        let batches = RecordBatchIterator::new([Ok(batch)], self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
