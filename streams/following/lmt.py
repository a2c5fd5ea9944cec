"""Poll an LMT database live, and yield the counter increments of a file system's targets as flushes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from iosig.settings.model import Settings
from iosig.streams.following.jobs import WatchedJob
from iosig.streams.following.merged_polls import FeedParams
from iosig.streams.following.polls import PollFeed, micros, restore_polls
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external.deadlines import Timeouts
from iosig.warehouse.following.flushes import Flush
from iosig.warehouse.sources.protocol import Reading

if TYPE_CHECKING:
    from iosig.warehouse.sources.polls.lmt_cursors import Cursor
    from iosig.warehouse.sources.polls.lmt_following import NewPolls


def make_followed_id(filesystem: str, since: datetime, job: WatchedJob | None = None) -> str:
    """Return the unique id of a followed file system of an LMT database."""
    if job is not None:
        return replace(job.job, filesystem=filesystem).followed_id
    return f"{_describe_subject(since)} on {filesystem}"


def _describe_subject(since: datetime) -> str:
    return f"since {since.astimezone(UTC):%FT%TZ}"


class LmtFeed(PollFeed):
    """Live polls of a file system in an LMT database, starting at an instant.

    url: an SQLAlchemy URL, or the path of an SQLite file. since: an instant with a time zone. job: the run to follow,
    if the job log determines its end. While the database is unavailable, `is_down` is true, `down_reason` contains the
    reason and `failed_count` the number of failed queries. The caller backs off after each failure; after
    `FeedParams.give_up_s` the reason is raised.
    """

    def __init__(
        self,
        url: str,
        filesystem: str,
        since: datetime,
        reading: Reading,
        job: WatchedJob | None = None,
        position: Mapping[str, Any] | None = None,
        *,
        settings: Settings | None = None,
        params: FeedParams | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # SQLAlchemy is slow to import
        from iosig.warehouse.sources.polls import lmt_following
        from iosig.warehouse.sources.polls.lmt_cursors import Cursor

        params = params or FeedParams()
        settings = settings or Settings.model_construct()
        merged, saved = restore_polls(since, settings, params, position)
        cluster, subject_id = (job.job.cluster, job.job.job_id) if job else (None, _describe_subject(since))
        super().__init__(
            make_followed_id(filesystem, since, job), cluster, subject_id, filesystem, merged, params, clock
        )
        self.is_over = bool(saved and saved["is_over"])
        self.down_reason: str | None = None
        self.failed_count = 0
        self._down_since_s = 0.0
        self._since, self._reading, self._job = since, reading, job
        self._engine = lmt_following.create_engine(url, settings.live.params(Timeouts))
        source = saved["source"] if saved else None
        self._cursor: Cursor | None = Cursor.from_plain(source["cursor"]) if source and source["cursor"] else None
        if source:
            merged.wait_for(source["waiting"])
        if saved and self._cursor is None:
            self._since = datetime.fromtimestamp(merged.closed_us / 1e6, UTC)
        self._was_up = saved is not None
        self._plain: tuple[Cursor | None, Mapping[str, Any] | None] | None = None

    @property
    def is_down(self) -> bool:
        """Whether the last query of the database failed."""
        return self.down_reason is not None

    def _news(self) -> Iterator[Flush]:
        if self._job is not None and (ended_at := self._job.look().ended_at) is not None:
            self._merged.end(micros(ended_at))
        self._has_more = False
        new = self._query_database()
        if new is None or self._cursor is None:
            return
        self._has_more = new.is_behind or new.is_replaced
        if new.is_replaced:
            self._merged.tell("replaced")
            self._cursor = None
            self._since = datetime.fromtimestamp(self._merged.closed_us / 1e6, UTC)
            return
        for line, reason in new.refused:
            self._merged.note(line, reason)
        yield from self._push_rows(new.rows)
        # from here on, the position marks these polls as read; a restart before this point reads them again
        self._cursor = new.cursor
        yield from self._ready()

    def _query_database(self) -> NewPolls | None:
        """Query the database; None where it is unavailable."""
        from iosig.warehouse.sources.polls import lmt_following

        try:
            if self._cursor is None:
                self._cursor = lmt_following.begin(self._engine, self._since, self._reading)
            new = lmt_following.read_on(self._engine, self.filesystem, self._reading, self._cursor)
        except InputRefused as refusal:
            self._fail(refusal)
            return None
        self.down_reason, self.failed_count, self._was_up = None, 0, True
        return new

    def _fail(self, refusal: InputRefused) -> None:
        """Record that the database is unavailable; raise permanent errors."""
        now_s = self._clock()
        if not self.is_down:
            self._down_since_s = now_s
        if refusal.__cause__ is None or not self._was_up or now_s - self._down_since_s >= self._params.give_up_s:
            raise refusal
        self.down_reason = refusal.reason
        self.failed_count += 1

    def _source_position(self) -> Mapping[str, Any]:
        if self._plain is None or self._plain[0] is not self._cursor:
            self._plain = (self._cursor, self._cursor.plain() if self._cursor else None)
        # late readings would change the differences if they were read again, so the polls themselves are saved
        return {"cursor": self._plain[1], "waiting": self._merged.waiting()}
