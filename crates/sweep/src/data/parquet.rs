//! Tables as Parquet, with version, fingerprint and units in the metadata.

use super::column::unit;
use super::{Cell, Kind, Origin, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

impl Kind {
    fn column(self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Number => (Physical::DOUBLE, None),
            Self::Whole => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Truth => (Physical::BOOLEAN, None),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL);
        column.build().map(Arc::new)
    }
}

impl Table {
    pub(super) fn kind(&self, column: usize) -> Kind {
        Kind::of_all(self.rows.iter().filter_map(|row| row[column].as_ref()))
    }

    /// Writes it as Parquet: optional columns, one row group, and in the metadata the tool's version and
    /// fingerprint and the unit of each column.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write_parquet(
        &self,
        out: impl Write + Send,
        origin: &Origin,
    ) -> Result<(), ParquetError> {
        let kinds: Vec<Kind> = (0..self.columns.len()).map(|c| self.kind(c)).collect();
        self.write_parquet_as(out, origin, kinds, Compression::UNCOMPRESSED)
    }

    /// Writes columns of given kinds with a compression.
    pub(super) fn write_parquet_as(
        &self,
        out: impl Write + Send,
        origin: &Origin,
        kinds: Vec<Kind>,
        compression: Compression,
    ) -> Result<(), ParquetError> {
        let fields: Result<Vec<_>, _> = kinds
            .iter()
            .zip(&self.columns)
            .map(|(kind, name)| kind.column(name))
            .collect();
        let schema = Type::group_type_builder(self.name).with_fields(fields?);
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_key_value_metadata(Some(self.metadata(origin)));
        let mut writer = SerializedFileWriter::new(
            out,
            Arc::new(schema.build()?),
            Arc::new(properties.build()),
        )?;
        let mut group = writer.next_row_group()?;
        for (index, kind) in kinds.into_iter().enumerate() {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            match kind {
                Kind::Text => self.write::<ByteArrayType>(&mut column, index, |cell| {
                    Some(ByteArray::from(cell.to_string().into_bytes()))
                }),
                Kind::Number => self.write::<DoubleType>(&mut column, index, Cell::number),
                // Parquet keeps an unsigned number in the bits of a signed one.
                Kind::Whole => self.write::<Int64Type>(&mut column, index, |cell| {
                    cell.whole().map(u64::cast_signed)
                }),
                Kind::Truth => self.write::<BoolType>(&mut column, index, Cell::truth),
            }?;
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }

    fn write<T: DataType>(
        &self,
        column: &mut SerializedColumnWriter<'_>,
        index: usize,
        value: impl Fn(&Cell) -> Option<T::T>,
    ) -> Result<usize, ParquetError> {
        let cells = || self.rows.iter().map(|row| row[index].as_ref());
        let present: Vec<i16> = cells().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<T::T> = cells().flatten().filter_map(value).collect();
        column
            .typed::<T>()
            .write_batch(&values, Some(&present), None)
    }

    fn metadata(&self, origin: &Origin) -> Vec<KeyValue> {
        let units = self.columns.iter().filter_map(|name| {
            let unit = unit(name)?;
            Some((name.clone(), serde_json::Value::from(unit)))
        });
        let units = serde_json::Value::Object(units.collect());
        [
            ("asymq.table", self.name.to_owned()),
            ("asymq.version", origin.version.clone()),
            ("asymq.fingerprint", origin.fingerprint.clone()),
            ("asymq.preview", origin.preview.to_string()),
            ("asymq.units", units.to_string()),
        ]
        .map(|(key, value)| KeyValue::new(key.to_owned(), value))
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn written() -> SerializedFileReader<std::fs::File> {
        let origin = Origin {
            version: "1.2.3".into(),
            fingerprint: "f00".into(),
            ..Origin::of_this_build(false)
        };
        let mut file = tempfile::tempfile().unwrap();
        sample().write_parquet(&mut file, &origin).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn parquet_reads_back_with_its_types() {
        let reader = written();
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(0).unwrap(), "a, \"b\"");
        assert_eq!(rows[0].get_double(1).unwrap(), 0.1);
        assert_eq!(rows[0].get_ulong(2).unwrap(), u64::MAX);
        assert!(rows[1].get_double(1).is_err());
        assert!(rows[1].get_bool(3).unwrap());
    }

    #[test]
    fn parquet_says_what_made_it_and_in_which_units_it_is() {
        let reader = written();
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let value = |key: &str| {
            let pair = metadata.unwrap().iter().find(|pair| pair.key == key);
            pair.and_then(|pair| pair.value.clone()).unwrap()
        };
        assert_eq!(value("asymq.version"), "1.2.3");
        assert_eq!(value("asymq.fingerprint"), "f00");
        assert_eq!(value("asymq.units"), "{\"value_s\":\"s\"}");
    }
}
