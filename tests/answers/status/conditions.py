"""Conditions to be judged, made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from iosig.answers.status.condition import Condition, FilesystemCondition, SourceCondition

NOON = datetime(2026, 3, 20, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def nightly_source(name: str = "sacct", nights: int = 20, ended: timedelta = HOUR) -> SourceCondition:
    """A source of which one file lands each night, the last one so long ago."""
    landed = tuple(NOON - ended - night * DAY for night in reversed(range(nights)))
    return SourceCondition(name, landed, (0,) * nights, (1000,) * nights)


def filesystem(moved: float = 1e12, usual: tuple[float, ...] = (1e12,) * 14) -> FilesystemCondition:
    return FilesystemCondition("scratch", (NOON - DAY).date(), moved, usual, 0.0)


#: all is well here
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
    """What is well, but for these."""
    return replace(WELL, **changes)
