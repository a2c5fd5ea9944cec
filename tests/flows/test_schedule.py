"""Work items start as soon as the items that they depend on are complete, and never earlier."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from iosig.cli.printing import report_steps
from iosig.flows.schedule import Durations, ReadyItem, Schedule, execute
from iosig.flows.steps.items import Chunk, Day, ItemResult, StepContext
from iosig.flows.steps.order import STEPS
from iosig.flows.steps.run import Run
from iosig.flows.steps.step import Input, Step, Wait
from iosig.settings.model import Settings
from iosig.warehouse.contracts import Column, Table
from iosig.warehouse.processes import WorkerLost
from iosig.warehouse.store.store import Store
from tests.budget import examples

DAYS = tuple(date(2026, 3, 1) + timedelta(days=number) for number in range(3))


def table(name: str) -> Table:
    column = Column("name", "str", "name")
    return Table(name=name, layer="stage", grain="one row per name", key=("name",), columns=(column,))


def nothing(_: StepContext) -> int:
    return 0


def step(
    name: str,
    *reads: str,
    wait: Wait = "day",
    days: Sequence[Day] | None = DAYS,
    days_after: Sequence[str] = (),
    is_needed: Callable[[Any, Day], bool] = lambda run, day: True,
    chunk_count: int | None = None,
) -> Step:
    """Return a step that writes the table of its name, per day or for all days together, optionally in chunks."""
    chunks = None if chunk_count is None else [Chunk((), (f"key{number}",)) for number in range(chunk_count)]
    inputs = (Input(tuple(map(table, reads)), lambda run, day: (), wait),)
    return Step(
        name,
        nothing,
        inputs,
        (table(name),),
        days=lambda run: days or (),
        is_daily=days is not None,
        days_after=tuple(map(table, days_after)),
        is_needed=is_needed,
        chunks=None if chunks is None else lambda run, day: chunks,
        chunk_function=nothing,
    )


def run_of(complete: Sequence[str] = ()) -> Run:
    """Return a run with some complete items."""
    stub = SimpleNamespace(
        settings=Settings(),
        plan=SimpleNamespace(poll_span=(None, None), beginnings={}),
        folder=None,
        place=lambda folder: "a",
        files=lambda of, days: [],
        marker=lambda name: f"done/{name}",
        has=lambda marker: marker.removeprefix("done/") in complete,
        record=lambda result: None,
    )
    return cast(Run, stub)


def executed(
    steps: Sequence[Step],
    limit: int = 1,
    fails: Sequence[str] = (),
    error: type[Exception] = WorkerLost,
    started: list[str] | None = None,
) -> list[str]:
    """Execute steps, `limit` items at a time, the latest first; return the names of the items in order (`started`)."""
    run = run_of()
    under_way: list[tuple[ReadyItem, Future[ItemResult]]] = []
    order: list[str] = [] if started is None else started
    schedule = Schedule(run, steps)

    def start(ready: ReadyItem) -> Future[ItemResult]:
        order.append(ready.item.name)
        future: Future[ItemResult] = Future()
        under_way.append((ready, future))
        if len(under_way) >= limit:
            settle()
        return future

    def settle() -> None:
        ready, future = under_way.pop()
        if ready.item.name in fails:
            future.set_exception(error(ready.item.name))
        else:
            future.set_result(ItemResult(ready.item.name, ready.item.step, 0, 0.0, is_cached=ready.is_cached))

    for _ in execute(run, schedule, start, limit, lambda: settle() if under_way else None):
        pass
    return order


def test_daily_item_waits_for_its_day_and_undated_item_for_all() -> None:
    steps = [step("a"), step("b", "a"), step("c", "b", days=None, wait="all")]
    schedule = Schedule(run_of(), steps)
    first = [schedule.pop() for _ in range(4)]
    assert [ready and ready.item.name for ready in first] == [*(f"a {day}" for day in DAYS), None]
    assert first[1] is not None
    schedule.complete(first[1].item)
    ready = schedule.pop()
    assert ready is not None
    assert (ready.item.name, ready.upstream()) == (f"b {DAYS[1]}", (f"a {DAYS[1]}",))
    assert schedule.pop() is None
    assert schedule.open_counts() == {"a": 2, "b": 3, "c": 1}
    assert executed(steps)[-1] == "c"


def test_days_from_a_table_are_known_when_the_table_is_complete() -> None:
    decided: list[Day] = []

    def needed(_: Any, day: Day) -> bool:
        decided.append(day)
        return True

    late = step("late", "a", days=(*DAYS, None), days_after=("a",))
    steps = [step("a", is_needed=needed), late, step("end", "late", days=None)]
    names = executed(steps, limit=9)
    assert names.index("late undated") > names.index(f"a {DAYS[2]}")
    assert names[-1] == "end"
    assert decided == list(DAYS)


def test_unneeded_items_and_steps_without_days_do_not_block() -> None:
    steps = [step("a", is_needed=lambda run, day: False), step("b", "a", days=()), step("c", "a", "b", days=None)]
    assert executed(steps) == ["c"]


def test_step_that_reads_its_table_of_the_base_release_does_not_wait() -> None:
    assert executed([step("a", "a", "elsewhere", wait="all", days=None)]) == ["a"]


def test_complete_items_are_cached() -> None:
    run = run_of(complete=(f"a {DAYS[0]}",))
    schedule = Schedule(run, [step("a")])
    found = [schedule.pop() for _ in DAYS]
    assert [ready is not None and ready.is_cached for ready in found] == [True, False, False]


# ---- chunks


def test_chunks_are_separate_items_joined_by_the_last() -> None:
    schedule = Schedule(run_of(), [step("a", days=DAYS[:1], chunk_count=3), step("b", "a", days=DAYS[:1])])
    chunks = [schedule.pop() for _ in range(3)]
    assert schedule.pop() is None
    assert schedule.open_counts() == {"a": 4, "b": 1}
    name = f"a {DAYS[0]}"
    items = [ready.item for ready in chunks if ready]
    assert [item.name for item in items] == [f"{name} 1/3", f"{name} 2/3", f"{name} 3/3"]
    assert [(item.chunk_keys, item.is_chunk, item.marker) for item in items] == [
        ((f"key{number}",), True, f"done/{name} {number + 1}/3") for number in range(3)
    ]
    for item in items:
        assert schedule.pop() is None
        schedule.complete(item)
    join = schedule.pop()
    assert join is not None
    assert (join.item.name, join.upstream()) == (name, tuple(item.name for item in items))
    assert [file.path for file in join.item.reads] == [
        f"a/a.chunks/{DAYS[0]}-{number:05}.parquet" for number in range(3)
    ]
    assert join.item.chunk_files == join.item.reads
    assert not join.item.is_chunk
    schedule.complete(join.item)
    after = schedule.pop()
    assert after is not None
    assert (after.item.name, after.upstream()) == (f"b {DAYS[0]}", (name,))


@pytest.mark.parametrize("chunk_count", [0, 1])
def test_single_chunk_is_executed_with_the_join(chunk_count: int) -> None:
    schedule = Schedule(run_of(), [step("a", days=None, chunk_count=chunk_count)])
    ready = schedule.pop()
    assert ready is not None
    assert schedule.pop() is None
    assert (ready.item.name, ready.item.is_chunk, len(ready.item.chunk_files)) == ("a", False, chunk_count)
    assert bool(ready.item.chunk_function) == bool(chunk_count)


def test_completed_chunks_are_cached_and_skipped_for_complete_items() -> None:
    steps = [step("a", days=DAYS[:2], chunk_count=2)]
    schedule = Schedule(run_of(complete=(f"a {DAYS[0]}", f"a {DAYS[1]} 2/2")), steps)
    found = [schedule.pop() for _ in range(3)]
    assert [(ready.item.name, ready.is_cached) for ready in found if ready] == [
        (f"a {DAYS[0]}", True), (f"a {DAYS[1]} 1/2", False), (f"a {DAYS[1]} 2/2", True),
    ]  # fmt: skip


def test_failed_chunk_lets_others_run_and_prevents_the_join() -> None:
    order: list[str] = []
    steps = [step("a", days=None, chunk_count=3), step("b", "a", days=None), step("c", days=None)]
    with pytest.raises(WorkerLost, match=r"^a 2/3$"):
        executed(steps, 2, fails=["a 2/3"], started=order)
    assert sorted(order) == ["a 1/3", "a 2/3", "a 3/3", "c"]


@pytest.mark.parametrize("limit", [1, 2, 9])
def test_dependents_of_a_failed_item_do_not_start(limit: int) -> None:
    steps = [step("a"), step("b", "a"), step("c", "b", days=None), step("d", days=None)]
    order: list[str] = []
    with pytest.raises(WorkerLost, match=f"^a {DAYS[0]}$"):
        order += executed(steps, limit, fails=[f"a {DAYS[0]}"])
    with pytest.raises(WorkerLost, match=f"workers of 'a {DAYS[0]}', 'a {DAYS[2]}' ended"):
        executed(steps, 1, fails=[f"a {DAYS[0]}", f"a {DAYS[2]}"])


def test_items_lost_with_a_broken_pool_are_named() -> None:
    steps = [step("a", days=None), step("b", days=None), step("c", days=None)]
    with pytest.raises(WorkerLost, match=r"^The workers of 'b' ended; .*engine.worker_count"):
        executed(steps, 3, fails=["b"], error=BrokenProcessPool)
    with pytest.raises(WorkerLost, match=r"^The workers of 'c', 'a' ended"):
        executed(steps, 3, fails=["a", "c"], error=BrokenProcessPool)


@given(data=st.data())
@settings(max_examples=examples(200), deadline=None)
def test_items_of_any_graph_start_once_after_their_dependencies(data: st.DataObject) -> None:
    names = [f"s{number}" for number in range(data.draw(st.integers(1, 7)))]
    steps, counts = [], dict[str, int]()
    for place, name in enumerate(names):
        reads = data.draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        days = data.draw(st.one_of(st.none(), st.lists(st.sampled_from([*DAYS, None]), unique=True)))
        after = data.draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=1)) if place else []
        wait = data.draw(st.sampled_from(["day", "all"]))
        chunk_count = data.draw(st.one_of(st.none(), st.integers(0, 3)))
        counts[name] = chunk_count or 0
        steps.append(step(name, *reads, wait=cast(Wait, wait), days=days, days_after=after, chunk_count=chunk_count))
    order = executed(steps, data.draw(st.integers(1, 5)))
    wanted = [each.item_name(day) for each in steps for day in (each.days(run_of()) if each.is_daily else (None,))]
    chunks = {name: name.rpartition(" ")[0] for name in order if "/" in name}
    assert sorted(set(order) - set(chunks)) == sorted(wanted)
    assert len(order) == len(set(order))
    divided = [name for name in wanted if counts[name.partition(" ")[0]] > 1]
    assert Counter(chunks.values()) == Counter({name: counts[name.partition(" ")[0]] for name in divided})
    for chunk, joined in chunks.items():
        assert order.index(chunk) < order.index(joined)
    first = {joined: chunk for chunk, joined in reversed(chunks.items())}
    by_name = {each.name: each for each in steps}
    for each in steps:
        for day in each.days(run_of()) if each.is_daily else (None,):
            for source in each.reads:
                for read in source.tables:
                    producer = by_name[read.name]
                    is_same = source.wait == "day" and producer.is_daily and each.is_daily
                    days = producer.days(run_of()) if producer.is_daily else (None,)
                    for other in days if not is_same else [one for one in days if one == day]:
                        begun = first.get(each.item_name(day), each.item_name(day))
                        assert order.index(producer.item_name(other)) < order.index(begun)


def test_tables_read_by_a_step_are_landed_or_written_earlier() -> None:
    written: set[str] = set()
    every = {written.name for each in STEPS for written in each.writes}
    for each in STEPS:
        read = {of.name for source in each.reads if source.wait != "none" for of in source.tables}
        own = {of.name for of in each.writes}
        assert read & every <= written | own, each.name
        written |= own


# ---- durations


def keep(store: Store, *taken: tuple[str, float]) -> None:
    """Save the durations of a run's items."""
    durations = Durations(store)
    for step, duration_s in taken:
        durations.add(ItemResult(f"{step} item", step, 1, duration_s))
    durations.keep()


