"""asymq's laws, for disciplines of one's own."""

from __future__ import annotations

from . import _asymq
from .discipline import Discipline


def check(discipline: type[Discipline] | str, cases: int = 50) -> None:
    """Holds a discipline to the laws that asymq's own obey, by random steps; `cases` of them per buffer.

    Every packet leaves exactly once, while packets wait one leaves or the discipline says when, the
    packets of a class and flow leave in order, limits hold, only pure ACKs are filtered, and only ECN-capable
    packets are marked. Raises an AssertionError that names the law and the least steps that break it.
    """
    name = discipline if isinstance(discipline, str) else discipline.name
    _asymq.check_laws(name, cases)
