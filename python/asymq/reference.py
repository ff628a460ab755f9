"""Curves of other tools, for comparison: flent's files (read and written), and output of ns-2 and ns-3."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .result import Result

_MBIT = 1e6
#: A fixed date, so that equal results give equal files.
_EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Curve:
    """Values over time from another tool."""

    name: str
    #: Times in seconds from the start.
    time_s: list[float]
    #: Values; None if there is no sample.
    values: list[float | None]
    #: The unit of the values, if the file names it.
    unit: str = ""

    def __repr__(self) -> str:
        unit = f" in {self.unit}" if self.unit else ""
        return f"<asymq.Curve {self.name}: {len(self.values)} values{unit}>"

    def draw(self, axis: Any, factor: float = 1.0, **style: Any) -> None:
        """Draws the curve on an axis of matplotlib, with its values multiplied by `factor`."""
        values = [float("nan") if value is None else value * factor for value in self.values]
        axis.plot(self.time_s, values, **{"linestyle": "--", "linewidth": 1, "label": self.name, **style})


def write_flent(
    result: Result, path: str | os.PathLike[str], seed: int | None = None, title: str = ""
) -> None:
    """Writes one run as flent's test `tcp_bidirectional`: the first run, or that of `seed`.

    flent and flent-gui open the file; `path` must end with .flent.gz. It contains the throughput of TCP data in
    both directions, but no ping: the simulator does not record pings over time.
    """
    name = os.fspath(path)
    if not name.endswith(".flent.gz"):
        raise ValueError(f"{name}: flent reads files whose name ends with .flent.gz")
    series = result.series
    seed = result.scenario.seeds[0] if seed is None else seed
    rows = [index for index, other in enumerate(series["seed"]) if other == seed]
    if not rows:
        raise ValueError(f"seed {seed}: not among the runs; use one of {list(result.scenario.seeds)}")
    table = result.table
    x_values = [series["time_s"][index] + series["length_s"][index] for index in rows]
    start = _EPOCH.timestamp()
    results: dict[str, list[float]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    for data_set, side in (("TCP download", "down"), ("TCP upload", "up")):
        rate = table[f"{side}_bit_per_s"][0] / _MBIT
        column = series[f"{side}_data"]
        results[data_set] = [column[index] * rate for index in rows]
        raw[data_set] = [
            {"t": start + x, "val": value} for x, value in zip(x_values, results[data_set], strict=True)
        ]
    length = x_values[-1]
    metadata = {
        "NAME": "tcp_bidirectional",
        "TITLE": title or f"asymq {result.qdisc}, seed {seed}",
        "NOTE": "simulated by asymq",
        "HOST": "asymq",
        "HOSTS": ["asymq"],
        "LOCAL_HOST": "asymq",
        "TIME": _EPOCH.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "T0": _EPOCH.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "LENGTH": length,
        "TOTAL_LENGTH": length,
        "STEP_SIZE": series["length_s"][rows[0]],
        "IP_VERSION": 4,
        "DATA_FILENAME": os.path.basename(name),
        "SERIES_META": {key: {"UNITS": "Mbits/s"} for key in results},
        "TEST_PARAMETERS": {},
    }
    document = {
        "metadata": metadata,
        "version": 4,
        "x_values": x_values,
        "results": results,
        "raw_values": raw,
    }
    data = gzip.compress(json.dumps(document, sort_keys=True).encode(), mtime=0)
    with open(path, "wb") as file:
        file.write(data)


def read_flent(path: str | os.PathLike[str]) -> dict[str, Curve]:
    """Reads the curves of a .flent.gz or .flent file, by the name of the data set."""
    name = os.fspath(path)
    try:
        with gzip.open(path, "rt") if name.endswith(".gz") else open(path, encoding="utf-8") as file:
            document = json.load(file)
        time_s = [float(x) for x in document["x_values"]]
        meta = document["metadata"].get("SERIES_META", {})
        results = document["results"].items()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{name}: not a file of flent's ({error!r})") from None
    return {
        key: Curve(key, time_s, list(values), meta.get(key, {}).get("UNITS", ""))
        for key, values in results
    }


def read_columns(path: str | os.PathLike[str], name: str | None = None, unit: str = "") -> Curve:
    """Reads a curve of two columns, time in seconds and a value, from files for ns-2's xgraph or gnuplot (ns-3).

    Lines that do not begin with two numbers are skipped: comments, titles and separators.
    """
    time_s: list[float] = []
    values: list[float | None] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.replace(",", " ").split()
            try:
                x, value = float(words[0]), float(words[1])
            except (IndexError, ValueError):
                continue
            time_s.append(x)
            values.append(value)
    if not time_s:
        raise ValueError(f"{os.fspath(path)}: no line begins with a time and a value")
    return Curve(name or os.path.basename(os.fspath(path)), time_s, values, unit)


def read_ns2_trace(
    path: str | os.PathLike[str],
    link: tuple[str | int, str | int],
    interval_s: float = 0.2,
    types: Iterable[str] = ("tcp",),
) -> Curve:
    """Reads the throughput of a link from an ns-2 packet trace, in bit/s over intervals.

    `link` contains the node numbers. Counts packets of these types that left the queue (`-`), with headers.
    """
    source, sink = str(link[0]), str(link[1])
    counted = frozenset(types)
    bits: dict[int, int] = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if len(words) < 6 or words[0] != "-":
                continue
            try:
                at, length = float(words[1]), int(words[5])
            except ValueError:
                raise ValueError(f"{os.fspath(path)}:{number}: not a line of an ns-2 trace") from None
            if (words[2], words[3]) == (source, sink) and words[4] in counted:
                slot = int(at / interval_s)
                bits[slot] = bits.get(slot, 0) + 8 * length
    if not bits:
        raise ValueError(f"{os.fspath(path)}: no packet left the queue from {source} to {sink}")
    slots = range(max(bits) + 1)
    return Curve(
        f"ns-2, {source} to {sink}",
        [slot * interval_s for slot in slots],
        [bits.get(slot, 0) / interval_s for slot in slots],
        "bit/s",
    )
