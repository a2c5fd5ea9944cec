"""Schedule the work items of a run: each item starts when its inputs are complete.

The steps of a run form a graph through the tables that they read and write. The days of a step determine its items.
Most steps take their days from the plan, some from tables that the run builds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from queue import SimpleQueue

from iosig.flows.steps.items import Chunk, Day, ItemResult, WorkItem
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Step
from iosig.warehouse.processes import WorkerLost
from iosig.warehouse.store.store import Store, put_document, read_cache

#: identifies a work item by step, day (None also for an item that covers all days) and chunk number, starting at 1
#: (0 for an item that joins chunks or has none)
Key = tuple[str, Day, int]


@dataclass(frozen=True, slots=True)
class ReadyItem:
    """A work item with complete inputs.

    upstream: returns the names of the items that this one waited for. is_cached: whether an earlier run completed it.
    """

    item: WorkItem
    upstream: Callable[[], tuple[str, ...]]
    is_cached: bool

    def make_cached_result(self) -> ItemResult:
        """Return the result of an item that an earlier run has completed."""
        return ItemResult(self.item.name, self.item.step, 0, 0.0, is_cached=True)


@dataclass
class _Progress:
    """The days of a step's work items, once known, and the days of incomplete items."""

    step: Step
    days: tuple[Day, ...] | None = None
    open_days: set[Day] = field(default_factory=set)
    waiting: set[Day] = field(default_factory=set)

    @property
    def is_complete(self) -> bool:
        return self.days is not None and not self.open_days


