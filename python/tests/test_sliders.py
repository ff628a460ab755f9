"""Sliders of a notebook, moved as a reader moves them."""

from typing import Any

import asymq
import pytest

pytest.importorskip("ipywidgets")


def moved(box: Any, key: str, value: object) -> None:
    next(child for child in box.children if getattr(child, "description", None) == key).value = value


def test_a_move_simulates_again_under_each_discipline() -> None:
    box = asymq.sliders(("droptail", "asymq"))
    before = box.comparison
    *_, chart, table = box.children
    picture = bytes(chart.value)
    assert picture.startswith(b"\x89PNG") and "asymq" in table.value
    assert before["asymq"].mean["goodput_utility"] > before["droptail"].mean["goodput_utility"]
    moved(box, "up", "256kbit")
    assert box.comparison["asymq"].scenario["up"] == "256kbit"
    assert (box.comparison == before, bytes(chart.value) == picture) == (False, False)


def test_sliders_begin_where_the_scenario_is() -> None:
    scenario = asymq.Scenario(up="3mbit", flows_up=1, flows_down=0, duration="4s", warmup="1s")
    box = asymq.sliders(("asymq",), scenario)
    assert box.comparison["asymq"].scenario == scenario.replace(qdisc="asymq", seed=1, runs=1)


def test_a_discipline_that_does_not_exist_is_named() -> None:
    with pytest.raises(asymq.ScenarioError, match="asymqq"):
        asymq.sliders(("asymqq",))


def test_a_slider_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="keys='mss': no slider; use some of up, down"):
        asymq.sliders(keys=["mss"])
