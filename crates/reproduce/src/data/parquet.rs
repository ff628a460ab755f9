//! The table of runs as Parquet.

use super::{Cell, Table};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

impl Table {
    /// Whether a column holds numbers only.
    fn is_numeric(&self, column: usize) -> bool {
        let text = |row: &Vec<Option<Cell>>| matches!(row[column], Some(Cell::Text(_)));
        !self.rows.iter().any(text)
    }

    /// Writes it as Parquet: optional doubles and strings, one row group.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let field = |(index, name): (usize, &String)| {
            let builder = if self.is_numeric(index) {
                Type::primitive_type_builder(name, Physical::DOUBLE)
            } else {
                Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String))
            };
            builder
                .with_repetition(Repetition::OPTIONAL)
                .build()
                .map(Arc::new)
        };
        let fields: Result<Vec<_>, _> = self.columns.iter().enumerate().map(field).collect();
        let schema = Type::group_type_builder("run")
            .with_fields(fields?)
            .build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(out, Arc::new(schema), properties)?;
        let mut group = writer.next_row_group()?;
        for index in 0..self.columns.len() {
            let cells: Vec<Option<&Cell>> =
                self.rows.iter().map(|row| row[index].as_ref()).collect();
            let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let Some(mut column) = group.next_column()? else {
                break;
            };
            if self.is_numeric(index) {
                let values = cells.iter().flatten().filter_map(|cell| match cell {
                    Cell::Number(number) => Some(*number),
                    Cell::Text(_) => None,
                });
                let values: Vec<f64> = values.collect();
                column
                    .typed::<DoubleType>()
                    .write_batch(&values, Some(&present), None)?;
            } else {
                let values = cells.iter().flatten().map(|cell| match cell {
                    Cell::Text(text) => ByteArray::from(text.as_str()),
                    Cell::Number(number) => ByteArray::from(number.to_string().as_str()),
                });
                let values: Vec<ByteArray> = values.collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&values, Some(&present), None)?;
            }
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn parquet_reads_back() {
        let mut out = Vec::new();
        sample().write_parquet(&mut out).unwrap();
        let reader = SerializedFileReader::new(bytes(out)).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a, \"b\"");
        assert_eq!(rows[0].get_double(1).unwrap(), 0.1);
        assert!(rows[1].get_double(1).is_err());
    }

    fn bytes(content: Vec<u8>) -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file
    }
}
