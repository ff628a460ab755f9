"""Congestion controls written in Python, for prototypes. They run in the simulator like asymq's own."""

from __future__ import annotations

import math
from typing import ClassVar

from . import _asymq
from ._asymq import AckSample, Connection, LostSegment
from ._naming import name


class CongestionControl:
    """Base class of the congestion control of a TCP connection.

    A subclass with `on_ack`, `on_loss` and `on_timeout` can be used in scenarios at once: Scenario(tcp=MyTcp), or
    by its name. Each connection has its own object. Windows are in segments, times in whole nanoseconds. The
    sender calls a method for each event, then reads `window`. The sender itself detects losses and retransmits.
    An event takes some microseconds of CPU time, about 100 times as much as in Rust.

    The simulator's senders use SACK by default. With sack=False, a subclass must increase `window` during
    a recovery by the segments that have left the network (RFC 5681, section 3.2), in `on_fast_retransmit`,
    `on_duplicate_ack`, `on_partial_ack` and `on_recovered`.
    """

    #: Name in scenarios and results; by default derived from the class, like my-tcp for MyTcp.
    name: ClassVar[str]
    #: True if segments leave at `pacing_rate`.
    paces: ClassVar[bool] = False

    #: Maximum segments in flight; at least 1.
    window: float = 1.0
    #: Slow-start threshold in segments. With pacing=True, the rate is 2 windows per round trip below half of it.
    threshold: float = math.inf
    #: Segments per second; None while unknown.
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

    # Required events.

    def on_established(self, initial_window: float) -> None:
        """The connection is established."""
        self.window = initial_window

    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        """`acked` segments were acknowledged, outside of a recovery, and the sender uses its whole window.

        `srtt` is the smoothed round-trip time. `acked` is 0 for a further ACK of the same segment (ACK regeneration).
        """
        raise NotImplementedError

    def on_loss(self, flight: float) -> None:
        """A loss or a congestion mark occurred, with `flight` segments in flight; at most once per window."""
        raise NotImplementedError

    def on_timeout(self, flight: float) -> None:
        """The retransmission timer expired with `flight` segments in flight."""
        raise NotImplementedError

    # Separate events for the cases of `on_loss`.

    def on_selective_loss(self, flight: float) -> None:
        """SACK indicates a loss: a recovery begins."""
        self.on_loss(flight)

    def on_fast_retransmit(self, flight: float) -> None:
        """Without SACK: three duplicate ACKs indicate a loss, and fast recovery begins."""
        self.on_loss(flight)

    def on_mark(self, flight: float) -> None:
        """A congestion mark (ECN) reached the sender; at most once per window."""
        self.on_loss(flight)

    # Optional events.

    def on_duplicate_ack(self) -> None:
        """Without SACK: a further duplicate ACK arrived in fast recovery."""

    def on_partial_ack(self, acked: int) -> None:
        """Without SACK: `acked` segments were acknowledged, but fast recovery continues."""

    def on_recovered(self) -> None:
        """The recovery has ended; also called before a timeout."""

    def on_idle(self, restart_window: float) -> None:
        """The application paused for longer than the retransmission timeout (RFC 5681, section 4.1)."""

    def on_echo(self, acked: int, marked: int, una: int, end: int) -> None:
        """With ECN: an ACK up to `una` of `acked` segments, of which `marked` were marked. `end` is sent next."""

    def on_sample(self, sample: AckSample) -> None:
        """An ACK measured the path. Called before `on_ack` without SACK, after it with SACK."""

    def on_lost(self, now: int, lost: LostSegment) -> None:
        """A segment is considered lost."""