class Schedule:
    """The ready work items of a run, in the order of the steps, and the waiting ones."""

    def __init__(self, run: Run, steps: Sequence[Step]) -> None:
        self._run = run
        self._steps = {step.name: _Progress(step) for step in steps}
        self._order = {name: place for place, name in enumerate(self._steps)}
        self._producer = {table.name: step.name for step in steps for table in step.writes}
        self._consumers: dict[str, set[str]] = defaultdict(set)
        for step in steps:
            for table in (*step.days_after, *(table for source in step.reads for table in source.tables)):
                self._consumers[self._producer.get(table.name, "")].add(step.name)
        self._ready: list[tuple[int, bool, str, int, Key]] = []
        #: by step and day: the chunks of items in progress, and the number of incomplete chunks
        self._chunks: dict[tuple[str, Day], Sequence[Chunk]] = {}
        self._open_chunks: dict[tuple[str, Day], int] = {}
        #: keys of the items that have been popped, by item name
        self._keys: dict[str, Key] = {}
        for name in self._steps:
            self._expand(name)

    def open_counts(self) -> dict[str, int]:
        """Return the number of known incomplete work items of each step."""
        counts = {name: len(progress.open_days) for name, progress in self._steps.items()}
        for (name, _), count in self._open_chunks.items():
            counts[name] += count
        return counts

    def pop(self) -> ReadyItem | None:
        """Return the next work item that is ready, None if every other item waits for inputs."""
        while self._ready:
            name, day, number = heappop(self._ready)[-1]
            if (name, day) not in self._chunks and not self._begin(name, day):
                continue
            step, chunks = self._steps[name].step, self._chunks[name, day]
            days = (day,) if step.is_daily else step.days(self._run)
            if number:
                item = step.chunk_item(self._run, day, days, chunks, number - 1)
            else:
                item = step.item(self._run, day, days, chunks)
            self._keys[item.name] = (name, day, number)
            is_cached = bool(item.marker) and self._run.has(item.marker)
            return ReadyItem(item, partial(self._upstream, name, day, number), is_cached)
        return None

    def _begin(self, name: str, day: Day) -> bool:
        """Divide an item with complete inputs into chunks; return whether the item itself can start."""
        step = self._steps[name].step
        if not step.is_needed(self._run, day):
            self._end(name, day)
            return False
        is_whole = step.chunks is None or self._run.has(self._run.marker(step.item_name(day)))
        chunks = () if is_whole or step.chunks is None else step.chunks(self._run, day)
        self._chunks[name, day] = chunks
        if len(chunks) < 2:
            return True
        self._open_chunks[name, day] = len(chunks)
        for number in range(len(chunks)):
            self._push(name, day, number + 1)
        return False

    def _push(self, name: str, day: Day, number: int = 0) -> None:
        # undated items and those of all days take the longest, so they come first
        heappush(self._ready, (self._order[name], day is not None, str(day), number, (name, day, number)))

    def complete(self, item: WorkItem) -> None:
        """Record that a work item is complete; items with no other missing input become ready."""
        name, day, number = self._keys.pop(item.name)
        if not number:
            self._end(name, day)
            return
        self._open_chunks[name, day] -= 1
        if not self._open_chunks[name, day]:
            self._push(name, day)

    def completed_steps(self) -> Iterator[Step]:
        """Yield the steps that have no incomplete work items."""
        yield from (progress.step for progress in self._steps.values() if progress.is_complete)

    # ---- items

    def _expand(self, name: str) -> None:
        """Determine a step's items if the tables that its days depend on are complete."""
        progress = self._steps[name]
        if progress.days is not None or not all(self._is_written(table.name) for table in progress.step.days_after):
            return
        progress.days = tuple(progress.step.days(self._run)) if progress.step.is_daily else (None,)
        progress.open_days, progress.waiting = set(progress.days), set(progress.days)
        if progress.is_complete:
            self._announce(name, None)
            return
        for day in progress.days:
            self._offer(name, day)

    def _offer(self, name: str, day: Day) -> None:
        """Move an item from the waiting ones to the ready ones if its inputs are complete."""
        progress = self._steps[name]
        if day in progress.waiting and self._has_inputs(progress.step, day):
            progress.waiting.remove(day)
            self._push(name, day)

    def _end(self, name: str, day: Day) -> None:
        self._steps[name].open_days.remove(day)
        self._chunks.pop((name, day), None)
        self._announce(name, day)

    def _announce(self, name: str, day: Day) -> None:
        """Check the items that may have waited for a completed item, or for a step without items."""
        is_complete = self._steps[name].is_complete
        for consumer in sorted(self._consumers[name] - {name}, key=self._order.__getitem__):
            progress = self._steps[consumer]
            if progress.days is None:
                self._expand(consumer)
            elif is_complete or not progress.step.is_daily:
                for waiting in sorted(progress.waiting, key=str):
                    self._offer(consumer, waiting)
            elif day in progress.waiting:
                self._offer(consumer, day)

    # ---- dependencies

    def _is_written(self, table: str) -> bool:
        producer = self._producer.get(table)
        return producer is None or self._steps[producer].is_complete

    def _has_inputs(self, step: Step, day: Day) -> bool:
        return all(
            self._is_day_written(step, table.name, day) if source.wait == "day" else self._is_read(step, table.name)
            for source in step.reads
            if source.wait != "none"
            for table in source.tables
        )

    def _is_read(self, step: Step, table: str) -> bool:
        """Return whether a table is complete; a step never waits for its own tables, but reads the base release's."""
        return self._producer.get(table) == step.name or self._is_written(table)

    def _is_day_written(self, step: Step, table: str, day: Day) -> bool:
        producer = self._producer.get(table)
        if producer is None or producer == step.name:
            return True
        progress = self._steps[producer]
        if not (progress.step.is_daily and step.is_daily):
            return progress.is_complete
        return progress.days is not None and day not in progress.open_days

    def _upstream(self, name: str, day: Day, number: int) -> tuple[str, ...]:
        """Return the names of the items that an item waited for."""
        step, names = self._steps[name].step, dict[str, None]()
        chunk_count = len(self._chunks.get((name, day), ()))
        if chunk_count > 1 and not number:
            return tuple(step.chunk_name(day, place, chunk_count) for place in range(chunk_count))
        for source in step.reads:
            producers = {self._producer.get(table.name) for table in source.tables} - {None, step.name}
            for producer in producers if source.wait != "none" else ():
                assert producer is not None
                progress = self._steps[producer]
                is_same_day = source.wait == "day" and progress.step.is_daily and step.is_daily
                days = (day,) if is_same_day else progress.days or ()
                names.update((progress.step.item_name(item_day), None) for item_day in days)
        return tuple(names)


