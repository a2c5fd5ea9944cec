"""Hand-made warehouse conditions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from iosig.answers.status.condition import Condition, FilesystemCondition, SourceCondition

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def nightly_source(name: str = "sacct", nights: int = 20, ended: timedelta = HOUR) -> SourceCondition:
    """A source with one file per night; the last file landed `ended` ago."""
    landed = tuple(NOON - ended - night * DAY for night in reversed(range(nights)))
    return SourceCondition(name, landed, (0,) * nights, (1000,) * nights)


def filesystem(moved: float = 1e12, usual: tuple[float, ...] = (1e12,) * 14) -> FilesystemCondition:
    return FilesystemCondition("scratch", (NOON - DAY).date(), moved, usual, 0.0)


#: a condition without problems
WELL = Condition(
    warehouse="/srv/iosig",
    at=NOON,
    release_id="2026-03-19-abc",
    released_at=NOON - 9 * HOUR,
    verdict="passed",
    rollback=None,
    sources=(nightly_source(), nightly_source("polls-csv")),
    filesystems=(filesystem(),),
    waiting=(NOON - HOUR,),
    refused_inputs=(),
    refused_run=None,
    held_by=None,
    disk_total_bytes=10**12,
    disk_free_bytes=4 * 10**11,
    next_run_at=NOON + 14 * HOUR,
)


def but(**changes: Any) -> Condition:
    """The condition without problems, with these changes."""
    return replace(WELL, **changes)
