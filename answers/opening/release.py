"""Provide the Python interface to a warehouse: its releases, with tables as frames, typed answers and pictures.

`iosig.open` is its entry. Neither Prefect nor Great Expectations is imported.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from html import escape
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import reading, releases
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, default_root

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from iosig.answers.attribution.query import Answer
    from iosig.answers.attribution.slowdowns import SlowdownAnswer
    from iosig.answers.status.problems import Status
    from iosig.answers.top import By, Ranking
    from iosig.reports.panels import Picture


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse that is open for reading."""

    store: Store

    def releases(self) -> list[Release]:
        """Return the readable releases, oldest first."""
        return releases.list_readable(self.store)

    def release(self, release_id: str | None = None) -> OpenedRelease:
        """Select a release by its id, a prefix of it, or a day (2018-02-09); None selects the current release."""
        return OpenedRelease(self.store, releases.find(self.store, release_id))

    def status(self) -> Status:
        """Read the condition of the warehouse with its problems and notes, as `iosig status` does."""
        from iosig.answers.status.problems import read_status
        from iosig.settings.model import load

        return read_status(self.store, load(None, self.store.root))


@dataclass(frozen=True, slots=True)
class OpenedRelease:
    """The tables of a release, which is immutable, and answers from them.

    Each call opens the files that it needs, and closes them again.
    """

    store: Store
    release: Release

    @property
    def tables(self) -> list[str]:
        """Names of the tables; the dictionary in the documentation describes their columns."""
        return [table.name for table in releases.list_published_tables()]

    def table(self, name: str) -> pl.DataFrame:
        """Return a whole table, as published. Prefer `sql` for a selection of large ones."""
        if name not in self.tables:
            raise UsageError(f"{name!r} is not a table of a release. `tables` lists them.")
        return self.sql(f'from "{name}"')

    def sql(self, query: str, parameters: dict[str, Any] | None = None) -> pl.DataFrame:
        """Return the rows of a DuckDB query; `parameters` are the values of its `$name`."""
        with reading.open_release(self.store, self.release, query, metric=None) as connection:
            rows: pl.DataFrame = connection.sql(query, params=parameters).pl()
        return rows

    def connect(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Open a DuckDB connection with a view of each table, for a `with` statement."""
        return reading.open_release(self.store, self.release, metric=None)

    def who(
        self,
        filesystem: str,
        *,
        at: datetime | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        direction: str | None = None,
    ) -> Answer:
        """Return the bytes that jobs, users and applications moved, as `iosig who` does from a release."""
        from iosig.answers.attribution import query

        parsed_query = query.Query.parse(filesystem, at, since, until, direction)
        with reading.open_release(self.store, self.release, query.TABLES) as connection:
            return query.who(connection, parsed_query)

    def slowdowns(
        self, filesystem: str, *, since: datetime, until: datetime | None = None, direction: str | None = None
    ) -> SlowdownAnswer:
        """Return the runs that were slowed down, with their delays and the interfering jobs."""
        from iosig.answers.attribution import query, slowdowns

        parsed_query = query.Query.parse(filesystem, None, since, until, direction)
        with reading.open_release(self.store, self.release, slowdowns.TABLES) as connection:
            return slowdowns.find_slowdowns(connection, parsed_query)

    def top(
        self,
        by: By = "application",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        filesystem: str | None = None,
        direction: str | None = None,
    ) -> Ranking:
        """Rank users, accounts, applications or codes by the bytes of their runs, as `iosig top` does."""
        from iosig.answers import top

        with reading.open_release(self.store, self.release, top.TABLES) as connection:
            return top.rank_runs(connection, top.Query(by, since, until, filesystem, direction))

    def draw_who(
        self, filesystem: str, *, since: datetime, until: datetime | None = None, direction: str | None = None
    ) -> Picture:
        """Draw the traffic of a file system by application; notebooks show the picture."""
        from iosig.answers.attribution.figure import build_view
        from iosig.reports.attribution import draw

        return draw(build_view(self.who(filesystem, since=since, until=until, direction=direction)))

    def draw_signature(self, application: str, direction: str | None = None) -> Picture:
        """Draw the samples and the signature of an application, given by its id or an unambiguous part of it."""
        from iosig.answers.signatures.view import Query, build_view
        from iosig.reports.signatures import draw

        return draw(build_view(self.store, self.release, Query(application, direction=direction)))

    def _repr_html_(self) -> str:
        facts = (self.release.kind, self.release.verdict, f"iosig {self.release.code_version}", self.store.name)
        return f"<b>{escape(self.release.release_id)}</b><br>{escape(', '.join(map(str, facts)))}"


def open_warehouse(place: str | PathLike[str] | None = None) -> Warehouse:
    """Open the warehouse at a folder or s3:// URL; None opens the default one of the `iosig` command."""
    return Warehouse(Store(default_root()) if place is None else Store.locate(fspath(place)))
