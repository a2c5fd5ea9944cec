"""Encode applications as data files: a list of all, and a file each, so that only changed applications are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from iosig.reports.site.packing import Content, columns, file_hash, lean, pack_document

_SUBJECT = ("application_id", "filesystem", "direction")
#: number of hash digits that identify a history file
_HISTORY_DIGITS = 2
#: columns of the list, in the order that the page expects
_LIST_COLUMNS = (
    *_SUBJECT, "user", "application", "node_count", "outcome", "method", "sample_count", "month_run_count",
    "volume_bytes", "peak_bytes_per_s", "duration_s", "burst_count", "period_s", "label", "expected_correlation",
    "is_changed",
    "last_run_ended_at", "spark",
)  # fmt: skip
_FACTS = (
    "method", "outcome", "sample_count", "used_sample_count", "outlier_job_ids", "first_run_started_at",
    "last_run_ended_at", "duration_s",
    "burst_count", "volume_bytes", "peak_bytes_per_s", "expected_correlation", "background_bytes_per_s", "is_changed",
    "change_correlation", "relative_volume_change", "label", "period_s", "false_alarm_probability", "burst_width_s",
    "bytes_per_period", "month_run_count",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApplicationFrames:
    """Input of the application pages; each frame is sorted by application_id, filesystem and direction.

    signatures: one row per default signature. curves: its rates, lows and highs in steps of step_s, as multiples of
    scale_bytes_per_s, and spark. operations: one row per signature of operations, with its curve; amounts are in the
    columns of bytes. bursts, checks: one row each. runs: the latest runs, with rates like curves and
    start_s. contention: slowdowns by application_id alone, with role, other_application_id and size. looked: number of
    runs analyzed for slowdowns.
    """

    signatures: pl.DataFrame
    curves: pl.DataFrame
    bursts: pl.DataFrame
    runs: pl.DataFrame
    operations: pl.DataFrame
    checks: pl.DataFrame
    contention: pl.DataFrame
    looked: pl.DataFrame


def application_path(application_id: str) -> str:
    """Return the path of an application's file."""
    return f"data/application/{file_hash(application_id)}.js"


#: columns of the sparklines: the key, and the curve
SPARK = (*_SUBJECT, "spark")
#: the path of the list
LIST = "data/applications.js"


def get_sparklines(document: dict[str, list[Any]]) -> pl.DataFrame:
    """Return the sparklines of a decoded list by application, file system and direction."""
    return pl.DataFrame({name: pl.Series(document[name], dtype=pl.String) for name in SPARK})


def encode_map(rows: pl.DataFrame) -> Content:
    """Encode the map of applications; rows: month_bytes, burstiness, run_count and label."""
    return pack_document("map", columns(rows))


def histories(history: pl.DataFrame) -> Iterator[Content]:
    """Yield the signature histories of releases, one row per release_id, with several applications per file.

    Histories change with each release; separate files keep the files of applications unchanged.
    """
    names = history["application_id"].unique().sort()
    places = [file_hash(name)[:_HISTORY_DIGITS] for name in names]
    files = (
        lean(history)
        .select("application_id", place=pl.col("application_id").replace_strict(names, places, return_dtype=pl.String),
                row=pl.struct(pl.exclude("application_id")))
        .group_by("place", "application_id", maintain_order=True)
        .agg("row")
        .sort("place", "application_id")
        .select("place", document=pl.struct("application_id", history="row").struct.json_encode())
        .group_by("place", maintain_order=True)
        .agg(pl.col("document").str.join(","))
    )  # fmt: skip
    for place, documents in files.iter_rows():
        yield pack_document(f"history/{place}", f"[{documents}]")


def names(signatures: pl.DataFrame) -> Content:
    """Encode the search index of application and user names."""
    applications = signatures.select("application_id", "user").unique().sort("application_id")
    users = applications.group_by("user").agg(application_count=pl.len()).drop_nulls().sort("user")
    return pack_document(
        "search", {"applications": columns(applications.select("application_id")), "users": columns(users)}
    )


def encode_list(signatures: pl.DataFrame, sparks: pl.DataFrame) -> Content:
    """Encode the application list, one row per signature; sparks: the sparklines."""
    rows = signatures.join(sparks.select(SPARK), on=_SUBJECT, how="left", maintain_order="left")
    return pack_document("applications", columns(rows.select(_LIST_COLUMNS)))


def each(frames: ApplicationFrames) -> Iterator[Content]:
    """Yield the data file of each application."""
    subjects = lean(frames.signatures).select(*_SUBJECT, "user", "application", "node_count", facts=pl.struct(_FACTS))
    for name, frame in _parts(frames).items():
        subjects = subjects.join(_nest_rows(frame, name), on=_SUBJECT, how="left", maintain_order="left")
    contention = lean(frames.contention).group_by("application_id", maintain_order=True)
    documents = (
        subjects.group_by("application_id", "user", "application", "node_count", maintain_order=True)
        .agg(subjects=pl.struct(pl.exclude("application_id", "user", "application", "node_count")))
        .join(
            contention.agg(contention=pl.struct(pl.exclude("application_id"))),
            on="application_id",
            how="left",
            maintain_order="left",
        )
        .join(frames.looked, on="application_id", how="left", maintain_order="left")
        .with_columns(document=pl.struct(pl.all()).struct.json_encode())
    )
    by_file: dict[str, list[tuple[str, str]]] = {}
    for name, document in documents.select("application_id", "document").iter_rows():
        by_file.setdefault(file_hash(name), []).append((name, document))
    for place, entries in by_file.items():
        yield pack_document(f"application/{place}", f"[{','.join(document for _, document in sorted(entries))}]")


def _parts(frames: ApplicationFrames) -> dict[str, pl.DataFrame]:
    return {
        "curve": frames.curves.drop("spark"),
        "bursts": frames.bursts,
        "runs": frames.runs,
        "operations": frames.operations,
        "checks": frames.checks,
    }


def _nest_rows(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Nest a frame's rows per subject as a list of structs."""
    rows = lean(frame)
    return rows.group_by(_SUBJECT, maintain_order=True).agg(pl.struct(pl.exclude(_SUBJECT)).alias(name))
