"""Results: numbers, tables without a copy, charts, output in notebooks."""

from __future__ import annotations

import pickle
import os
import signal
import statistics
import threading
import time
from typing import Any

import asymq
import pytest

SCENARIO = asymq.Scenario(flows_up=1, flows_down=1, rtt="100ms", duration="8s", probe="100ms")


@pytest.fixture(scope="module")
def result() -> asymq.Result:
    return asymq.simulate(SCENARIO, seeds=range(4))


def test_means_and_intervals_are_those_of_the_runs(result: asymq.Result) -> None:
    assert [run["seed"] for run in result.runs] == [0, 1, 2, 3]
    for column in ("down_utilization", "up_sojourn_p95_s", "up_goodput_bit_per_s"):
        values = [run[column] for run in result.runs]
        assert result.mean[column] == pytest.approx(statistics.fmean(values))
        half = 3.182446 * statistics.stdev(values) / 2  # Student's t for 3 degrees of freedom
        low, high = result.interval[column]
        assert (low + high) / 2 == pytest.approx(result.mean[column])
        assert (high - low) / 2 == pytest.approx(half, rel=1e-5)


def test_seeds_are_consecutive() -> None:
    with pytest.raises(asymq.ScenarioError, match="not consecutive"):
        asymq.simulate(SCENARIO, seeds=[1, 3])
    with pytest.raises(asymq.ScenarioError, match="not consecutive"):
        asymq.simulate(SCENARIO, seeds=[])


def test_the_number_of_threads_changes_nothing(result: asymq.Result) -> None:
    assert asymq.simulate(SCENARIO, seeds=range(4), threads=1).to_json() == result.to_json()


def test_tables_have_units_in_their_names_and_the_values_of_the_runs(result: asymq.Result) -> None:
    frame = result.to_pandas()
    assert list(frame["seed"]) == [0, 1, 2, 3]
    assert set(frame["up_bit_per_s"]) == {1e6}
    assert set(frame["rtt_min_s"]) == {0.1}
    assert list(frame["probe_p95_s"]) == [run["probe_p95_s"] for run in result.runs]
    flows = result.flows.to_pandas()
    assert sorted(set(flows["direction"])) == ["down", "up"]
    assert len(flows) == 8
    series = result.series.to_pandas()
    assert len(series) == 4 * 40
    assert series["time_s"].max() == pytest.approx(7.8)
    with pytest.raises(KeyError):
        result.table["nothing"]


def test_arrow_takes_the_columns_without_a_copy(result: asymq.Result) -> None:
    table = result.table

    def address() -> Any:
        return table.to_arrow().column("down_utilization").chunk(0).buffers()[1].address

    assert address() == address()
    assert table.to_arrow().column("down_utilization").to_pylist() == table["down_utilization"]
    assert len(table) == table.to_arrow().num_rows


def test_arrow_outlives_the_table() -> None:
    arrow = asymq.simulate(SCENARIO, seeds=[1]).to_arrow()
    assert arrow.column("duration_s").to_pylist() == [8.0]


def test_a_result_reads_back(result: asymq.Result, tmp_path: Any) -> None:
    file = tmp_path / "result.json"
    file.write_text(result.to_json())
    for same in (asymq.Result.load(file), pickle.loads(pickle.dumps(result))):
        assert same.to_json() == result.to_json()
        assert same.mean == result.mean
    with pytest.raises(asymq.ScenarioError):
        asymq.Result.from_json("{}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_are_drawn_in_the_colours_of_the_theme(
    result: asymq.Result, theme: str, tmp_path: Any
) -> None:
    comparison = asymq.compare(SCENARIO.replace(runs=1), only=["droptail", "aq"])
    for shown, rows in ((result, 1), (comparison, 2)):
        figure = shown.plot(theme=theme)
        assert len(figure.axes) == 2 * rows
        luminance = sum(figure.get_facecolor()[:3]) / 3
        assert (luminance > 0.5) == (theme == "light")
        assert "<svg" in figure._repr_svg_()
        figure.savefig(tmp_path / f"{theme}.png")
    with pytest.raises(ValueError, match="use 'light' or 'dark'"):
        result.plot(theme="blue")


