"""Slurm asked for what is new: what `sacct` says of jobs since it was asked last, and what runs and waits now."""

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
from iosig.streams.landing import Arrival, Told, names_in, reading_of
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.limits import Limits, apply_limits
from iosig.warehouse.sources.jobs import slurm_commands
from iosig.warehouse.sources.protocol import Batch
from iosig.warehouse.store import landing
from iosig.warehouse.store.positions import Position, position
from iosig.warehouse.store.pseudonyms import Names
from iosig.warehouse.store.store import Store

#: so much of the accounting is asked for at once
_WINDOW = timedelta(days=1)
#: says where a row was in an answer, not what it says
_PLACES = ("landing_id", "source_file", "line")


def land_slurm(store: Store, settings: Settings, *, since: datetime | None = None) -> Iterator[Arrival]:
    """Land what Slurm says: of jobs since it was asked last, or from an instant on, and what runs and waits now.

    What cannot be had is told by its arrival, and the rest is asked for all the same.
    """
    yield from _land_sacct(store, settings, since, datetime.now(UTC))
    yield _land_squeue(store, settings, datetime.now(UTC))


def _land_sacct(store: Store, settings: Settings, since: datetime | None, now: datetime) -> Iterator[Arrival]:
    """Land the accounting, a day at a time, each from some time before where the one before it ended.

    Entries may come to the accounting late, and a job that has ended is told anew. Rows that the answer before had are
    left out.
    """
    begun = position(store, "sacct")
    names = names_in(store, settings)
    seen = _Seen.of(begun.cursor["seen"] if begun.cursor and since is None else "", names)
    if since is None and begun.cursor:
        asked_until = datetime.fromisoformat(begun.cursor["until"])
    else:
        asked_until = since or now - timedelta(days=settings.live.backfill_days)
    late = timedelta(seconds=settings.live.grace_s)
    while asked_until < now:
        until = min(asked_until + _WINDOW, now)
        try:
            yield _land_window(settings, begun, (asked_until - late, until), seen)
        except InputRefused as refusal:
            yield Arrival("sacct", None, refusal)
            return
        asked_until, begun = until, position(store, "sacct")


def _land_window(settings: Settings, begun: Position, window: tuple[datetime, datetime], seen: _Seen) -> Arrival:
    """Land what is new of the jobs that were there at any time between two instants."""
    since, until = window
    with tempfile.TemporaryDirectory(prefix="iosig-") as folder, apply_limits(settings.limits.params(Limits)):
        source, path = slurm_commands.query_sacct(since, until, Path(folder), settings.live.timeout_s)
        # the answer is asked for in UTC
        reading = replace(reading_of(source, settings, Told()), time_zone="UTC")
        batches = [*seen.fresh(source.read(path, reading))]
    cursor = {"until": until.isoformat(), "seen": seen.turned()}
    name = f"sacct-{until:%Y%m%dT%H%M%SZ}"
    if not batches:
        begun.move(cursor)
        return Arrival(name, None, None)
    return Arrival(name, begun.land(name, source.name, batches, cursor, seen.names), None)


def _land_squeue(store: Store, settings: Settings, now: datetime) -> Arrival:
    """Land what runs and waits now."""
    name = f"squeue-{now:%Y%m%dT%H%M%SZ}"
    try:
        with tempfile.TemporaryDirectory(prefix="iosig-") as folder, apply_limits(settings.limits.params(Limits)):
            source, path = slurm_commands.query_squeue(now, Path(folder), settings.live.timeout_s)
            batches = [*source.read(path, replace(reading_of(source, settings, Told()), time_zone="UTC"))]
    except InputRefused as refusal:
        return Arrival("squeue", None, refusal)
    names = names_in(store, settings)
    landed = landing.land_batches(store, name, source.name, batches, content=name.encode(), names=names)
    return Arrival(name, landed, None)


@dataclass(slots=True)
class _Seen:
    """Which rows the answer before had, and which this one has, as hashes: of what lands, where names are hidden."""

    before: pl.Series
    names: Names | None
    now: list[pl.Series] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, names: Names | None) -> _Seen:
        """Return what `turned` made a text of."""
        return cls(pl.Series(np.frombuffer(base64.b64decode(text), np.uint64), dtype=pl.UInt64), names)

    def fresh(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the rows that the answer before did not have; those of jobs that wait are none of the accounting's."""
        for batch in batches:
            rows = batch.rows
            if batch.table == JOB_RECORDS:
                rows = rows.filter((pl.col("state") != "PENDING").fill_null(True) | pl.col("ended_at").is_not_null())
            told = self.names.hide(batch.table, rows) if self.names else rows
            said = told.drop(*_PLACES, strict=False).hash_rows()
            self.now.append(said)
            rows = rows.filter(~said.is_in(self.before.implode()))
            if not rows.is_empty():
                yield Batch(batch.table, rows)

    def turned(self) -> str:
        """Let this answer be the one before, and return it as text."""
        self.before, self.now = pl.concat([self.before.clear(), *self.now]).unique().sort(), []
        return base64.b64encode(self.before.to_numpy().tobytes()).decode()
