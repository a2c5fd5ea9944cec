"""Build and write feeds for schedulers: signatures or periods of applications, with confidence and expiry.

The page docs/scheduler-feed.md documents the format; `FIELDS` declares its fields.
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
from iosig.warehouse.contracts.application_ids import ID_PARTS_SQL
from iosig.warehouse.contracts.columns import MACHINE
from iosig.warehouse.errors import UsageError
from iosig.warehouse.placing import atomic_write
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

#: format identifier; readers must refuse an unknown version
FORMAT = "iosig-feed/1"
#: default validity of an entry after its last run [days]; sample sets hold no older samples either
VALID_DAYS = 90.0
_MAX_VALID_DAYS = 36_525.0
#: outcomes that become entries; rows with other outcomes are only counted
_ANSWER_OUTCOMES = {"signatures": "extracted", "periods": "periodic"}

Row = dict[str, Any]


def _copy_columns(name: str, *columns: str) -> tuple[Column, ...]:
    """Return columns of a published table for reuse in a feed, with the same meaning."""
    return tuple(table(name).column(column) for column in columns)


_SUBJECT_FIELDS = (
    *_copy_columns("applications", "application_id"),
    MACHINE,
    *_copy_columns("applications", "user", "application"),
    Column(
        "node_count", "int", "Nodes of the job. Null: the entry covers all node counts.", unit="nodes", nullable=True
    ),
    Column(
        "filesystem", "text", "The file system. Null: all of them, because a trace does not name it.", nullable=True
    ),
    *_copy_columns("signatures", "direction"),
)
_VALIDITY_FIELDS = (
    Column("method", "text", "The default method, which computed the entry."),
    *_copy_columns("signatures", "last_run_ended_at"),
    Column("valid_from", "instant", "When the release was published.", unit="UTC"),
    Column("valid_until", "instant", "From then on the entry must not be used.", unit="UTC"),
    Column("confidence", "real", "Confidence of the entry, from 0 to 1; see the page.", unit="1", nullable=True),
)
BURST_FIELDS = (
    *_copy_columns("signature_bursts", "burst", "start_s"),
    Column("duration_s", "real", "Duration of the burst."),
    *_copy_columns("signature_bursts", "peak_s"),
    Column("volume_bytes", "real", "Bytes of the burst."),
    *_copy_columns("signature_bursts", "support_ratio"),
    Column("confidence", "real", "Probability that the next run has the burst.", unit="1", nullable=True),
)
FIELDS: dict[str, tuple[Column, ...]] = {
    "signatures": (
        *_SUBJECT_FIELDS,
        *_VALIDITY_FIELDS,
        *_copy_columns(
            "signatures", "expected_correlation", "sample_count", "used_sample_count", "first_run_started_at"
        ),
        *_copy_columns(
            "signatures", "duration_s", "volume_bytes", "peak_bytes_per_s", "is_changed", "change_correlation"
        ),
        Column(
            "traced_run_count",
            "int",
            "Traced runs, not used by the signature, with which it was compared.",
            unit="runs",
        ),
        Column("traced_correlation", "real", "The median correlation with these.", unit="1", nullable=True),
        Column(
            "counted_run_count",
            "int",
            "Counted runs, not used by the signature, with which it was compared.",
            unit="runs",
        ),
        Column("counted_correlation", "real", "The median correlation with these.", unit="1", nullable=True),
    ),
    "periods": (
        *_SUBJECT_FIELDS,
        *_VALIDITY_FIELDS,
        *_copy_columns("periods", "subject_kind"),
        Column("trace_id", "text", "The traced run; null for an application's signature.", nullable=True),
        Column("run_count", "int", "Number of runs used.", unit="runs"),
        *_copy_columns("periods", "false_alarm_probability", "period_s", "frequency_hz"),
        Column("cycle_evenness", "real", "Regularity of the cycles, from 0 to 1.", unit="1", nullable=True),
        *_copy_columns("periods", "periodicity_score", "bytes_per_period", "b_io_bytes_per_s", "r_io"),
        Column("io_per_period_s", "real", "Substantial I/O in one period: r_io x period_s.", nullable=True),
        *_copy_columns("periods", "window_start_s", "window_end_s"),
    ),
}
KINDS = tuple(FIELDS)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed: facts about the release in a header, and an entry for each subject with a signature or period."""

    header: Row
    entries: list[Row]


