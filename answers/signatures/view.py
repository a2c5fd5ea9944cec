"""Select a signature in a release, and build its figure data."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from iosig.estimates.signatures.published import SUBJECT, TABLES, read_signatures
from iosig.reports.signatures import DrawnSample, DrawnSignature, SignatureView
from iosig.warehouse.contracts.application_ids import without_machine
from iosig.warehouse.contracts.metrics import Metric
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.reading import open_release

if TYPE_CHECKING:
    import duckdb

    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: tables of samples, for `iosig.warehouse.releases.reading.open_release`
SAMPLE_TABLES = "sample_sets run_samples"
#: maximum names listed in a message
_MAX_LISTED = 8


@dataclass(frozen=True, slots=True)
class Query:
    """Selection of a signature by an application id or an unambiguous part of it, and optional restrictions.

    overlaid: further methods, drawn over the first one. metric: what the signature counts. Defaults: the only file
    system, the direction with the larger volume, the default method.
    """

    application: str
    filesystem: str | None = None
    direction: str | None = None
    method: str | None = None
    overlaid: tuple[str, ...] = ()
    metric: Metric = "bytes"


def build_view(store: Store, release: Release, selection: Query) -> SignatureView:
    """Build the figure data of a signature; raises UsageError with the alternatives if it does not exist."""
    with open_release(store, release, f"{TABLES} {SAMPLE_TABLES}", selection.metric) as connection:
        return _view(connection, _choose_methods(choose_subject(connection, release, selection), selection))


# ---- selection


def choose_subject(connection: duckdb.DuckDBPyConnection, release: Release, selection: Query) -> pl.DataFrame:
    """Select the rows of `signatures` of one application, file system and direction, a row per method."""
    rows = connection.sql("select * from signatures order by application_id, filesystem, direction, method").pl()
    if rows.is_empty():
        what, remedy = (
            ("signatures", "`iosig run` computes them.")
            if selection.metric == "bytes"
            else ("signatures of operations", "They need polls with operations (docs/formats.md).")
        )
        raise UsageError(f"Release {release.release_id} has no {what}. {remedy}")
    name = choose_application(rows["application_id"].unique().sort().to_list(), selection.application)
    return _choose_direction(rows.filter(pl.col("application_id") == name), selection)


def choose_application(application_ids: Sequence[str], text: str) -> str:
    """Resolve an application by its full id, or by a part that matches exactly one id; else raise UsageError."""
    matches = match_applications(application_ids, text)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{text!r} is ambiguous: {join_names(matches)}. Pass a longer part of the application's id.")
    similar = find_similar(application_ids, text)
    hint = f"Did you mean {join_names(similar)}?" if similar else f"Known are {join_names(application_ids)}."
    raise UsageError(f"No application named {text!r} has a signature. {hint}")


def match_applications(application_ids: Sequence[str], text: str) -> list[str]:
    """Return the ids (user@machine/application/node_count) that match by the first rule with a match.

    Rules in this order: equal ids, equal components of ids with or without the machine, equal components without regard
    to case, and substrings.
    """
    folded = text.casefold()
    forms = {name: f"/{name}//{without_machine(name)}/" for name in application_ids}
    rules = (
        [name for name in application_ids if name == text],
        [name for name in application_ids if f"/{text}/" in forms[name]],
        [name for name in application_ids if f"/{folded}/" in forms[name].casefold()],
        [name for name in application_ids if folded in forms[name].casefold()],
    )
    return next(filter(None, rules), []) if text else []


def find_similar(application_ids: Sequence[str], text: str) -> list[str]:
    """Return applications with a similar id or name, most similar first."""
    near = difflib.get_close_matches(text, application_ids, n=_MAX_LISTED, cutoff=0.5)
    named = [name for name in application_ids if name.split("/")[1:2] and _is_near(name.split("/")[1], text)]
    return near + [name for name in named if name not in near]


def _is_near(name: str, text: str) -> bool:
    return difflib.SequenceMatcher(None, name.casefold(), text.casefold()).ratio() >= 0.6


def join_names(names: Sequence[str]) -> str:
    """List the first names, and the number of the others."""
    more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


def _choose_direction(rows: pl.DataFrame, selection: Query) -> pl.DataFrame:
    """Select the rows of one file system and direction of an application; raises UsageError if ambiguous or unknown."""
    name = rows["application_id"][0]
    filesystems = rows["filesystem"].unique().sort().to_list()
    filesystem = selection.filesystem or (filesystems[0] if len(filesystems) == 1 else None)
    if filesystem not in filesystems:
        problem = f"has signatures of several file systems: {join_names(filesystems)}; choose one with --filesystem."
        if filesystem is not None:
            problem = f"has no signature of file system {filesystem!r}. Available: {join_names(filesystems)}."
        raise UsageError(f"{name} {problem}")
    rows = rows.filter(pl.col("filesystem") == filesystem)
    directions = rows["direction"].unique().sort().to_list()
    if selection.direction is None:
        moved = rows.sort(pl.col("volume_bytes").fill_null(-1.0), pl.col("direction"), descending=True)
        return rows.filter(pl.col("direction") == moved["direction"][0])
    if selection.direction not in directions:
        raise UsageError(f"{name} has no {selection.direction} signature. Available: {join_names(directions)}.")
    return rows.filter(pl.col("direction") == selection.direction)


def _choose_methods(rows: pl.DataFrame, selection: Query) -> pl.DataFrame:
    """Select the rows of the methods to draw, in drawing order."""
    available = rows["method"].to_list()
    default = rows.filter("is_default")["method"].to_list()
    first = selection.method or (default or available)[0]
    methods = list(dict.fromkeys((first, *selection.overlaid)))
    missing = [method for method in methods if method not in available]
    if missing:
        raise UsageError(
            f"{rows['application_id'][0]} has no signature of method {join_names(missing)}. Available: "
            f"{join_names(available)}."
        )
    return pl.concat([rows.filter(pl.col("method") == method) for method in methods])


# ---- figure data


def _view(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> SignatureView:
    main = rows.row(0, named=True)
    outlier_job_ids = set(json.loads(main["outlier_job_ids"] or "[]"))
    signatures = [
        DrawnSignature(row["method"], signature, row["sample_count"], row["used_sample_count"], _get_correlation(row))
        for row, signature in zip(rows.iter_rows(named=True), read_signatures(connection, rows), strict=True)
    ]
    return SignatureView(
        application_id=main["application_id"],
        filesystem=main["filesystem"],
        direction=main["direction"],
        samples=tuple(_samples(connection, main, outlier_job_ids)),
        signatures=tuple(signatures),
        metric=main["metric"],
    )


def _get_correlation(row: dict[str, Any]) -> float:
    # older releases do not have this column
    value = row.get("expected_correlation")
    return math.nan if value is None else value


def _samples(
    connection: duckdb.DuckDBPyConnection, subject: dict[str, Any], outlier_job_ids: set[str]
) -> list[DrawnSample]:
    return [
        DrawnSample(
            job_id=row["job_id"],
            bytes_per_s=np.array(row["sample_bytes_per_s"], dtype=np.float64),
            interval_s=row["interval_s"],
            start_s=row["start_s"],
            is_outlier=row["job_id"] in outlier_job_ids,
            duration_s=row["duration_s"],
            source=row["source"],
        )
        for row in read_samples(connection, subject).iter_rows(named=True)
    ]


def read_samples(connection: duckdb.DuckDBPyConnection, subject: dict[str, Any]) -> pl.DataFrame:
    """Read the runs of a sample set with their samples, from the source of the set, oldest first."""
    query = """
        with runs as (
            select cluster, job_id, started_at, ended_on, node_count, duration_s,
                coalesce(is_truncated, false) as is_truncated, coalesce(source, 'server') as source
            from sample_sets
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
                and metric = $metric
        )

        select
            $application_id as application_id,
            run_samples.cluster,
            run_samples.job_id,
            run_samples.started_at,
            run_samples.source,
            run_samples.grid_started_at,
            run_samples.interval_s,
            (epoch_us(run_samples.grid_started_at) - epoch_us(run_samples.started_at)) / 1e6 as start_s,
            case
                when $metric = 'bytes' then run_samples.sample_bytes_per_s else run_samples.sample_operations_per_s
            end as sample_bytes_per_s,
            runs.node_count,
            runs.duration_s,
            runs.is_truncated
        from run_samples
        inner join runs using (source, cluster, job_id, started_at)
        where run_samples.filesystem = $filesystem
            and run_samples.direction = $direction
            -- lets DuckDB skip files of other days
            and run_samples.ended_on between (select min(ended_on) from runs) and (select max(ended_on) from runs)
        order by run_samples.started_at, run_samples.job_id, run_samples.cluster
    """
    rows: pl.DataFrame = connection.sql(query, params={name: subject[name] for name in SUBJECT}).pl()
    return rows
