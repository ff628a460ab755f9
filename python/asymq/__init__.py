"""asymq: asymmetric queueing simulated, modelled and reproduced, from Python.

    import asymq

    result = asymq.simulate(asymq.Scenario.headline())
    print(result.mean["down_utilization"], result.interval["down_utilization"])

The keys of a `Scenario` are the flags of the command line. A `Result` contains measures by column, in base units;
each column's name ends with its unit (docs/research/data.md). docs/research/python.md describes the rest.
"""

from ._asymq import (
    AckSample,
    Connection,
    LostSegment,
    Packet,
    Place,
    ScenarioError,
    Sink,
    __version__,
    disciplines,
)
from ._dask import SweepInterrupted
from ._model import model
from .congestion import CongestionControl
from .discipline import Discipline
from .experiments import Findings, reproduce, sweep
from .result import Comparison, Result, compare, simulate
from ._sliders import sliders
from .scenario import Scenario
from .table import Table

__all__ = [
    "AckSample",
    "Comparison",
    "CongestionControl",
    "Connection",
    "Discipline",
    "Findings",
    "LostSegment",
    "Packet",
    "Place",
    "Result",
    "Scenario",
    "ScenarioError",
    "Sink",
    "SweepInterrupted",
    "Table",
    "__version__",
    "compare",
    "disciplines",
    "model",
    "reproduce",
    "simulate",
    "sliders",
    "sweep",
]
