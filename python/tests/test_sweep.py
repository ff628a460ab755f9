"""Sweeps on a Dask cluster: the data equals that of one machine, whatever happens to workers and scheduler."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import asymq
import pytest
from distributed import Client, LocalCluster

#: Runs of the fault test; 2000 with ASYMQ_LONG.
RUNS = 2000 if os.environ.get("ASYMQ_LONG") else 240

TEXT = """
title = "Fig. 1: does a larger buffer help?"
[scenario]
flows-up = 1
flows-down = 1
rtt = "100ms"
warmup = "2s"
duration = "{duration}"
runs = {runs}
[[sweep]]
key = "buffer"
values = ["25p", "50p", "100p"]
[[series]]
id = "aq"
set.qdisc = "aq"
[[series]]
id = "droptail"
set = { qdisc = "droptail" }
[[measure]]
id = "down"
title = "download"
of = "down.utilization"
[[claim]]
id = "fuller"
says = "AQ fills the downlink."
holds = ["aq:down > droptail:down"]
"""


def experiment(runs: int, duration: str = "6s") -> str:
    return TEXT.replace("{runs}", str(runs)).replace("{duration}", duration)


def parts(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "runs").iterdir()}


def tables(out: Path) -> dict[str, bytes]:
    names = ("runs", "flows", "measures", "claims")
    return {name: (out / f"{name}.csv").read_bytes() for name in names}


def cluster(workers: int) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def test_a_sweep_has_the_bytes_of_one_machine_whatever_the_number_of_workers(
    command: Any, tmp_path: Path
) -> None:
    text = experiment(5)
    seen: list[tuple[int, int]] = []
    found = {}
    for workers in (1, 3):
        out = tmp_path / str(workers)
        with cluster(workers) as local, Client(local) as client:
            found[workers] = asymq.sweep(
                text, client, out, task_seconds=0.003, progress=lambda *at: seen.append(at)
            )
    assert seen[-1][0] == seen[-1][1] >= 30
    assert len(parts(tmp_path / "1")) > 5
    assert parts(tmp_path / "1") == parts(tmp_path / "3")
    assert tables(tmp_path / "1") == tables(tmp_path / "3")
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    said = command("sweep", str(file), "--out", str(tmp_path / "alone"))
    assert said.returncode == 0, said.stderr
    for name in ("runs.csv", "flows.csv", "measures.csv", "claims.csv", "verdicts.toml"):
        here, there = tmp_path / "alone" / name, tmp_path / "3" / name
        assert here.read_bytes() == there.read_bytes(), name
    assert found[3].verdicts == found[1].verdicts
    # The command line continues the finished sweep, and finds all runs done.
    runs = (tmp_path / "3" / "runs.jsonl").read_bytes()
    assert command("sweep", str(file), "--out", str(tmp_path / "3")).returncode == 0
    assert (tmp_path / "3" / "runs.jsonl").read_bytes() == runs


def test_parts_are_one_table_for_pandas(tmp_path: Path) -> None:
    import pandas

    with cluster(2) as local, Client(local) as client:
        findings = asymq.sweep(experiment(3), client, tmp_path, task_seconds=0.003)
    frame = pandas.concat(pandas.read_csv(part) for part in (tmp_path / "runs").iterdir())
    assert len(frame) == len(findings.runs)
    assert not frame.duplicated(["series", "point", "seed"]).any()
    order = ["series", "point", "seed"]
    whole = findings.runs.to_pandas().sort_values(order, ignore_index=True)
    frame = frame.sort_values(order, ignore_index=True)
    for column in ("down_utilization", "up_sojourn_p95_s", "buffer_packets"):
        assert list(frame[column]) == list(whole[column])


def test_another_sweep_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with cluster(1) as local, Client(local) as client:
        asymq.sweep(experiment(1), client, tmp_path, report=False)
        with pytest.raises(asymq.ScenarioError, match="parts of another experiment"):
            asymq.sweep(experiment(2), client, tmp_path, report=False)
        with pytest.raises(asymq.ScenarioError, match="tasks of another size"):
            asymq.sweep(experiment(1), client, tmp_path, report=False, task_seconds=9)


def test_a_bad_experiment_is_told_as_on_the_command_line(command: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(experiment(1).replace("25p", "25x"))
    said = command("sweep", str(file))
    with pytest.raises(asymq.ScenarioError) as error:
        asymq.sweep(file)
    assert said.stderr == f"{error.value}\n"


class Farm:
    """A scheduler and worker processes that a test can kill. A killed worker is replaced."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder, self.address = folder, folder / f"scheduler-{time.time_ns()}.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.killed = 0
        self.random = random.Random(1)
        self.scheduler = self._start("scheduler", "--port=0", "--host=127.0.0.1", "--no-dashboard")
        for _ in range(workers):
            self._add()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, f"--scheduler-file={self.address}"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        return process

    def _add(self) -> None:
        words = ("worker", "--no-nanny", "--nthreads=1", "--no-dashboard", "--death-timeout=20")
        self.processes.append(self._start(*words, f"--local-directory={self.folder}"))

    def kill_one(self) -> None:
        """Sends SIGKILL to a random worker."""
        process = self.processes.pop(self.random.randrange(len(self.processes)))
        process.kill()
        process.wait()
        self.killed += 1
        self._add()

    def __enter__(self) -> Farm:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.scheduler, *self.processes):
            process.kill()
            process.wait()


