"""Run the work items of a study, in this process or in a pool, with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import TypeVar

from iosig.warehouse import processes

Item = TypeVar("Item")
Result = TypeVar("Result")
#: called after each completed item with the completed and the total cost
ReportProgress = Callable[[int, int], None]


def ignore_progress(completed: int, count: int) -> None:
    """Discard progress reports."""


def map_work_items(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    worker_count: int | None = None,
    report_progress: ReportProgress = ignore_progress,
    costs: Sequence[int] | None = None,
) -> list[Result]:
    """Apply a picklable function to each item and return the results in the order of the items.

    worker_count: number of processes; one per core if None. costs: relative durations of the items, by default equal;
    the most expensive ones start first.
    """
    item_costs = [1] * len(items) if costs is None else costs
    results: dict[int, Result] = {}
    completed = 0
    for place, result in _iterate_results(work, items, worker_count, item_costs):
        results[place] = result
        completed += item_costs[place]
        report_progress(completed, sum(item_costs))
    return [results[place] for place in range(len(items))]


def _iterate_results(
    work: Callable[[Item], Result], items: Sequence[Item], worker_count: int | None, costs: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    """Yield the index and result of each item as it completes."""
    workers = min(processes.workers(worker_count), len(items))
    if workers <= 1:
        yield from ((place, work(item)) for place, item in enumerate(items))
        return
    with processes.pool(workers) as pool:
        order = sorted(range(len(items)), key=lambda place: -costs[place])
        places = {pool.submit(work, items[place]): place for place in order}
        for future in as_completed(places):
            yield places[future], future.result()
