//! `asymq.Table`: columns of numbers and texts, which Arrow's readers take over without a copy.

use crate::errors::failure;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use asymq_reproduce::data::{self, Cell};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::sync::Arc;

/// Rows under named columns, numbers in base units with the unit at the end of the name. pyarrow, polars,
/// DuckDB and pandas take it by Arrow's C stream, without a copy.
#[pyclass(frozen, module = "asymq")]
pub(crate) struct Table {
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
}

impl Table {
    pub(crate) fn of(table: &data::Table) -> PyResult<Self> {
        let columns: Vec<ArrayRef> = (0..table.columns.len())
            .map(|index| column(table.rows.iter().map(|row| row[index].as_ref())))
            .collect();
        let fields = table
            .columns
            .iter()
            .zip(&columns)
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true));
        Ok(Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            columns,
            rows: table.rows.len(),
        })
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(self.schema.clone(), self.columns.clone(), &options)
    }
}

/// A column of one kind; texts where kinds mix.
fn column<'a>(cells: impl Iterator<Item = Option<&'a Cell>> + Clone) -> ArrayRef {
    let all = |of_kind: fn(&Cell) -> bool| cells.clone().flatten().all(of_kind);
    if all(|cell| matches!(cell, Cell::Number(_))) {
        let number = |cell: &Cell| match cell {
            Cell::Number(number) => *number,
            _ => f64::NAN,
        };
        let numbers: Float64Array = cells.map(|cell| cell.map(number)).collect();
        return Arc::new(numbers);
    }
    if all(|cell| matches!(cell, Cell::Whole(_))) {
        let whole = |cell: &Cell| match cell {
            Cell::Whole(number) => *number,
            _ => 0,
        };
        let numbers: UInt64Array = cells.map(|cell| cell.map(whole)).collect();
        return Arc::new(numbers);
    }
    if all(|cell| matches!(cell, Cell::Truth(_))) {
        let truths: BooleanArray = cells
            .map(|cell| cell.map(|cell| matches!(cell, Cell::Truth(true))))
            .collect();
        return Arc::new(truths);
    }
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Whole(number) => number.to_string(),
        Cell::Truth(truth) => truth.to_string(),
    };
    let texts: StringArray = cells.map(|cell| cell.map(text)).collect();
    Arc::new(texts)
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    /// The values of a column; `None` where a row has none.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let index = self.schema.index_of(name);
        let index = index.map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        let column = self.columns[index].as_any();
        if let Some(numbers) = column.downcast_ref::<Float64Array>() {
            PyList::new(py, numbers.iter().collect::<Vec<_>>())
        } else if let Some(numbers) = column.downcast_ref::<UInt64Array>() {
            PyList::new(py, numbers.iter().collect::<Vec<_>>())
        } else if let Some(truths) = column.downcast_ref::<BooleanArray>() {
            PyList::new(py, truths.iter().collect::<Vec<_>>())
        } else {
            let texts = column.downcast_ref::<StringArray>();
            PyList::new(py, texts.into_iter().flatten().collect::<Vec<_>>())
        }
    }

    /// The columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for name in self.column_names() {
            columns.set_item(name, self.__getitem__(py, name)?)?;
        }
        Ok(columns)
    }

    /// As a `pyarrow.Table`, without a copy.
    fn to_arrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// As a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match py.import("pyarrow") {
            Ok(_) => Self::to_arrow(slf)?.call_method0("to_pandas"),
            Err(_) => {
                let columns = slf.borrow().to_dict(py)?;
                py.import("pandas")?.call_method1("DataFrame", (columns,))
            }
        }
    }

    /// Arrow's C stream (the PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may give its own types whatever is asked for.
        let _ = requested_schema;
        let batch = self.batch().map_err(|error| failure(&error))?;
        let batches = RecordBatchIterator::new([Ok(batch)], self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!(
            "<asymq.Table of {} rows: {}>",
            self.rows,
            self.column_names().join(", ")
        )
    }
}
