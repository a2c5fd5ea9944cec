"""A plan at work: work as records, what it reads, and the pieces that a plan makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path

import polars as pl

from iosig.flows.steps.pieces import Day, File, Given, Piece
from iosig.flows.steps.plan import Plan
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACES
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.releases import locations, releases
from iosig.warehouse.store.buckets import BUCKET_COUNT
from iosig.warehouse.store.manifests import ID_DIGITS, Landing
from iosig.warehouse.store.store import Store

#: the piece after which all is checked
DECIDED = "checks"


@dataclass(frozen=True)
class Run:
    """A plan at work: where it reads, what it was told, where it builds."""

    store: Store
    settings: Settings
    plan: Plan
    _seen: list[set[str]] = field(default_factory=list, repr=False, compare=False)
    #: when the first run of those that ended on a day began, as far as it was read already
    first_days: dict[date, date] = field(default_factory=dict, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        """The plan's own folder."""
        return self.store.builds / self.plan.fingerprint

    @cached_property
    def is_decided(self) -> bool:
        """Whether all checks were done when this was asked first."""
        return self.store.has(self.mark(DECIDED))

    def mark(self, name: str) -> str:
        """Return the file that says that a piece of the plan is done."""
        return f"{self.place(self.folder)}/done/{name.replace(' ', '-').replace('/', '')}.json"

    def look(self) -> None:
        """List what is built, where to ask for each file takes a while; it is known then until the next look."""
        if self.store.url is not None:
            self._seen[:] = [set(self.store.files.matching(f"{self.place(self.folder)}/*/*"))]

    def has(self, name: str) -> bool:
        """Return whether a file of the plan is there, or was when it was looked for."""
        return name in self._seen[0] if self._seen else self.store.has(name)

    def place(self, path: Path) -> str:
        """Return a path below the warehouse's root."""
        return path.relative_to(self.store.root).as_posix()

    def path(self, table: Table, day: Day) -> Path:
        """Return where a day of a table is built, or the whole of it for no day."""
        return self.folder / table.name / f"{day.isoformat() if day else 'undated'}.parquet"

    def files(self, table: Table, days: Sequence[Day]) -> list[File]:
        """Return the files of a table's days, of all of it for no day: those without rows may not be there."""
        if table.bucketed_by is None:
            return [File(table.name, self.place(self.path(table, day)), day) for day in days]
        folder = self.place(self.folder / table.name)
        return [File(table.name, f"{folder}/{bucket:02}.parquet", bucket=bucket) for bucket in range(BUCKET_COUNT)]

    def built(self, table: Table, days: Sequence[Day]) -> list[File]:
        """Return what is built of a table's days: a day without rows may have no file."""
        return [file for file in self.files(table, days) if self.has(file.path)]

    def released(self, table: Table) -> list[File]:
        """Return the table's files in the release before; none where it has none."""
        paths = self._base_files.get(table.name, [])
        return [File(table.name, self.place(path), locations.day_of(path), is_released=True) for path in paths]

    @cached_property
    def _base_files(self) -> dict[str, list[Path]]:
        return releases.files_of(self.store, self.plan.base) if self.plan.base else {}

    def live(self, table: Table) -> list[File]:
        """Return a table as it will be: the other days of the release before, and those as they are built."""
        days = self.plan.job_days if table.partition == "ended_on" else self.plan.poll_days
        kept = [replace(file, is_released=False) for file in self.released(table) if file.day not in days]
        return kept + self.built(table, days)

    def landed(self, wanted: Sequence[Table], day: Day = None, trace_ids: set[str] | None = None) -> Iterator[Landing]:
        """Yield the landings that have parts of tables, with these parts: of one day, of some traced runs."""
        names = {table.name for table in wanted}
        known = self.plan.landed
        landings = known.having(wanted, True if day is None else pl.col("day") == day)
        if trace_ids is not None:
            own = pl.Series(sorted(trace_ids), dtype=pl.String)
            landings = landings.filter(pl.col("landing_id").str.slice(0, ID_DIGITS).is_in(own.implode()))
        for landing in known.objects(landings):
            parts = tuple(
                part for part in landing.parts if part.table in names and (day is None or part.day == day.isoformat())
            )
            if parts:
                yield replace(landing, parts=parts)

    def landed_traces(self) -> Iterator[Landing]:
        """Yield the landings of traced runs that may have ended on the plan's days."""
        days = [day for day in self.plan.job_days if day is not None]
        may_be = pl.col("is_undated") & (None in self.plan.job_days)
        if days:
            # a file that holds none of these days may lie between two of them: its rows are asked for theirs
            may_be |= (pl.col("last_on") >= min(days)) & (pl.col("first_on") <= max(days))
        for landing in self.plan.landed.objects(self.plan.landed.having([TRACES], may_be)):
            parts = tuple(part for part in landing.parts if part.table == TRACES.name)
            if parts:
                yield replace(landing, parts=parts)


