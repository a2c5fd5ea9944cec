"""Compressed traces as frames: there and back, and rows that nobody wrote so."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from iosig.transforms.traces.frames import SCHEMA, from_frame, to_frame
from iosig.transforms.traces.trace import CompressedTrace
from iosig.warehouse.sources.extrapolations import compressed_traces as compressed_files
from tests.budget import examples
from tests.compressed import compressed_traces, file_per_process, table_one, table_one_posix

Rows = list[dict[str, Any]]


@given(compressed_traces())
@settings(max_examples=examples(25), deadline=None)
def test_there_and_back(trace: CompressedTrace) -> None:
    frame = to_frame(trace)
    assert frame.schema == SCHEMA
    assert from_frame(frame, trace.process_count) == trace


@pytest.mark.parametrize("trace", [table_one(8), table_one_posix(8), file_per_process(10**6), CompressedTrace(5, ())])
def test_programs_made_by_hand(trace: CompressedTrace) -> None:
    assert from_frame(to_frame(trace), trace.process_count) == trace


def test_rows_are_nodes_in_order() -> None:
    frame = to_frame(table_one_posix(8))
    assert frame["kind"].to_list() == ["ranks", "call", "loop", "call", "call", "call"] * 2
    assert frame["rank_class"].to_list() == [0] * 6 + [1] * 6
    assert frame["node"].to_list() == [None, 0, 1, 2, 3, 4] * 2
    assert frame["parent"].to_list() == [None, None, None, 1, 1, None] * 2


def test_schema_is_that_of_the_files() -> None:
    assert pl.DataFrame(compressed_files.schema().empty_table()).schema == SCHEMA


def test_size_does_not_grow_with_ranks() -> None:
    few, many = (to_frame(table_one(count, 160 * count)).estimated_size() for count in (8, 10**6))
    assert few == many


# ---- rows that nobody wrote so


def set_in(*path: str | int | None, to: object) -> Callable[[Rows], None]:
    """Return what sets a part of the rows: first the row's number, then fields and places."""

    def change(rows: Rows) -> None:
        part: Any = rows
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = to

    return change


def move(first: int, second: int) -> Callable[[Rows], None]:
    return lambda rows: rows.insert(second, rows.pop(first))


#: rows of Table 1: 0 ranks, 1 open, 2 loop, 3 seek, 4 write, 5 close
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_in(1, "kind", to="file"), "class 0, node 0: there is no kind 'file'"),
        (set_in(1, "kind", to=None), "no kind None"),
        (set_in(1, "kind", to="loop"), "node 0: it lacks iterations"),
        (set_in(2, "kind", to="call"), "it lacks module"),
        (set_in(1, "rank_class", to=1), "class 1, node 0: it stands before the row with the ranks"),
        (set_in(0, "rank_class", to=None), "class None, node None: the class stands out of order"),
        (set_in(0, "parent", to=0), "in another row"),
        (set_in(0, "node", to=0), "a row of kind ranks has no node"),
        (set_in(1, "ranks", to=[]), "a row of kind call has no ranks"),
        (lambda rows: rows.pop(0), "before the row with the ranks"),
        (lambda rows: rows.append(deepcopy(rows[0])), "the class stands out of order"),
        (set_in(3, "parent", to=4), "parent 4 is no loop that is open"),
        (set_in(3, "parent", to=2), "parent 2 is no loop"),
        (set_in(3, "parent", to=0), "parent 0 is no loop"),
        (set_in(4, "node", to=2), "stands where node 3 should"),
        (set_in(4, "node", to=None), "it lacks node"),
        (move(2, 3), "stands where node 1 should"),
        (lambda rows: rows.pop(1), "stands where node 0 should"),
        (set_in(3, "texts", to=["a"]), "1 texts around 1 slots"),
        (set_in(3, "texts", to=["a", None]), "lacks a part"),
        (set_in(3, "slots", to=[None]), "lacks a part"),
        (set_in(3, "slots", 0, "width", to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "ranks", to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "ranks", "counts", 0, to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "start", to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "listed", to=[1]), "both a progression and a list"),
        (set_in(3, "slots", 0, "shares", 0, "shifts", 0, to=None), "lacks a part"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "counts", to=[2]), "node 2, slot 0: 3 shifts for 2 values"),
        (set_in(2, "iterations", 0, "values", 0, "start", to=4), "node 2: there are not as many values"),
        (set_in(3, "durations", to=None), "lacks durations"),
        (set_in(3, "durations", "mean_s", to=None), "lacks a part"),
        (set_in(3, "durations", "bins", 0, to=None), "lacks a part"),
        (set_in(3, "gaps", 0, to=None), "lacks a part"),
        (set_in(3, "gaps", 0, "previous", to=1), "class 0, node 2: the gaps follow"),
    ],
)
def test_rows_out_of_form_are_told(change: Callable[[Rows], None], words: str) -> None:
    rows = to_frame(table_one(8)).to_dicts()
    change(rows)
    with pytest.raises(ValueError, match=words):
        from_frame(pl.DataFrame(rows, schema=SCHEMA), 8)


def test_another_count_of_processes_is_told() -> None:
    with pytest.raises(ValueError, match="ranks 0 to 7 are not of 4 processes"):
        from_frame(to_frame(table_one(8)), 4)


def test_other_columns_are_told() -> None:
    frame = to_frame(table_one(8))
    with pytest.raises(ValueError, match="slots"):
        from_frame(frame.drop("slots"), 8)
    with pytest.raises(ValueError, match="columns level are"):
        from_frame(frame.with_columns(pl.col("level").cast(pl.Int32)), 8)
    with pytest.raises(ValueError, match="more"):
        from_frame(frame.with_columns(more=1), 8)


def test_deep_loops_are_told_before_they_are_built() -> None:
    head, _, loop, *_ = to_frame(table_one(8)).to_dicts()
    loops = [{**loop, "node": number, "parent": number - 1 if number else None} for number in range(100)]
    with pytest.raises(ValueError, match="in more than 64 loops"):
        from_frame(pl.DataFrame([head, *loops], schema=SCHEMA), 8)


@given(compressed_traces(most_processes=4, most_depth=1), st.data())
@settings(max_examples=examples(30), deadline=None)
def test_any_cell_lost_or_taken_from_elsewhere_is_refused_or_valid(trace: CompressedTrace, data: st.DataObject) -> None:
    rows = to_frame(trace).to_dicts()
    if not rows:
        return
    row, other = (data.draw(st.integers(0, len(rows) - 1)) for _ in range(2))
    name = data.draw(st.sampled_from(list(SCHEMA)))
    rows[row][name] = data.draw(st.sampled_from([None, rows[other][name]]))
    frame = pl.DataFrame(rows, schema=SCHEMA)
    try:
        found = from_frame(frame, trace.process_count)
    except ValueError:
        return
    assert to_frame(found).equals(frame)
