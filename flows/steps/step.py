"""Declare steps: the tables that each reads and writes, its days, and the function that does the work.

The work items of a run, their order, the tasks that Prefect shows, and the lineage of tables follow from these
declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from iosig.flows.steps.items import Chunk, Day, StepContext, TableFile, WorkItem
from iosig.flows.steps.run import Run
from iosig.warehouse.contracts import Table
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.contracts.traces import TRACE_JOBS, TRACES
from iosig.warehouse.engine_paths import read_parquet
from iosig.warehouse.store.manifests import Landing

#: work items for which an input waits, among those that write its tables: those of the same day, all, or none
Wait = Literal["day", "all", "none"]
Files = Callable[[Run, Day], Iterable[TableFile | Landing]]


@dataclass(frozen=True, slots=True)
class Input:
    """Tables that a step reads, the function that selects their files for a day, and the items to wait for."""

    tables: tuple[Table, ...]
    files: Files
    wait: Wait = "all"


@dataclass(frozen=True, slots=True)
class Step:
    """Declaration of a step: the tables that it reads and writes, and the function that executes a work item.

    days: the days of a run that the step computes. is_daily: whether each day is a work item; otherwise one item covers
    all days. days_after: tables that must be complete before `days` can be evaluated. is_needed: evaluated when the
    inputs of a work item are complete; an item that is not needed is skipped. chunks: divides a work item that may take
    long, evaluated when its inputs are complete. Each chunk is a separate item, which executes `chunk_function`;
    another item then joins the chunks' files by `function`. A single chunk and the join are one item. is_check: whether
    the step needs Great Expectations. is_repeated: whether even a resumed run executes the step again.
    """

    name: str
    function: Callable[[StepContext], int]
    reads: tuple[Input, ...]
    writes: tuple[Table, ...]
    days: Callable[[Run], Sequence[Day]] = lambda run: ()
    is_daily: bool = False
    days_after: tuple[Table, ...] = ()
    is_needed: Callable[[Run, Day], bool] = lambda run, day: True
    chunks: Callable[[Run, Day], Sequence[Chunk]] | None = None
    chunk_function: Callable[[StepContext], int] | None = None
    is_check: bool = False
    is_repeated: bool = False

    def files(self, run: Run) -> dict[Table, list[TableFile]]:
        """Return the files of each table that the step writes; those of days without rows may be absent."""
        days = self.days(run)
        return {table: self._files(run, table, days) for table in self.writes}

    def _files(self, run: Run, table: Table, days: Sequence[Day]) -> list[TableFile]:
        return run.files(table, days if self.is_daily or table.partition else (None,))

    def item_name(self, day: Day) -> str:
        """Return the name of the work item for a day, or for all days."""
        return f"{self.name} {day or 'undated'}" if self.is_daily else self.name

    def chunk_name(self, day: Day, number: int, count: int) -> str:
        """Return the name of a chunk's work item; `number` starts at 0."""
        return f"{self.item_name(day)} {number + 1}/{count}"

    def item(self, run: Run, day: Day, days: Sequence[Day], chunks: Sequence[Chunk] = ()) -> WorkItem:
        """Return the work item for a day, or for several days together; its inputs and chunks must be complete.

        If it has a single chunk, the item also computes this chunk; it joins the files of several chunks.
        """
        name, reads = self.item_name(day), tuple(file for source in self.reads for file in source.files(run, day))
        writes = tuple(file for table in self.writes for file in self._files(run, table, days))
        item = self._item(run, name, days, self.function, reads, writes)
        files = tuple(file for number in range(len(chunks)) for file in self._chunk_files(run, day, number))
        if len(chunks) == 1:
            (chunk,) = chunks
            return replace(
                item,
                reads=(*reads, *chunk.reads),
                chunk_function=_make_function_name(self.chunk_function),
                chunk_keys=chunk.keys,
                chunk_files=files,
            )
        return replace(item, reads=(*reads, *files), chunk_files=files)

    def chunk_item(self, run: Run, day: Day, days: Sequence[Day], chunks: Sequence[Chunk], number: int) -> WorkItem:
        """Return the work item of one of several chunks; `number` starts at 0."""
        chunk, files = chunks[number], self._chunk_files(run, day, number)
        name = self.chunk_name(day, number, len(chunks))
        item = self._item(run, name, days, self.chunk_function, chunk.reads, files)
        return replace(item, chunk_keys=chunk.keys, chunk_files=files)

    def _chunk_files(self, run: Run, day: Day, number: int) -> tuple[TableFile, ...]:
        folder, name = run.place(run.folder), f"{day or 'undated'}-{number:05}.parquet"
        return tuple(TableFile(table.name, f"{folder}/{table.name}.chunks/{name}", day) for table in self.writes)

    def _item(
        self,
        run: Run,
        name: str,
        days: Sequence[Day],
        function: Callable[[StepContext], int] | None,
        reads: tuple[TableFile | Landing, ...],
        writes: tuple[TableFile, ...],
    ) -> WorkItem:
        return WorkItem(
            name=name,
            step=self.name,
            function=_make_function_name(function),
            reads=reads,
            writes=writes,
            days=tuple(days),
            settings=run.settings,
            folder=run.place(run.folder),
            marker="" if self.is_repeated else run.marker(name),
            is_check=self.is_check,
            poll_span=run.plan.poll_span,
            beginning_filesystems=tuple(name for day in days if day for name in run.plan.beginnings.get(day, ())),
        )