#: what a piece reads of a run: its day, or None for a piece of all days
Reads = Callable[[Run, Day], Iterator[File | Landing] | Sequence[File]]
Days = Callable[[Plan], Sequence[Day]]


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one kind: the function that does it, what it reads and writes, the days of a plan that it is about.

    writes: tables, by day if they have a partition or the pieces are daily. Those that are published are complete, and
    are held to their suites, once all pieces are done. daily: days that are a piece each, where there is one on that
    day; spread: the same, where what was built before says which. days: those of work that is one piece. is_check:
    whether it needs Great Expectations. is_last: whether it waits until all tables are held to their suites.
    """

    name: str
    function: Callable[[Given], int]
    reads: tuple[Reads, ...]
    writes: tuple[Table, ...]
    daily: Days | None = None
    spread: Callable[[Run], Sequence[Day]] | None = None
    where: Callable[[Run, Day], bool] = lambda run, day: True
    days: Days = lambda plan: ()
    is_check: bool = False
    is_last: bool = False

    def files(self, run: Run) -> dict[Table, list[File]]:
        """Return the files that are written of each table; those of days without rows may not be there."""
        each = self._each(run)
        days = self.days(run.plan) if each is None else each
        return {table: self._files(run, table, days) for table in self.writes}

    def _each(self, run: Run) -> Sequence[Day] | None:
        """Return the days that are a piece each; None where one piece is of all."""
        return self.spread(run) if self.spread else self.daily(run.plan) if self.daily else None

    def _files(self, run: Run, table: Table, days: Sequence[Day]) -> list[File]:
        return run.files(table, days if self.daily or self.spread or table.partition else (None,))

    def pieces(self, run: Run) -> Iterator[Piece]:
        """Yield what is to be done in a run, once the work before is done."""
        each = self._each(run)
        if each is None:
            yield self._piece(run, self.name, None, self.days(run.plan))
            return
        for day in each:
            if self.where(run, day):
                yield self._piece(run, f"{self.name} {day or 'undated'}", day, (day,))

    def _piece(self, run: Run, name: str, day: Day, days: Sequence[Day]) -> Piece:
        folder = run.place(run.folder)
        return Piece(
            name=name,
            function=f"{self.function.__module__}:{self.function.__name__}",
            reads=tuple(read for reads in self.reads for read in reads(run, day)),
            writes=tuple(file for table in self.writes for file in self._files(run, table, days)),
            days=tuple(days),
            settings=run.settings,
            folder=folder,
            mark=run.mark(name),
            is_check=self.is_check,
            poll_span=run.plan.poll_span,
            beginning_filesystems=tuple(name for day in days if day for name in run.plan.beginnings.get(day, ())),
        )


# ---- what a piece reads


def landed(*wanted: Table) -> Reads:
    """Read all that was landed of tables."""
    return lambda run, day: run.landed(wanted)


def landed_traces(run: Run, _: Day) -> Iterator[Landing]:
    """Read what was landed of the traced runs of the plan's days."""
    return run.landed_traces()


def landed_on_day(*wanted: Table) -> Reads:
    """Read what was landed of tables for the piece's day."""
    return lambda run, day: run.landed(wanted, day)


def landed_of_traces(*wanted: Table) -> Reads:
    """Read what was landed of the traced runs of the piece's day."""

    def read(run: Run, day: Day) -> Iterator[Landing]:
        paths = run.store.locals(file.path for file in run.built(TRACE_JOBS, [day]))
        trace_ids = {trace_id for path in paths for trace_id in read_parquet(path, columns=["trace_id"])["trace_id"]}
        return run.landed(wanted, trace_ids=trace_ids)

    return read


def built(*wanted: Table, days: Days | None = None) -> Reads:
    """Read what is built of tables for the piece's day, or the whole of tables that have none; else for some days."""
    return lambda run, day: [file for table in wanted for file in run.built(table, days(run.plan) if days else [day])]


def live(*wanted: Table) -> Reads:
    """Read tables as they will be: the other days of the release before, and those as they are built."""
    return lambda run, day: [file for table in wanted for file in run.live(table)]


def released(*wanted: Table, days: Days | None = None) -> Reads:
    """Read tables of the release before: all of them, or some days."""
    return lambda run, day: [
        file for table in wanted for file in run.released(table) if days is None or file.day in days(run.plan)
    ]


def undated(*tables: Table) -> Reads:
    """Read what the release before has of no day, and the signatures of that release by which some of it was judged.

    Applications' rows may still be true where the settings are the same; the other kinds' are, unless what is of no day
    is computed anew.
    """

    def read(run: Run, day: Day) -> Iterator[File]:
        plan = run.plan
        is_as_set = plan.base is not None and plan.base.parameters == plan.parameters
        others = ("job", "series", "trace") if None not in plan.job_days else ()
        kinds = (*others, *(("application",) if is_as_set else ()))
        if day is None and kinds:
            files = (file for table in tables for file in run.released(table))
            yield from (replace(file, subject_kinds=kinds) for file in files if file.day is None)
        if day is None and is_as_set:
            yield from (*run.released(SIGNATURES), *run.released(SIGNATURE_POINTS))

    return read
