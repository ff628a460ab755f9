"""Congestion controls written in Python run like asymq's own, under the same laws."""

from __future__ import annotations

import itertools
import pickle
import random
import traceback
from pathlib import Path
from typing import Any

import asymq
import asymq.testing
import pytest
from distributed import Client, LocalCluster

SCENARIO = asymq.Scenario(flows_up=1, flows_down=1, rtt="50ms", duration="8s", runs=2)


class PythonReno(asymq.CongestionControl):
    """RFC 5681, with the window of RFC 6582 without SACK."""

    inflation = 0.0
    size = 1.0

    def tell(self) -> None:
        self.window = self.size + self.inflation

    def on_established(self, initial_window: float) -> None:
        self.size = initial_window
        self.tell()

    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        self.size += 1.0 if self.size < self.threshold else 1.0 / self.size
        self.tell()

    def on_fast_retransmit(self, flight: float) -> None:
        self.threshold = max(2.0, flight // 2)
        self.size = max(1.0, flight / 2)
        self.inflation = 3.0
        self.tell()

    def on_selective_loss(self, flight: float) -> None:
        self.on_fast_retransmit(flight)
        self.on_recovered()

    on_mark = on_selective_loss

    def on_duplicate_ack(self) -> None:
        self.inflation += 1.0
        self.tell()

    def on_partial_ack(self, acked: int) -> None:
        if self.inflation > acked:
            self.inflation -= acked - 1.0
        else:
            self.size = max(1.0, self.size - (acked - self.inflation))
            self.inflation = 1.0
        self.tell()

    def on_recovered(self) -> None:
        self.inflation = 0.0
        self.tell()

    def on_timeout(self, flight: float) -> None:
        self.threshold = max(2.0, flight // 2)
        self.size, self.inflation = 1.0, 0.0
        self.tell()

    def on_idle(self, restart_window: float) -> None:
        self.size = min(self.size, restart_window)
        self.tell()


class Aimd(asymq.CongestionControl):
    """Additive increase, multiplicative decrease."""

    increase, decrease = 1.0, 0.5

    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        self.window += 1.0 if self.window < self.threshold else self.increase / self.window

    def on_loss(self, flight: float) -> None:
        self.window = self.threshold = max(2.0, flight * (1.0 - self.decrease))

    def on_timeout(self, flight: float) -> None:
        self.threshold = max(2.0, flight * (1.0 - self.decrease))
        self.window = 1.0


class Gentle(Aimd):
    """Reduces its window by a tenth after a loss."""

    decrease = 0.1


@pytest.mark.parametrize(
    "keys",
    [
        {"qdisc": "droptail", "sack": False},
        {"qdisc": "aq", "sack": True, "timestamps": True, "web": "down:5:30kb:1.3"},
        {"qdisc": "asymq", "sack": False, "netem_up": "loss 1%", "regenerate": 2},
        {"qdisc_down": "red", "param_down": "ecn=true", "tcp_ecn": True, "sack": True, "pacing": True},
    ],
)
def test_reno_in_python_gives_the_bytes_of_reno_in_rust(keys: dict[str, Any]) -> None:
    scenario = SCENARIO.replace(**keys)
    mine = asymq.simulate(scenario.replace(tcp=PythonReno), series=True)
    own = asymq.simulate(scenario.replace(tcp="newreno"), series=True)
    assert mine.scenario["tcp"] == "python-reno"
    # Everything but the name is equal: every run, flow and interval.
    assert mine.to_json().replace('"python-reno"', '"newreno"') == own.to_json()


def test_other_parameters_give_another_share_of_the_link() -> None:
    keys = {"qdisc": "droptail", "buffer_down": "10p", "flows_up": 0, "rtt": "100ms", "duration": "30s"}
    half, tenth = (asymq.simulate(SCENARIO.replace(tcp=tcp, **keys)) for tcp in (Aimd, Gentle))
    assert tenth.mean["down_utilization"] > half.mean["down_utilization"] + 0.03


def test_flows_of_one_run_may_have_different_ones() -> None:
    flows = [{"direction": "down", "tcp": "gentle"}, {"direction": "down", "tcp": "newreno", "sack": True}]
    words = [f"down,tcp={flow['tcp']},rtt=50ms,sack=true" for flow in flows]
    result = asymq.simulate(SCENARIO.replace(flow=words, flows_down=0, duration="20s"))
    goodput = result.flows.to_pandas().query("direction == 'down'").groupby("flow")
    bits = [value for _, value in sorted(goodput["goodput_bit_per_s"].mean().items())]
    assert len(bits) == 2
    assert bits[0] > 1.3 * bits[1], "who gives a tenth away gets more than who halves"


def test_a_result_names_it_and_runs_again() -> None:
    result = asymq.simulate(SCENARIO.replace(tcp="gentle"))
    assert asymq.Scenario.from_json(result.to_json()) == result.scenario
    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()
    unknown = result.to_json().replace('"gentle"', '"nobody"')
    with pytest.raises(asymq.ScenarioError, match="nobody: unknown; use reno"):
        asymq.Scenario.from_json(unknown)
    with pytest.raises(asymq.ScenarioError, match="--tcp nobody: unknown"):
        SCENARIO.replace(tcp="nobody")
    for key in ("hystart", "byte_counting"):
        with pytest.raises(asymq.ScenarioError, match="remove this setting"):
            SCENARIO.replace(tcp="gentle", **{key: True})


class Model(asymq.CongestionControl):
    """Paces at the highest rate of the last samples, with a window of twice its flight."""

    paces = True

    def __init__(self, connection: asymq.Connection) -> None:
        super().__init__(connection)
        self.random = random.Random(connection.seed)
        self.rates: list[float] = []
        self.least = 1e9
        self.lost = 0

    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        assert srtt > 0

    def on_loss(self, flight: float) -> None:
        pass

    def on_timeout(self, flight: float) -> None:
        self.window = max(1.0, self.window / 2)

    def on_lost(self, now: int, lost: asymq.LostSegment) -> None:
        assert lost.in_flight >= 0
        self.lost += 1

    def on_sample(self, sample: asymq.AckSample) -> None:
        if sample.rtt is not None:
            self.least = min(self.least, sample.rtt / 1e9)
        if sample.rate > 0 and self.least < 1e9:
            self.rates = [*self.rates[-20:], sample.rate]
            gain = 1.25 if self.random.random() < 0.1 else 1.0
            self.pacing_rate = gain * max(self.rates)
            goal = max(4.0, 2 * max(self.rates) * self.least)
            self.window = min(goal, self.window + sample.newly)


def test_one_that_measures_deliveries_sets_its_own_pace() -> None:
    scenario = SCENARIO.replace(tcp=Model, flows_up=0, qdisc="droptail", buffer_down="1000p", duration="20s")
    result = asymq.simulate(scenario)
    assert result.mean["down_utilization"] > 0.9
    # Unlike a loss-based control, it does not fill the buffer.
    assert result.mean["down_sojourn_p95_s"] < 0.15
    filled = asymq.simulate(scenario.replace(tcp="newreno"))
    assert filled.mean["down_sojourn_p95_s"] > 3 * result.mean["down_sojourn_p95_s"]
    assert asymq.simulate(scenario).to_json() == result.to_json()
    asymq.testing.check(Model, cases=20)


@pytest.mark.parametrize("tried", [PythonReno, Aimd, Gentle])
def test_they_obey_the_laws(tried: Any) -> None:
    asymq.testing.check(tried)


class Deaf(Aimd):
    def on_loss(self, flight: float) -> None:
        pass


class Patient(Aimd):
    def on_timeout(self, flight: float) -> None:
        pass


class Greedy(Aimd):
    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        self.window *= 2


class Small(Aimd):
    def on_timeout(self, flight: float) -> None:
        self.window = 0


class Dicing(Aimd):
    def on_ack(self, acked: int, now: int, srtt: int) -> None:
        self.window += random.random()


class Faulty(Aimd):
    def on_mark(self, flight: float) -> None:
        raise LookupError("lost")


class Restless(Aimd):
    def on_idle(self, restart_window: float) -> None:
        self.window += 1


class Remembers(Aimd):
    """Increases the window when the recovery ends."""

    def on_loss(self, flight: float) -> None:
        self.before = flight
        super().on_loss(flight)

    def on_recovered(self) -> None:
        self.window = getattr(self, "before", 1) + 3


@pytest.mark.parametrize(
    ("broken", "law", "most"),
    [
        (Deaf, "a loss must reduce it", 1),
        (Patient, "after: timeout", 1),
        (Greedy, "; the maximum is", 1),
        (Small, "Small.on_timeout set window = 0; it must be a number of segments from 1 to", 1),
        (Dicing, "the same events gave", 1),
        (Faulty, "LookupError: lost", 1),
        (Restless, "at: pause", 1),
        (Remembers, "recovered", 2),
    ],
)
def test_what_breaks_a_law_is_told_with_the_least_steps(broken: Any, law: str, most: int) -> None:
    with pytest.raises(AssertionError, match=law) as error:
        asymq.testing.check(broken)
    steps = str(error.value).split("after these steps:")[1]
    assert steps.count("\n") <= most, str(error.value)
    if broken is Faulty:
        assert isinstance(error.value.__cause__, LookupError)


@pytest.mark.parametrize("runs", [1, 3])
def test_an_error_in_a_method_ends_the_run_with_its_traceback(runs: int) -> None:
    class Fails(Aimd):
        count = 0

        def on_ack(self, acked: int, now: int, srtt: int) -> None:
            super().on_ack(acked, now, srtt)
            self.count += 1
            if self.count == 50:
                raise LookupError("lost")

    with pytest.raises(LookupError, match="lost") as error:
        asymq.simulate(SCENARIO.replace(tcp=Fails, runs=runs))
    assert "in on_ack" in "".join(traceback.format_exception(error.value))


def test_a_constructor_that_fails_ends_the_run() -> None:
    class Wants(Aimd):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="positional argument"):
        asymq.simulate(SCENARIO.replace(tcp=Wants))


def test_garbage_in_a_window_is_told_with_where_it_came_from() -> None:
    for garbage, said in [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e12, "1000000000000.0"),
        (-1, "-1"),
        (None, "None"),
        ("wide", "'wide'"),
    ]:

        class Garbage(Aimd):
            def on_ack(self, acked: int, now: int, srtt: int) -> None:
                self.window = garbage  # type: ignore[assignment]  # noqa: B023

        with pytest.raises(RuntimeError, match=rf"Garbage.on_ack set window = {said}; it must be a number"):
            asymq.simulate(SCENARIO.replace(tcp=Garbage))

    class Pace(Aimd):
        paces = True
        pacing_rate = 0.0

    with pytest.raises(RuntimeError, match="Pace.__init__ set pacing_rate = 0.0"):
        asymq.simulate(SCENARIO.replace(tcp=Pace))

    class Threshold(Aimd):
        def on_loss(self, flight: float) -> None:
            self.threshold = float("nan")

    with pytest.raises(RuntimeError, match="Threshold.on_.* set threshold = nan"):
        asymq.simulate(SCENARIO.replace(tcp=Threshold))


