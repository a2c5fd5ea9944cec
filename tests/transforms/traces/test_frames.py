"""Conversion of compressed traces to frames and back, and invalid rows."""

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
def test_frame_round_trip_preserves_the_trace(trace: CompressedTrace) -> None:
    frame = to_frame(trace)
    assert frame.schema == SCHEMA
    assert from_frame(frame, trace.process_count) == trace


@pytest.mark.parametrize("trace", [table_one(8), table_one_posix(8), file_per_process(10**6), CompressedTrace(5, ())])
def test_frame_round_trip_preserves_example_programs(trace: CompressedTrace) -> None:
    assert from_frame(to_frame(trace), trace.process_count) == trace


def test_rows_are_nodes_in_order() -> None:
    frame = to_frame(table_one_posix(8))
    assert frame["kind"].to_list() == ["ranks", "call", "loop", "call", "call", "call"] * 2
    assert frame["rank_class"].to_list() == [0] * 6 + [1] * 6
    assert frame["node"].to_list() == [None, 0, 1, 2, 3, 4] * 2
    assert frame["parent"].to_list() == [None, None, None, 1, 1, None] * 2


def test_schema_equals_the_schema_of_files() -> None:
    assert pl.DataFrame(compressed_files.schema().empty_table()).schema == SCHEMA


def test_frame_size_does_not_grow_with_ranks() -> None:
    few, many = (to_frame(table_one(count, 160 * count)).estimated_size() for count in (8, 10**6))
    assert few == many


# ---- invalid rows


def set_in(*path: str | int | None, to: object) -> Callable[[Rows], None]:
    """Return a function that replaces one value in the rows, by row number, fields and indices."""

    def change(rows: Rows) -> None:
        part: Any = rows
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = to

    return change


def move(first: int, second: int) -> Callable[[Rows], None]:
    return lambda rows: rows.insert(second, rows.pop(first))


#: Rows of Table 1: 0 ranks, 1 open, 2 loop, 3 seek, 4 write, 5 close.
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_in(1, "kind", to="file"), "class 0, node 0: unknown kind of row 'file'"),
        (set_in(1, "kind", to=None), "kind of row None"),
        (set_in(1, "kind", to="loop"), "node 0: missing iterations"),
        (set_in(2, "kind", to="call"), "missing module"),
        (set_in(1, "rank_class", to=1), "class 1, node 0: the row precedes the ranks"),
        (set_in(0, "rank_class", to=None), "class None, node None: the class is out of order"),
        (set_in(0, "parent", to=0), "has a parent"),
        (set_in(0, "node", to=0), "a row of kind ranks must not have node"),
        (set_in(1, "ranks", to=[]), "a row of kind call must not have ranks"),
        (lambda rows: rows.pop(0), "precedes the ranks"),
        (lambda rows: rows.append(deepcopy(rows[0])), "the class is out of order"),
        (set_in(3, "parent", to=4), "parent 4 is not an enclosing loop"),
        (set_in(3, "parent", to=2), "parent 2 is not an enclosing loop"),
        (set_in(3, "parent", to=0), "parent 0 is not an enclosing loop"),
        (set_in(4, "node", to=2), "node 3 is expected"),
        (set_in(4, "node", to=None), "missing node"),
        (move(2, 3), "node 1 is expected"),
        (lambda rows: rows.pop(1), "node 0 is expected"),
        (set_in(3, "texts", to=["a"]), "1 texts for 1 slots"),
        (set_in(3, "texts", to=["a", None]), "values are missing"),
        (set_in(3, "slots", to=[None]), "values are missing"),
        (set_in(3, "slots", 0, "width", to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "ranks", to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "ranks", "counts", 0, to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "start", to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "listed", to=[1]), "both a progression and a list"),
        (set_in(3, "slots", 0, "shares", 0, "shifts", 0, to=None), "values are missing"),
        (set_in(3, "slots", 0, "shares", 0, "values", 0, "counts", to=[2]), "node 2, slot 0: 3 shifts for 2 values"),
        (set_in(2, "iterations", 0, "values", 0, "start", to=4), "node 2: the number of values differs"),
        (set_in(3, "durations", to=None), "missing durations"),
        (set_in(3, "durations", "mean_s", to=None), "values are missing"),
        (set_in(3, "durations", "bins", 0, to=None), "values are missing"),
        (set_in(3, "gaps", 0, to=None), "values are missing"),
        (set_in(3, "gaps", 0, "previous", to=1), "class 0, node 2: the gaps follow"),
    ],
)
def test_invalid_rows_are_rejected(change: Callable[[Rows], None], words: str) -> None:
    rows = to_frame(table_one(8)).to_dicts()
    change(rows)
    with pytest.raises(ValueError, match=words):
        from_frame(pl.DataFrame(rows, schema=SCHEMA), 8)


def test_wrong_number_of_processes_is_rejected() -> None:
    with pytest.raises(ValueError, match="ranks 0 to 7 exceed the 4 processes"):
        from_frame(to_frame(table_one(8)), 4)


def test_wrong_columns_are_rejected() -> None:
    frame = to_frame(table_one(8))
    with pytest.raises(ValueError, match="slots"):
        from_frame(frame.drop("slots"), 8)
    with pytest.raises(ValueError, match="compressed trace: level"):
        from_frame(frame.with_columns(pl.col("level").cast(pl.Int32)), 8)
    with pytest.raises(ValueError, match="more"):
        from_frame(frame.with_columns(more=1), 8)


def test_deep_loops_are_rejected_before_construction() -> None:
    head, _, loop, *_ = to_frame(table_one(8)).to_dicts()
    loops = [{**loop, "node": number, "parent": number - 1 if number else None} for number in range(100)]
    with pytest.raises(ValueError, match="nested in more than 64 loops"):
        from_frame(pl.DataFrame([head, *loops], schema=SCHEMA), 8)


@given(compressed_traces(most_processes=4, most_depth=1), st.data())
@settings(max_examples=examples(30), deadline=None)
def test_replaced_cells_are_rejected_or_valid(trace: CompressedTrace, data: st.DataObject) -> None:
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
