"""Encode the recommended starts of the applications that move the most bytes, as of the last poll."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from iosig.reports.site.packing import Content, columns, pack_document

_MAX_ROWS = 10


@dataclass(frozen=True, slots=True)
class AdviceFrames:
    """Input of the advice page: start recommendations for each application.

    at: reference time, None without polls. rows: for each application, its file systems from the best to the worst
    (place). Columns: the best delay, the bytes expected to exceed the capacity now and after the delay, the range of
    the latter, and the factor by which a run takes longer (stretch). lacking: why advice on all or some file systems is
    missing, else None.
    """

    at: datetime | None
    rows: pl.DataFrame
    lacking: str | None


def contents(frames: AdviceFrames) -> Content:
    """Encode the recommendations as a file that the pages of applications and file systems load."""
    at_s = None if frames.at is None else frames.at.timestamp()
    return pack_document("advice", {"at": at_s, "lacking": frames.lacking, "rows": columns(frames.rows)})


def make_variables(frames: AdviceFrames) -> dict[str, Any]:
    """Return the start page's template variables: the best start of each application in contention now."""
    best = frames.rows.filter(pl.col("place") == 1).sort("now_bytes", "application_id", descending=[True, False])
    crowded = best.filter(pl.col("now_bytes") >= 1)
    return {
        "at": frames.at,
        "lacking": frames.lacking,
        "count": best.height,
        "free_count": best.height - crowded.height,
        "rows": crowded.head(_MAX_ROWS).to_dicts(),
    }
