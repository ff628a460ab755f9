"""Sliders for a notebook: a scenario under some disciplines, simulated again after each move."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .scenario import Scenario
from .result import Comparison, compare

if TYPE_CHECKING:
    from ipywidgets import VBox

#: Positions of the sliders, by key of the scenario.
_POSITIONS: dict[str, Sequence[str | int]] = {
    "up": ["128kbit", "256kbit", "512kbit", "1mbit", "2mbit", "5mbit", "10mbit", "20mbit"],
    "down": ["2mbit", "5mbit", "10mbit", "20mbit", "50mbit", "100mbit"],
    "rtt": ["5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "600ms"],
    "flows_up": range(9),
    "flows_down": range(9),
}


def sliders(
    only: Sequence[str] = ("droptail", "asymq"),
    scenario: Scenario | None = None,
    keys: Sequence[str] = ("up", "down", "flows_up", "flows_down"),
) -> VBox:
    """Shows sliders over a chart and a table; use it as the last line of a notebook's cell. Needs `asymq[notebook]`.

    `only` names the disciplines; each has a row in the chart. `scenario` contains all settings without a slider;
    the default is 12 s of `Scenario.headline()`. `keys` selects the sliders: up, down, rtt, flows_up, flows_down.
    Each move simulates one seed. The returned object's `.comparison` contains the results shown.
    """
    import ipywidgets

    base = Scenario.headline().replace(duration="12s", warmup="2s") if scenario is None else scenario
    unknown = [key for key in keys if key not in _POSITIONS]
    if unknown:
        raise ValueError(f"keys={unknown[0]!r}: no slider; use some of {', '.join(_POSITIONS)}")
    moved = {key: _slider(ipywidgets, key, base) for key in keys}
    chart, table = ipywidgets.Image(format="png"), ipywidgets.HTML()
    box = ipywidgets.VBox([*moved.values(), chart, table])

    def show(_: Any = None) -> None:
        asked = base.replace(**{key: slider.value for key, slider in moved.items()})
        comparison = compare(asked, only, [base.seeds[0]], series=True)
        box.comparison = comparison
        chart.value = _png(comparison)
        table.value = comparison._repr_html_()

    for slider in moved.values():
        slider.observe(show, names="value")
    show()
    return box


def _slider(ipywidgets: Any, key: str, scenario: Scenario) -> Any:
    options, value = list(_POSITIONS[key]), scenario[key]
    # Adds a position for the scenario's own value.
    if value not in options:
        options.insert(0, value)
    return ipywidgets.SelectionSlider(
        options=options, value=value, description=key, continuous_update=False, layout={"width": "32em"}
    )


def _png(comparison: Comparison) -> bytes:
    file = io.BytesIO()
    comparison.plot().savefig(file, format="png", dpi=90)
    return file.getvalue()
