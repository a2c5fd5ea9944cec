"""Traced runs built row by row, to be landed without a tracer's files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from iosig.warehouse.contracts.traces import TRACE_HEATMAPS, TRACE_MODULES, TRACE_RECORDS, TRACE_REQUESTS, TRACES
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.sources.rows.traced import build_batch
from iosig.warehouse.store.landing import land_batches
from iosig.warehouse.store.store import Store

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)


def trace(
    *,
    started_min: float | None = None,
    duration_s: float = 1600.0,
    tracer: str = "darshan",
    modules: dict[str, dict[str, Any]] | None = None,
    records: list[dict[str, Any]] | None = None,
    requests: list[dict[str, Any]] | None = None,
    heatmaps: list[dict[str, Any]] | None = None,
    **known: Any,
) -> list[Batch]:
    """Return the landed rows of a traced run; `started_min` is its start in minutes from midnight, if known."""
    started_at = None if started_min is None else MIDNIGHT + timedelta(minutes=started_min)
    ended_at = started_at + timedelta(seconds=duration_s) if started_at else None
    whole = {"tracer": tracer, "started_at": started_at, "ended_at": ended_at, "duration_s": duration_s, **known}
    modules = modules or {}
    made = [build_batch(TRACES, whole, ended_at)]
    made += [
        build_batch(
            TRACE_MODULES,
            {"module": name, "outcome": "sound", "is_partial": False, "record_count": 1} | facts,
            ended_at,
        )
        for name, facts in modules.items()
    ]
    for table, given in (
        (TRACE_RECORDS, [{"rank": 0, "file_number": 1} | record for record in records or []]),
        (TRACE_HEATMAPS, [{"rank": 0, "step_count": len(h["bin_bytes"])} | h for h in heatmaps or []]),
        (
            TRACE_REQUESTS,
            [
                {"request": number, "rank": 0, "is_nested": False, "is_async": False, "module": "POSIX"} | request
                for number, request in enumerate(requests or [])
            ],
        ),
    ):
        if given:
            frame = pl.DataFrame(given)
            made.append(build_batch(table, {name: frame[name] for name in frame.columns}, ended_at))
    return made


def land(store: Store, name: str, batches: list[Batch]) -> str:
    """Land a traced run, and return its id."""
    return land_batches(store, name, "darshan", batches).landing.trace_id
