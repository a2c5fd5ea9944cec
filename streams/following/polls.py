"""Feed the landed polls of a running job as flushes, and define the base class of all feeds of polls.

A position names the landings with queued polls, and the fully read landings of the last hour; earlier landings count as
read. After a restart, only landings with queued polls are read again, from the last returned poll time on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from iosig.settings.model import Settings
from iosig.streams.following.jobs import FollowedJob, Landings, WatchedJob, select_poll_parts
from iosig.streams.following.merged_polls import SCHEMA, FeedParams, MergedPolls
from iosig.streams.following.rows import Identity
from iosig.warehouse.engine_paths import scan_parquet
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.store.manifests import Landing
from iosig.warehouse.store.store import Store

#: maximum number of flushes per call; bounds the memory
MAX_FLUSHES = 1024
#: number of landings that may be in progress simultaneously: one that started earlier may appear later
_LATEST = 500


def micros(instant: datetime) -> int:
    """Convert an instant to whole microseconds since 1970."""
    return (instant - datetime(1970, 1, 1, tzinfo=instant.tzinfo)) // timedelta(microseconds=1)


class PollFeed:
    """Base class of feeds of polls, which return up to `MAX_FLUSHES` flushes per call.

    A subclass provides new data in `_news`, and the read position of its source in `_source_position`.
    """

    #: number of consecutive failed queries of the source
    failed_count = 0
    is_quiet = False

    def __init__(
        self,
        followed_id: str,
        cluster: str | None,
        subject_id: str,
        filesystem: str,
        merged: MergedPolls,
        params: FeedParams,
        clock: Callable[[], float],
    ) -> None:
        self.identity = Identity(
            followed_id, "job", cluster, subject_id, filesystem, source="server", is_shared_traffic=True
        )
        self.filesystem = filesystem
        self.is_behind = False
        self.is_over = False
        self._has_more = False
        self._merged, self._params, self._clock = merged, params, clock
        self._stream: Iterator[Flush] | None = None
        self._ended_since_s: float | None = None

    def poll(self) -> list[Flush]:
        """Return new flushes; `is_behind` is then true if more are available immediately."""
        if self.is_over:
            return []
        if self._stream is None:
            self._stream = self._advance()
        flushes = list(islice(self._stream, MAX_FLUSHES))
        is_cut = len(flushes) == MAX_FLUSHES
        if not is_cut:
            self._stream = None
        self.is_behind = is_cut or self._has_more
        return flushes

    def pending(self) -> list[Flush]:
        """Return an empty list, because polls always wait for others of the same time."""
        return []

    def finish(self) -> list[Flush]:
        """Return new and queued flushes and a final one with the event `end`; this closes the feed."""
        flushes = self.poll()
        while self.is_behind:
            flushes += self.poll()
        if not self.is_over:
            has_ended = self._merged.ended_us is not None
            flushes += self._ready(is_final=True)
            flushes.append(self._final(is_over=has_ended))
            self.is_over = True
        return flushes

    def _advance(self) -> Iterator[Flush]:
        yield from self._news()
        if self._merged.ended_us is None or self._has_more:
            return
        if self._ended_since_s is None:
            self._ended_since_s = self._clock()
        if not self._merged.is_over:
            if self._clock() - self._ended_since_s < self._params.end_wait_s:
                return
            yield from self._ready(is_final=True)
        self.is_over = True
        yield self._final(is_over=True)

    def _push_rows(self, rows: pl.DataFrame, *, is_again: bool = False) -> Iterator[Flush]:
        return map(self._add_position, self._merged.push(rows, is_again=is_again))

    def _ready(self, *, is_final: bool = False) -> Iterator[Flush]:
        return map(self._add_position, self._merged.ready(is_final=is_final))

    def _final(self, *, is_over: bool) -> Flush:
        merged = self._merged
        until_us = max(merged.closed_us, merged.started_us) if merged.ended_us is None else merged.ended_us
        return self._add_position(merged.final(until_us), is_over=is_over)

    def _add_position(self, flush: Flush, *, is_over: bool = False) -> Flush:
        position = {
            "started_us": self._merged.started_us,
            "polls": flush.position,
            "source": self._source_position(),
            "is_over": is_over,
        }
        return replace(flush, position=position)

    def _news(self) -> Iterator[Flush]:
        raise AssertionError("must be implemented by each kind of feed")

    def _source_position(self) -> Mapping[str, Any]:
        raise AssertionError("must be implemented by each kind of feed")


def restore_polls(
    started_at: datetime, settings: Settings, params: FeedParams, position: Mapping[str, Any] | None
) -> tuple[MergedPolls, Mapping[str, Any] | None]:
    """Restore merged polls and their position; after a change of run, start empty with the event `replaced`."""
    started_us, limit = micros(started_at), settings.polls.max_controller_bytes_per_s
    if position is None or position["started_us"] == started_us:
        return MergedPolls(started_us, limit, params, position and position["polls"]), position
    merged = MergedPolls(started_us, limit, params)
    merged.tell("replaced")
    return merged, None


@dataclass(slots=True)
class _Lot:
    """A landing with polls of the run's days: unread files by day, and the read position."""

    landing: Landing
    files: dict[str, list[Path]]
    read_day: str | None = None
    last_us: int = 0


