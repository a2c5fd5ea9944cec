"""Find the files of a plan being executed: landings, the base release, and the tables that are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path

import polars as pl

from iosig.flows.steps.items import Day, ItemResult, TableFile
from iosig.flows.steps.plan import Plan
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.traces import TRACES
from iosig.warehouse.releases import locations, releases
from iosig.warehouse.store.buckets import BUCKET_COUNT
from iosig.warehouse.store.manifests import ID_DIGITS, Landing
from iosig.warehouse.store.store import Store

#: name of the last step, which decides on the release
DECISION = "checks"
#: partition of tables with the inputs of chunks; each consists of any number of Arrow files
CHUNK = "chunk"


@dataclass(frozen=True)
class Run:
    """A plan being executed: the warehouse, the settings, and the folder in which tables are built."""

    store: Store
    settings: Settings
    plan: Plan
    _known: set[str] = field(default_factory=set, repr=False, compare=False)
    #: by table: files that were copied to an object store before publication
    uploaded: dict[str, Mapping[str, Path]] = field(default_factory=dict, repr=False, compare=False)
    #: by day: day on which the first of the runs that ended on that day began, as far as known
    backfill_days: dict[date, date] = field(default_factory=dict, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The plan's own folder."""
        return self.store.builds / self.plan.fingerprint

    @cached_property
    def is_decided(self) -> bool:
        """Whether the decision on the release was complete at the first access."""
        return self.store.has(self.marker(DECISION))

    def marker(self, name: str) -> str:
        """Return the path of the file that marks a work item of the plan as complete."""
        return f"{self.place(self.folder)}/done/{name.replace(' ', '-').replace('/', '-')}.json"

    def list_files(self) -> None:
        """List the built files in an object store once, since one request per file would take long."""
        if self.store.url is not None:
            self._known.update(self.store.files.matching(f"{self.place(self.folder)}/*/*"))

    def record(self, result: ItemResult) -> None:
        """Remember the files that a work item wrote."""
        self._known.update(result.written)

    def has(self, name: str) -> bool:
        """Return whether a file of the plan exists."""
        return name in self._known if self.store.url is not None else self.store.has(name)

    def place(self, path: Path) -> str:
        """Return a path relative to the warehouse's root."""
        return path.relative_to(self.store.root).as_posix()

    def path(self, table: Table, day: Day) -> Path:
        """Return the path at which a table is built for a day, or without days (None)."""
        return self.folder / table.name / f"{day.isoformat() if day else 'undated'}.parquet"

    def files(self, table: Table, days: Sequence[Day]) -> list[TableFile]:
        """Return the files of a table on some days; those without rows may not exist."""
        folder = self.place(self.folder / table.name)
        if table.partition == CHUNK:
            return [TableFile(table.name, f"{folder}/*.arrow")]
        if table.bucketed_by is None:
            return [TableFile(table.name, self.place(self.path(table, day)), day) for day in days]
        return [TableFile(table.name, f"{folder}/{bucket:02}.parquet", bucket=bucket) for bucket in range(BUCKET_COUNT)]

    def built(self, table: Table, days: Sequence[Day]) -> list[TableFile]:
        """Return the built files of a table on some days; the base release's if the run does not build the table.

        A day without rows may have no file.
        """
        if not self._builds(table):
            return [file for file in self._carry_files(table) if table.bucketed_by or file.day in days]
        return [file for file in self.files(table, days) if self.has(file.path)]

    def list_base_files(self, table: Table) -> list[TableFile]:
        """Return the table's files in the base release, if any."""
        paths = self._base_files.get(table.name, [])
        return [TableFile(table.name, self.place(path), locations.parse_day(path), is_released=True) for path in paths]

    @cached_property
    def _base_files(self) -> dict[str, list[Path]]:
        return releases.files_of(self.store, self.plan.base) if self.plan.base else {}

    def live(self, table: Table) -> list[TableFile]:
        """Return the table's files in the new release: built ones, and those of the base release for other days."""
        days = self.plan.job_days if table.partition == "ended_on" else self.plan.poll_days
        return [file for file in self._carry_files(table) if file.day not in days] + self.built(table, days)

    def _builds(self, table: Table) -> bool:
        return self.plan.selection is None or table.name in self.plan.selection.tables

    def _carry_files(self, table: Table) -> list[TableFile]:
        """Return the table's files in the base release, as files of the new release."""
        return [replace(file, is_released=False) for file in self.list_base_files(table)]

    def find_landings(
        self, tables: Sequence[Table], day: Day = None, trace_ids: set[str] | None = None
    ) -> Iterator[Landing]:
        """Yield landings with parts of some tables, reduced to these parts; optionally of one day or traced runs."""
        names = {table.name for table in tables}
        ledger = self.plan.landed
        landings = ledger.having(tables, True if day is None else pl.col("day") == day)
        if trace_ids is not None:
            wanted_ids = pl.Series(sorted(trace_ids), dtype=pl.String)
            landings = landings.filter(pl.col("landing_id").str.slice(0, ID_DIGITS).is_in(wanted_ids.implode()))
        for landing in ledger.objects(landings):
            parts = tuple(
                part for part in landing.parts if part.table in names and (day is None or part.day == day.isoformat())
            )
            if parts:
                yield replace(landing, parts=parts)

    def find_trace_landings(self) -> Iterator[Landing]:
        """Yield the landings of traced runs that may have ended on the plan's days."""
        days = [day for day in self.plan.job_days if day is not None]
        may_be = pl.col("is_undated") & (None in self.plan.job_days)
        if days:
            # the time span of a file may cover these days although it has no rows on them, so its rows are read
            may_be |= (pl.col("last_on") >= min(days)) & (pl.col("first_on") <= max(days))
        for landing in self.plan.landed.objects(self.plan.landed.having([TRACES], may_be)):
            parts = tuple(part for part in landing.parts if part.table == TRACES.name)
            if parts:
                yield replace(landing, parts=parts)
