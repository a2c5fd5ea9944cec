"""Which measurement of a traced run becomes its signal, and on which grid.

A tracer may hold a run's bytes three times over: as single requests, as a heat map, as counters. The finest
that holds (nearly) all of the bytes is the signal; counters alone give an interval, which tells from when to
when, not how, and is labelled so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals

#: no finer step: what the contract's interval allows
_FINEST_S = 1e-6
#: a step that should end at the run's end may miss it by a rounding error
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class SignalParams:
    """How traces become signals (ours: no paper has a rule).

    interval_s: the step, in seconds. min_step_count: with fewer steps, steps are ten times finer, and so on;
    max_step_count: with more, ten times coarser. min_covered_ratio: requests or heat maps that hold a smaller
    share of the bytes that the counters state are not the signal.
    """

    interval_s: float = 1.0
    min_step_count: int = 100
    max_step_count: int = 1_000_000
    min_covered_ratio: float = 0.95


def grids(duration_s: Reals, params: SignalParams) -> tuple[Reals, Ints]:
    """Return each run's step in seconds and its number of steps: a power of ten times the wanted step.

    duration_s (n): how long each run lasted; a run of no length has one step.
    """
    lasting = np.maximum(duration_s, _FINEST_S)
    finest = np.floor(np.log10(lasting / (params.min_step_count * params.interval_s)) + _SLACK)
    coarsest = np.ceil(np.log10(lasting / (params.max_step_count * params.interval_s)) - _SLACK)
    interval_s = np.maximum(params.interval_s * 10.0 ** np.maximum(np.minimum(finest, 0), coarsest), _FINEST_S)
    return interval_s, np.maximum(np.ceil(duration_s / interval_s - _SLACK), 1).astype(np.int64)


def choose_basis(volumes: pl.DataFrame, params: SignalParams) -> pl.DataFrame:
    """Choose what each signal is made of.

    volumes: one row per signal with `counted_bytes`, `request_bytes` and `heatmap_bytes`, NULL where there is
    no such measurement, and `has_interval`: whether the counters say from when to when. Returns the rows that
    have bytes, with `basis` (requests, heatmap or interval) and `covered_ratio`: the share of the counted
    bytes that the signal holds, NULL where nothing was counted.
    """
    counted = pl.col("counted_bytes")
    ratios = {
        "requests": pl.when(counted > 0).then(pl.col("request_bytes") / counted),
        "heatmap": pl.when(counted > 0).then(pl.col("heatmap_bytes") / counted),
    }
    is_full = {name: ratio.fill_null(1.0) >= params.min_covered_ratio for name, ratio in ratios.items()}
    requests, heatmap = pl.col("request_bytes") > 0, pl.col("heatmap_bytes") > 0
    basis = (
        pl.when(requests & is_full["requests"])
        .then(pl.lit("requests"))
        .when(heatmap & is_full["heatmap"])
        .then(pl.lit("heatmap"))
        .when((counted > 0) & pl.col("has_interval"))
        .then(pl.lit("interval"))
        .when(heatmap & (~requests | (pl.col("heatmap_bytes") >= pl.col("request_bytes"))).fill_null(True))
        .then(pl.lit("heatmap"))
        .when(requests)
        .then(pl.lit("requests"))
    )
    covered = (
        pl.when(pl.col("basis") == "requests")
        .then(ratios["requests"])
        .when(pl.col("basis") == "heatmap")
        .then(ratios["heatmap"])
        .when(counted > 0)
        .then(1.0)
    )
    return (
        volumes.with_columns(basis=basis)
        .filter(pl.col("basis").is_not_null())
        .with_columns(covered_ratio=covered.clip(upper_bound=1.0))
    )
