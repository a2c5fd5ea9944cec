"""`iosig who`: jobs, users and applications by the bytes that they moved in a time, and what nobody explains."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.attribution.candidates import BESIDE, Beside, likely_moved
from iosig.answers.documents import Document, Instant, Part, instant_text
from iosig.warehouse.errors import NothingToDo, UsageError, meant
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_MINUTE = timedelta(minutes=1)
#: in which there may be polls: a time near the ends of the calendar cannot be reckoned with
_YEARS = range(1970, 9000)
#: the tables that `who` queries
TABLES = "attributed_io jobs filesystem_rates"
_RUN = ("cluster", "job_id", "started_at")
_SUMS = ("attributed_bytes", "attributed_low_bytes", "attributed_high_bytes", "certain_bytes")
#: from which confidence on a signature's fit is good, or fair
_GOOD, _FAIR = 0.7, 0.4


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: a file system, whole minutes from `since` to `until` (None: to the last poll), directions."""

    filesystem: str
    since: datetime
    until: datetime | None
    directions: tuple[str, ...] = ("read", "write")

    @classmethod
    def of(
        cls, filesystem: str, at: datetime | None, since: datetime | None, until: datetime | None, direction: str | None
    ) -> Asked:
        """Return what a minute or a time says; UsageError where it says neither or both."""
        directions = (direction,) if direction else ("read", "write")
        if (at is None) == (since is None) or (at is not None and until is not None):
            raise UsageError("Say when: --at TIME for a minute, or --since TIME and --until TIME.")
        for each in (at, since, until):
            if each is not None and each.year not in _YEARS:
                raise UsageError(f"No file system was polled in the year {each.year}.")
        if at is not None:
            return cls(filesystem, minute_of(at), minute_of(at) + _MINUTE, directions)
        assert since is not None
        if until is None:
            return cls(filesystem, minute_of(since), None, directions)
        ends = minute_of(until - timedelta(microseconds=1)) + _MINUTE
        if ends <= minute_of(since):
            raise UsageError(f"since ({instant_text(since)}) does not come before until ({instant_text(until)}).")
        return cls(filesystem, minute_of(since), ends, directions)


@dataclass(frozen=True, slots=True)
class Answer:
    """Who moved what. Frames are in order of their bytes.

    jobs: a row each run: user, application, application_id, attributed_bytes, a range, confidence, fit, and
    likely_bytes, what it is likely to have moved besides; users, applications: the same of all their runs, with
    job_count. minutes: measured_bytes by direction and minute_at, parts: attributed_bytes by application_id too.
    others: runs that were there and have no bytes, with likely_bytes, those first that are likeliest to have moved
    most. is_landed: whether that is of what has landed, not of a release.
    """

    asked: Asked
    until: datetime
    jobs: pl.DataFrame
    users: pl.DataFrame
    applications: pl.DataFrame
    minutes: pl.DataFrame
    parts: pl.DataFrame
    others: pl.DataFrame
    is_landed: bool = False

    @property
    def measured_bytes(self) -> float:
        """What polls hold of that time."""
        return float(self.minutes["measured_bytes"].sum())

    @property
    def attributed_bytes(self) -> float:
        """What of it is some job's; what jobs of different days were given beyond the polls of a minute is left out."""
        return float(self._beside["known_bytes"].sum())

    @property
    def likeliest(self) -> pl.DataFrame:
        """Runs by what they moved and are likely to have moved besides: whom to ask first.

        Columns: cluster, job_id, started_at, user, application, attributed_bytes, likely_bytes, NULL where servers
        counted it.
        """
        names = (*_RUN, "user", "application")
        known = self.jobs.select(*names, "attributed_bytes", "likely_bytes")
        others = self.others.select(*names, "likely_bytes", attributed_bytes=pl.lit(0.0)).select(known.columns)
        together = pl.col("attributed_bytes") + pl.col("likely_bytes").fill_null(0.0)
        return pl.concat([known, others]).filter(together > 0).sort(-together, "job_id", "started_at", "cluster")

    @property
    def unattributed_bytes(self) -> float:
        """What of it is nobody's."""
        return self.measured_bytes - self.attributed_bytes

    @property
    def _beside(self) -> pl.DataFrame:
        key = ("direction", "minute_at")
        summed = self.parts.group_by(key).agg(pl.col("attributed_bytes").sum())
        both = self.minutes.join(summed, on=key, how="left", maintain_order="left")
        return both.with_columns(
            known_bytes=pl.min_horizontal("measured_bytes", pl.col("attributed_bytes").fill_null(0))
        )


def is_released(store: Store, release: Release, asked: Asked) -> bool:
    """Return whether what is asked for begins before the last poll that a release has of the file system."""
    with opened(store, release, "filesystem_rates") as connection:
        query = "select max(polled_at) from filesystem_rates where filesystem = $filesystem"
        (last,) = connection.sql(query, params={"filesystem": asked.filesystem}).fetchall()[0]
    return last is not None and asked.since < last


