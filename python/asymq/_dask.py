"""Tasks of a sweep on a Dask cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _asymq

#: Attempts of a task that may end with Dask's KilledWorker before the task counts as the cause.
DEATHS = 10
#: Tasks submitted to the scheduler per thread of the cluster, and the minimum in total.
AHEAD, LEAST_AHEAD = 20, 200


class SweepInterrupted(RuntimeError):
    """The cluster is gone. Finished runs are kept: call again with the same folder to continue."""


def simulate_task(folder: str, spec: str) -> None:
    """Runs one task on a worker."""
    _asymq.run_task(Path(folder), spec)


def run(
    client: Any,
    folder: Path,
    specs: list[tuple[str, int, int, str]],
    runs: int,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Runs tasks until all have written their parts."""
    from distributed import KilledWorker, as_completed

    sizes = {name: count for name, count, _, _ in specs}
    done = runs - sum(sizes.values())
    show = progress or _progress()
    show(done, runs)
    if not specs:
        return
    waiting = iter(specs)
    tries: dict[str, int] = {}
    texts: dict[str, str] = {}
    names: dict[str, str] = {}

    def submit(name: str, text: str) -> Any:
        tries[name] = tries.get(name, 0) + 1
        texts[name] = text
        # Dask's dashboard shows the start of the key as its name.
        key = f"asymq_runs-{name}-{tries[name]}-{time.time_ns():x}"
        names[key] = name
        return client.submit(simulate_task, str(folder), text, key=key, pure=False, retries=0)

    def ahead() -> Iterator[Any]:
        threads = sum(worker["nthreads"] for worker in client.scheduler_info()["workers"].values())
        for _ in range(max(LEAST_AHEAD, AHEAD * threads)):
            for name, _, _, text in waiting:
                yield submit(name, text)
                break

    futures = as_completed(list(ahead()))
    for future in futures:
        name = names.pop(future.key)
        if future.status == "finished":
            done += sizes[name]
            show(done, runs)
            del texts[name]
            for following, _, _, text in waiting:
                futures.add(submit(following, text))
                break
            continue
        if future.status != "error":
            raise SweepInterrupted(
                f"the cluster is gone after {done} of {runs} runs, which {folder} keeps; call again with this "
                f"folder and a new client to go on"
            )
        error = future.exception()
        if isinstance(error, KilledWorker) and tries[name] < DEATHS:
            futures.add(submit(name, texts[name]))
            continue
        raise error


def _progress() -> Callable[[int, int], None]:
    """Shows progress in a notebook or a terminal, otherwise nothing."""
    start = time.monotonic()
    state: dict[str, Any] = {"shown": 0.0, "first": None}

    def line(done: int, runs: int) -> str | None:
        now = time.monotonic()
        if state["first"] is None:
            state["first"] = done
        if done < runs and now - state["shown"] < 0.2:
            return None
        state["shown"] = now
        here = done - state["first"]
        left = (runs - done) * (now - start) / here if here else None
        tail = "" if left is None else f", {left:.0f} s left"
        return f"{done} of {runs} runs{tail}" if done < runs else f"{runs} runs in {now - start:.1f} s"

    try:
        from IPython import get_ipython

        kernel = getattr(get_ipython(), "kernel", None)
    except ImportError:
        kernel = None
    if kernel is not None:
        from IPython.display import HTML, display

        handle = display(HTML(""), display_id=True)

        def in_notebook(done: int, runs: int) -> None:
            text = line(done, runs)
            if text is not None:
                handle.update(HTML(f'<progress max="{runs}" value="{done}"></progress> {text}'))

        return in_notebook

    def in_terminal(done: int, runs: int) -> None:
        text = line(done, runs)
        if text is not None and sys.stderr.isatty():
            end = "\n" if done >= runs else ""
            print(f"\r{text}\033[K", end=end, file=sys.stderr, flush=True)

    return in_terminal
