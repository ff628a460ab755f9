"""Keys of a scenario, written by ASYMQ_DOCS=write cargo test -p asymq --test cli documentation."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

class Keys(TypedDict, total=False):
    """The flags of `asymq sim` with underscores; None is a key that is not given."""

    up: str | None
    down: str | None
    assumed_down: str | None
    flows_up: int | None
    flows_down: int | None
    rtt: str | None
    buffer: str | None
    buffer_down: str | None
    tc: str | None
    param_down: str | Sequence[str] | None
    tcp: str | type | None
    quic: str | None
    mss: str | int | None
    delayed_ack: str | None
    ack_every: int | None
    window: str | None
    udp: str | Sequence[str] | None
    probe: str | None
    duration: str | None
    warmup: str | None
    seed: int | None
    runs: int | None
    sack: bool | None
    timestamps: bool | None
    byte_counting: bool | None
    tcp_ecn: bool | None
    accecn: bool | None
    ace_only: bool | None
    hystart: bool | None
    pacing: bool | None
    regenerate: int | None
    regenerate_spacing: str | None
    start_within: str | None
    flow: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
    web: str | Sequence[str] | None
    on_off: str | None
    links: int | None
    steps_up: str | Sequence[str] | None
    steps_down: str | Sequence[str] | None
    trace_up: str | PathLike[str] | None
    trace_down: str | PathLike[str] | None
    modem_up: str | None
    modem_down: str | None
    shaper_up: str | None
    shaper_down: str | None
    steps_delay: str | Sequence[str] | None
    rate_profile: str | None
    rate_probe: bool | None
    clock_drift: int | None
    clock_tick: str | None
    netem_up: str | None
    netem_down: str | None
    netem_access_up: str | None
    netem_access_down: str | None
    header: str | int | None
    overhead: str | None
    qdisc: str | type | None
    qdisc_down: str | type | None
    ack_queue: str | None
    data_queue: str | None
    aqm: str | None
    service: str | None
    controller: str | None
    classifier: str | None
    buffer_split: str | None
    ack_limit: str | None
    data_limit: str | None
    max_stretch: str | None
    max_gap: str | None
    ecn: bool | None
    mark_above: str | None
    data_share: float | None
    borrow: bool | None
    made_up: str | None
    credit: str | None
    data_size: str | int | None
    max_credit: str | None
    configured_rate: str | None
    ack_size: str | int | None
    data_per_ack: float | str | None
    interval: str | None
    beyond_limit: str | None
    gamma: float | str | None
    utility: str | None
    min_share: float | None
    unused_share: str | None
    target: str | None
    ce_threshold: str | None
    flow_queues: float | None
    quantum: str | int | None
    memory_limit: str | int | None
    drop_batch: float | None
    cake_rtt: str | None
    diffserv: str | None
    isolation: str | None
    ack_filter: str | None
    memlimit: str | int | None
    tupdate: str | None
    alpha: float | None
    beta: float | None
    step_thresh: str | None
    coupling_factor: float | None
    classic_protection: float | None
    drop_on_overload: bool | None
    drop_enqueue: bool | None
    any_ect: bool | None
    ack_wait: str | None
    ack_segments: float | None
    ack_ramp: str | None
    thin_opaque: bool | None
    bulk_limit: str | None
    flow_limit: str | int | None
    bulk_target: str | None
    bulk_min: str | None
    bulk_interval: str | None
    bulk_floor: str | int | None
    min_ack_wait: str | None
    max_ack_wait: str | None
    downlink_full: float | None
    ack_gain: float | None
    ack_exponent: float | None
    max_ack_share: float | None
    parameters: Mapping[str, bool | float | str] | None
