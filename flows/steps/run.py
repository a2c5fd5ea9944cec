"""A plan at work: the steps' work as records, and the pieces that a plan makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from flows.settings import Settings
from flows.steps.pieces import Day, File, Given, Piece
from flows.steps.plan import Plan
from warehouse.contracts import Table
from warehouse.contracts.traces import TRACE_JOBS
from warehouse.releases import releases
from warehouse.store.landing import Landing
from warehouse.store.store import Store


@dataclass(frozen=True)
class Run:
    """A plan at work: where it reads, what it was told, where it builds."""

    store: Store
    settings: Settings
    plan: Plan

    @property
    def folder(self) -> Path:
        """The plan's own folder."""
        return self.store.builds / self.plan.fingerprint

    def place(self, path: Path) -> str:
        """Return a path below the warehouse's root."""
        return path.relative_to(self.store.root).as_posix()

    def path(self, table: Table, day: Day) -> Path:
        """Return where a day of a table is built, or the whole of it for no day."""
        return self.folder / table.name / f"{day.isoformat() if day else 'undated'}.parquet"

    def file(self, table: Table, day: Day) -> File:
        """Return the file of a day of a table that is built, or of the whole of it for no day."""
        return File(table.name, self.place(self.path(table, day)), day)

    def built(self, table: Table, days: Sequence[Day]) -> list[File]:
        """Return what is built of a table's days: a day without rows may have no file."""
        return [self.file(table, day) for day in days if self.path(table, day).is_file()]

    def released(self, table: Table) -> list[File]:
        """Return the table's files in the release before; none where it has none."""
        base = self.plan.base
        paths = releases.files_of(self.store, base).get(table.name, []) if base else []
        return [File(table.name, self.place(path), releases.day_of(path), is_released=True) for path in paths]

    def live(self, table: Table) -> list[File]:
        """Return a table as it will be: the other days of the release before, and those as they are built."""
        days = self.plan.job_days if table.partition == "ended_on" else self.plan.poll_days
        kept = [replace(file, is_released=False) for file in self.released(table) if file.day not in days]
        return kept + self.built(table, days)

    def landed(self, wanted: Sequence[Table], day: Day = None, trace_ids: set[str] | None = None) -> Iterator[Landing]:
        """Yield the landings that have parts of tables, with these parts: of one day, of some traced runs."""
        names = {table.name for table in wanted}
        for landing in self.plan.landings:
            if trace_ids is None or landing.trace_id in trace_ids:
                parts = tuple(
                    part
                    for part in landing.parts
                    if part.table in names and (day is None or part.day == day.isoformat())
                )
                if parts:
                    yield replace(landing, parts=parts)


#: what a piece reads of a run: its day, or None for a piece of all days
Reads = Callable[[Run, Day], Iterator[File | Landing] | Sequence[File]]
Days = Callable[[Run], Sequence[Day]]


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one kind: the function that does it, what it reads and writes, the days that it is about.

    writes: tables, by day if they have a partition or the pieces are daily. Those that are published are complete, and
    are held to their suites, once all pieces are done. days: of a run; without them, the work is about no days.
    is_daily: whether each day is a piece, or all of them are one. where: on which days there is such a piece.
    is_check: whether it needs Great Expectations. is_last: whether it waits until all tables are held to their suites.
    """

    name: str
    function: Callable[[Given], int]
    reads: tuple[Reads, ...]
    writes: tuple[Table, ...]
    days: Days = lambda run: ()
    is_daily: bool = False
    where: Callable[[Run, Day], bool] = lambda run, day: True
    is_check: bool = False
    is_last: bool = False

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield what is to be done in a run, once the work before is done."""
        if not self.is_daily:
            yield self._piece(run, self.name, None, self.days(run))
            return
        for day in self.days(run):
            if self.where(run, day):
                yield self._piece(run, f"{self.name} {day or 'undated'}", day, (day,))

    def _piece(self, run: Run, name: str, day: Day, days: Sequence[Day]) -> Piece:
        folder = run.place(run.folder)
        return Piece(
            name=name,
            function=f"{self.function.__module__}:{self.function.__name__}",
            reads=tuple(read for reads in self.reads for read in reads(run, day)),
            writes=tuple(run.file(table, of_day) for table in self.writes for of_day in self.days_of(table, days)),
            days=tuple(days),
            settings=run.settings,
            folder=folder,
            mark=f"{folder}/done/{name.replace(' ', '-').replace('/', '')}.json",
            is_check=self.is_check,
        )

    def days_of(self, table: Table, days: Sequence[Day]) -> Sequence[Day]:
        """Return of which of the work's days it writes files of a table: None is the whole of it."""
        return days if self.is_daily or table.partition else (None,)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the night: its name, and its work in order."""

    name: str
    works: tuple[Work, ...]


# ---- days


def poll_days(run: Run) -> Sequence[Day]:
    """Return the days of polls."""
    return run.plan.poll_days


def job_days(run: Run) -> Sequence[Day]:
    """Return the days on which runs or series ended."""
    return run.plan.job_days


def prediction_days(run: Run) -> Sequence[Day]:
    """Return the days on which predictions were made."""
    return run.plan.prediction_days


def all_days(run: Run) -> Sequence[Day]:
    """Return every day that is computed anew."""
    return run.plan.days


def judged_days(run: Run) -> Sequence[Day]:
    """Return the days whose classes and periods are made anew: what is of no day holds those of signatures too."""
    days = run.plan.job_days
    return days if None in days else (*days, None)


def where_built(table: Table) -> Callable[[Run, Day], bool]:
    """Take the days of which a table is built."""
    return lambda run, day: bool(run.built(table, [day]))


# ---- what a piece reads


def landed(*wanted: Table) -> Reads:
    """Read all that was landed of tables."""
    return lambda run, day: run.landed(wanted)


def landed_on_day(*wanted: Table) -> Reads:
    """Read what was landed of tables for the piece's day."""
    return lambda run, day: run.landed(wanted, day)


def landed_of_traces(*wanted: Table) -> Reads:
    """Read what was landed of the traced runs of the piece's day."""

    def read(run: Run, day: Day) -> Iterator[Landing]:
        paths = [run.store.root / file.path for file in run.built(TRACE_JOBS, [day])]
        trace_ids = {trace_id for path in paths for trace_id in pl.read_parquet(path, columns=["trace_id"])["trace_id"]}
        return run.landed(wanted, trace_ids=trace_ids)

    return read


def built(*wanted: Table, days: Days | None = None) -> Reads:
    """Read what is built of tables for the piece's day, or the whole of tables that have none; else for some days."""
    return lambda run, day: [file for table in wanted for file in run.built(table, days(run) if days else [day])]


def live(*wanted: Table) -> Reads:
    """Read tables as they will be: the other days of the release before, and those as they are built."""
    return lambda run, day: [file for table in wanted for file in run.live(table)]


def released(*wanted: Table, days: Days | None = None) -> Reads:
    """Read tables of the release before: all of them, or some days."""
    return lambda run, day: [
        file for table in wanted for file in run.released(table) if days is None or file.day in days(run)
    ]


def undated(table: Table) -> Reads:
    """Read what the release before has of no day, unless what is of no day is computed anew."""

    def read(run: Run, day: Day) -> list[File]:
        is_wanted = day is None and None not in run.plan.job_days
        return [file for file in run.released(table) if is_wanted and file.day is None]

    return read