def test_remaining_time_uses_mean_durations_of_the_last_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert Durations(store).left_s({"stage": 2}) is None
    keep(store, ("stage", 4.0), ("stage", 2.0), ("signatures", 10.0))
    assert Durations(store).left_s({"stage": 2, "signatures": 1, "new": 3}) == 16.0
    assert Durations(store).left_s({"stage": 2, "signatures": 1}, worker_count=4) == 4.0
    keep(store, ("stage", 1.0))
    assert json.loads((tmp_path / "durations.json").read_text()) == {"steps": {"signatures": 10.0, "stage": 1.0}}


@pytest.mark.parametrize("torn", ["{", "[]", '{"steps": {"stage": "long"}}'])
def test_truncated_durations_file_is_ignored(torn: str, tmp_path: Path) -> None:
    (tmp_path / "durations.json").write_text(torn)
    assert Durations(Store(tmp_path)).left_s({"stage": 1}) is None


def test_progress_names_a_step_when_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with report_steps() as steps:
        steps.begin("signatures", 125.0)
        steps.begin("release", 1.0)
        steps.done("release", 47, 2.0)
    told = capsys.readouterr()
    assert told.out == "", "nothing but data goes there"
    first, second, third = told.err.splitlines()
    assert (first, second) == ("signatures ..., about 2 min left", "release ...")
    assert third.split() == ["release", "47", "rows", "2.0", "s"]
