"""Charts with matplotlib, in the colours of asymq's own charts, for light and dark pages."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Simulated(Protocol):
    """Curves of a result in a chart."""

    @property
    def scenario(self) -> Any: ...
    @property
    def mean(self) -> Mapping[str, float]: ...
    @property
    def runs(self) -> Any: ...
    @property
    def series(self) -> Any: ...


# Same values as in crates/charts/src/palette.rs.
_THEMES: dict[str, dict[str, str]] = {
    "light": {
        "background": "#FFFFFE", "text": "#1F2328", "muted": "#59636E", "grid": "#DFE3E8",
        "down": "#0969DA", "up": "#BC4C00",
    },
    "dark": {
        "background": "#0d1117", "text": "#e6edf3", "muted": "#9198a1", "grid": "#262c36",
        "down": "#58a6ff", "up": "#f0883e",
    },
}  # fmt: skip


def theme_of(name: str | None) -> dict[str, str]:
    """Colours of a theme; by default the one that fits matplotlib's style."""
    if name is None:
        import matplotlib
        from matplotlib.colors import to_rgb

        face = matplotlib.rcParams["figure.facecolor"]
        name = "light" if sum(to_rgb(face)) > 1.5 else "dark"
    if name not in _THEMES:
        raise ValueError(f"theme={name!r}: unknown; use 'light' or 'dark'")
    return _THEMES[name]


def over_time(results: Mapping[str, Simulated], theme: str | None = None) -> Figure:
    """Draws a row per result: data and ACKs of each direction over time, of the run nearest to the means.

    Data has a strong colour, ACKs above it a pale one. Numbers and dashed lines are goodput.
    """
    colours = theme_of(theme)
    figure = _figure(figsize=(7, 0.9 + 1.6 * len(results)), layout="constrained")
    figure.set_facecolor(colours["background"])
    rows: Any = figure.subplots(len(results), 2, sharex=True, sharey=True, squeeze=False)
    for axes, (name, result) in zip(rows, results.items(), strict=True):
        draw(axes, name, result, colours)
    for axis in rows[-1]:
        axis.set_xlabel("time, s", color=colours["muted"])
    legend = "share of the link: data (strong), ACKs (pale); dashed: goodput"
    figure.suptitle(legend, fontsize=10, color=colours["muted"])
    return figure


def _figure(**keywords: Any) -> Figure:
    """Makes a figure that a notebook displays without pyplot's state."""
    from matplotlib.figure import Figure

    class Chart(Figure):
        def _repr_svg_(self) -> str:
            file = io.StringIO()
            self.savefig(file, format="svg")
            return file.getvalue()

    return Chart(**keywords)


def draw(axes: Any, name: str, result: Simulated, colours: Mapping[str, str]) -> None:
    """Draws both directions of a result on two axes."""
    series, seed = result.series, _typical(result)
    rows = [index for index, other in enumerate(series["seed"]) if other == seed]
    time = [series["time_s"][index] for index in rows]
    warmup = _seconds(result.scenario["warmup"])
    for axis, side, title in ((axes[0], "down", "download"), (axes[1], "up", "upload")):
        mean = result.mean[f"{side}_delivered"]
        for column, alpha in ((f"{side}_utilization", 0.25), (f"{side}_data", 0.4)):
            values = [series[column][index] for index in rows]
            axis.fill_between(time, values, step="post", color=colours[side], alpha=alpha, linewidth=0)
        axis.step(time, values, where="post", color=colours[side], linewidth=1)
        axis.axvspan(0, warmup, color=colours["background"], alpha=0.6, linewidth=0, zorder=3)
        axis.axhline(mean, color=colours["muted"], linewidth=0.8, linestyle="--")
        axis.set_title(f"{name}: {title} {mean:.0%}", loc="left", fontsize=10, color=colours["text"])
        axis.set_xlim(0, time[-1] if time else 1)
        axis.set_ylim(0, 1.05)
        axis.set_facecolor(colours["background"])
        axis.tick_params(colors=colours["muted"], labelsize=8)
        axis.grid(axis="y", color=colours["grid"], linewidth=0.6)
        for spine in axis.spines.values():
            spine.set_color(colours["grid"])


def _typical(result: Simulated) -> int:
    """Seed of the run nearest to the means."""
    mean = result.mean
    sides = ("up_delivered", "down_delivered")

    def distance(run: Mapping[str, float]) -> float:
        return sum((run[side] - mean[side]) ** 2 for side in sides)

    return int(min(result.runs, key=distance)["seed"])


def _seconds(text: str) -> float:
    """Reads a time in tc's notation."""
    for unit, factor in (("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * factor
    return float(text)