def _make_function_name(function: Callable[[StepContext], int] | None) -> str:
    """Return a step's function as `module:name`; empty if None."""
    assert function is not None
    return f"{function.__module__}:{function.__name__}"


# ---- inputs


def read_landed(*tables: Table) -> Input:
    """Read all landed parts of some tables."""
    return Input(tables, lambda run, day: run.find_landings(tables), "none")


def read_landed_on_day(*tables: Table) -> Input:
    """Read the landed parts of some tables for the item's day."""
    return Input(tables, lambda run, day: run.find_landings(tables, day), "none")


def read_landed_traces() -> Input:
    """Read the landed traces of runs that may have ended on the plan's days."""
    return Input((TRACES,), lambda run, day: run.find_trace_landings(), "none")


def read_landed_of_traces(*tables: Table) -> Input:
    """Read the landed parts of the traced runs of the item's day."""

    def read(run: Run, day: Day) -> Iterator[Landing]:
        paths = run.store.locals(file.path for file in run.built(TRACE_JOBS, [day]))
        trace_ids = {trace_id for path in paths for trace_id in read_parquet(path, columns=["trace_id"])["trace_id"]}
        return run.find_landings(tables, trace_ids=trace_ids)

    return Input((*tables, TRACE_JOBS), read, "day")


def read_in_chunks(*tables: Table) -> Input:
    """Read the files of some tables that each chunk names itself."""
    return Input(tables, lambda run, day: (), "day")


def read_built(*tables: Table) -> Input:
    """Read the files that this run builds for the item's day; all files of tables without days."""
    return Input(tables, lambda run, day: [file for table in tables for file in run.built(table, [day])], "day")


def read_built_on(days: Callable[[Run, Day], Sequence[Day]], *tables: Table) -> Input:
    """Read the files that this run builds for the days that a function returns."""
    return Input(tables, lambda run, day: [file for table in tables for file in run.built(table, days(run, day))])


def read_undated(*tables: Table) -> Input:
    """Read the undated files that this run builds."""
    return read_built_on(lambda run, day: [None], *tables)


def read_live(*tables: Table, only: Callable[[Run, Day, date | None], bool] = lambda run, day, file_day: True) -> Input:
    """Read tables as they will be in the new release: days of this run, and all other days from the base release.

    only: selects files by the run, the item's day and the file's day.
    """
    return Input(
        tables,
        lambda run, day: [file for table in tables for file in run.live(table) if only(run, day, file.day)],
    )


def read_released(*tables: Table, days: Callable[[Run], Sequence[Day]] | None = None) -> Input:
    """Read tables of the base release, on all or some days."""

    def read(run: Run, day: Day) -> list[TableFile]:
        selected_days = None if days is None else set(days(run))
        return [
            file
            for table in tables
            for file in run.list_base_files(table)
            if selected_days is None or file.day in selected_days
        ]

    return Input(tables, read, "none")


def read_carried(*tables: Table) -> Input:
    """Read undated rows of the base release that may still be valid, and the signatures from which they were computed.

    Rows of applications may be valid if the settings are unchanged. Rows of other kinds of subjects are valid, unless
    undated rows are recomputed.
    """

    def read(run: Run, day: Day) -> Iterator[TableFile]:
        plan = run.plan
        has_same_settings = plan.base is not None and plan.base.parameters == plan.parameters
        other_kinds = ("job", "series", "trace") if None not in plan.job_days else ()
        kinds = (*other_kinds, *(("application",) if has_same_settings else ()))
        if day is None and kinds:
            files = (file for table in tables for file in run.list_base_files(table))
            yield from (replace(file, subject_kinds=kinds) for file in files if file.day is None)
        if day is None and has_same_settings:
            yield from (*run.list_base_files(SIGNATURES), *run.list_base_files(SIGNATURE_POINTS))

    return Input(tables, read, "none")