class Killer(threading.Thread):
    """Kills a worker of a farm at intervals, each time after some progress of the sweep."""

    def __init__(self, farm: Farm) -> None:
        super().__init__(daemon=True)
        self.farm, self.moved, self.over = farm, threading.Event(), threading.Event()

    def progress(self, done: int, runs: int) -> None:
        self.moved.set()

    def run(self) -> None:
        while not self.over.is_set():
            if self.moved.wait(0.1):
                # Kills within a task of a worker, not between two tasks.
                time.sleep(self.farm.random.uniform(0.3, 1.5))
                self.farm.kill_one()
                self.moved.clear()

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def left_and_written(calm: Path, rough: Path) -> tuple[set[str], dict[str, int]]:
    """Returns the missing parts, and the times at which the others were written."""
    left = set(parts(calm)) - set(parts(rough))
    done = set(parts(calm)) - left
    return left, {name: (rough / "runs" / name).stat().st_mtime_ns for name in done}


def test_a_killed_scheduler_loses_nothing_and_nothing_runs_again(tmp_path: Path) -> None:
    text = experiment(RUNS // 6, "120s")
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    with cluster(2) as local, Client(local) as client:
        asymq.sweep(text, client, calm, report=False, task_seconds=0.05)

    with Farm(tmp_path, 2) as farm:

        def kill_the_scheduler(done: int, runs: int) -> None:
            if done >= runs // 3:
                farm.scheduler.kill()

        with Client(scheduler_file=str(farm.address), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            with pytest.raises(asymq.SweepInterrupted, match="call again"):
                asymq.sweep(
                    text, client, rough, report=False, task_seconds=0.05, progress=kill_the_scheduler
                )
    left, written = left_and_written(calm, rough)
    assert left, "interrupted in the midst"
    assert written

    with cluster(2) as local, Client(local) as client:
        asymq.sweep(text, client, rough, report=False, task_seconds=0.05)
    assert {name: data for name, data in parts(rough).items() if name[0] != "."} == parts(calm)
    for name, time_written in written.items():
        assert (rough / "runs" / name).stat().st_mtime_ns == time_written, "ran again"


@pytest.mark.skipif(not os.environ.get("ASYMQ_LONG"), reason="takes minutes")
def test_workers_killed_at_random_and_the_scheduler_once_change_no_byte(tmp_path: Path) -> None:
    text, runs = experiment(RUNS // 6 + 1, "60s"), 6 * (RUNS // 6 + 1)
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    with cluster(2) as local, Client(local) as client:
        asymq.sweep(text, client, calm, task_seconds=0.1)

    with Farm(tmp_path, 3) as farm, Killer(farm) as killer:

        def progress(done: int, runs: int) -> None:
            killer.progress(done, runs)
            if done >= runs // 2:
                farm.scheduler.kill()

        with Client(scheduler_file=str(farm.address), timeout=60) as client:
            with pytest.raises(asymq.SweepInterrupted, match="call again"):
                asymq.sweep(text, client, rough, task_seconds=0.1, progress=progress)
    left, written = left_and_written(calm, rough)
    assert left, "interrupted in the midst"
    assert len(written) > len(left) / 2
    killed = farm.killed

    with Farm(tmp_path, 3) as farm, Killer(farm) as killer:
        with Client(scheduler_file=str(farm.address), timeout=60) as client:
            asymq.sweep(text, client, rough, task_seconds=0.1, progress=killer.progress)
    killed += farm.killed
    assert killed >= 10
    whole = {name: data for name, data in parts(rough).items() if name[0] != "."}
    assert whole == parts(calm)
    assert tables(rough) == tables(calm)
    assert (rough / "runs.jsonl").read_bytes() == (calm / "runs.jsonl").read_bytes()
    for name, time_written in written.items():
        assert (rough / "runs" / name).stat().st_mtime_ns == time_written, "ran again"
    print(f"{runs} runs in {len(whole)} tasks, {killed} workers and a scheduler killed")


@pytest.mark.skipif(not os.environ.get("ASYMQ_LONG"), reason="a minute, and only on an idle machine")
def test_a_thousand_runs_take_at_most_a_third_more_than_the_command(
    command: Any, tmp_path: Path
) -> None:
    text = experiment(1002 // 6, "60s")
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    start = time.monotonic()
    assert command("sweep", str(file), "--quick", "--out", str(tmp_path / "warm")).returncode == 0
    start = time.monotonic()
    assert command("sweep", str(file), "--out", str(tmp_path / "alone")).returncode == 0
    alone = time.monotonic() - start
    start = time.monotonic()
    asymq.sweep(file, out=tmp_path / "dask")
    assert time.monotonic() - start < 1.3 * alone
