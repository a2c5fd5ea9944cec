"""`iosig who`: rank jobs, users and applications by the bytes that they moved, and sum the unattributed rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from iosig.answers.attribution.candidates import CONTEXT, TrafficContext, estimate_run_bytes
from iosig.answers.documents import Document, Instant, Part, instant_text
from iosig.reports.answer_tables import MAX_ROWS, bytes_cell, render_table
from iosig.reports.texts import volume_text
from iosig.warehouse.errors import NothingToDo, UsageError, meant
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb

_MINUTE = timedelta(minutes=1)
#: years that may have polls: date arithmetic overflows near the ends of the calendar
_YEARS = range(1970, 9000)
#: the tables that `who` queries
TABLES = "attributed_io jobs filesystem_rates"
_RUN = ("cluster", "job_id", "started_at")
_SUMS = ("attributed_bytes", "attributed_low_bytes", "attributed_high_bytes", "certain_bytes")
#: minimum confidence of a good fit
#: minimum confidence of a fair fit
_GOOD, _FAIR = 0.7, 0.4


@dataclass(frozen=True, slots=True)
class Query:
    """File system, directions and time range in whole minutes; `until` None: to the last poll."""

    filesystem: str
    since: datetime
    until: datetime | None
    directions: tuple[str, ...] = ("read", "write")

    @classmethod
    def parse(
        cls, filesystem: str, at: datetime | None, since: datetime | None, until: datetime | None, direction: str | None
    ) -> Query:
        """Build a query from a minute `at` or a range; raises UsageError unless exactly one is given."""
        directions = (direction,) if direction else ("read", "write")
        if (at is None) == (since is None) or (at is not None and until is not None):
            raise UsageError("Give a time: --at TIME for a minute, or --since TIME with --until TIME.")
        for instant in (at, since, until):
            if instant is not None and instant.year not in _YEARS:
                raise UsageError(f"No file system was polled in the year {instant.year}.")
        if at is not None:
            return cls(filesystem, truncate_to_minute(at), truncate_to_minute(at) + _MINUTE, directions)
        assert since is not None
        if until is None:
            return cls(filesystem, truncate_to_minute(since), None, directions)
        end = truncate_to_minute(until - timedelta(microseconds=1)) + _MINUTE
        if end <= truncate_to_minute(since):
            raise UsageError(f"since ({instant_text(since)}) does not come before until ({instant_text(until)}).")
        return cls(filesystem, truncate_to_minute(since), end, directions)


@dataclass(frozen=True, slots=True)
class Answer:
    """Attributed bytes of a time range; frames are sorted by decreasing bytes.

    jobs: one row per run with attributed_bytes, its range, confidence, fit, and likely_bytes (estimated part of the
    unattributed bytes). users, applications: sums over their runs, with job_count. minutes: measured_bytes by direction
    and minute_at. parts: attributed_bytes by direction, minute_at and application_id. others: active runs without
    attributed bytes, by decreasing likely_bytes. is_landed: computed from landed inputs, not from a release.
    """

    query: Query
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
        """Bytes that polls measured in the time range."""
        return float(self.minutes["measured_bytes"].sum())

    @property
    def attributed_bytes(self) -> float:
        """Bytes attributed to jobs, capped in each minute by the measured bytes.

        The cap is needed because runs of different days are attributed independently.
        """
        return float(self._cap_minutes["known_bytes"].sum())

    @property
    def candidates(self) -> pl.DataFrame:
        """Runs by the sum of attributed and likely bytes: the candidates to contact first.

        Columns: cluster, job_id, started_at, user, application, attributed_bytes, likely_bytes (NULL for runs with
        server counters).
        """
        names = (*_RUN, "user", "application")
        attributed = self.jobs.select(*names, "attributed_bytes", "likely_bytes")
        likely = self.others.select(*names, "likely_bytes", attributed_bytes=pl.lit(0.0)).select(attributed.columns)
        total = pl.col("attributed_bytes") + pl.col("likely_bytes").fill_null(0.0)
        return pl.concat([attributed, likely]).filter(total > 0).sort(-total, "job_id", "started_at", "cluster")

    @property
    def unattributed_bytes(self) -> float:
        """Measured bytes that are not attributed to any job."""
        return self.measured_bytes - self.attributed_bytes

    def _repr_html_(self) -> str:
        """Return the candidates as a table, which notebooks show."""
        candidates = self.candidates
        since, until = (f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" for at in (self.query.since, self.until))
        return render_table(
            f"{self.query.filesystem}, {since} to {until} UTC: {volume_text(self.measured_bytes)} moved, "
            f"{volume_text(self.attributed_bytes)} attributed to jobs, "
            f"{volume_text(self.unattributed_bytes)} unattributed",
            ("job", "user", "application", "attributed", "likely part of the unattributed"),
            [
                (
                    row["job_id"],
                    row["user"],
                    row["application"],
                    bytes_cell(row["attributed_bytes"]),
                    bytes_cell(row["likely_bytes"]),
                )
                for row in candidates.head(MAX_ROWS).iter_rows(named=True)
            ],
            candidates.height,
        )

    @property
    def _cap_minutes(self) -> pl.DataFrame:
        key = ("direction", "minute_at")
        summed = self.parts.group_by(key).agg(pl.col("attributed_bytes").sum())
        joined = self.minutes.join(summed, on=key, how="left", maintain_order="left")
        return joined.with_columns(
            known_bytes=pl.min_horizontal("measured_bytes", pl.col("attributed_bytes").fill_null(0))
        )


def is_released(store: Store, release: Release, query: Query) -> bool:
    """Return whether the time range begins before the last poll of the file system in a release."""
    with open_release(store, release, "filesystem_rates") as connection:
        sql = "select max(polled_at) from filesystem_rates where filesystem = $filesystem"
        (last,) = connection.sql(sql, params={"filesystem": query.filesystem}).fetchall()[0]
    return last is not None and query.since < last


def find_last_day_start(store: Store, release: Release, filesystem: str, until: datetime | None = None) -> datetime:
    """Return the minute 24 hours before `until` (default: the file system's last poll), but not before its first poll.

    Raises UsageError if the release has no polls of the file system.
    """
    with open_release(store, release, "filesystem_rates") as connection:
        first, last = find_poll_range(connection, filesystem)
    end = until or truncate_to_minute(last - timedelta(microseconds=1)) + _MINUTE
    return max(end - timedelta(days=1), truncate_to_minute(first - timedelta(microseconds=1)))


def who(connection: duckdb.DuckDBPyConnection, query: Query, *, is_landed: bool = False) -> Answer:
    """Query the attributed bytes of a time range. Raises NothingToDo if it has no polls.

    connection: has `TABLES`, those of a release or those computed from landed inputs.
    """
    first, last = find_poll_range(connection, query.filesystem)
    until = query.until or truncate_to_minute(last - timedelta(microseconds=1)) + _MINUTE
    range_params = {"filesystem": query.filesystem, "since": query.since, "until": until}
    params = range_params | {"directions": list(query.directions)}
    minutes = connection.sql(_MINUTES, params=params).pl()
    if minutes.is_empty():
        raise no_polls_error(query, first, last)
    parts = connection.sql(_PARTS, params=params).pl()
    runs = connection.sql(_JOBS, params=range_params).pl().drop("application_id")
    # maintain order: floating-point sums depend on it
    jobs = parts.group_by(*_RUN, "application_id", maintain_order=True).agg(pl.col(*_SUMS).sum())
    jobs = jobs.join(runs, on=_RUN, how="left", maintain_order="left")
    users, applications = (
        _rank(jobs.group_by(name, maintain_order=True).agg(pl.col(*_SUMS).sum(), job_count=pl.len()), name)
        for name in ("user", "application")
    )
    likely = _estimate_likely_bytes(connection, params)
    return Answer(
        query,
        until,
        _rank(jobs.with_columns(job_count=1).join(likely, on=_RUN, how="left"), "job_id", "started_at", "cluster"),
        users,
        applications,
        minutes,
        parts.group_by("direction", "minute_at", "application_id", maintain_order=True).agg(
            pl.col("attributed_bytes").sum()
        ),
        _sort_others(runs.join(jobs, on=_RUN, how="anti"), likely),
        is_landed,
    )


def _estimate_likely_bytes(connection: duckdb.DuckDBPyConnection, params: dict[str, Any]) -> pl.DataFrame:
    """Estimate the likely bytes of all active runs, from the time range and its context."""
    wider = params | {"since": params["since"] - CONTEXT, "until": params["until"] + CONTEXT}
    range_params = {name: wider[name] for name in ("filesystem", "since", "until")}
    ticks, runs = (connection.sql(sql, params=range_params).pl() for sql in (_TICKS, _JOBS))
    context = TrafficContext(ticks, connection.sql(_PARTS, params=wider).pl(), runs)
    return estimate_run_bytes(context, params["directions"], (params["since"], params["until"]))


def _sort_others(runs: pl.DataFrame, likely: pl.DataFrame) -> pl.DataFrame:
    """Return active runs without attributed bytes, by decreasing likely bytes."""
    return runs.join(likely, on=_RUN, how="left", maintain_order="left").sort(
        "likely_bytes", "node_count", *_RUN, descending=[True, True, False, False, False], nulls_last=True
    )


def find_poll_range(connection: duckdb.DuckDBPyConnection, filesystem: str) -> tuple[datetime, datetime]:
    """Return the times of the first and last poll of a file system; raises UsageError if it has none."""
    rows = connection.sql(
        "select filesystem, min(polled_at), max(polled_at) from filesystem_rates group by all order by all"
    )
    ranges = {name: (first, last) for name, first, last in rows.fetchall()}
    if filesystem not in ranges:
        names = ", ".join(ranges) or "none"
        raise UsageError(
            f"The release has no polls of file system {filesystem!r}, only of: {names}.{meant(filesystem, ranges)}"
        )
    return ranges[filesystem]


def no_polls_error(query: Query, first: datetime, last: datetime) -> NothingToDo:
    """Build the error for a time range without polls; first, last: the range that has polls."""
    since = instant_text(query.since)
    time = f"since {since}" if query.until is None else f"from {since} to {instant_text(query.until)}"
    return NothingToDo(
        f"No polls of {query.filesystem} {time}: the release has polls from {instant_text(first)} to "
        f"{instant_text(last)}."
    )


def _rank(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Add confidence and fit to rows, and sort them by attributed bytes."""
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


#: minute_at is the right edge of a minute, as polled_at is of an interval
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

#: runs that may have used the file system in the time range
_JOBS = """
    select cluster, job_id, started_at, ended_at, application_id, jobs.user, application, node_count
    from jobs
    where is_application_run and started_at < $until and (ended_at is null or ended_at > $since)
        and (filesystem is null or filesystem = $filesystem)
    order by all
"""


# ---- as JSON


class Question(Document):
    """The query that a document repeats, and the origin of the tables."""

    release_id: str = Field(description="the release")
    from_: Literal["release", "landed"] = Field(
        alias="from", description="`release`, or `landed` if computed from inputs that landed after it"
    )
    filesystem: str = Field(description="the file system")
    since: Instant = Field(description="start of the time range [UTC]")
    until: Instant = Field(description="end of the time range [UTC]")
    directions: list[str] = Field(description="`read`, `write` or both")


class _MovedBytes(Part):
    attributed_bytes: float = Field(description="attributed bytes [B]")
    attributed_low_bytes: float = Field(description="lower bound of the 80 % interval [B]")
    attributed_high_bytes: float = Field(description="upper bound of the 80 % interval [B]")
    confidence: float = Field(description="confidence of the attribution [1]")
    fit: str = Field(description="quality of the fit of its signature")


class _JobBytes(_MovedBytes):
    cluster: str = Field(description="the machine")
    job_id: str = Field(description="the job")
    started_at: Instant = Field(description="when it started [UTC]")
    user: str | None = Field(description="its user")
    application: str | None = Field(description="the program")
    application_id: str = Field(description="user@machine/application/node_count")


class _UserBytes(_MovedBytes):
    user: str | None = Field(description="the user")
    job_count: int = Field(description="its jobs [jobs]")


class _ApplicationBytes(_MovedBytes):
    application: str | None = Field(description="the program")
    job_count: int = Field(description="its jobs [jobs]")


class AttributionDocument(Question, title="iosig who"):
    """Attribution of a file system's bytes."""

    format: Literal["iosig-attribution/1"] = "iosig-attribution/1"
    measured_bytes: float = Field(description="bytes that the file system moved [B]")
    attributed_bytes: float = Field(description="bytes attributed to jobs [B]")
    unattributed_bytes: float = Field(description="bytes not attributed to any job [B]")
    job_count: int = Field(description="jobs with attributed bytes [jobs]")
    other_job_count: int = Field(description="active jobs without attributed bytes [jobs]")
    jobs: list[_JobBytes] = Field(description="jobs by decreasing bytes, truncated")
    users: list[_UserBytes] = Field(description="by user")
    applications: list[_ApplicationBytes] = Field(description="by application")
    candidate_jobs: list[Any] = Field(description="jobs by attributed plus likely bytes, truncated")
    other_jobs: list[Any] = Field(description="active jobs without attributed bytes, truncated")


def build_document(answer: Answer, max_count: int, release_id: str) -> AttributionDocument:
    """Build the JSON document with at most `max_count` rows of each list, and the total counts."""
    return AttributionDocument(
        **question_fields(answer.query, answer.until, release_id, is_landed=answer.is_landed),
        measured_bytes=answer.measured_bytes,
        attributed_bytes=answer.attributed_bytes,
        unattributed_bytes=answer.unattributed_bytes,
        job_count=answer.jobs.height,
        other_job_count=answer.others.height,
        jobs=answer.jobs.head(max_count).to_dicts(),
        users=answer.users.head(max_count).to_dicts(),
        applications=answer.applications.head(max_count).to_dicts(),
        candidate_jobs=answer.candidates.head(max_count).to_dicts(),
        other_jobs=answer.others.head(max_count).to_dicts(),
    )


def question_fields(query: Query, until: datetime, release_id: str, *, is_landed: bool) -> dict[str, Any]:
    """Return the field values of a `Question` for a query."""
    return {
        "release_id": release_id,
        "from_": "landed" if is_landed else "release",
        "filesystem": query.filesystem,
        "since": query.since,
        "until": until,
        "directions": list(query.directions),
    }


def truncate_to_minute(at: datetime) -> datetime:
    """Truncate an instant to the minute, in UTC."""
    return at.astimezone(UTC).replace(second=0, microsecond=0)
