"""Infer which runs are likely to have moved unattributed bytes, from traffic that coincides with their run times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, floats, ints
from iosig.transforms.arrays import Reals

if TYPE_CHECKING:
    from iosig.transforms.attribution.runs import RunBytes

#: how far the evidence extends before and after the queried window
CONTEXT = timedelta(hours=12)
_MINUTE_S = 60.0
_RUN = ("cluster", "job_id", "started_at")
_VOLUMES = {"read": "read_bytes", "write": "written_bytes"}


@dataclass(frozen=True, slots=True)
class TrafficContext:
    """Traffic, attributed bytes and runs of a window extended by `CONTEXT` on both sides.

    ticks: poll rows of the file system, in order of polled_at. parts: attributed bytes by run, direction and minute_at.
    runs: the runs that were active.
    """

    ticks: pl.DataFrame
    parts: pl.DataFrame
    runs: pl.DataFrame


def estimate_run_bytes(
    context: TrafficContext, directions: Sequence[str], window: tuple[datetime, datetime]
) -> pl.DataFrame:
    """Estimate how many of the unattributed bytes in a window each run moved, as column `likely_bytes`.

    A run with a signature may have moved more than is attributed to it. Runs with server counters are excluded: their
    bytes are known.
    """
    is_counted = pl.col("attributed_low_bytes") == pl.col("attributed_high_bytes")
    runs = context.runs.join(context.parts.filter(is_counted), on=_RUN, how="anti", maintain_order="left")
    total = sum((_estimate(runs, context, direction, window) for direction in directions), np.zeros(runs.height))
    return runs.select(_RUN).with_columns(likely_bytes=pl.Series(total))


def _estimate(runs: pl.DataFrame, context: TrafficContext, direction: str, window: tuple[datetime, datetime]) -> Reals:
    """Estimate the unattributed bytes of each run in a window, in one direction."""
    from iosig.transforms.attribution.likely_bytes import estimate_likely_bytes

    residual, attributed, start_s, step_s = _compute_residual(runs, context, direction)
    started, ended = ((epoch_s(runs[name]) - start_s) / step_s for name in ("started_at", "ended_at"))
    first, last = ((at.timestamp() - start_s) / step_s for at in window)
    # runs without an id are grouped by its known parts; names may contain any separator
    application_rank = pl.struct("application_id", "user", "application", "node_count").rank("dense")
    application = ints(runs.select(application_rank).to_series()) - 1
    estimates = estimate_likely_bytes(
        residual, started, np.nan_to_num(ended, nan=float(len(residual))), application, explained=attributed
    )
    is_in = (estimates.step >= first - 1e-6) & (estimates.step < last - 1e-6)
    return np.bincount(estimates.run[is_in], estimates.volume_bytes[is_in], runs.height).astype(np.float64)


def _compute_residual(
    runs: pl.DataFrame, context: TrafficContext, direction: str
) -> tuple[Reals, RunBytes, float, float]:
    """Return unattributed bytes per step, attributed bytes per run and step, start [s] of the grid, step length [s]."""
    from iosig.transforms.attribution.likely_bytes import STEP_S, spread_evenly
    from iosig.transforms.unattributed_patterns.residual import (
        choose_step_s,
        compute_proportional_residual,
        resample_polls,
    )

    ticks = context.ticks
    edge_s, interval_s = epoch_s(ticks["polled_at"]), floats(ticks["interval_s"])
    step_s = choose_step_s(max(STEP_S, float(np.quantile(interval_s, 0.5, method="lower"))))
    interval_length_s = max(_MINUTE_S, step_s)
    start_s = float(np.floor((edge_s[0] - interval_s[0]) / interval_length_s) * interval_length_s)
    traffic = resample_polls(edge_s, interval_s, floats(ticks[_VOLUMES[direction]]), start_s, step_s)
    stretch = (np.arange(len(traffic)) * step_s / interval_length_s + 1e-9).astype(np.int64)
    count = int(stretch.max(initial=-1)) + 1
    parts = context.parts.filter(pl.col("direction") == direction)
    place = np.ceil((epoch_s(parts["minute_at"]) - start_s) / interval_length_s - 1e-9).astype(np.int64) - 1
    is_there = (place >= 0) & (place < count)
    attributed: Reals = np.bincount(place[is_there], floats(parts["attributed_bytes"])[is_there], count).astype(
        np.float64
    )
    placed = parts.with_columns(place=pl.Series(place)).join(
        runs.select(_RUN).with_row_index("run"), on=_RUN, how="inner", maintain_order="left"
    )
    by_run = spread_evenly(ints(placed["run"]), ints(placed["place"]), floats(placed["attributed_bytes"]), stretch)
    return compute_proportional_residual(traffic, attributed, stretch, step_s), by_run, start_s, step_s
