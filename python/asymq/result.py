"""Results of a scenario's runs, and of one scenario under several disciplines."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import _asymq
from .scenario import Scenario
from .table import Table

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure


def simulate(
    scenario: Scenario,
    seeds: Iterable[int] | None = None,
    *,
    series: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Runs a scenario with each of its seeds, on all cores and without Python's lock.

    `seeds` are consecutive numbers, like range(20); they replace the scenario's own. `series` also records time
    series. They are available later too, since a run is a pure function of scenario and seed. `threads` limits
    the cores. `progress` is called a few times per second, with the numbers of finished runs and of all runs.
    """
    if seeds is not None:
        scenario = _with_seeds(scenario, seeds)
    return Result(_asymq.simulate(scenario._native, series, _cores(threads), progress))


def compare(
    scenario: Scenario | None = None,
    only: str | Sequence[str] | None = None,
    seeds: Iterable[int] | None = None,
    *,
    series: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Runs one scenario under several disciplines, with the same seeds.

    The default scenario is that of `asymq compare`, `Scenario.headline()`; the default of `only` is its disciplines.
    A string may contain several names, separated by commas. `progress` is called with the numbers of finished
    disciplines and of all disciplines.
    """
    scenario = Scenario.headline() if scenario is None else scenario
    only = _asymq.compared() if only is None else only
    names = only.split(",") if isinstance(only, str) else only
    try:
        under = [scenario.replace(qdisc=name) for name in names]
    except _asymq.ScenarioError as error:
        raise _asymq.ScenarioError(str(error).replace("--qdisc", "only", 1)) from None
    results: dict[str, Result] = {}
    for one in under:
        result = simulate(one, seeds, series=series, threads=threads)
        results[result.qdisc] = result
        if progress is not None:
            progress(len(results), len(under))
    return Comparison(results)


def _cores(threads: int | None) -> int | None:
    """Returns this number of threads, but at most the number of cores."""
    if threads is None:
        return None
    if threads < 1:
        raise _asymq.ScenarioError(f"threads {threads}: out of range; use 1 or more, or None for all cores")
    return min(threads, _own_cores())


def _own_cores() -> int:
    """Number of cores that this process may use; all cores on macOS and Windows, which do not report it."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _with_seeds(scenario: Scenario, seeds: Iterable[int]) -> Scenario:
    seeds = list(seeds)
    if not seeds or seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise _asymq.ScenarioError(
            f"seeds {seeds}: not consecutive; write them like range(20), and simulate each block by itself"
        )
    return scenario.replace(seed=seeds[0], runs=len(seeds))


class Result:
    """Measures of a scenario's runs, in base units, by column."""

    def __init__(self, report: _asymq.Report) -> None:
        self._report = report

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Reads a result written by `to_json` or `asymq sim --json`."""
        return cls(_asymq.Report.from_json(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Reads a file written by `asymq sim --json`."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())

    def to_json(self) -> str:
        """Returns the bytes that `asymq sim --json` prints for this scenario and these seeds."""
        return self._report.to_json()

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario of the runs, with all defaults filled in."""
        return Scenario._of(self._report.scenario)

    @cached_property
    def qdisc(self) -> str:
        """Name of the uplink's discipline."""
        return str(self.scenario["uplink"]["qdisc"])

    @cached_property
    def runs(self) -> list[dict[str, float]]:
        """Measures of each run, with its seed."""
        return self._report.measures()

    @cached_property
    def _estimates(self) -> list[tuple[str, float, float, float]]:
        return self._report.estimates()

    @cached_property
    def mean(self) -> Mapping[str, float]:
        """Means over the runs, by column. Runs that lack a measure are excluded from its mean."""
        return MappingProxyType({name: mean for name, mean, _, _ in self._estimates})

    @cached_property
    def interval(self) -> Mapping[str, tuple[float, float]]:
        """95 % confidence intervals of the means (Student's t), by column."""
        return MappingProxyType({name: (low, high) for name, _, low, high in self._estimates})

    @cached_property
    def table(self) -> Table:
        """One row per run: seed, settings, measures. docs/research/data.md describes the columns."""
        return Table(self._report.runs())

    @cached_property
    def flows(self) -> Table:
        """One row per TCP flow of each run, if the flow lasts for the whole run or is listed."""
        return Table(self._report.flows())

    @cached_property
    def series(self) -> Table:
        """One row per 0.2 s of each run, warm-up included. Repeats the runs if series were not recorded."""
        if self._report.has_series:
            return Table(self._report.time_series())
        return Table(_asymq.simulate(self.scenario._native, True, None).time_series())

    def to_pandas(self) -> pandas.DataFrame:
        """Converts `table` to a DataFrame."""
        return self.table.to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """Converts `table` to a pyarrow.Table, without a copy."""
        return self.table.to_arrow()

    def plot(self, *, theme: str | None = None) -> Figure:
        """Draws data and ACKs of each direction over time, of the run nearest to the means.

        `theme` is "light" or "dark"; by default the one that fits matplotlib's style.
        """
        from .plot import over_time

        return over_time({self.qdisc: self}, theme)

    def __repr__(self) -> str:
        up, down = self.mean["up_delivered"], self.mean["down_delivered"]
        return (
            f"<asymq.Result of {_runs(self)} under {self.qdisc}: goodput "
            f"up {up:.3f}, down {down:.3f}>"
        )

    def _repr_html_(self) -> str:
        return _html({self.qdisc: self})

    def __str__(self) -> str:
        return _text({self.qdisc: self})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return Result.from_json, (self.to_json(),)


class Comparison(Mapping[str, Result]):
    """Results of one scenario, by the name of the uplink's discipline."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = dict(results)

    def __getitem__(self, qdisc: str) -> Result:
        return self._results[qdisc]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def to_json(self) -> str:
        """Returns the `reports` of `asymq compare --json`, byte for byte; only the command adds groups and marks."""
        # Inserts reports as they were written: parsing and formatting numbers again might change a digit.
        reports = (
            f'    "{name}": ' + self[name].to_json().rstrip("\n").replace("\n", "\n    ")
            for name in sorted(self)
        )
        return '{\n  "format": 3,\n  "reports": {\n' + ",\n".join(reports) + "\n  }\n}\n"

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the runs of all disciplines in one DataFrame."""
        import pandas

        return pandas.concat([result.to_pandas() for result in self.values()], ignore_index=True)

    def to_arrow(self) -> pyarrow.Table:
        """Returns the runs of all disciplines in one pyarrow.Table."""
        import pyarrow

        tables = [result.to_arrow() for result in self.values()]
        return pyarrow.concat_tables(tables, promote_options="permissive")

    def plot(self, *, theme: str | None = None) -> Figure:
        """Draws data and ACKs of each direction over time, one row per discipline."""
        from .plot import over_time

        return over_time(self._results, theme)

    def __repr__(self) -> str:
        return "<asymq.Comparison: " + ", ".join(map(repr, self.values())) + ">"

    def __str__(self) -> str:
        return _text(self._results)

    def _repr_html_(self) -> str:
        return _html(self._results)


# Columns of the tables for people: column, heading, factor, decimals.
_SHOWN = [
    ("goodput_utility", "goodput utility", 1.0, 3),
    ("up_delivered", "goodput up", 1.0, 3),
    ("down_delivered", "goodput down", 1.0, 3),
    ("up_sojourn_p95_s", "sojourn up p95, ms", 1e3, 1),
    ("up_probe_p99_s", "probe up p99, ms", 1e3, 1),
    ("down_probe_p99_s", "probe down p99, ms", 1e3, 1),
]


def _rows(results: Mapping[str, Result]) -> list[list[str]]:
    """One row per result below a row of headings; with intervals if there are enough runs."""
    shown = [column for column in _SHOWN if any(column[0] in r.mean for r in results.values())]
    rows = [["", *(heading for _, heading, _, _ in shown)]]
    for name, result in results.items():
        row = [name]
        for column, _, factor, decimals in shown:
            mean = result.mean.get(column, math.nan) * factor
            low, high = result.interval.get(column, (math.nan, math.nan))
            cell = f"{mean:.{decimals}f}"
            if len(result.runs) >= 3:
                cell += f" ± {(high - low) / 2 * factor:.{decimals}f}"
            row.append(cell)
        rows.append(row)
    return rows


def _runs(result: Result) -> str:
    count = len(result.runs)
    return "1 run" if count == 1 else f"{count} runs"


def _note(results: Mapping[str, Result]) -> str:
    runs = len(next(iter(results.values())).runs) if results else 0
    intervals = " with 95 % intervals" if runs >= 3 else ""
    shares = "goodput: data delivered in order, as a share of the links"
    return f"{f'means of {runs} runs{intervals}' if runs > 1 else 'one run'}; {shares}"


def _text(results: Mapping[str, Result]) -> str:
    """Formats a table for a terminal."""
    rows = _rows(results)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join([*(line.rstrip() for line in lines), _note(results)])


def _html(results: Mapping[str, Result]) -> str:
    """Formats a table for a notebook."""
    head, *rows = _rows(results)
    heads = "".join(f"<th>{html.escape(heading)}</th>" for heading in head)
    body = "".join(
        f"<tr><th>{html.escape(name)}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table><p>{_note(results)}</p>"
