"""Immutable scenarios. Keys have the names of the command's flags and of scenario files."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from . import _asymq

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import Keys


class Scenario:
    """An immutable scenario: a link, its disciplines, its flows, and the duration of a run.

    Scenario(up="1mbit", qdisc="aq", flows_up=2) takes the flags of `asymq sim` with underscores;
    Scenario("link.toml", runs=3) reads a file, which keywords override.
    """

    __slots__ = ("_native",)
    _native: _asymq.Scenario

    def __init__(self, file: str | os.PathLike[str] | None = None, /, **keys: Unpack[Keys]) -> None:
        self._native = _asymq.Scenario(words(keys), file)

    @classmethod
    def _of(cls, native: _asymq.Scenario) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._native = native
        return scenario

    @classmethod
    def headline(cls, **keys: Unpack[Keys]) -> Scenario:
        """Returns the scenario of `asymq compare`: one upload and one download between Linux hosts, RTT 100 ms."""
        return cls._of(_asymq.Scenario.headline(words(keys)))

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """Reads the text of a scenario file."""
        return cls._of(_asymq.Scenario.from_toml(text))

    @classmethod
    def from_json(cls, text: str) -> Scenario:
        """Reads a scenario from the JSON of a result, or of the scenario alone."""
        return cls._of(_asymq.Scenario.restored(None, text))

    def replace(self, **keys: Unpack[Keys]) -> Scenario:
        """Returns a copy with new values for these keys."""
        return self._of(self._native.replace(words(keys)))

    def to_toml(self) -> str:
        """Returns the text of a scenario file."""
        return self._native.to_toml()

    def to_json(self) -> str:
        """Returns the scenario as it runs, with all defaults filled in."""
        return self._native.to_json()

    @property
    def seeds(self) -> range:
        """Seeds of its runs."""
        first, runs = self._native.seeds
        return range(first, first + runs)

    @property
    def warnings(self) -> list[str]:
        """Warnings about unusual settings that might be mistakes."""
        return self._native.warnings

    def __getitem__(self, key: str) -> Any:
        """Returns the value of a key of the complete scenario, named as in its JSON."""
        return json.loads(self.to_json())[key.replace("_", "-")]

    def __getattr__(self, key: str) -> Any:
        try:
            # Names that begin with an underscore are Python's, not keys.
            return self[key] if not key.startswith("_") else self.__getattribute__(key)
        except KeyError:
            raise AttributeError(f"a scenario has no key {key!r}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.replace("-", "_") for key in json.loads(self.to_json()))]

    def __eq__(self, other: object) -> bool:
        return self._native == other._native if isinstance(other, Scenario) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        given = self._native.words()
        if given is None:
            return f"<asymq.Scenario from a result: {self['uplink']['qdisc']}, {self.up} up, {self.down} down>"
        keys: dict[str, list[str]] = {}
        for word in given:
            key, _, text = word.lstrip("-").partition("=")
            keys.setdefault(key.replace("-", "_"), []).append(text)
        shown = ((key, texts[0] if len(texts) == 1 else texts) for key, texts in keys.items())
        return f"asymq.Scenario({', '.join(f'{key}={json.dumps(text)}' for key, text in shown)})"

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self), quote=False)}</code>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Files named by the scenario need not exist where it is restored.
        return _restored, (self._native.words(), self.to_json())


def _restored(given: list[str] | None, text: str) -> Scenario:
    return Scenario._of(_asymq.Scenario.restored(given, text))


def words(keys: Mapping[str, Any]) -> list[str]:
    """Converts keywords to words of the command line. `None` means that the key is not given."""
    line: list[str] = []
    for key, value in keys.items():
        key, value = key.replace("_", "-"), native(value)
        if key == "parameters" and isinstance(value, dict):
            # Parameters of disciplines, unknown to type checkers.
            if "parameters" in value:
                raise ValueError("parameters: contains `parameters`; write its keys here")
            line += words(value)
        elif value is not None:
            items = value if isinstance(value, (list, tuple)) else [value]
            line += [f"--{key}={_text(key, native(item))}" for item in items]
    return line


def native(value: Any) -> Any:
    """Converts arrays and scalars of NumPy and pandas to Python's lists and numbers; keeps other values."""
    return value.tolist() if hasattr(value, "dtype") and not isinstance(value, type) else value


def _text(key: str, value: Any) -> str:
    """Converts a value to a word. A table may not contain tables, so that its depth is bounded."""
    if not isinstance(value, dict):
        return _plain_text(key, value)
    pairs = []
    for name, inner in value.items():
        name = name.replace("_", "-")
        if isinstance(inner, dict):
            raise ValueError(f"{name}: a table inside of a table; write text or a number")
        pairs.append(f"{name}={_plain_text(name, native(inner))}")
    return ",".join(pairs)


def _plain_text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int)):
        return str(value)
    # A discipline's class means its name.
    if isinstance(value, type) and hasattr(value, "name"):
        return str(value.name)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        message = f'{type(value).__name__} is not allowed here; write text or a number, for example up="1mbit"'
        raise TypeError(f"{key}: {message}") from None
    # Formats without an exponent, which rates and times do not allow.
    return f"{Decimal(repr(number)):f}".removesuffix(".0") if math.isfinite(number) else str(number)
