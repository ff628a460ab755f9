"""Queue disciplines written in Python, for prototypes: they run in the simulator as asymq's own do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from . import _asymq
from ._asymq import Packet, Place, Sink
from ._naming import name
from .scenario import native


class Discipline:
    """The base of a queue discipline on one link.

    A subclass with `enqueue` and `dequeue` is known to scenarios at once: Scenario(qdisc=MyQdisc), or by its
    name. One object is made per link and run. Times are whole nanoseconds and never go back. Each packet
    given to `enqueue` leaves exactly once: returned by `dequeue` or `drain`, or dropped into the sink;
    what waits is counted for you. A packet costs some microseconds, a hundred times what it costs in Rust.

    `parameters` are keys of scenarios with their defaults, by name: numbers, truths, times like "20ms" and
    rates like "1mbit". The constructor gets their values by keyword, times in seconds and rates in bit/s.
    """

    #: The name in scenarios and results; the class's, as in my-qdisc, unless said.
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
        """Takes a packet: keeps it, or drops it or others by sink.drop(packet, reason)."""
        raise NotImplementedError

    def dequeue(self, now: int, sink: Sink) -> Packet | int | None:
        """The next packet to transmit; a time before which none may leave; None if nothing waits."""
        raise NotImplementedError

    def drain(self) -> Packet | None:
        """The next packet whatever the schedule says; only a change of disciplines asks."""
        raise NotImplementedError

    # A subclass may have these too:
    #
    #   def observe(self, now: int, packet: Packet) -> None
    #       is shown each packet of the reverse path;
    #   def probe(self) -> dict[str, float]
    #       names its control variables. `ack_limit`, `data_limit` and `data_share` are held to by the laws.
