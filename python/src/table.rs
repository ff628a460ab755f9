//! `asymq.Table`: columns of numbers and texts, which Arrow's readers take over without a copy.

use crate::errors::failure;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use asymq_sweep::data::{self, Cell};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList};
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
    fn of_kind<'a, T>(
        mut cells: impl Iterator<Item = Option<&'a Cell>>,
        kind: fn(&Cell) -> Option<T>,
    ) -> Option<Vec<Option<T>>> {
        // An absent cell fits every kind.
        cells.try_fold(Vec::new(), |mut column, cell| {
            column.push(cell.map_or(Some(None), |cell| kind(cell).map(Some))?);
            Some(column)
        })
    }
    macro_rules! kind {
        ($kind:ident) => {
            of_kind(cells.clone(), |cell| match cell {
                Cell::$kind(value) => Some(*value),
                _ => None,
            })
        };
    }
    if let Some(numbers) = kind!(Number) {
        return Arc::new(Float64Array::from(numbers));
    }
    if let Some(numbers) = kind!(Whole) {
        return Arc::new(UInt64Array::from(numbers));
    }
    if let Some(truths) = kind!(Truth) {
        return Arc::new(BooleanArray::from(truths));
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

/// A cell of a pickled column.
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

    fn __eq__(&self, other: &Self) -> bool {
        self.schema == other.schema && self.columns == other.columns
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>, usize))> {
        let restore = py.get_type::<Self>().getattr("_restore")?;
        Ok((restore, (self.to_dict(py)?, self.rows)))
    }

    #[staticmethod]
    fn _restore(columns: &Bound<'_, PyDict>, rows: usize) -> PyResult<Self> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, values) in columns {
            let cells = values.try_iter()?.map(|value| cell(&value?));
            let cells: Vec<Option<Cell>> = cells.collect::<PyResult<_>>()?;
            let array = column(cells.iter().map(Option::as_ref));
            fields.push(Field::new(
                name.extract::<String>()?,
                array.data_type().clone(),
                true,
            ));
            arrays.push(array);
        }
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            columns: arrays,
            rows,
        })
    }

    /// The first rows as a table of a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        const SHOWN: usize = 20;
        let html = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let mut rows = vec![String::new(); self.rows.min(SHOWN) + 1];
        for name in self.column_names() {
            rows[0] += &format!("<th>{}</th>", html(name));
            let values = self.__getitem__(py, name)?;
            for (row, value) in rows[1..].iter_mut().zip(values) {
                *row += &format!("<td>{}</td>", html(value.str()?.to_str()?));
            }
        }
        let rows: Vec<String> = rows.iter().map(|row| format!("<tr>{row}</tr>")).collect();
        Ok(format!(
            "<table>{}</table><p>{} rows</p>",
            rows.concat(),
            self.rows
        ))
    }

    fn __repr__(&self) -> String {
        format!(
            "<asymq.Table of {} rows: {}>",
            self.rows,
            self.column_names().join(", ")
        )
    }
}