# ---- the loop


def execute(
    run: Run,
    schedule: Schedule,
    start: Callable[[ReadyItem], Future[ItemResult]],
    limit: int,
    on_idle: Callable[[], object] = lambda: None,
) -> Iterator[ItemResult]:
    """Execute the items of a schedule, and yield the result of each as it completes.

    Items that depend on a failed item are not started; the others are. The first failure is raised at the end. If
    workers were lost, the error names all affected items.

    Parameters
    ----------
    start
        Starts an item and returns its future.
    limit
        Maximum number of items in progress; checks do not count, since they have their own worker.
    on_idle
        Called before each wait for an item in progress.
    """
    ended: SimpleQueue[tuple[WorkItem, Future[ItemResult]]] = SimpleQueue()
    under_way, check_count = 0, 0
    failures: dict[str, BaseException] = {}
    while True:
        while under_way - check_count < limit and (ready := schedule.pop()) is not None:
            under_way += 1
            check_count += ready.item.is_check
            start(ready).add_done_callback(partial(_put, ended, ready.item))
        if not under_way:
            break
        on_idle()
        item, future = ended.get()
        under_way -= 1
        check_count -= item.is_check
        try:
            result = future.result()
        except Exception as error:
            failures[item.name] = error
            continue
        run.record(result)
        schedule.complete(item)
        yield result
    if failures:
        raise _failure(failures)


def _put(ended: SimpleQueue[tuple[WorkItem, Future[ItemResult]]], item: WorkItem, future: Future[ItemResult]) -> None:
    ended.put((item, future))


def _failure(failures: dict[str, BaseException]) -> BaseException:
    names = [name for name, error in failures.items() if isinstance(error, WorkerLost | BrokenProcessPool)]
    error = next(iter(failures.values()))
    if len(names) > 1 or isinstance(error, BrokenProcessPool):
        return WorkerLost(
            f"The workers of {', '.join(map(repr, names))} ended; the system may have run out of memory. Completed "
            "items stay: run again, with fewer processes (engine.worker_count in the settings) or more memory."
        )
    return error


# ---- durations

_DURATIONS = "durations.json"


class Durations:
    """Durations of work items by step, in the last run and in the current one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        stored = read_cache(
            store,
            _DURATIONS,
            lambda document: {str(name): float(document["steps"][name]) for name in document["steps"]},
        )
        self._usual_s: Mapping[str, float] = stored or {}
        self._taken_s: dict[str, list[float]] = defaultdict(list)

    def add(self, result: ItemResult) -> None:
        """Add the duration of a work item."""
        self._taken_s[result.step].append(result.duration_s)

    def left_s(self, open_counts: Mapping[str, int], worker_count: int = 1) -> float | None:
        """Estimate the remaining time of the incomplete work items [s]; None without durations of an earlier run."""
        if not self._usual_s:
            return None
        return sum(count * self._usual_s.get(step, 0.0) for step, count in open_counts.items()) / worker_count

    def keep(self) -> None:
        """Store the mean durations for the next run; steps that did not run keep their old ones.

        Write errors are ignored, since the next run can do without durations.
        """
        means = {step: sum(durations_s) / len(durations_s) for step, durations_s in self._taken_s.items()}
        with suppress(OSError):
            put_document(self._store, _DURATIONS, {"steps": dict(sorted({**self._usual_s, **means}.items()))})
