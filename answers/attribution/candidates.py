"""Which runs are likely to have moved most of what nobody explains: by when much flowed beside them."""

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

#: what flowed so long before and after tells who moves much
BESIDE = timedelta(hours=12)
_MINUTE_S = 60.0
_RUN = ("cluster", "job_id", "started_at")
_VOLUMES = {"read": "read_bytes", "write": "written_bytes"}


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of a time and of `BESIDE` around it.

    ticks: of the file system, in order of polled_at; parts: what is explained by run, direction and minute_at; there:
    the runs that were there.
    """

    ticks: pl.DataFrame
    parts: pl.DataFrame
    there: pl.DataFrame


def likely_moved(beside: Beside, directions: Sequence[str], window: tuple[datetime, datetime]) -> pl.DataFrame:
    """Return runs with their likely_bytes: what they are likely to have moved in a window, of what nobody explains.

    A run with a signature may have moved more than that explains; one that servers counted has not.
    """
    is_counted = pl.col("attributed_low_bytes") == pl.col("attributed_high_bytes")
    runs = beside.there.join(beside.parts.filter(is_counted), on=_RUN, how="anti", maintain_order="left")
    total = sum((_likely(runs, beside, direction, window) for direction in directions), np.zeros(runs.height))
    return runs.select(_RUN).with_columns(likely_bytes=pl.Series(total))


def _likely(runs: pl.DataFrame, beside: Beside, direction: str, window: tuple[datetime, datetime]) -> Reals:
    """Return what each run is likely to have moved in a window, in one direction."""
    from iosig.transforms.attribution.likely_bytes import estimate_likely_bytes

    left, explained, start_s, step_s = _left(runs, beside, direction)
    started, ended = ((epoch_s(runs[name]) - start_s) / step_s for name in ("started_at", "ended_at"))
    first, last = ((at.timestamp() - start_s) / step_s for at in window)
    # a struct, not a joined text: names may hold any separator
    of_application = pl.struct("user", "application", "node_count").rank("dense")
    application = ints(runs.select(of_application).to_series()) - 1
    found = estimate_likely_bytes(
        left, started, np.nan_to_num(ended, nan=float(len(left))), application, explained=explained
    )
    is_in = (found.step >= first - 1e-6) & (found.step < last - 1e-6)
    return np.bincount(found.run[is_in], found.volume_bytes[is_in], runs.height).astype(np.float64)


def _left(runs: pl.DataFrame, beside: Beside, direction: str) -> tuple[Reals, RunBytes, float, float]:
    """Return what nobody explains in steps, what is explained of runs, when the first begins, and how long they are."""
    from iosig.transforms.attribution.likely_bytes import STEP_S, spread_evenly
    from iosig.transforms.unattributed_patterns.residual import (
        choose_step_s,
        compute_proportional_residual,
        resample_polls,
    )

    ticks = beside.ticks
    edge_s, interval_s = epoch_s(ticks["polled_at"]), floats(ticks["interval_s"])
    step_s = choose_step_s(max(STEP_S, float(np.quantile(interval_s, 0.5, method="lower"))))
    stretch_s = max(_MINUTE_S, step_s)
    start_s = float(np.floor((edge_s[0] - interval_s[0]) / stretch_s) * stretch_s)
    traffic = resample_polls(edge_s, interval_s, floats(ticks[_VOLUMES[direction]]), start_s, step_s)
    stretch = (np.arange(len(traffic)) * step_s / stretch_s + 1e-9).astype(np.int64)
    count = int(stretch.max(initial=-1)) + 1
    own = beside.parts.filter(pl.col("direction") == direction)
    place = np.ceil((epoch_s(own["minute_at"]) - start_s) / stretch_s - 1e-9).astype(np.int64) - 1
    is_there = (place >= 0) & (place < count)
    explained: Reals = np.bincount(place[is_there], floats(own["attributed_bytes"])[is_there], count).astype(np.float64)
    told = own.with_columns(place=pl.Series(place)).join(
        runs.select(_RUN).with_row_index("run"), on=_RUN, how="inner", maintain_order="left"
    )
    moved = spread_evenly(ints(told["run"]), ints(told["place"]), floats(told["attributed_bytes"]), stretch)
    return compute_proportional_residual(traffic, explained, stretch, step_s), moved, start_s, step_s
