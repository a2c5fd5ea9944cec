"""Land new records from Slurm: accounting since the last `sacct` query, and the current queue."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from iosig.settings.model import Settings
from iosig.streams.landing import Arrival, ReadOptions, make_reading, names_in
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.jobs import slurm_commands
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.positions import Position, position
from iosig.warehouse.store.pseudonyms import Names
from iosig.warehouse.store.store import Store

#: time window of one accounting query
_WINDOW = timedelta(days=1)
#: columns that locate a row in the output and carry no data
_PLACES = ("landing_id", "source_file", "line")


def land_slurm(store: Store, settings: Settings, *, since: datetime | None = None) -> Iterator[Arrival]:
    """Land new accounting records, since the last query or from an instant on, and the running and pending jobs.

    An error of one query is reported as an arrival, and the other query still runs.
    """
    yield from _land_sacct(store, settings, since, datetime.now(UTC))
    yield _land_squeue(store, settings, datetime.now(UTC))


def _land_sacct(store: Store, settings: Settings, since: datetime | None, now: datetime) -> Iterator[Arrival]:
    """Land the accounting in windows of one day, each with an overlap with the previous one.

    The overlap covers late entries and updates of jobs that have ended. Rows of the previous response are skipped.
    """
    start_position = position(store, "sacct")
    names = names_in(store, settings)
    hashes = _ResponseHashes.decode(
        start_position.cursor["seen"] if start_position.cursor and since is None else "", names
    )
    if since is None and start_position.cursor:
        asked_until = datetime.fromisoformat(start_position.cursor["until"])
    else:
        asked_until = since or now - timedelta(days=settings.live.backfill_days)
    overlap = timedelta(seconds=settings.live.grace_s)
    while asked_until < now:
        until = min(asked_until + _WINDOW, now)
        try:
            yield _land_window(settings, start_position, (asked_until - overlap, until), hashes)
        except InputRefused as refusal:
            yield Arrival("sacct", None, refusal)
            return
        asked_until, start_position = until, position(store, "sacct")


def _land_window(
    settings: Settings, start_position: Position, window: tuple[datetime, datetime], hashes: _ResponseHashes
) -> Arrival:
    """Land new records of the jobs that existed at any time between two instants."""
    since, until = window
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder, apply_limits(settings.limits.params(Limits)):
        source, path = slurm_commands.query_sacct(since, until, Path(folder), settings.live.timeout_s)
        # the query requests times in UTC
        reading = replace(make_reading(source, settings, ReadOptions()), time_zone="UTC")
        batches = [*hashes.fresh(source.read(path, reading))]
    cursor = {"until": until.isoformat(), "seen": hashes.rotate()}
    name = f"sacct-{until:%Y%m%dT%H%M%SZ}"
    if not batches:
        start_position.move(cursor)
        return Arrival(name, None, None)
    return Arrival(name, start_position.land(name, source.name, batches, cursor, hashes.names), None)


def _land_squeue(store: Store, settings: Settings, now: datetime) -> Arrival:
    """Land the current queue of running and pending jobs."""
    name = f"squeue-{now:%Y%m%dT%H%M%SZ}"
    try:
        with tempfile.TemporaryDirectory(prefix="iosig-") as folder, apply_limits(settings.limits.params(Limits)):
            source, path = slurm_commands.query_squeue(now, Path(folder), settings.live.timeout_s)
            batches = [*source.read(path, replace(make_reading(source, settings, ReadOptions()), time_zone="UTC"))]
    except InputRefused as refusal:
        return Arrival("squeue", None, refusal)
    names = names_in(store, settings)
    landed = landing.land_batches(store, name, source.name, batches, content=name.encode(), names=names)
    return Arrival(name, landed, None)


@dataclass(slots=True)
class _ResponseHashes:
    """Row hashes of the previous and the current response, after pseudonymization in a private warehouse."""

    before: pl.Series
    names: Names | None
    now: list[pl.Series] = field(default_factory=list)

    @classmethod
    def decode(cls, text: str, names: Names | None) -> _ResponseHashes:
        """Decode the hashes that `rotate` has encoded."""
        return cls(pl.Series(np.frombuffer(base64.b64decode(text), np.uint64), dtype=pl.UInt64), names)

    def fresh(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield rows that the previous response lacked; pending jobs are left to the queue."""
        for batch in batches:
            rows = batch.rows
            if batch.table == JOB_RECORDS:
                rows = rows.filter((pl.col("state") != "PENDING").fill_null(True) | pl.col("ended_at").is_not_null())
            hidden = self.names.hide(batch.table, rows) if self.names else rows
            row_hashes = hidden.drop(*_PLACES, strict=False).hash_rows()
            self.now.append(row_hashes)
            rows = rows.filter(~row_hashes.is_in(self.before.implode()))
            if not rows.is_empty():
                yield Batch(batch.table, rows)

    def rotate(self) -> str:
        """Make this response the previous one, and encode its hashes as a string."""
        self.before, self.now = pl.concat([self.before.clear(), *self.now]).unique().sort(), []
        return base64.b64encode(self.before.to_numpy().tobytes()).decode()
