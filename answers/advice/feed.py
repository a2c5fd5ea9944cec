"""What a scheduler is told of applications: their signatures or periods, how sure they are and until when they hold.

The page docs/scheduler-feed.md is the promise to readers; its fields are those of `FIELDS`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from iosig.warehouse.contracts import Column, table
from iosig.warehouse.contracts.application_ids import APPLICATION_ID_SQL
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import moved_into_place
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: what readers compare; another number means that old readers must not read on
FORMAT = "iosig-feed/1"
#: after so many days without a run an answer is not trusted any more: sample sets hold no older samples either
VALID_DAYS = 90.0
_MOST_VALID_DAYS = 36_525.0
#: outcomes of answers that are in a feed; all others are counted
_FOUND = {"signatures": "extracted", "periods": "periodic"}

Row = dict[str, Any]


def _of(name: str, *columns: str) -> tuple[Column, ...]:
    """Return columns of a published table, which mean the same in a feed."""
    return tuple(table(name).column(column) for column in columns)


_WHOSE = (
    *_of("applications", "application_id", "user", "application"),
    Column(
        "node_count", "int", "Nodes of the job; null: the entry is of all node counts.", unit="nodes", nullable=True
    ),
    Column("filesystem", "text", "The file system; null: all together, as a trace does not tell.", nullable=True),
    *_of("signatures", "direction"),
)
_TRUST = (
    Column("method", "text", "The default method, whose answer it is."),
    *_of("signatures", "last_run_ended_at"),
    Column("valid_from", "instant", "When the release was made.", unit="UTC"),
    Column("valid_until", "instant", "From then on the entry must not be used.", unit="UTC"),
    Column("confidence", "real", "How far to trust the entry, from 0 to 1; see the page.", unit="1", nullable=True),
)
BURST_FIELDS = (
    *_of("signature_bursts", "burst", "start_s"),
    Column("duration_s", "real", "How long the burst lasts."),
    *_of("signature_bursts", "peak_s", "volume_bytes", "support_ratio"),
    Column("confidence", "real", "How probable it is that the next run has the burst.", unit="1", nullable=True),
)
FIELDS: dict[str, tuple[Column, ...]] = {
    "signatures": (
        *_WHOSE,
        *_TRUST,
        *_of("signatures", "expected_correlation", "sample_count", "used_sample_count", "first_run_started_at"),
        *_of("signatures", "duration_s", "volume_bytes", "peak_bytes_per_s", "is_changed", "change_correlation"),
        Column("traced_run_count", "int", "Traced runs with which the signature was compared.", unit="runs"),
        Column("traced_correlation", "real", "The median correlation with these.", unit="1", nullable=True),
        Column("counted_run_count", "int", "Runs that servers counted, with which it was compared.", unit="runs"),
        Column("counted_correlation", "real", "The median correlation with these.", unit="1", nullable=True),
    ),
    "periods": (
        *_WHOSE,
        *_TRUST,
        *_of("periods", "subject_kind"),
        Column("trace_id", "text", "The traced run; null for an application's signature.", nullable=True),
        Column("run_count", "int", "Runs on which the answer rests.", unit="runs"),
        *_of("periods", "false_alarm_probability", "period_s", "frequency_hz"),
        Column("cycle_evenness", "real", "How even the cycles are, from 0 to 1.", unit="1", nullable=True),
        *_of("periods", "periodicity_score", "bytes_per_period", "b_io_bytes_per_s", "r_io"),
        Column("io_per_period_s", "real", "Substantial I/O in one period: r_io x period_s.", nullable=True),
        *_of("periods", "window_start_s", "window_end_s"),
    ),
}
KINDS = tuple(FIELDS)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as it is written: what is said of all of it, and an entry for each application with an answer."""

    header: Row
    entries: list[Row]


def export_feed(store: Store, release: Release, kind: str, target: Path, valid_days: float = VALID_DAYS) -> Feed:
    """Write the feed of a release to a file, JSON or Parquet by its ending, and return it.

    Raises UsageError if there is no feed of that kind, the ending is another one, or the days are out of range.
    """
    writer = {".json": _write_json, ".parquet": _write_parquet}.get(target.suffix.lower())
    if writer is None:
        raise UsageError(
            f"A feed is JSON or Parquet: let the file's name end in .json or .parquet, not {target.name!r}."
        )
    feed = feed_of(store, release, kind, valid_days)
    with moved_into_place(target.absolute()) as temporary, temporary.open("wb") as file:
        writer(feed, file)
    return feed