def test_every_view_of_a_result_has_the_same_goodput(result: asymq.Result) -> None:
    up, down = result.mean["up_delivered"], result.mean["down_delivered"]
    assert f"goodput up {up:.3f}, down {down:.3f}>" in repr(result)
    assert f"{up:.3f} ±" in str(result) and f"{down:.3f} ±" in str(result)
    titles = [axis.get_title(loc="left") for axis in result.plot().axes]
    assert titles[0].endswith(f"download {down:.0%}") and titles[1].endswith(f"upload {up:.0%}")
    assert "<asymq.Result of 1 run under" in repr(asymq.simulate(SCENARIO.replace(runs=1)))


def test_a_notebook_shows_a_table(result: asymq.Result) -> None:
    text = result._repr_html_()
    assert "<table>" in text
    assert "means of 4 runs with 95 % intervals" in text
    assert f"{result.mean['down_delivered']:.3f} ±" in text
    assert "<td>8.0</td>" in result.table._repr_html_()


def test_printed_results_are_tables_with_intervals_from_three_runs_on(result: asymq.Result) -> None:
    heads, row, note = str(result).splitlines()
    assert heads.split()[:6] == ["goodput", "utility", "goodput", "up", "goodput", "down"]
    assert row.split()[:3] == ["asymq", f"{result.mean['goodput_utility']:.3f}", "±"]
    assert note.startswith("means of 4 runs with 95 % intervals")
    assert "±" not in str(asymq.simulate(SCENARIO, seeds=range(2)))


def test_equal_results_and_tables_are_equal_after_pickling(result: asymq.Result) -> None:
    for thing in (result, result.table, result.flows, asymq.compare(SCENARIO, only=["droptail"], seeds=[1])):
        again = pickle.loads(pickle.dumps(thing))
        assert again == thing
        assert type(again) is type(thing)
    assert asymq.simulate(SCENARIO, seeds=[9]) != result
    assert result.table != result.flows


def test_polars_takes_the_columns(result: asymq.Result) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(result.table)
    assert frame.shape == (4, len(result.table.column_names))


def test_progress_is_shown_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    asymq.simulate(SCENARIO, seeds=range(3), progress=lambda done, runs: seen.append((done, runs)))
    assert seen[-1] == (3, 3)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    with pytest.raises(ZeroDivisionError):
        asymq.simulate(SCENARIO, seeds=range(3), progress=lambda done, runs: 1 // 0)


def test_other_threads_run_while_a_simulation_does() -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    asymq.simulate(asymq.Scenario(runs=50), threads=1)
    during = counted - before
    stop.set()
    thread.join()
    assert during >= 3


def test_ctrl_c_ends_a_simulation_soon(request: pytest.FixtureRequest) -> None:
    # If the tests were started in the background, SIGINT may be ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        asymq.simulate(asymq.Scenario(runs=10_000, duration="60s"))
    assert time.monotonic() - start < 60


@pytest.mark.skipif(not os.environ.get("ASYMQ_LONG"), reason="only on an idle machine")
def test_a_call_costs_little_beside_a_run_of_the_default_scenario() -> None:
    def least(runs: int) -> float:
        scenario = asymq.Scenario(runs=runs)
        times = []
        for _ in range(5):
            start = time.process_time()
            assert asymq.simulate(scenario, threads=1).mean["utility"] > 0
            times.append(time.process_time() - start)
        return min(times)

    def overhead() -> float:
        # Separates the time per call from the time per run.
        one, many = least(1), least(21)
        run = (many - one) / 20
        return (one - run) / run

    # A busy machine slows some measurements, but makes none faster.
    assert any(overhead() < 0.05 for _ in range(5))


def test_threads_are_cores_and_at_least_one() -> None:
    scenario = asymq.Scenario(duration="6s", runs=2)
    assert asymq.simulate(scenario, threads=10**6).runs == asymq.simulate(scenario, threads=1).runs
    for threads in (0, -1):
        with pytest.raises(asymq.ScenarioError, match=f"threads {threads}: out of range"):
            asymq.simulate(scenario, threads=threads)
