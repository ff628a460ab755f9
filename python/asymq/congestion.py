"""Congestion controls written in Python, for prototypes: they run in the simulator as asymq's own do."""

from __future__ import annotations

import math
from typing import ClassVar

from . import _asymq
from ._asymq import AckSample, Connection, LostSegment
from ._naming import name


class CongestionControl:
    """The base of the congestion control of a TCP connection.

    A subclass with `on_ack`, `on_loss` and `on_timeout` is known to scenarios at once: Scenario(tcp=MyTcp), or
    by its name. One object is made per connection. Windows are in segments, times in whole nanoseconds. The
    sender reports events, and reads `window` after it; it finds losses and sends again by itself.
    An event costs some microseconds, a hundred times what it costs in Rust.

    The simulator's senders use SACK with it, unless the scenario says sack=False: then a subclass must let
    `window` count what has left the network during a recovery (RFC 5681, section 3.2), in
    `on_fast_retransmit`, `on_duplicate_ack`, `on_partial_ack` and `on_recovered`.
    """

    #: The name in scenarios and results; the class's, as in my-tcp, unless said.
    name: ClassVar[str]
    #: Whether `pacing_rate` is to be read, and segments leave at that pace.
    paces: ClassVar[bool] = False

    #: Segments that may be in flight: from 1 on.
    window: float = 1.0
    #: The slow-start threshold in segments. Scenarios with pacing=True pace twice the window below it.
    threshold: float = math.inf
    #: Segments per second; None while it is not known.
    pacing_rate: float | None = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        name(cls)
        if not (cls._has("on_ack") and cls._has("on_timeout")):
            return
        if cls._has("on_loss") or (cls._has("on_fast_retransmit") and cls._has("on_selective_loss")):
            _asymq.register_congestion(cls.name, cls._events(), cls.paces, cls)

    @classmethod
    def _has(cls, method: str) -> bool:
        return getattr(cls, method) is not getattr(CongestionControl, method)

    @classmethod
    def _events(cls) -> list[str]:
        return [event for event in dir(CongestionControl) if event.startswith("on_") and cls._has(event)]

    # Each connection has these.

    def on_established(self, initial_window: float) -> None:
        """The connection is established."""
        self.window = initial_window

    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        """`acked` segments were acknowledged, outside of a recovery, by a sender that uses its window.

        `srtt` is the smoothed round-trip time. `acked` is 0 where a queue splits ACKs.
        """
        raise NotImplementedError

    def on_loss(self, flight: float) -> None:
        """A loss, or a congestion mark, with `flight` segments in flight; once a window."""
        raise NotImplementedError

    def on_timeout(self, flight: float) -> None:
        """The retransmission timer expired with `flight` segments in flight."""
        raise NotImplementedError

    # Those that tell apart what `on_loss` does not.

    def on_selective_loss(self, flight: float) -> None:
        """SACK shows a loss: a recovery begins."""
        self.on_loss(flight)

    def on_fast_retransmit(self, flight: float) -> None:
        """Three duplicate ACKs show a loss, without SACK: fast recovery begins."""
        self.on_loss(flight)

    def on_mark(self, flight: float) -> None:
        """A congestion mark (ECN) must be answered, once a window."""
        self.on_loss(flight)

    # Optional events.

    def on_duplicate_ack(self) -> None:
        """A further duplicate ACK in fast recovery, without SACK."""

    def on_partial_ack(self, acked: int) -> None:
        """`acked` segments were acknowledged, but fast recovery goes on, without SACK."""

    def on_recovered(self) -> None:
        """The recovery is over; also before a timeout."""

    def on_idle(self, restart_window: float) -> None:
        """The application paused for longer than the retransmission timeout (RFC 5681, section 4.1)."""

    def on_echo(self, acked: int, marked: int, una: int, end: int) -> None:
        """With ECN: an ACK of `acked` segments, of all below `una` now; all below `end` was sent."""

    def on_sample(self, sample: AckSample) -> None:
        """An ACK's measurements of the path: before `on_ack` without SACK, after it with SACK."""

    def on_lost(self, now: int, lost: LostSegment) -> None:
        """A segment is judged lost."""