def feed_of(store: Store, release: Release, kind: str, valid_days: float = VALID_DAYS) -> Feed:
    """Return the feed of a release: the default methods' answers that were found, named, and not too old."""
    if kind not in FIELDS:
        raise UsageError(f"There is no feed of {kind!r}, only of {' and '.join(KINDS)}.")
    if not 0 < valid_days <= _MOST_VALID_DAYS:
        raise UsageError(f"An entry can hold for more than 0 and up to {_MOST_VALID_DAYS:g} days, not {valid_days:g}.")
    with opened(store, release, _TABLES[kind]) as connection:
        rows: list[Row] = connection.sql(_QUERIES[kind]).to_arrow_table().to_pylist()
        bursts = _bursts_by_subject(connection) if kind == "signatures" else {}
    made_at = datetime.fromisoformat(release.created_at).replace(microsecond=0)
    left_out: Counter[str] = Counter(unnamed=0, undated=0, expired=0)
    entries = []
    for row in rows:
        reason = _left_out(row, kind, made_at, timedelta(days=valid_days))
        if reason is not None:
            left_out[reason] += 1
        elif row["outcome"] == _FOUND[kind]:
            entries.append(_entry(row, kind, bursts.get(_subject(row), [])))
    header = {
        "format": FORMAT,
        "kind": kind,
        "release_id": release.release_id,
        "code_version": release.code_version,
        "valid_from": _instant(made_at),
        "valid_days": float(valid_days),
        "entry_count": len(entries),
        **{f"{reason}_count": count for reason, count in left_out.items()},
        "outcome_counts": dict(sorted(Counter(row["outcome"] for row in rows).items())),
    }
    return Feed(header, entries)


def _left_out(row: Row, kind: str, made_at: datetime, valid: timedelta) -> str | None:
    """Say why a found answer is no entry, None if it is one; its time is added to the row."""
    if row["outcome"] != _FOUND[kind]:
        return None
    if row["user"] is None:
        return "unnamed"
    if row["last_run_ended_at"] is None:
        return "undated"
    # A clock that is ahead does not make an answer hold longer.
    until = (min(row["last_run_ended_at"], made_at) + valid).replace(microsecond=0)
    row |= {"valid_from": made_at, "valid_until": until}
    return "expired" if until <= made_at else None


def _entry(row: Row, kind: str, bursts: list[Row]) -> Row:
    """Return an entry: its fields in their order, and its bursts."""
    if kind == "periods":
        probability = row["false_alarm_probability"]
        row |= {"confidence": None if probability is None else 1.0 - probability}
        return {column.name: row[column.name] for column in FIELDS[kind]}
    row |= {"confidence": by_volume([(burst["volume_bytes"], burst["confidence"]) for burst in bursts])}
    # releases of before it was told have no expected correlation
    row.setdefault("expected_correlation", None)
    return {column.name: row[column.name] for column in FIELDS[kind]} | {"bursts": bursts}


