"""Find the period of each node in traced runs, and the lag of its bursts behind those of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from iosig.estimates.columns import floats
from iosig.estimates.subjects import Subjects, collect_trace_nodes
from iosig.transforms.arrays import Ints, Ragged, Reals, pieces_of
from iosig.transforms.periods.interface.detections import Detections, gather
from iosig.transforms.periods.node_phases import estimate_node_phases
from iosig.transforms.periods.null_model.params import NullModelParams
from iosig.transforms.periods.search import PeriodParams, detect_periods
from iosig.transforms.throughput import even_values
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import NODE_PERIODS

#: number of samples per part, to bound memory use
_BATCH_SAMPLES = 1 << 23


def node_rows(
    subjects: Subjects,
    periods: pl.DataFrame,
    signals: pl.DataFrame,
    requests: Sequence[pl.LazyFrame],
    params: PeriodParams,
) -> pl.DataFrame:
    """Return rows of `node_periods`, for runs on several nodes, if their requests name the node.

    The result is empty if the method null_tested is not selected.

    subjects, periods: the runs, and their rows of `periods`. signals, requests: as in `collect_trace_requests`.
    """
    if "null_tested" not in params.methods:
        return frames.empty(NODE_PERIODS)
    nodes, requests_by_node = collect_trace_nodes(subjects.keys, signals, requests)
    several = nodes.filter(pl.col("node_count") > 1)
    if several.is_empty():
        return frames.empty(NODE_PERIODS)
    default = periods.filter(method="null_tested").select(
        "subject_id", "direction", "frequency_hz", "window_start_s", "window_end_s"
    )
    with_periods = several.join(default, on=["subject_id", "direction"], how="left", maintain_order="left")
    counts = np.diff(subjects.samples.offsets)[with_periods["subject"].to_numpy()]
    part = pl.Series("part", np.cumsum(counts) // _BATCH_SAMPLES)
    # all nodes of a run are in the same part
    pieces = with_periods.with_columns(part).with_columns(pl.col("part").min().over("subject"))
    rows = [
        _rows(piece, subjects, requests_by_node, params) for _, piece in pieces.group_by("part", maintain_order=True)
    ]
    return pl.concat(rows).sort(NODE_PERIODS.key)


def _rows(nodes: pl.DataFrame, subjects: Subjects, requests: Requests, params: PeriodParams) -> pl.DataFrame:
    """Return the rows of the nodes of some runs."""
    subject = nodes["subject"].cast(pl.Int64).to_numpy()
    samples, hz = _samples(nodes, subjects, requests, subject), subjects.sampling_hz[subject]
    shares = nodes["node_count"].to_numpy().astype(np.float64)
    answers = _detect_node_periods(samples, hz, shares, params)
    _, first, run = np.unique(subject, return_index=True, return_inverse=True)
    window = np.stack([floats(nodes[name])[first] for name in ("window_start_s", "window_end_s")], axis=1)
    phases = estimate_node_phases(samples, hz, run.astype(np.int64), floats(nodes["frequency_hz"])[first], window)
    columns = pl.DataFrame(
        {
            "outcome": pl.Series(answers.outcome.tolist(), dtype=pl.String),
            "node_bytes": np.bincount(samples.owner, samples.values, nodes.height) / hz,
            "window_start_s": answers.window_start_s,
            "window_end_s": answers.window_end_s,
            "sampling_hz": hz,
            "frequency_hz": answers.frequency_hz,
            "period_s": answers.period_s,
            "period_error_s": answers.details_or_nan.period_error_s,
            "confidence": answers.confidence,
            "false_alarm_probability": np.minimum(answers.false_alarm_probability * shares, 1.0),
            "lag_s": phases.lag_s,
            "concentration_ratio": phases.concentration,
        }
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
    keys = nodes.select("ended_on", pl.col("subject_id").alias("trace_id"), "direction", "host")
    return pl.concat([keys, columns], how="horizontal").select(NODE_PERIODS.column_names)


def _samples(nodes: pl.DataFrame, subjects: Subjects, requests: Requests, subject: Ints) -> Ragged:
    """Return the rate of each node in each step of its run's signal [B/s]."""
    number = np.full(requests.subject_count, -1, dtype=np.int64)
    number[nodes["number"].to_numpy()] = np.arange(nodes.height)
    node_requests = replace(requests, subject=number[requests.subject], subject_count=nodes.height)
    counts = np.diff(subjects.samples.offsets)[subject]
    bins = even_values.bin_requests(
        node_requests, even_values.Grid(np.zeros(nodes.height), 1.0 / subjects.sampling_hz[subject], counts)
    )
    return Ragged(bins.bytes_per_s, bins.grid.offsets)


def _detect_node_periods(samples: Ragged, sampling_hz: Reals, shares: Reals, params: PeriodParams) -> Detections:
    """Detect periods in whole signals of nodes; the nodes of a run and direction share the significance level."""
    null_model = params.null_tested or NullModelParams()
    parts, places = [], []
    for share in np.unique(shares):
        positions = np.flatnonzero(shares == share)
        level = replace(null_model, false_alarm_probability=null_model.false_alarm_probability / share, window_levels=0)
        of_level = replace(params, methods=("null_tested",), null_tested=level)
        signals = pieces_of(samples, positions)
        parts.append(
            detect_periods(signals, sampling_hz[positions], np.zeros(len(positions)), of_level)["null_tested"][0]
        )
        places.append(positions)
    return gather(parts, places)
