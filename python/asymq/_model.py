"""The model: AQ's equations and the AMP model for a link."""

from __future__ import annotations

import json
from typing import Any

from . import _asymq
from .scenario import words

_RATES = {"up", "down", "non_tcp_up", "non_tcp_down", "least_up"}


def model(**keys: Any) -> dict[str, Any]:
    """Computes `asymq model` for a link. Returns values by name, in base units.

    The keys are the command's flags: up, down, ack_size, data_size, data_per_ack, buffer, non_tcp_up,
    non_tcp_down, packets_per_ack, data_share, data_share_down. Names of the AMP model's quantities start with `amp_`.
    A quantity that does not apply to the link is absent, such as rates if the link cannot be filled.
    """
    columns: dict[str, Any] = {}
    _flatten(columns, "", json.loads(_asymq.model(words(keys))))
    del columns["format"]
    return columns


def _flatten(columns: dict[str, Any], path: str, value: Any) -> None:
    name = path.rsplit("_", 1)[0] if path.endswith(("_data", "_ack")) else path
    if isinstance(value, dict):
        for key, inner in value.items():
            # Quantities of these parts get no prefix; the input comes first.
            part = "" if key in ("link", "full") else key
            _flatten(columns, f"{path}_{part}".strip("_"), inner)
    elif isinstance(value, str) and value.endswith("p") and value[:-1].isdigit():
        columns[f"{path}_packets"] = int(value[:-1])
    elif isinstance(value, str) and path.startswith("buffer"):
        columns[f"{path}_bytes"] = _bytes(value)
    elif name.endswith("_ms"):
        columns[path.replace("_ms", "") + "_s"] = value / 1e3
    elif path.startswith("amp_"):
        rate = path.endswith("_rate")
        columns[f"{path[:-5]}_bit_per_s" if rate else path] = value
    elif path in _RATES or path.startswith("rates_"):
        columns[f"{path}_bit_per_s"] = value
    elif path in ("ack_size", "data_size"):
        columns[f"{path}_bytes"] = value
    else:
        columns[path] = value


def _bytes(text: str) -> int:
    """Converts a size in tc's notation to bytes."""
    units = {"kb": 1024, "mb": 1024**2, "gb": 1024**3, "b": 1}
    unit = next(unit for unit in units if text.endswith(unit))
    return int(float(text[: -len(unit)]) * units[unit])
