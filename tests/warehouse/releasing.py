"""Build and publish small releases from tables given as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.contracts import Table, frames, table
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.releases import publishing, redirects, releases
from iosig.warehouse.releases.publishing import Draft
from iosig.warehouse.releases.reading import open_duckdb
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.views import VIEWS
from iosig.warehouse.store.store import Store, write_parquet
from tests.sql.given import DAY, rows

_NUMBER = count()

#: a table's days as text; a day with an empty text has no more rows
Content = Mapping[int | None, str]

FIRST: dict[str, Content] = {
    "jobs": {8: "job_id \n 80 \n 81", 9: "job_id \n 90", None: "job_id ended_at \n run ."},
    "polls_daily": {8: "filesystem \n lake", 9: "filesystem \n lake"},
    "applications": {None: "application_id \n a/x/1 \n b/y/2"},
    "rejects": {None: ""},
}
SECOND: dict[str, Content] = {"jobs": {9: "job_id \n 91", 10: "job_id \n 100"}}


def on(number: int | None) -> date | None:
    """Return a day of February 2018, or None."""
    return None if number is None else DAY.replace(day=number)


def built(folder: Path, made: Table, content: Content) -> dict[date | None, Path]:
    """Write a table's days as a run builds them; the partition column is filled."""
    found = {}
    for number, text in content.items():
        path = folder / f"{made.name}-{next(_NUMBER)}.parquet"
        if text:
            frame = rows(f"{made.layer}.{made.name}", text).select(made.column_names)
            if made.partition:
                frame = frame.with_columns(pl.lit(on(number), pl.Date).alias(made.partition))
            write_parquet(frame, made, path)
        found[on(number)] = path
    return found


def draft(
    name: str, inputs: tuple[str, ...] = (), removed: tuple[str, ...] = (), *, on: Release | None = None
) -> Draft:
    """Return a draft of a release."""
    return Draft(
        release_id=f"2018-02-09-{name}",
        fingerprint=f"{name}0123",
        dates=(DAY, None),
        inputs=inputs,
        removed_inputs=removed,
        parameters='{"a": 1}',
        code_version="0",
        verdict="passed",
        base_release_id=on.release_id if on else None,
    )


def publish(store: Store, name: str, content: Mapping[str, Content], *, inputs: tuple[str, ...] = ()) -> Release:
    """Build and publish tables, by name."""
    folder = store.builds / name
    files = {known: built(folder, table(known), days) for known, days in content.items()}
    return publishing.publish(store, draft(name, inputs, on=releases.current(store)), files)


def publish_older_jobs(store: Store, later: Collection[str], content: Content) -> Release:
    """Publish jobs as a version of the contract without some later columns does."""
    old = replace(JOBS, columns=tuple(column for column in JOBS.columns if column.name not in later))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "contract", lambda _: old)
        patch.setattr(publishing, "list_published_tables", lambda: [old])
        return publishing.publish(store, draft("old"), {"jobs": built(store.builds / "old", old, content)})


def supersede(store: Store, old: Release, name: str, content: Mapping[str, Content]) -> Release:
    """Supersede a release by a release with other tables and remove the old release; return the successor."""
    folder = store.builds / name
    files = {known: built(folder, table(known), days) for known, days in content.items()}
    successor = redirects.supersede(store, old, draft(name), files, {}, "to test it")
    redirects.remove(store, old.release_id, successor)
    return successor


def read(store: Store, release: Release, name: str) -> pl.DataFrame:
    """Return a table of a release, sorted by its key."""
    made = table(name)
    files = [store.here(path) for path in releases.files_of(store, release).get(name, [])]
    return pl.read_parquet(files).sort(made.key) if files else frames.empty(made)


def keys(store: Store, release: Release, name: str, column: str) -> list[object]:
    """Return a sorted column of a table of a release."""
    return sorted(read(store, release, name)[column].to_list())


@contextmanager
def opened_tables(tables: Mapping[str, Content]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB on tables and the views of them, as on a release, without publishing."""
    with open_duckdb() as connection:
        for name, content in tables.items():
            frames_by_day = [rows(f"{table(name).layer}.{name}", text) for text in content.values()]
            connection.register(name, pl.concat(frames_by_day).to_arrow())
        for view in VIEWS:
            if {*view.tables} <= {*tables}:
                connection.execute(f"create view {view.name} as {view.select}")
        yield connection
