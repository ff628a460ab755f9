"""Tables: columns of numbers and texts, which Arrow's readers import without a copy."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from . import _asymq

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: Rows of a table that a notebook shows.
SHOWN = 20


class Table:
    """Rows with named columns. Numbers are in base units; the name of a column ends with its unit.

    pyarrow, polars, DuckDB and pandas import it through Arrow's C stream, without a copy.
    """

    def __init__(self, columns: _asymq.Columns) -> None:
        self._columns = columns

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self._columns.names()

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> list[Any]:
        """Values of a column; None in rows without a value."""
        return self._columns.values(name)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists, by name."""
        return {name: self[name] for name in self.column_names}

    def to_arrow(self) -> pyarrow.Table:
        """Converts to a pyarrow.Table, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Converts to a pandas.DataFrame."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            import pandas

            return pandas.DataFrame(self.to_dict())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # A producer may return its own types, regardless of the request.
        return self._columns.stream()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._columns == other._columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.to_dict(), len(self))

    def _repr_html_(self) -> str:
        def row(tag: str, cells: list[Any]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell), quote=False)}</{tag}>" for cell in cells) + "</tr>"

        columns = [self[name][:SHOWN] for name in self.column_names]
        rows = [row("td", list(cells)) for cells in zip(*columns, strict=True)]
        return f"<table>{row('th', list(self.column_names))}{''.join(rows)}</table><p>{len(self)} rows</p>"

    def __repr__(self) -> str:
        return f"<asymq.Table of {len(self)} rows: {', '.join(self.column_names)}>"


def _restore(columns: dict[str, list[Any]], rows: int) -> Table:
    return Table(_asymq.Columns(columns, rows))