def export_feed(store: Store, release: Release, kind: str, target: Path, valid_days: float = VALID_DAYS) -> Feed:
    """Write the feed of a release to a JSON or Parquet file, according to its extension, and return the feed.

    Raises UsageError for an unknown kind, another file name extension, or `valid_days` out of range.
    """
    writer = {".json": _write_json, ".parquet": _write_parquet}.get(target.suffix.lower())
    if writer is None:
        raise UsageError(
            f"A feed is JSON or Parquet: use a file name that ends in .json or .parquet, not {target.name!r}."
        )
    feed = build_feed(store, release, kind, valid_days)
    with atomic_write(target.absolute()) as temporary, temporary.open("wb") as file:
        writer(feed, file)
    return feed


def build_feed(store: Store, release: Release, kind: str, valid_days: float = VALID_DAYS) -> Feed:
    """Build the feed of a release from the results of the default methods, without unnamed and expired ones."""
    if kind not in FIELDS:
        raise UsageError(f"No feed of {kind!r} exists, only of {' and '.join(KINDS)}.")
    if not 0 < valid_days <= _MAX_VALID_DAYS:
        raise UsageError(
            f"The validity of an entry must be above 0 and at most {_MAX_VALID_DAYS:g} days, not {valid_days:g}."
        )
    with open_release(store, release, _TABLES[kind]) as connection:
        rows: list[Row] = connection.sql(_QUERIES[kind]).to_arrow_table().to_pylist()
        bursts = _bursts_by_subject(connection) if kind == "signatures" else {}
    made_at = datetime.fromisoformat(release.created_at).replace(microsecond=0)
    excluded: Counter[str] = Counter(unnamed=0, undated=0, expired=0)
    entries = []
    for row in rows:
        reason = _find_exclusion_reason(row, kind, made_at, timedelta(days=valid_days))
        if reason is not None:
            excluded[reason] += 1
        elif row["outcome"] == _ANSWER_OUTCOMES[kind]:
            entries.append(_entry(row, kind, bursts.get(_subject(row), [])))
    header = {
        "format": FORMAT,
        "kind": kind,
        "release_id": release.release_id,
        "code_version": release.code_version,
        "valid_from": _instant(made_at),
        "valid_days": float(valid_days),
        "entry_count": len(entries),
        **{f"{reason}_count": count for reason, count in excluded.items()},
        "outcome_counts": dict(sorted(Counter(row["outcome"] for row in rows).items())),
    }
    return Feed(header, entries)


def _find_exclusion_reason(row: Row, kind: str, made_at: datetime, valid: timedelta) -> str | None:
    """Return why a row is excluded, or None. Adds `valid_from` and `valid_until` to the row."""
    if row["outcome"] != _ANSWER_OUTCOMES[kind]:
        return None
    if row["user"] is None:
        return "unnamed"
    if row["last_run_ended_at"] is None:
        return "undated"
    # A last run in the future (wrong clock) must not extend the validity.
    until = (min(row["last_run_ended_at"], made_at) + valid).replace(microsecond=0)
    row |= {"valid_from": made_at, "valid_until": until}
    return "expired" if until <= made_at else None


def _entry(row: Row, kind: str, bursts: list[Row]) -> Row:
    """Return the row as a feed entry, with its fields in declared order and its bursts."""
    if kind == "periods":
        probability = row["false_alarm_probability"]
        row |= {"confidence": None if probability is None else 1.0 - probability}
        return {column.name: row[column.name] for column in FIELDS[kind]}
    row |= {"confidence": average_by_volume([(burst["volume_bytes"], burst["confidence"]) for burst in bursts])}
    # older releases have no expected correlation
    row.setdefault("expected_correlation", None)
    return {column.name: row[column.name] for column in FIELDS[kind]} | {"bursts": bursts}