def last_day(store: Store, release: Release, filesystem: str, until: datetime | None = None) -> datetime:
    """Return when the last day of a file system's polls began, or that before an instant, in whole minutes.

    Raises UsageError if the file system was not polled.
    """
    with opened(store, release, "filesystem_rates") as connection:
        first, last = polled(connection, filesystem)
    end = until or minute_of(last - timedelta(microseconds=1)) + _MINUTE
    return max(end - timedelta(days=1), minute_of(first - timedelta(microseconds=1)))


def who(connection: duckdb.DuckDBPyConnection, asked: Asked, *, is_landed: bool = False) -> Answer:
    """Query who moved what. Raises NothingToDo if there are no polls of that time.

    connection: has `TABLES`, those of a release or those computed from landed inputs.
    """
    first, last = polled(connection, asked.filesystem)
    until = asked.until or minute_of(last - timedelta(microseconds=1)) + _MINUTE
    told = {"filesystem": asked.filesystem, "since": asked.since, "until": until}
    directed = told | {"directions": list(asked.directions)}
    minutes = connection.sql(_MINUTES, params=directed).pl()
    if minutes.is_empty():
        raise unpolled(asked, first, last)
    parts = connection.sql(_PARTS, params=directed).pl()
    there = connection.sql(_JOBS, params=told).pl()
    # sums of reals depend on the order
    jobs = parts.group_by(*_RUN, "application_id", maintain_order=True).agg(pl.col(*_SUMS).sum())
    jobs = jobs.join(there, on=_RUN, how="left", maintain_order="left")
    users, applications = (
        _ranked(jobs.group_by(name, maintain_order=True).agg(pl.col(*_SUMS).sum(), job_count=pl.len()), name)
        for name in ("user", "application")
    )
    likely = _likely(connection, directed)
    return Answer(
        asked,
        until,
        _ranked(jobs.with_columns(job_count=1).join(likely, on=_RUN, how="left"), "job_id", "started_at", "cluster"),
        users,
        applications,
        minutes,
        parts.group_by("direction", "minute_at", "application_id", maintain_order=True).agg(
            pl.col("attributed_bytes").sum()
        ),
        _others(there.join(jobs, on=_RUN, how="anti"), likely),
        is_landed,
    )


def _likely(connection: duckdb.DuckDBPyConnection, directed: dict[str, Any]) -> pl.DataFrame:
    """Return what runs are likely to have moved of what nobody explains."""
    wider = directed | {"since": directed["since"] - BESIDE, "until": directed["until"] + BESIDE}
    told = {name: wider[name] for name in ("filesystem", "since", "until")}
    ticks, there = (connection.sql(query, params=told).pl() for query in (_TICKS, _JOBS))
    beside = Beside(ticks, connection.sql(_PARTS, params=wider).pl(), there)
    return likely_moved(beside, directed["directions"], (directed["since"], directed["until"]))


def _others(others: pl.DataFrame, likely: pl.DataFrame) -> pl.DataFrame:
    """Return runs of whom no byte is known, those first that are likeliest to have moved most."""
    return others.join(likely, on=_RUN, how="left", maintain_order="left").sort(
        "likely_bytes", "node_count", *_RUN, descending=[True, True, False, False, False], nulls_last=True
    )


def polled(connection: duckdb.DuckDBPyConnection, filesystem: str) -> tuple[datetime, datetime]:
    """Return when the first and the last poll of a file system was; UsageError where there is none."""
    rows = connection.sql(
        "select filesystem, min(polled_at), max(polled_at) from filesystem_rates group by all order by all"
    )
    known = {name: (first, last) for name, first, last in rows.fetchall()}
    if filesystem not in known:
        names = ", ".join(known) or "none"
        raise UsageError(
            f"No file system {filesystem!r} was polled; the release has polls of: {names}.{meant(filesystem, known)}"
        )
    return known[filesystem]


def unpolled(asked: Asked, first: datetime, last: datetime) -> NothingToDo:
    """Return the error of a time without polls; first, last: the polls that there are."""
    since = instant_text(asked.since)
    time = f"since {since}" if asked.until is None else f"from {since} to {instant_text(asked.until)}"
    return NothingToDo(
        f"No polls of {asked.filesystem} {time}: the release has some from {instant_text(first)} to "
        f"{instant_text(last)}."
    )


