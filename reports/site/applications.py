"""Applications as data: the list of all, and a file for each, so that only those that changed are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from reports.site.packing import Content, columns, file_hash, lean, packed

_SUBJECT = ("application_id", "filesystem", "direction")
#: columns of the list, in the order in which the page knows them
_LISTED = (
    *_SUBJECT, "user", "application", "node_count", "outcome", "method", "sample_count", "month_run_count",
    "volume_bytes", "peak_bytes_per_s", "duration_s", "burst_count", "period_s", "label", "trust", "is_changed",
    "last_at", "spark",
)  # fmt: skip
_FACTS = (
    "method", "outcome", "sample_count", "used_sample_count", "outlier_job_ids", "first_at", "last_at", "duration_s",
    "burst_count", "volume_bytes", "peak_bytes_per_s", "trust", "background_bytes_per_s", "is_changed",
    "change_correlation", "change_of_volume", "label", "period_s", "false_alarm_probability", "burst_width_s",
    "bytes_per_period", "month_run_count",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApplicationFrames:
    """What there is to tell of applications, each frame with application_id, filesystem, direction, in their order.

    signatures: a row each default signature. curves: its rates, lows, highs in steps of step_s, as whole numbers of
    scale_bytes_per_s, and spark. bursts, checks: a row each. runs: the latest ones, with rates as curves have them and
    began_s. history: a row each release_id. located: of applications month_bytes, burstiness, run_count, label.
    """

    signatures: pl.DataFrame
    curves: pl.DataFrame
    bursts: pl.DataFrame
    runs: pl.DataFrame
    checks: pl.DataFrame
    history: pl.DataFrame
    located: pl.DataFrame


def contents(frames: ApplicationFrames) -> Iterator[Content]:
    """Yield the names, the map, the list, and a file for each application (or for several whose names share a hash)."""
    yield names(frames.signatures)
    yield packed("map", columns(frames.located))
    yield listed(frames)
    yield from each(frames)


def names(signatures: pl.DataFrame) -> Content:
    """Return the names of applications and of users, to be searched."""
    known = signatures.select("application_id", "user").unique().sort("application_id")
    users = known.group_by("user").agg(application_count=pl.len()).drop_nulls().sort("user")
    return packed("search", {"applications": columns(known.select("application_id")), "users": columns(users)})


def listed(frames: ApplicationFrames) -> Content:
    """Return the list: a row each signature."""
    sparks = frames.curves.select(*_SUBJECT, "spark")
    rows = frames.signatures.join(sparks, on=_SUBJECT, how="left", maintain_order="left")
    return packed("applications", columns(rows.select(_LISTED)))


def each(frames: ApplicationFrames) -> Iterator[Content]:
    """Yield a file for each application."""
    subjects = lean(frames.signatures).select(*_SUBJECT, "user", "application", "node_count", facts=pl.struct(_FACTS))
    for name, frame in _parts(frames).items():
        subjects = subjects.join(_nested(frame, name), on=_SUBJECT, how="left", maintain_order="left")
    documents = (
        subjects.group_by("application_id", "user", "application", "node_count", maintain_order=True)
        .agg(subjects=pl.struct(pl.exclude("application_id", "user", "application", "node_count")))
        .with_columns(document=pl.struct(pl.all()).struct.json_encode())
    )
    by_file: dict[str, list[tuple[str, str]]] = {}
    for name, document in documents.select("application_id", "document").iter_rows():
        by_file.setdefault(file_hash(name), []).append((name, document))
    for place, found in by_file.items():
        yield packed(f"application/{place}", f"[{','.join(document for _, document in sorted(found))}]")


def _parts(frames: ApplicationFrames) -> dict[str, pl.DataFrame]:
    return {
        "curve": frames.curves.drop("spark"),
        "bursts": frames.bursts,
        "runs": frames.runs,
        "checks": frames.checks,
        "history": frames.history,
    }


def _nested(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return what a frame has of each subject as a list of structs."""
    told = lean(frame)
    return told.group_by(_SUBJECT, maintain_order=True).agg(pl.struct(pl.exclude(_SUBJECT)).alias(name))
