"""Build the data quality page: completeness of each file system's days, failed checks, and rejected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.reports.texts import ratio_text

#: lower limits of the classes of days, as fractions of missing polls
_CLASSES = (0.001, 0.01, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class QualityFrames:
    """Input of the quality page: coverage, failed checks and rejected rows.

    days: filesystem, polled_on, missing_ratio and poll counts. failed: checks that failed, and the reason. rejects: the
    first rejected input rows. reject_count: number of all rejected rows. quarantined: number of rows that violate each
    rule. inference: agreement of inferred classes and periods with measured ones, by basis and for held-out or training
    runs.
    """

    days: pl.DataFrame
    failed: pl.DataFrame
    reject_count: int
    rejects: pl.DataFrame
    quarantined: pl.DataFrame
    inference: pl.DataFrame


def make_variables(frames: QualityFrames) -> dict[str, Any]:
    """Return the template variables of the quality page."""
    return {
        "strips": _strips(frames.days),
        "failed": frames.failed.to_dicts(),
        "reject_count": frames.reject_count,
        "rejects": frames.rejects.to_dicts(),
        "quarantined": frames.quarantined.to_dicts(),
        "inference": frames.inference.to_dicts(),
    }


def _strips(days: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one strip per file system with a cell per day over the full period; NULL without polls."""
    if days.is_empty():
        return []
    all_days = days.select(pl.date_range(pl.col("polled_on").min(), pl.col("polled_on").max()).alias("polled_on"))
    return [
        {
            "filesystem": name,
            "cells": [
                _cell(row) for row in all_days.join(filesystem_days, on="polled_on", how="left").iter_rows(named=True)
            ],
        }
        for (name,), filesystem_days in days.group_by("filesystem", maintain_order=True)
    ]


def _cell(row: dict[str, Any]) -> dict[str, str]:
    missing = row["missing_ratio"]
    if missing is None:
        return {"day": str(row["polled_on"]), "level": "none", "said": f"{row['polled_on']}: no polls"}
    level = sum(missing >= bound for bound in _CLASSES)
    odd = (row["implausible_poll_count"] or 0) + (row["conflicting_poll_count"] or 0)
    odd_text = f", {odd:,} implausible or conflicting" if odd else ""
    return {
        "day": str(row["polled_on"]),
        "level": str(level),
        "said": f"{row['polled_on']}: {ratio_text(missing)} of {row['expected_poll_count']:,} polls missing{odd_text}",
    }
