"""asymq's laws, for your own disciplines and congestion controls."""

from __future__ import annotations

from . import _asymq
from .congestion import CongestionControl
from .discipline import Discipline


def check(tried: type[Discipline] | type[CongestionControl] | str, cases: int = 50) -> None:
    """Tests with random steps that a class obeys the laws of asymq's own classes; `cases` is the number of tests.

    A discipline (class or name) is tested with four buffers. Every packet must leave exactly once. While packets
    wait, one must leave, or the discipline must return the next time. Packets of one class and flow must leave in
    order. Limits must hold. Only pure ACKs may be filtered, and only ECN-capable packets marked.

    A congestion control's window must be a number of at least 1. An ACK may increase it by at most twice the
    acknowledged segments. Without SACK, the start of a fast recovery may add three segments, and each further
    duplicate ACK one. Other events must not increase it. A loss and a timeout must reduce it. Equal events must give
    equal windows. A class with `on_sample` or `on_lost` may respond to losses later.

    Raises an AssertionError that names the violated law, with the fewest steps that violate it.
    """
    if isinstance(tried, type) and issubclass(tried, CongestionControl):
        _asymq.check_congestion(tried.name, tried._events(), tried.paces, tried, cases)
        return
    _asymq.check_laws(tried if isinstance(tried, str) else tried.name, cases)
