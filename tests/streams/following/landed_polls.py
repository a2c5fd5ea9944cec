"""Small warehouses with polls and a job, and sums over flushes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from iosig.streams.following.jobs import FollowedJob
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.store import Store

START = datetime(2026, 3, 3, 12, tzinfo=UTC)
#: columns: seconds since the start, controller, bytes read and written per second
Poll = tuple[float, str, float | None, float | None]


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def frame_of(polls: Iterable[Poll], interval_s: float = 10.0, filesystem: str = "scratch") -> pl.DataFrame:
    rows = [
        {
            "polled_at": at(second),
            "filesystem": filesystem,
            "controller": controller,
            "interval_s": interval_s,
            "read_bytes_per_s": read,
            "write_bytes_per_s": write,
        }
        for second, controller, read, write in polls
    ]
    return pl.DataFrame(rows, schema=frames.schema(POLLS))


def land_polls(store: Store, polls: Iterable[Poll], name: str = "polls", **given: object) -> None:
    batch = Batch(POLLS, frame_of(polls, **given))  # type: ignore[arg-type]
    landing.land_batches(store, name, "polls-csv", [batch])


def land_jobs(store: Store, *records: dict[str, object]) -> None:
    rows = pl.DataFrame(
        [{"source_file": "", "line": line} | record for line, record in enumerate(records, 2)],
        schema=frames.schema(JOB_RECORDS),
    )
    landing.land_batches(store, "jobs", "sacct", [Batch(JOB_RECORDS, rows)])


def job_until(second: float | None = None) -> FollowedJob:
    return FollowedJob("c", "7", "ann", "ior", "RUNNING", START, None if second is None else at(second), "scratch")


def moved(flushes: Sequence[Flush], direction: str) -> dict[tuple[float, float], list[float]]:
    """Return the volumes of a direction, by interval."""
    found = defaultdict(list)
    for flush in flushes:
        if direction in flush.moves:
            it = flush.moves[direction]
            for began, ceased, volume in zip(it.start_s, it.end_s, it.volume_bytes, strict=True):
                found[float(began), float(ceased)].append(float(volume))
    return {interval: sorted(volumes) for interval, volumes in sorted(found.items())}


def content(flush: Flush) -> object:
    """Return a comparable form of a flush without its position."""
    measured = None if flush.measured is None else flush.measured.tolist()
    moves = {name: moved([flush], name) for name in flush.moves}
    return moves, flush.until_s, measured, flush.events, flush.refused


def contents(flushes: Sequence[Flush]) -> list[object]:
    return [content(flush) for flush in flushes]


def as_json(flush: Flush) -> dict[str, object]:
    """Return a position after a round trip through a journal's JSON."""
    found: dict[str, object] = json.loads(json.dumps(flush.position))
    return found
