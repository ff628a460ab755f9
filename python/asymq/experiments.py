"""Experiments: the papers' and your own, on this machine or on a Dask cluster."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import _asymq
from .result import _cores, _own_cores
from .table import Table

if TYPE_CHECKING:
    import pandas
    from distributed import Client

#: Data packets that a core simulates per second, on a machine of 2026. Used to predict costs.
PACKETS_PER_SECOND = 4_000_000
#: A task's default duration in seconds is this part of the sweep, within bounds, so that no long task remains at the end.
TASKS, SHORTEST, LONGEST = 128, 0.25, 2.0


class Findings:
    """Results of experiments: verdicts on their claims, and the tables of docs/research/data.md."""

    def __init__(self, findings: _asymq.Findings) -> None:
        self._findings = findings

    @property
    def page(self) -> Path:
        """The report, a page for the browser; the tables are in the same folder."""
        return Path(self._findings.page)

    @cached_property
    def verdicts(self) -> Mapping[str, str]:
        """Verdict of each claim."""
        return MappingProxyType({claim: verdict for claim, verdict, _ in self._findings.verdicts})

    @cached_property
    def measures(self) -> Table:
        """One row per measure of a series at a point, with its 95 % interval and the published value."""
        return Table(self._findings.table("measures"))

    @cached_property
    def claims(self) -> Table:
        """One row per condition of a claim."""
        return Table(self._findings.table("claims"))

    @cached_property
    def runs(self) -> Table:
        """One row per run: its place in the experiment, settings, metrics."""
        return Table(self._findings.table("runs"))

    @cached_property
    def flows(self) -> Table:
        """One row per flow of a run."""
        return Table(self._findings.table("flows"))

    @cached_property
    def time_series(self) -> Table:
        """One row per interval of each run of an experiment with a chart over time."""
        return Table(self._findings.table("time_series"))

    def to_pandas(self) -> pandas.DataFrame:
        """`measures` as a DataFrame."""
        return self.measures.to_pandas()

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for verdict in self.verdicts.values():
            counts[verdict] = counts.get(verdict, 0) + 1
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no claims"
        return f"<asymq.Findings: {said}; {self.page}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(verdict)}</td><td>{html.escape(says)}</td></tr>"
            for _, verdict, says in self._findings.verdicts
        )
        return f"<table>{rows}</table><p>{html.escape(str(self.page))}</p>"


def reproduce(
    what: str = "all",
    out: str | os.PathLike[str] = "asymq-reproduce",
    *,
    quick: bool = False,
    seed: int | None = None,
    client: Client | None = None,
    threads: int | None = None,
) -> Findings:
    """Runs the papers' evaluations, like `asymq reproduce`: "all", one paper, or "PAPER/FIGURE".

    Uses this machine's cores, or the cluster of `client`. Runs that `out` already contains are not repeated.
    """
    plan = _asymq.Sweep.of_papers(what, quick, seed)
    if client is None:
        return Findings(plan.run_here(Path(out), _cores(threads)))
    return _on_cluster(plan, client, out, None, None)


def sweep(
    experiment: str | os.PathLike[str],
    client: Client | None = None,
    out: str | os.PathLike[str] = "asymq-sweep",
    *,
    quick: bool = False,
    seed: int | None = None,
    report: bool = True,
    task_seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Findings | None:
    """Runs an experiment file (docs/research/experiments.md), or the text of one, on a Dask cluster.

    All workers must share the folder `out`. Each task writes its runs to `out/runs` as one CSV file (gzip), complete
    or not at all. After an interruption, call again: only missing tasks run. Without a client, a LocalCluster with
    a thread per core runs in this process until the end; simulations release Python's lock. `task_seconds` is the
    predicted time of a task on one core, by default a 128th of the sweep, at least 0.25 s and at most 2 s. It must
    stay the same for a folder. With `report=False`, only the parts are written, for sweeps whose runs do not fit into
    memory. `progress` is called with the numbers of finished runs and of all runs.
    """
    text = os.fspath(experiment)
    if "\n" in text:
        plan = _asymq.Sweep.of_text("experiment", text, quick, seed)
    else:
        plan = _asymq.Sweep.of_file(Path(text), quick, seed)
    if client is not None:
        return _on_cluster(plan, client, out, task_seconds, progress, report)
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=_own_cores(), processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as own,
    ):
        return _on_cluster(plan, own, out, task_seconds, progress, report)


def _on_cluster(
    plan: _asymq.Sweep,
    client: Any,
    out: str | os.PathLike[str],
    task_seconds: float | None,
    progress: Callable[[int, int], None] | None,
    report: bool = True,
) -> Any:
    from ._dask import run

    folder = Path(out).absolute()
    if task_seconds is None:
        task_seconds = min(max(plan.packets / PACKETS_PER_SECOND / TASKS, SHORTEST), LONGEST)
    packets = max(1, round(task_seconds * PACKETS_PER_SECOND))

    def tasks(specs: list[tuple[str, int, int, str]], runs: int) -> None:
        run(client, folder, specs, runs, progress)

    findings = plan.run_tasks(folder, packets, report, tasks)
    return None if findings is None else Findings(findings)
