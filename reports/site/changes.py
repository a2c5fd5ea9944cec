"""Build the page of changes since the previous release: dumbbell plots of volume, bursts and period."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.reports.texts import duration_text, format_count, volume_text

_MAX_ROWS = 40
#: formats of bytes, times and counts, by `is_volume` of `dumbbells`
_TEXTS: dict[bool | None, Callable[[float], str]] = {True: volume_text, False: duration_text, None: "{:,.0f}".format}
#: width of the inner part of a plot [px]
#: height of a row in a plot [px]
_WIDTH, _ROW = 560.0, 22.0


@dataclass(frozen=True, slots=True)
class ChangeFrames:
    """Input of the changes page: the differences between two releases.

    signatures: one row per changed signature, with its status. pairs: volume_bytes, burst_count and period_s by
    application, file system and direction, and the previous values with the suffix `_before`.
    """

    before_id: str | None
    signatures: pl.DataFrame
    pairs: pl.DataFrame


def make_variables(frames: ChangeFrames) -> dict[str, Any]:
    """Return the template variables of the changes page."""
    status = frames.signatures.group_by("status").len().sort("status")
    return {
        "before_id": frames.before_id,
        "counts": dict(status.iter_rows()),
        "differing": format_count(frames.signatures.height, "signature"),
        "volumes": dumbbells(frames.pairs, "volume_bytes", is_volume=True),
        "bursts": dumbbells(frames.pairs, "burst_count", is_volume=None),
        "periods": dumbbells(frames.pairs, "period_s", is_volume=False),
    }


def dumbbells(rows: pl.DataFrame, column: str, *, is_volume: bool | None) -> dict[str, Any]:
    """Build a dumbbell plot of old and new values on a log scale, the largest changes first.

    is_volume: whether values are bytes, times, or (None) counts. A missing value has no mark in the plot.
    """
    before, after = pl.col(f"{column}_before").cast(pl.Float64), pl.col(column).cast(pl.Float64)
    differing = (
        rows.with_columns(old=pl.when(before > 0).then(before), new=pl.when(after > 0).then(after))
        .filter(pl.col("old").is_not_null() | pl.col("new").is_not_null())
        .filter(pl.col("old").ne_missing(pl.col("new")))
        .with_columns(moved=(pl.col("new") / pl.col("old")).log().abs().fill_null(math.inf))
        .sort("moved", "application_id", "filesystem", "direction", descending=[True, False, False, False])
    )
    drawn = differing.head(_MAX_ROWS)
    values = [value for name in ("old", "new") for value in drawn[name].drop_nulls().to_list()]
    low, high = (min(values) / 1.2, max(values) * 1.2) if values else (1.0, 10.0)

    def place(value: float | None) -> float | None:
        return None if value is None else round(_WIDTH * math.log(value / low) / math.log(high / low), 1)

    text = _TEXTS[is_volume]
    return {
        "rows": [
            row
            | {
                "before_x": place(row["old"]),
                "after_x": place(row["new"]),
                "before_text": None if row["old"] is None else text(row["old"]),
                "after_text": None if row["new"] is None else text(row["new"]),
            }
            for row in drawn.iter_rows(named=True)
        ],
        "more_count": differing.height - drawn.height,
        "width": _WIDTH,
        "row_height": _ROW,
    }