def _ranked(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return rows by their bytes, with how sure they are and how well that fits."""
    confidence = (pl.col("certain_bytes") / pl.col("attributed_bytes")).clip(0.0, 1.0)
    fit = (
        pl.when(pl.col("attributed_low_bytes") == pl.col("attributed_high_bytes"))
        .then(pl.lit("counted"))
        .when(pl.col("confidence") >= _GOOD)
        .then(pl.lit("good"))
        .when(pl.col("confidence") >= _FAIR)
        .then(pl.lit("fair"))
        .otherwise(pl.lit("poor"))
    )
    return (
        rows.with_columns(confidence=confidence)
        .with_columns(fit=fit)
        .drop("certain_bytes")
        .sort("attributed_bytes", *names, descending=[True, *[False] * len(names)], nulls_last=True)
    )


#: a minute is known by its right edge, as a poll is
_MINUTES = """
    with directed as (
        select to_timestamp(ceil(epoch(polled_at) / 60) * 60) as minute_at,
            unnest(['read', 'write']) as direction,
            unnest([read_bytes, written_bytes]) as moved_bytes
        from filesystem_rates
        where filesystem = $filesystem and polled_at > $since and polled_at <= $until
    )

    select direction, minute_at, sum(moved_bytes)::double as measured_bytes
    from directed
    where moved_bytes is not null and list_contains($directions, direction)
    group by all
    order by all
"""

_TICKS = """
    select polled_at, max(interval_s) as interval_s, sum(read_bytes) as read_bytes, sum(written_bytes) as written_bytes
    from filesystem_rates
    where filesystem = $filesystem and polled_at > $since and polled_at <= $until
    group by all
    order by all
"""

_PARTS = """
    select cluster, job_id, started_at, application_id, direction, minute_at, attributed_bytes, attributed_low_bytes,
        attributed_high_bytes, attributed_bytes * confidence as certain_bytes
    from attributed_io
    where filesystem = $filesystem and minute_at > $since and minute_at <= $until
        and list_contains($directions, direction)
    order by all
"""

#: who may have been there
_JOBS = """
    select cluster, job_id, started_at, ended_at, jobs.user, application, node_count
    from jobs
    where is_application_run and started_at < $until and (ended_at is null or ended_at > $since)
        and (filesystem is null or filesystem = $filesystem)
    order by all
"""


# ---- as JSON


class Question(Document):
    """The question that an answer repeats, and which tables answered it."""

    release_id: str = Field(description="the release")
    from_: Literal["release", "landed"] = Field(
        alias="from", description="`release`, or `landed` where it is of what landed since"
    )
    filesystem: str = Field(description="the file system")
    since: Instant = Field(description="from then on [UTC]")
    until: Instant = Field(description="until then [UTC]")
    directions: list[str] = Field(description="which ways")


class _Moved(Part):
    attributed_bytes: float = Field(description="what it moved [B]")
    attributed_low_bytes: float = Field(description="the lower end of the range of 80 % [B]")
    attributed_high_bytes: float = Field(description="the upper end [B]")
    confidence: float = Field(description="how sure that is [1]")
    fit: str = Field(description="how well its signature fits")


class _JobMoved(_Moved):
    cluster: str = Field(description="the machine")
    job_id: str = Field(description="the job")
    started_at: Instant = Field(description="when it started [UTC]")
    user: str | None = Field(description="whose it is")
    application: str | None = Field(description="the program")
    application_id: str = Field(description="user/application/node_count")


class _UserMoved(_Moved):
    user: str | None = Field(description="the user")
    job_count: int = Field(description="its jobs [jobs]")


class _ApplicationMoved(_Moved):
    application: str | None = Field(description="the program")
    job_count: int = Field(description="its jobs [jobs]")


class AttributionDocument(Question, title="iosig who"):
    """Who moved a file system's bytes."""

    format: Literal["iosig-attribution/1"] = "iosig-attribution/1"
    measured_bytes: float = Field(description="what the file system moved [B]")
    attributed_bytes: float = Field(description="what is known to be somebody's [B]")
    unattributed_bytes: float = Field(description="the rest [B]")
    job_count: int = Field(description="jobs that moved something [jobs]")
    other_job_count: int = Field(description="jobs of which nothing is known [jobs]")
    jobs: list[_JobMoved] = Field(description="the first of them")
    users: list[_UserMoved] = Field(description="by user")
    applications: list[_ApplicationMoved] = Field(description="by application")
    candidate_jobs: list[Any] = Field(description="jobs by what they moved and are likely to have moved besides")
    other_jobs: list[Any] = Field(description="jobs of which nothing is known")


def document(told: Answer, max_count: int, release_id: str) -> AttributionDocument:
    """Return an answer for programs: so many of each kind at most, and how many there are."""
    return AttributionDocument(
        **question(told.asked, told.until, release_id, is_landed=told.is_landed),
        measured_bytes=told.measured_bytes,
        attributed_bytes=told.attributed_bytes,
        unattributed_bytes=told.unattributed_bytes,
        job_count=told.jobs.height,
        other_job_count=told.others.height,
        jobs=told.jobs.head(max_count).to_dicts(),
        users=told.users.head(max_count).to_dicts(),
        applications=told.applications.head(max_count).to_dicts(),
        candidate_jobs=told.likeliest.head(max_count).to_dicts(),
        other_jobs=told.others.head(max_count).to_dicts(),
    )


def question(asked: Asked, until: datetime, release_id: str, *, is_landed: bool) -> dict[str, Any]:
    """Return the values of a `Question`."""
    return {
        "release_id": release_id,
        "from_": "landed" if is_landed else "release",
        "filesystem": asked.filesystem,
        "since": asked.since,
        "until": until,
        "directions": list(asked.directions),
    }


def minute_of(at: datetime) -> datetime:
    """Return when the minute of an instant began, in UTC."""
    return at.astimezone(UTC).replace(second=0, microsecond=0)
