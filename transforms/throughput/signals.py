"""Choose the measurement that becomes the signal of a traced run, and its grid.

A tracer may record a run's bytes as individual requests, as a heat map, and as counters. The finest measurement that
contains (nearly) all bytes is the signal. Counters alone give a single interval without a shape, which is labeled as
such.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from iosig.transforms.arrays import Ints, Reals

#: minimum step that the table contract allows [s]
_MIN_STEP_S = 1e-6
#: relative tolerance of rounding errors at the end of the run
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SignalParams:
    """Parameters of signals (ours: no paper has a rule).

    Attributes
    ----------
    interval_s
        Preferred step [s].
    min_step_count
        Minimum number of steps; otherwise steps are shortened by powers of ten.
    max_step_count
        Maximum number of steps; otherwise steps are lengthened by powers of ten.
    min_covered_ratio
        Minimum fraction of the counted bytes that requests or heat maps must contain.
    """

    interval_s: float = 1.0
    min_step_count: int = 100
    max_step_count: int = 1_000_000
    min_covered_ratio: float = 0.95


def choose_grids(duration_s: Reals, params: SignalParams) -> tuple[Reals, Ints]:
    """Choose the step and the number of steps of each run.

    Parameters
    ----------
    duration_s : (n,)
        Duration of each run [s]; a run of no duration has one step.
    params
        Parameters of signals.

    Returns
    -------
    tuple[Reals, Ints]
        Step, which is the preferred one times a power of ten [s], and number of steps.
    """
    duration = np.maximum(duration_s, _MIN_STEP_S)
    finest = np.floor(np.log10(duration / (params.min_step_count * params.interval_s)) + _ROUNDING)
    coarsest = np.ceil(np.log10(duration / (params.max_step_count * params.interval_s)) - _ROUNDING)
    interval_s = np.maximum(params.interval_s * 10.0 ** np.maximum(np.minimum(finest, 0), coarsest), _MIN_STEP_S)
    return interval_s, np.maximum(np.ceil(duration_s / interval_s - _ROUNDING), 1).astype(np.int64)


def choose_basis(volumes: pl.DataFrame, params: SignalParams) -> pl.DataFrame:
    """Choose the measurement of each signal.

    Parameters
    ----------
    volumes
        One row per signal with `counted_bytes`, `request_bytes` and `heatmap_bytes`, NULL without such a measurement,
        and `has_interval`: whether the counters have a start and an end.
    params
        Parameters of signals.

    Returns
    -------
    pl.DataFrame
        Rows with bytes, with `basis` (requests, heatmap or interval) and `covered_ratio`: fraction of the counted bytes
        in the signal, NULL without counters.
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
    covered_ratio = (
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
        .with_columns(covered_ratio=covered_ratio.clip(upper_bound=1.0))
    )
