"""The compiled part."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

__version__: str

class ScenarioError(ValueError):
    """Error in a scenario, an experiment or a link. The text is that of the command line."""

class Scenario:
    """Content of `asymq.Scenario`: words of the command line, and the scenario that they resolve to."""

    def __new__(cls, words: list[str], file: str | os.PathLike[str] | None) -> Scenario: ...
    @staticmethod
    def headline(words: list[str]) -> Scenario: ...
    @staticmethod
    def from_toml(text: str) -> Scenario: ...
    @staticmethod
    def restored(words: list[str] | None, json: str) -> Scenario: ...
    def replace(self, words: list[str]) -> Scenario: ...
    def words(self) -> list[str] | None: ...
    def to_toml(self) -> str: ...
    def to_json(self) -> str: ...
    @property
    def seeds(self) -> tuple[int, int]: ...
    @property
    def warnings(self) -> list[str]: ...
    def __eq__(self, other: object) -> bool: ...

class Columns:
    """The columns of a table."""

    def __new__(cls, columns: dict[str, list[Any]], rows: int) -> Columns: ...
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def values(self, name: str) -> list[Any]: ...
    def stream(self) -> object: ...
    def __eq__(self, other: object) -> bool: ...

class Report:
    """All runs of a scenario."""

    @staticmethod
    def from_json(text: str) -> Report: ...
    def to_json(self) -> str: ...
    @property
    def scenario(self) -> Scenario: ...
    @property
    def has_series(self) -> bool: ...
    def measures(self) -> list[dict[str, float]]: ...
    def estimates(self) -> list[tuple[str, float, float, float]]: ...
    def runs(self) -> Columns: ...
    def flows(self) -> Columns: ...
    def time_series(self) -> Columns: ...

class Packet:
    """Fields of a packet that a discipline may read."""

    @property
    def number(self) -> int:
        """Number of the packet, in the order of arrival at this discipline."""
    @property
    def arrival(self) -> int:
        """Time of arrival at the queue, in ns."""
    @property
    def flow(self) -> int:
        """Number of the packet's conversation and direction."""
    @property
    def length(self) -> int:
        """Bytes charged to the link."""
    @property
    def payload(self) -> int:
        """TCP payload bytes; 0 unless TCP."""
    @property
    def ack(self) -> int:
        """TCP acknowledgement number; meaningful only for segments that have one."""
    @property
    def flags(self) -> int:
        """TCP flags; 0 unless TCP."""
    @property
    def is_tcp(self) -> bool:
        """True for a whole TCP segment."""
    @property
    def is_pure_ack(self) -> bool:
        """True for a TCP segment with ACK set, no payload, and no SYN, FIN or RST."""
    @property
    def is_ecn_capable(self) -> bool:
        """True if the sender understands congestion marks."""

class Place:
    """Link and buffer of a discipline."""

    @property
    def link_bit_per_s(self) -> int:
        """Capacity of the link in bit/s."""
    @property
    def reverse_bit_per_s(self) -> int:
        """Capacity of the reverse direction in bit/s."""
    @property
    def limit_packets(self) -> int | None:
        """Maximum backlog in packets; None if the buffer is in bytes."""
    @property
    def limit_bytes(self) -> int | None:
        """Maximum backlog in bytes; None if the buffer is in packets."""

class Sink:
    """Receives drops and marks."""

    def drop(self, packet: Packet, reason: str = "over-limit") -> None:
        """Drops a packet: "over-limit", "aqm", "ack-filtered" or "opaque-filtered"."""
    def mark(self, packet: Packet) -> bool:
        """Sets the congestion mark (CE) if the packet is ECN-capable. Returns true if it is marked."""

class Connection:
    """Facts about a connection for its congestion control."""

    @property
    def payload_bytes(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def seed(self) -> int:
        """Random seed, different for each connection and run. All randomness must come from it."""

class AckSample:
    """Measurements of one ACK. Times in ns, volumes in segments, the rate in segments per second."""

    @property
    def now(self) -> int:
        """Arrival time of the ACK."""
    @property
    def ack(self) -> int:
        """The acknowledgement number."""
    @property
    def end(self) -> int:
        """Number of the segment after the highest one sent."""
    @property
    def rtt(self) -> int | None:
        """Round-trip time; None if the ACK acknowledges only retransmitted segments."""
    @property
    def total(self) -> int:
        """Total number of delivered segments."""
    @property
    def newly(self) -> int:
        """Segments that this ACK newly delivers."""
    @property
    def prior(self) -> int:
        """Total number of delivered segments when the newest segment of `newly` was sent."""
    @property
    def delivered(self) -> int:
        """Segments delivered since that segment was sent."""
    @property
    def rate(self) -> float:
        """Delivery rate since that segment was sent; 0 if unreliable."""
    @property
    def lost(self) -> int:
        """Segments lost since that segment was sent."""
    @property
    def sent_in_flight(self) -> int:
        """Segments in flight when that segment was sent."""
    @property
    def app_limited(self) -> bool:
        """True if the application limited the sending when that segment was sent."""
    @property
    def in_flight(self) -> int:
        """Segments in flight now."""
    @property
    def window_limited(self) -> bool:
        """True if the window was full at some time in the last round trip."""

class LostSegment:
    """A segment that is considered lost. Volumes in segments."""

    @property
    def number(self) -> int:
        """Number of the segment; 0 is the SYN."""
    @property
    def in_flight(self) -> int:
        """Segments in flight when this segment was sent, including this segment."""
    @property
    def lost(self) -> int:
        """Segments lost since this segment was sent, including this segment."""
    @property
    def delivered(self) -> int:
        """Segments delivered so far."""
    @property
    def app_limited(self) -> bool:
        """True if the application limited the sending when this segment was sent."""

class Sweep:
    """Experiments, and the part of them to run."""

    @staticmethod
    def of_file(path: Path, quick: bool, seed: int | None) -> Sweep: ...
    @staticmethod
    def of_text(name: str, text: str, quick: bool, seed: int | None) -> Sweep: ...
    @staticmethod
    def of_papers(what: str, quick: bool, seed: int | None) -> Sweep: ...
    @property
    def runs(self) -> int: ...
    @property
    def packets(self) -> int: ...
    def run_here(self, out: Path, threads: int | None) -> Findings: ...
    def run_tasks(
        self,
        out: Path,
        packets: int,
        report: bool,
        run: Callable[[list[tuple[str, int, int, str]], int], None],
    ) -> Findings | None: ...

class Findings:
    """Results of experiments."""

    @property
    def page(self) -> Path: ...
    @property
    def verdicts(self) -> list[tuple[str, str, str]]: ...
    def table(self, name: str) -> Columns: ...

def simulate(
    scenario: Scenario,
    series: bool,
    threads: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> Report: ...
def run_task(out: Path, task: str) -> None: ...
def register(
    name: str, title: str, summary: str, parameters: dict[str, Any], discipline: type, /
) -> None: ...
def register_congestion(
    name: str, events: list[str], paces: bool, congestion: type, /
) -> None: ...
def check_laws(name: str, cases: int) -> None: ...
def check_congestion(
    name: str, events: list[str], paces: bool, congestion: type, cases: int, /
) -> None: ...
def main(words: list[str]) -> int: ...
def model(words: list[str]) -> str: ...
def compared() -> list[str]:
    """Names of the disciplines in a comparison by default."""

def disciplines() -> list[tuple[str, str, str, str]]:
    """Name, title, group (peer, paper, variant, own, other, or python) and summary of each discipline."""
