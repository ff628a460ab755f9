//! Text tables whose columns fit their content.

/// Rows of cells; the first column is aligned left, the others right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Text between two columns.
    gap: &'static str,
}

impl Table {
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        let mut table = Self {
            gap: "  ",
            ..Self::tight()
        };
        table.row(heads);
        table
    }

    /// Creates a table without headings; one space separates columns.
    pub(crate) fn tight() -> Self {
        Self {
            rows: Vec::new(),
            gap: " ",
        }
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("{}{cell:>width$}", self.gap);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
