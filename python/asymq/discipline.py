"""Queue disciplines written in Python, for prototypes. They run in the simulator like asymq's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from . import _asymq
from ._asymq import Packet, Place, Sink
from ._naming import name
from .scenario import native


class Discipline:
    """Base class of a queue discipline on one link.

    A subclass with `enqueue` and `dequeue` can be used in scenarios at once: Scenario(qdisc=MyQdisc), or by its
    name. Each link has its own object in each run. Times are whole nanoseconds and never decrease. Each packet
    passed to `enqueue` must leave exactly once: returned by `dequeue` or `drain`, or dropped into the sink. The
    simulator counts waiting packets. A packet takes some microseconds of CPU time, about 100 times as much as in Rust.

    `parameters` are keys of scenarios with their defaults, by name: numbers, booleans, times like "20ms" and
    rates like "1mbit". The constructor receives their values by keyword, times in seconds and rates in bit/s.
    """

    #: Name in scenarios and results; by default derived from the class, like my-qdisc for MyQdisc.
    name: ClassVar[str]
    #: The name in tables and charts.
    title: ClassVar[str]
    parameters: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, place: Place, **parameters: Any) -> None:
        self.place = place

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        name(cls)
        if cls.enqueue is not Discipline.enqueue and cls.dequeue is not Discipline.dequeue:
            summary = (cls.__doc__ or "Written in Python").strip().split("\n")[0].rstrip(".")
            parameters = {key: native(value) for key, value in cls.parameters.items()}
            _asymq.register(cls.name, cls.title, summary, parameters, cls)

    def enqueue(self, now: int, packet: Packet, sink: Sink) -> None:
        """Stores a packet, or drops any packets with sink.drop(packet, reason)."""
        raise NotImplementedError

    def dequeue(self, now: int, sink: Sink) -> Packet | int | None:
        """Returns the next packet to transmit, or the earliest time for one, or None if no packet waits."""
        raise NotImplementedError

    def drain(self) -> Packet | None:
        """Returns the next packet regardless of the schedule. Called only when disciplines are changed."""
        raise NotImplementedError

    # Optional members of a subclass:
    #
    # observe(self, now: int, packet: Packet) -> None is called for each packet of the reverse path. probe(self) ->
    # dict[str, float] returns control variables. The laws also check `ack_limit`, `data_limit` and `data_share`.