def by_volume(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the mean of confidences, each by its volume: how probable it is that the next run moves a byte.

    None if one is not known, or nothing is moved.
    """
    volume_bytes = math.fsum(volume for volume, _ in parts)
    if not volume_bytes > 0 or any(confidence is None for _, confidence in parts):
        return None
    return math.fsum(volume * (confidence or 0.0) for volume, confidence in parts) / volume_bytes


# ---- out of the release

_TABLES = {
    "signatures": "signatures signature_bursts signature_checks exact_checks",
    "periods": "periods signatures trace_jobs jobs",
}

#: An application's id names its user, in which a slash is %2F, what it runs, and its node count, * for all.
_NAMED = """
    replace(split_part(application_id, '/', 1), '%2F', '/') as user,
    regexp_extract(application_id, '^[^/]*/(.*)/[^/]*$', 1, 's') as application,
    try_cast(split_part(application_id, '/', -1) as bigint) as node_count
"""

_SIGNATURES = f"""
    with compared as (
        select application_id, filesystem, direction, method, count(*) as traced_run_count,
            median(correlation) as traced_correlation
        from signature_checks
        group by all
    ),

    counted as (
        select application_id, filesystem, direction, method, count(*) as counted_run_count,
            median(correlation) as counted_correlation
        from exact_checks
        group by all
    )

    select * exclude (method_parameters, outlier_job_ids, first_run_started_at, last_run_ended_at, traced_run_count,
        counted_run_count),
        {_NAMED}, date_trunc('second', first_run_started_at) as first_run_started_at, date_trunc('second',
        last_run_ended_at) as last_run_ended_at,
        coalesce(traced_run_count, 0) as traced_run_count, coalesce(counted_run_count, 0) as counted_run_count
    from signatures
    left join compared using (application_id, filesystem, direction, method)
    left join counted using (application_id, filesystem, direction, method)
    where is_default
    order by application_id, filesystem, direction
"""

#: How probable it is that the next run has a burst: Laplace's rule of succession. Runs that the signature leaves out
#: count as runs without the burst.
_BURSTS = """
    select application_id, filesystem, direction, burst, start_s, end_s - start_s as duration_s, peak_s,
        bursts.volume_bytes, support_ratio,
        (support_ratio * used_sample_count + 1) / (sample_count + 2) as confidence
    from signature_bursts as bursts
    inner join signatures using (application_id, filesystem, direction, method)
    where is_default and outcome = 'extracted'
    order by application_id, filesystem, direction, burst
"""

#: Jobs' periods are not asked for: what servers see of a job is all that the file system does.
_PERIODS = f"""
    with answers as (
        from periods
        where is_default and subject_kind in ('application', 'trace')
    ),

    of_signatures as (
        select answers.* exclude (filesystem, direction), subject_id as application_id, answers.filesystem,
            answers.direction, {_NAMED.replace("application_id", "subject_id")}, null::varchar as trace_id,
            used_sample_count as run_count, last_run_ended_at
        from answers
        left join (from signatures where is_default) as made on
            made.application_id = subject_id
            and made.filesystem = answers.filesystem
            and made.direction = answers.direction
        where subject_kind = 'application'
    ),

    -- the scheduler knows a traced run by what its job is called, whatever the program calls itself
    traced as (
        select answers.*, jobs.user, jobs.application, jobs.node_count, subject_id as trace_id,
            coalesce(trace_jobs.ended_at, trace_jobs.started_at, jobs.ended_at) as last_run_ended_at
        from answers
        inner join trace_jobs on trace_jobs.trace_id = subject_id
        left join jobs on
            jobs.cluster = trace_jobs.cluster
            and jobs.job_id = trace_jobs.job_id
            and jobs.started_at = trace_jobs.job_started_at
            and jobs.user is not null
            and jobs.application is not null
            and jobs.node_count is not null
        where subject_kind = 'trace'
    ),

    -- the latest run of which it is known whether it has a period
    latest as (
        from traced
        qualify user is null or 1 = row_number() over (
            partition by user, application, node_count, direction
            order by outcome in ('periodic', 'aperiodic') desc, last_run_ended_at desc nulls last, trace_id
        )
    ),

    of_traces as (
        select *, {APPLICATION_ID_SQL} as application_id, 1 as run_count
        from latest
    ),

    found as (
        from of_signatures
        union all by name
        from of_traces
    )

    select * exclude (confidence, last_run_ended_at), date_trunc('second', last_run_ended_at) as last_run_ended_at,
        confidence as cycle_evenness, r_io * period_s as io_per_period_s
    from found
    order by application_id, filesystem, direction, trace_id
"""

_QUERIES = {"signatures": _SIGNATURES, "periods": _PERIODS}


def _subject(row: Row) -> tuple[str, ...]:
    return row["application_id"], row["filesystem"], row["direction"]


def _bursts_by_subject(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, ...], list[Row]]:
    """Return the bursts of each subject, in order of time, with the fields that they have in a feed."""
    columns = [column.to_pylist() for column in connection.sql(_BURSTS).to_arrow_table().columns]
    names = [column.name for column in BURST_FIELDS]
    found: dict[tuple[str, ...], list[Row]] = {}
    for subject, values in zip(zip(*columns[:3], strict=True), zip(*columns[3:], strict=True), strict=True):
        found.setdefault(subject, []).append(dict(zip(names, values, strict=True)))
    return found


# ---- into a file


def _instant(value: datetime) -> str:
    """Return an instant in UTC as text; such texts are in order of time."""
    return f"{value.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _write_json(feed: Feed, file: IO[bytes]) -> None:
    for line in _lines(feed):
        file.write(f"{line}\n".encode("ascii"))


def _lines(feed: Feed) -> Iterator[str]:
    """Return the lines of one JSON document: a line for each entry, so that two feeds can be compared as text."""
    yield "{"
    for name, value in feed.header.items():
        yield f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)},"
    yield '"entries": ['
    for place, entry in enumerate(feed.entries, start=1):
        yield json.dumps(entry, allow_nan=False, default=_instant) + ("," if place < len(feed.entries) else "")
    yield "]"
    yield "}"


def _write_parquet(feed: Feed, file: IO[bytes]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(feed.header["kind"]).with_metadata({"iosig_feed": json.dumps(feed.header)})
    pq.write_table(pa.Table.from_pylist(feed.entries, schema=schema), file, compression="zstd")


def _schema(kind: str) -> pa.Schema:
    """Return the Arrow schema of a feed's entries, each field with its unit and doc."""
    import pyarrow as pa

    from iosig.warehouse.contracts.arrow import field

    fields = [field(column) for column in FIELDS[kind]]
    if kind == "signatures":
        burst = pa.struct([field(column) for column in BURST_FIELDS])
        metadata = {"doc": "The bursts of the signature, in order of time."}
        fields.append(pa.field("bursts", pa.list_(pa.field("element", burst)), metadata=metadata))
    # A release that is older than a column has NULL there.
    return pa.schema([made.with_nullable(True) for made in fields])
