"""Disciplines written in Python run like asymq's own, under the same laws."""

from __future__ import annotations

from collections import deque
from typing import Any

import asymq
import asymq.testing
import pytest

SCENARIO = asymq.Scenario(flows_up=1, flows_down=1, rtt="50ms", duration="6s", runs=2)


class TailDrop(asymq.Discipline):
    """A FIFO that drops arriving packets when it is full."""

    def __init__(self, place: asymq.Place) -> None:
        self.place = place
        self.queue: deque[asymq.Packet] = deque()
        self.bytes = 0

    def enqueue(self, now: int, packet: asymq.Packet, sink: asymq.Sink) -> None:
        packets, size = self.place.limit_packets, self.place.limit_bytes
        if packets is not None and len(self.queue) >= packets:
            sink.drop(packet)
        elif size is not None and self.bytes + packet.length > size:
            sink.drop(packet)
        else:
            self.queue.append(packet)
            self.bytes += packet.length

    def dequeue(self, now: int, sink: asymq.Sink) -> asymq.Packet | int | None:
        return self.drain()

    def drain(self) -> asymq.Packet | None:
        if not self.queue:
            return None
        packet = self.queue.popleft()
        self.bytes -= packet.length
        return packet


def test_a_discipline_in_python_does_what_the_same_one_in_rust_does() -> None:
    mine = asymq.simulate(SCENARIO.replace(qdisc=TailDrop))
    own = asymq.simulate(SCENARIO.replace(qdisc="droptail"))
    assert mine.qdisc == "tail-drop"
    assert mine.runs == own.runs


def test_it_stands_at_the_downlink_too() -> None:
    mine = asymq.simulate(SCENARIO.replace(qdisc_down="tail-drop", buffer_down="64kb"))
    own = asymq.simulate(SCENARIO.replace(qdisc_down="droptail", buffer_down="64kb"))
    assert mine.runs == own.runs


def test_it_obeys_the_laws() -> None:
    asymq.testing.check(TailDrop, cases=10)


class Newest(TailDrop):
    """Sends the newest packet first."""

    def drain(self) -> asymq.Packet | None:
        if not self.queue:
            return None
        packet = self.queue.pop()
        self.bytes -= packet.length
        return packet


class Idler(TailDrop):
    """Never sends the last packet."""

    def drain(self) -> asymq.Packet | None:
        return super().drain() if len(self.queue) > 1 else None


class Overfull(TailDrop):
    """Ignores the limit."""

    def enqueue(self, now: int, packet: asymq.Packet, sink: asymq.Sink) -> None:
        self.queue.append(packet)
        self.bytes += packet.length


class Doubler(TailDrop):
    """Sends a packet twice."""

    def drain(self) -> asymq.Packet | None:
        return self.queue[0] if self.queue else None


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Newest, "overtook"),
        (Idler, "packets are queued"),
        (Overfull, "wait of"),
        (Doubler, "sent, but is not in the queue"),
    ],
)
def test_what_breaks_a_law_is_told_with_the_least_steps(broken: Any, law: str) -> None:
    with pytest.raises(AssertionError, match=law) as error:
        asymq.testing.check(broken, cases=30)
    steps = str(error.value).split("after these steps:")[1]
    assert 0 < steps.count("\n") < 60


class Marker(TailDrop):
    """Marks or drops packets above a small backlog; delays its packets."""

    parameters = {"few": 5, "pause": "1ms", "eager": False}

    def __init__(self, place: asymq.Place, few: float, pause: float, eager: bool) -> None:
        super().__init__(place)
        self.few, self.pause, self.eager = few, round(pause * 1e9), eager
        self.ready, self.seen = 0, 0

    def enqueue(self, now: int, packet: asymq.Packet, sink: asymq.Sink) -> None:
        if len(self.queue) < self.few or sink.mark(packet):
            super().enqueue(now, packet, sink)
        else:
            sink.drop(packet, "aqm")

    def dequeue(self, now: int, sink: asymq.Sink) -> asymq.Packet | int | None:
        if not self.queue:
            return None
        if not self.eager and now < self.ready:
            return self.ready
        self.ready = now + self.pause
        return self.drain()

    def observe(self, now: int, packet: asymq.Packet) -> None:
        self.seen += 1

    def probe(self) -> dict[str, float]:
        return {"reverse": self.seen}


def test_parameters_are_keys_of_scenarios_and_marks_and_drops_are_counted() -> None:
    scenario = SCENARIO.replace(qdisc=Marker, few=3, pause="500us", tcp="dctcp")
    assert scenario["uplink"]["few"] == 3
    assert scenario["uplink"]["pause"] == "500us"
    marked = asymq.simulate(scenario)
    assert marked.mean["up_marked_packets"] > 0
    dropped = asymq.simulate(scenario.replace(tcp="reno"))
    assert dropped.mean["up_marked_packets"] == 0
    assert dropped.mean["up_dropped_packets"] > 0
    slow = asymq.simulate(scenario.replace(pause="50ms"))
    assert slow.mean["up_utilization"] < 0.5 * marked.mean["up_utilization"]
    assert asymq.Scenario.from_json(marked.to_json()) == scenario
    with pytest.raises(asymq.ScenarioError, match="--few many: not a number"):
        scenario.replace(few="many")


def test_an_error_in_a_discipline_ends_the_run() -> None:
    class Faulty(TailDrop):
        def dequeue(self, now: int, sink: asymq.Sink) -> asymq.Packet | int | None:
            raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        asymq.simulate(SCENARIO.replace(qdisc=Faulty))

    class Stuck(TailDrop):
        def dequeue(self, now: int, sink: asymq.Sink) -> asymq.Packet | int | None:
            return now

    with pytest.raises(RuntimeError, match="the time must be in the future"):
        asymq.simulate(SCENARIO.replace(qdisc=Stuck))


def test_names_and_parameters_that_are_taken_are_refused() -> None:
    with pytest.raises(ValueError, match="taken"):

        class Aq(TailDrop):
            pass

    with pytest.raises(ValueError, match="a key of scenarios"):

        class TakesUp(TailDrop):
            parameters = {"up": 1}

    with pytest.raises(ValueError, match="other disciplines have one"):

        class TakesInterval(TailDrop):
            parameters = {"interval": 1}
