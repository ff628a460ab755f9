"""Curves of other tools."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import asymq
import pytest
from asymq import reference

SCENARIO = asymq.Scenario(flows_up=1, flows_down=1, rtt="100ms", duration="8s", runs=2)


def test_a_result_reads_back_from_a_file_of_flents(tmp_path: Path) -> None:
    result = asymq.simulate(SCENARIO)
    reference.write_flent(result, tmp_path / "a.flent.gz", seed=2)
    reference.write_flent(result, tmp_path / "b.flent.gz", seed=2, title="asymq aq, seed 2")
    curves = reference.read_flent(tmp_path / "a.flent.gz")
    assert sorted(curves) == ["TCP download", "TCP upload"]
    download = curves["TCP download"]
    assert repr(download) == "<asymq.Curve TCP download: 40 values in Mbits/s>"
    assert (download.unit, len(download.values), download.time_s[-1]) == ("Mbits/s", 40, pytest.approx(8))
    series = result.series
    of_run = [data for seed, data in zip(series["seed"], series["down_data"], strict=True) if seed == 2]
    assert download.values == pytest.approx([10 * data for data in of_run])
    with pytest.raises(ValueError, match="not among the runs"):
        reference.write_flent(result, tmp_path / "a.flent.gz", seed=9)
    with pytest.raises(ValueError, match="ends with"):
        reference.write_flent(result, tmp_path / "a.json")
    (tmp_path / "bad.flent").write_text("[]")
    with pytest.raises(ValueError, match="not a file of flent's"):
        reference.read_flent(tmp_path / "bad.flent")


@pytest.mark.skipif(importlib.util.find_spec("flent") is None, reason="flent is not installed")
def test_flent_opens_the_file_and_makes_its_table_and_its_chart(tmp_path: Path) -> None:
    file = tmp_path / "run.flent.gz"
    reference.write_flent(asymq.simulate(SCENARIO), file)
    words = [sys.executable, "-m", "flent", "-i", str(file), "-f", "csv"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "TCP download" in said
    assert said.count("\n") >= 40
    picture = tmp_path / "run.png"
    words = [sys.executable, "-m", "flent", "-i", str(file), "-p", "totals", "-o", str(picture)]
    subprocess.run(words, capture_output=True, check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_columns_and_traces_of_ns2_become_curves(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text('TitleText: cwnd\n"flow 1"\n0.0 1\n0.5,2.5 # late\n\n1.0\t4\n')
    curve = reference.read_columns(tmp_path / "x.dat", unit="packets")
    assert (curve.time_s, curve.values, curve.unit) == ([0.0, 0.5, 1.0], [1.0, 2.5, 4.0], "packets")
    (tmp_path / "out.tr").write_text(
        "+ 0.1 0 1 tcp 1500 ------- 1 0.0 3.1 1 1\n"
        "- 0.1 0 1 tcp 1500 ------- 1 0.0 3.1 1 1\n"
        "- 0.3 0 1 ack 40 ------- 1 0.0 3.1 1 2\n"
        "- 0.5 0 1 tcp 1000 ------- 1 0.0 3.1 2 3\n"
        "- 0.5 1 0 tcp 1000 ------- 1 0.0 3.1 2 4\n"
    )
    curve = reference.read_ns2_trace(tmp_path / "out.tr", (0, 1))
    assert curve.values == pytest.approx([60_000, 0, 40_000])
    with pytest.raises(ValueError, match="no packet left the queue"):
        reference.read_ns2_trace(tmp_path / "out.tr", (7, 8))
