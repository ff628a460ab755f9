"""asymq's laws, for disciplines and congestion controls of one's own."""

from __future__ import annotations

from . import _asymq
from .congestion import CongestionControl
from .discipline import Discipline


def check(tried: type[Discipline] | type[CongestionControl] | str, cases: int = 50) -> None:
    """Holds a class to the laws that asymq's own obey, by random steps; `cases` of them.

    Of a discipline (or the name of one), under each of four buffers: every packet leaves exactly once, while
    packets wait one leaves or the discipline says when, the packets of a class and flow leave in order, limits
    hold, only pure ACKs are filtered, and only ECN-capable packets are marked.

    Of a congestion control: its window is a number from 1 on, an ACK opens it by at most twice what it
    acknowledges, nothing else opens it, a loss and a timeout take something from it, and the same events
    give the same windows. One that has `on_sample` or `on_lost` may answer losses in its own time.

    Raises an AssertionError that names the law and the fewest steps that break it.
    """
    if isinstance(tried, type) and issubclass(tried, CongestionControl):
        _asymq.check_congestion(tried.name, tried._events(), tried.paces, tried, cases)
        return
    _asymq.check_laws(tried if isinstance(tried, str) else tried.name, cases)
