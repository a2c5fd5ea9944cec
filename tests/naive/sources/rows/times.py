"""Naive implementation of `job_times.parse` for local times: time by time, through zoneinfo."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo


def to_utc(local: datetime, zone: str) -> datetime | Literal["twice", "never"]:
    """Return the UTC instant of a naive local time, or whether the local clock shows it twice or never."""
    readings = {local.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)}
    real = {instant for instant in readings if instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local}
    if len(real) == 2:
        return "twice"
    return real.pop() if real else "never"