def test_names_that_are_taken_or_no_words_are_refused_and_unfinished_classes_have_none() -> None:
    with pytest.raises(ValueError, match="taken by a congestion control"):

        class Cubic(Aimd):
            pass

    with pytest.raises(ValueError, match="lower-case letters"):

        class Umlaut(Aimd):
            name = "größe"

    class Unfinished(asymq.CongestionControl):
        def on_ack(self, acked: int, now: int, srtt: int) -> None:
            pass

    with pytest.raises(asymq.ScenarioError, match="--tcp unfinished: unknown"):
        SCENARIO.replace(tcp=Unfinished)


def test_a_class_that_is_defined_again_takes_the_place_of_the_first() -> None:
    shares = []
    for decrease in (0.5, 0.1):
        kept = decrease

        class Again(Aimd):
            decrease = kept

        keys = {"qdisc": "droptail", "buffer_down": "10p", "flows_up": 0, "rtt": "100ms", "duration": "20s"}
        shares.append(asymq.simulate(SCENARIO.replace(tcp="again", **keys)).mean["down_utilization"])
    assert shares[1] > shares[0]


def test_connections_have_different_seeds_that_repeat() -> None:
    seeds: list[int] = []

    class Seeded(Aimd):
        def __init__(self, connection: asymq.Connection) -> None:
            super().__init__(connection)
            assert connection.payload_bytes == 1460
            seeds.append(connection.seed)

    for _ in range(2):
        asymq.simulate(SCENARIO.replace(tcp=Seeded, runs=1))
    first, again = seeds[:2], seeds[2:]
    assert first == again
    assert all(one != other for one, other in itertools.combinations(first, 2))


def test_an_experiment_on_a_cluster_runs_them(tmp_path: Path) -> None:
    text = """
title = "Two congestion controls"
[scenario]
flows-up = 0
flows-down = 1
qdisc = "droptail"
buffer-down = "10p"
rtt = "100ms"
warmup = "2s"
duration = "20s"
runs = 1
[[series]]
id = "aimd"
set.tcp = "aimd"
[[series]]
id = "gentle"
set.tcp = "gentle"
[[measure]]
id = "down"
title = "download"
of = "down.utilization"
"""
    with LocalCluster(processes=False, n_workers=1, dashboard_address=None) as local, Client(local) as client:
        runs = asymq.sweep(text, client, tmp_path).runs.to_pandas()
    down = dict(zip(runs["series"], runs["down_utilization"], strict=True))
    assert down["gentle"] > down["aimd"] > 0