def average_by_volume(parts: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the volume-weighted mean of confidences: the probability that the next run moves a given byte.

    Returns None if a confidence is unknown or the total volume is 0.
    """
    volume_bytes = math.fsum(volume for volume, _ in parts)
    if not volume_bytes > 0 or any(confidence is None for _, confidence in parts):
        return None
    return math.fsum(volume * (confidence or 0.0) for volume, confidence in parts) / volume_bytes


# ---- queries on the release

_TABLES = {
    "signatures": "signatures signature_bursts signature_checks exact_checks",
    "periods": "periods signatures trace_jobs jobs",
}

_SIGNATURES = f"""
    with compared as (
        select application_id, filesystem, direction, method, count(*) as traced_run_count,
            median(correlation) as traced_correlation
        from signature_checks
        where is_training_run is not true
        group by all
    ),

    counted as (
        select application_id, filesystem, direction, method, count(*) as counted_run_count,
            median(correlation) as counted_correlation
        from exact_checks
        where not is_training_run
        group by all
    )

    select * exclude (method_parameters, outlier_job_ids, first_run_started_at, last_run_ended_at, traced_run_count,
        counted_run_count),
        {ID_PARTS_SQL}, date_trunc('second', first_run_started_at) as first_run_started_at, date_trunc('second',
        last_run_ended_at) as last_run_ended_at,
        coalesce(traced_run_count, 0) as traced_run_count, coalesce(counted_run_count, 0) as counted_run_count
    from signatures
    left join compared using (application_id, filesystem, direction, method)
    left join counted using (application_id, filesystem, direction, method)
    where is_default
    order by application_id, filesystem, direction
"""

#: the confidence of a burst is the probability that the next run has it, by Laplace's rule of succession; outlier runs
#: that the signature excludes count as runs without the burst.
_BURSTS = """
    select application_id, filesystem, direction, burst, start_s, end_s - start_s as duration_s, peak_s,
        bursts.volume_bytes, support_ratio,
        (support_ratio * used_sample_count + 1) / (sample_count + 2) as confidence
    from signature_bursts as bursts
    inner join signatures using (application_id, filesystem, direction, method)
    where is_default and outcome = 'extracted'
    order by application_id, filesystem, direction, burst
"""

#: periods of single jobs are excluded: server data of a job include all other traffic on the file system
_PERIODS = f"""
    with answers as (
        from periods
        where is_default and subject_kind in ('application', 'trace')
    ),

    of_signatures as (
        select answers.* exclude (filesystem, direction), subject_id as application_id, answers.filesystem,
            answers.direction, null::varchar as trace_id, used_sample_count as run_count, last_run_ended_at
        from answers
        left join (from signatures where is_default) as made on
            made.application_id = subject_id
            and made.filesystem = answers.filesystem
            and made.direction = answers.direction
        where subject_kind = 'application'
    ),

    -- the scheduler knows a traced run by the name of its job, not by the name of the program
    traced as (
        select answers.*, jobs.application_id, subject_id as trace_id,
            coalesce(trace_jobs.ended_at, trace_jobs.started_at, jobs.ended_at) as last_run_ended_at
        from answers
        inner join trace_jobs on trace_jobs.trace_id = subject_id
        left join jobs on
            jobs.cluster = trace_jobs.cluster
            and jobs.job_id = trace_jobs.job_id
            and jobs.started_at = trace_jobs.job_started_at
        where subject_kind = 'trace'
    ),

    -- the latest run with a conclusive outcome
    latest as (
        from traced
        qualify application_id is null or 1 = row_number() over (
            partition by application_id, direction
            order by outcome in ('periodic', 'aperiodic') desc, last_run_ended_at desc nulls last, trace_id
        )
    ),

    of_traces as (
        select *, 1 as run_count
        from latest
    ),

    found as (
        from of_signatures
        union all by name
        from of_traces
    )

    select * exclude (confidence, last_run_ended_at), {ID_PARTS_SQL},
        date_trunc('second', last_run_ended_at) as last_run_ended_at, confidence as cycle_evenness,
        r_io * period_s as io_per_period_s
    from found
    order by application_id, filesystem, direction, trace_id
"""

_QUERIES = {"signatures": _SIGNATURES, "periods": _PERIODS}


def _subject(row: Row) -> tuple[str, ...]:
    return row["application_id"], row["filesystem"], row["direction"]


def _bursts_by_subject(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, ...], list[Row]]:
    """Return each subject's bursts in chronological order, with the fields of a feed."""
    columns = [column.to_pylist() for column in connection.sql(_BURSTS).to_arrow_table().columns]
    names = [column.name for column in BURST_FIELDS]
    by_subject: dict[tuple[str, ...], list[Row]] = {}
    for subject, values in zip(zip(*columns[:3], strict=True), zip(*columns[3:], strict=True), strict=True):
        by_subject.setdefault(subject, []).append(dict(zip(names, values, strict=True)))
    return by_subject


# ---- writing


def _instant(value: datetime) -> str:
    """Format an instant as UTC text that sorts chronologically."""
    return f"{value.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _write_json(feed: Feed, file: IO[bytes]) -> None:
    for line in _lines(feed):
        file.write(f"{line}\n".encode("ascii"))


def _lines(feed: Feed) -> Iterator[str]:
    """Yield the lines of a JSON document with one entry per line, so that `diff` can compare two feeds."""
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
    """Return the Arrow schema of the entries; units and descriptions are field metadata."""
    import pyarrow as pa

    from iosig.warehouse.contracts.arrow import field

    fields = [field(column) for column in FIELDS[kind]]
    if kind == "signatures":
        burst = pa.struct([field(column) for column in BURST_FIELDS])
        metadata = {"doc": "The bursts of the signature, in order of time."}
        fields.append(pa.field("bursts", pa.list_(pa.field("element", burst)), metadata=metadata))
    # Columns that are newer than the release are NULL.
    return pa.schema([arrow_field.with_nullable(True) for arrow_field in fields])