class LandedPollFeed(PollFeed):
    """Landed polls of a job's file system, from the job's start to its end."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        job: FollowedJob,
        position: Mapping[str, Any] | None = None,
        *,
        params: FeedParams | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        params = params or FeedParams()
        merged, saved = restore_polls(job.started_at, settings, params, position)
        super().__init__(job.followed_id, job.cluster, job.job_id, job.filesystem, merged, params, clock)
        self.is_over = bool(saved and saved["is_over"])
        source: Mapping[str, Any] = saved["source"] if saved else {"read": [], "open": {}}
        self._since: int = source.get("since_sequence", 0)
        # equivalent field in a position of iosig 0.1
        self._since_at: str = source.get("since", "")
        self._read: dict[str, int | None] = dict.fromkeys(source["read"])
        self._opened: dict[str, str] = dict(source["open"])
        self._store = store
        self._watched = WatchedJob(store, settings, job)
        self._landings = Landings(store)
        self._lots: dict[str, _Lot] = {}
        self._told: Mapping[str, Any] | None = None
        self._settled_us = 0

    # ---- landed polls

    def _news(self) -> Iterator[Flush]:
        new = self._landings.look()
        job = self._watched.update(new)
        if job.ended_at is not None:
            self._merged.end(micros(job.ended_at))
        self._take(new, job)
        yield from self._again()
        for day in sorted({day for lot in self._lots.values() for day in lot.files}):
            yield from self._day(day)
        self._forget()

    def _take(self, new: Iterable[Landing], job: FollowedJob) -> None:
        """Record which files of new landings contain unread polls of the run's days."""
        for landing, part in select_poll_parts(new, job.started_at, job.ended_at):
            name = landing.landing_id
            is_read = name in self._read or landing.sequence <= self._since or landing.landed_at <= self._since_at
            if is_read and name not in self._opened:
                if name in self._read:
                    self._read[name] = landing.sequence
                continue
            lot = self._lots.setdefault(name, _Lot(landing, {}, self._opened.get(name)))
            lot.files.setdefault(str(part.day), []).append(self._store.local(part.path))
            self._told = None

    def _again(self) -> Iterator[Flush]:
        """Read landings from before a restart again, and return the polls that had not been returned."""
        tables = []
        for name, day in self._opened.items():
            lot = self._lots.get(name)
            if lot is not None:
                file_lists = [lot.files.pop(file_day) for file_day in sorted(lot.files) if file_day <= day]
                rows = self._rows([path for files in file_lists for path in files], self._merged.closed_us)
                lot.last_us = _latest(rows)
                tables.append(rows)
        self._opened = {}
        if tables:
            yield from self._push_rows(pl.concat(tables), is_again=True)
            yield from self._ready()

    def _day(self, day: str) -> Iterator[Flush]:
        """Read all new files of a day together."""
        lots = sorted(
            (lot for lot in self._lots.values() if day in lot.files),
            key=lambda lot: (lot.landing.sequence, lot.landing.landing_id),
        )
        tables = [(lot, self._rows(lot.files[day], self._merged.started_us)) for lot in lots]
        yield from self._push_rows(pl.concat(rows for _, rows in tables))
        # from here on, the position marks these polls as read; a restart before this point reads them again
        for lot, rows in tables:
            del lot.files[day]
            lot.read_day = max(lot.read_day or day, day)
            lot.last_us = max(lot.last_us, _latest(rows))
        self._told = None
        yield from self._ready()

    def _rows(self, files: list[Path], after_us: int) -> pl.DataFrame:
        """Return a landing's polls of the file system after an instant."""
        after = pl.lit(after_us, pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        existing = [path for path in files if path.is_file()]
        if len(existing) < len(files):
            self._merged.note(0, "Landed files were deleted: their polls are ignored.")
        if not existing:
            return pl.DataFrame(schema=SCHEMA)
        polls = scan_parquet(existing).filter(pl.col("filesystem") == self.filesystem, pl.col("polled_at") > after)
        return polls.select(
            "controller",
            pl.col("polled_at").dt.epoch("us").alias("polled_us"),
            (pl.col("interval_s") * 1e6).round().cast(pl.Int64).alias("interval_us"),
            "read_bytes_per_s",
            "write_bytes_per_s",
        ).collect()

    # ---- the position

    def _forget(self) -> None:
        """Drop fully read landings that the position in the landing order already covers."""
        for lot in self._lots.values():
            self._read.setdefault(lot.landing.landing_id, lot.landing.sequence)
        newest = max((place for place in self._read.values() if place is not None), default=0)
        self._since = max(self._since, newest - _LATEST)
        self._read = {name: place for name, place in self._read.items() if place is None or place > self._since}
        for name in [name for name, lot in self._lots.items() if self._is_done(lot)]:
            del self._lots[name]
        self._told = None

    def _is_done(self, lot: _Lot) -> bool:
        return not lot.files and lot.last_us <= self._merged.closed_us

    def _source_position(self) -> Mapping[str, Any]:
        if self._told is None or self._merged.closed_us >= self._settled_us:
            open_lots = {
                name: lot.read_day
                for name, lot in self._lots.items()
                if lot.read_day is not None and not self._is_done(lot)
            }
            done_names = [name for name, lot in self._lots.items() if self._is_done(lot)]
            read = [name for name in dict.fromkeys([*self._read, *done_names]) if name not in open_lots]
            waiting = [lot.last_us for lot in self._lots.values() if lot.last_us > self._merged.closed_us]
            self._settled_us = min(waiting, default=1 << 62)
            self._told = {
                "since_sequence": self._since,
                "since": self._since_at,
                "read": read,
                "open": {**open_lots, **self._opened},
            }
        return self._told


def _latest(rows: pl.DataFrame) -> int:
    latest: int | None = rows["polled_us"].max()  # type: ignore[assignment]
    return latest or 0
