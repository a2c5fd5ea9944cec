"""Which signature of a release is meant, and what there is to see of it."""

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
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.reading import opened

if TYPE_CHECKING:
    import duckdb

    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: so many names are told of what there is
_MOST_TOLD = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to see: an application or an unambiguous part of its id, and what narrows it down.

    overlaid: further methods, drawn over the first one. None takes the file system that there is, the direction that
    moves most, and the default method.
    """

    application: str
    filesystem: str | None = None
    direction: str | None = None
    method: str | None = None
    overlaid: tuple[str, ...] = ()


def view_of(store: Store, release: Release, asked: Asked) -> SignatureView:
    """Return what a release has of a signature; raises UsageError with what there is instead."""
    with opened(store, release, f"{TABLES} sample_sets samples exact_samples") as connection:
        rows = connection.sql("select * from signatures order by application_id, filesystem, direction, method").pl()
        if rows.is_empty():
            raise UsageError(f"Release {release.release_id} holds no signatures. `iosig run` makes them.")
        name = choose_application(rows["application_id"].unique().sort().to_list(), asked.application)
        chosen = _choose_methods(_choose_direction(rows.filter(pl.col("application_id") == name), asked), asked)
        return _view(connection, chosen)


# ---- what is meant


def choose_application(known: Sequence[str], asked: str) -> str:
    """Return the application that is meant: by its whole id, by whole parts of it, by its name, or by any piece.

    An id is user/application/node_count. The first way that finds any must find one alone.
    """
    folded = asked.casefold()
    ways = (
        [name for name in known if name == asked],
        [name for name in known if f"/{asked}/" in f"/{name}/"],
        [name for name in known if f"/{folded}/" in f"/{name.casefold()}/"],
        [name for name in known if folded in name.casefold()],
    )
    found = next(filter(None, ways), []) if asked else []
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{asked!r} could be {_listed(found)}. Give more of the application's id.")
    near = near_applications(known, asked)
    told = f"Is it {_listed(near)}?" if near else f"There are {_listed(known)}."
    raise UsageError(f"No application with signatures is called {asked!r}. {told}")


def near_applications(known: Sequence[str], asked: str) -> list[str]:
    """Return the applications whose id, or name alone, is nearly what was asked for, the nearest first."""
    near = difflib.get_close_matches(asked, known, n=_MOST_TOLD, cutoff=0.5)
    named = [name for name in known if name.split("/")[1:2] and _is_near(name.split("/")[1], asked)]
    return near + [name for name in named if name not in near]


def _is_near(name: str, asked: str) -> bool:
    return difflib.SequenceMatcher(None, name.casefold(), asked.casefold()).ratio() >= 0.6


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_TOLD:,} more" if len(names) > _MOST_TOLD else ""
    return ", ".join(names[:_MOST_TOLD]) + more


def _choose_direction(rows: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Return the rows of one file system and one direction of an application."""
    name = rows["application_id"][0]
    filesystems = rows["filesystem"].unique().sort().to_list()
    filesystem = asked.filesystem or (filesystems[0] if len(filesystems) == 1 else None)
    if filesystem not in filesystems:
        problem = f"has signatures of several file systems: {_listed(filesystems)}; say which with --filesystem."
        if filesystem is not None:
            problem = f"has no signature of file system {filesystem!r}; it has those of {_listed(filesystems)}."
        raise UsageError(f"{name} {problem}")
    rows = rows.filter(pl.col("filesystem") == filesystem)
    directions = rows["direction"].unique().sort().to_list()
    if asked.direction is None:
        moved = rows.sort(pl.col("volume_bytes").fill_null(-1.0), pl.col("direction"), descending=True)
        return rows.filter(pl.col("direction") == moved["direction"][0])
    if asked.direction not in directions:
        raise UsageError(f"{name} has no {asked.direction} signature; it has those of {_listed(directions)}.")
    return rows.filter(pl.col("direction") == asked.direction)


def _choose_methods(rows: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Return the rows of the methods that are to be drawn, in order."""
    known = rows["method"].to_list()
    default = rows.filter("is_default")["method"].to_list()
    first = asked.method or (default or known)[0]
    methods = list(dict.fromkeys((first, *asked.overlaid)))
    missing = [method for method in methods if method not in known]
    if missing:
        raise UsageError(
            f"{rows['application_id'][0]} has no signature of method {_listed(missing)}; it has those of "
            f"{_listed(known)}."
        )
    return pl.concat([rows.filter(pl.col("method") == method) for method in methods])


# ---- what there is to see


def _view(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> SignatureView:
    main = rows.row(0, named=True)
    left_out = set(json.loads(main["outlier_job_ids"] or "[]"))
    signatures = [
        DrawnSignature(row["method"], one, row["sample_count"], row["used_sample_count"], _trust(row))
        for row, one in zip(rows.iter_rows(named=True), read_signatures(connection, rows), strict=True)
    ]
    return SignatureView(
        application_id=main["application_id"],
        filesystem=main["filesystem"],
        direction=main["direction"],
        samples=tuple(_samples(connection, main, left_out)),
        signatures=tuple(signatures),
    )


def _trust(row: dict[str, Any]) -> float:
    # releases of before it was told have no such column
    told = row.get("expected_correlation")
    return math.nan if told is None else told


def _samples(connection: duckdb.DuckDBPyConnection, subject: dict[str, Any], left_out: set[str]) -> list[DrawnSample]:
    """Return the samples that a set was made of, shared or exact ones, the oldest first."""
    query = """
        with runs as (
            select cluster, job_id, started_at, ended_on, duration_s, coalesce(source, 'server') as source
            from sample_sets
            where application_id = $application_id and filesystem = $filesystem and direction = $direction
        ),

        told as (
            select 'server' as source, cluster, job_id, started_at, ended_on, filesystem, direction, grid_started_at,
                interval_s, sample_bytes_per_s
            from samples
            union all
            select 'jobstats' as source, cluster, job_id, started_at, ended_on, filesystem, direction,
                grid_started_at, interval_s, sample_bytes_per_s
            from exact_samples
        )

        select
            told.job_id,
            told.source,
            told.interval_s,
            (epoch_us(told.grid_started_at) - epoch_us(told.started_at)) / 1e6 as start_s,
            told.sample_bytes_per_s,
            runs.duration_s
        from told
        inner join runs using (source, cluster, job_id, started_at)
        where told.filesystem = $filesystem
            and told.direction = $direction
            -- lets whole days be left unread
            and told.ended_on between (select min(ended_on) from runs) and (select max(ended_on) from runs)
        order by told.started_at, told.job_id, told.cluster
    """
    found = connection.sql(query, params={name: subject[name] for name in SUBJECT}).pl()
    return [
        DrawnSample(
            job_id=row["job_id"],
            bytes_per_s=np.array(row["sample_bytes_per_s"], dtype=np.float64),
            interval_s=row["interval_s"],
            start_s=row["start_s"],
            is_outlier=row["job_id"] in left_out,
            duration_s=row["duration_s"],
            is_exact=row["source"] == "jobstats",
        )
        for row in found.iter_rows(named=True)
    ]
