"""Test nested calls: they match a naive search, however the rows are split into batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from hypothesis import given, settings, strategies as st

from iosig.warehouse.sources.dftracer import nesting
from iosig.warehouse.sources.dftracer.files import CALL_SCHEMA
from iosig.warehouse.sources.rows.engine import InputDatabase
from tests.budget import examples

Row = tuple[int, int, int, int, int | None]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(0, 2), st.integers(0, 30), st.integers(0, 12), st.one_of(st.none(), st.just(8))
    ),
    min_size=1,
    max_size=25,
)


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows of (thread, layer, start, duration, bytes) sorted so that enclosing calls come first."""
    own = sorted(rows, key=lambda row: (row[0], row[2], -row[3], row[1]))
    names = ("tid", "layer", "ts", "dur", "request_bytes")
    found = pl.DataFrame(own, schema=dict.fromkeys(names, pl.Int64), orient="row")
    absent = {"process": 0, "function": 0, "offset_bytes": None, "file": 0, "input": 0, "line": 1}
    numbered = found.with_columns(id=pl.int_range(pl.len()), **{name: pl.lit(value) for name, value in absent.items()})
    return numbered.select(pl.col(name).cast(dtype) for name, dtype in CALL_SCHEMA.items())


def twin(rows: pl.DataFrame) -> list[bool]:
    """Return for each call whether a call of an outer layer encloses it; for a request, a call with known bytes."""
    own = rows.select("tid", "layer", "ts", "dur", "request_bytes").rows()
    return [
        any(
            other[0] == tid
            and other[1] < layer
            and other[2] <= ts < other[2] + other[3] >= ts + dur
            and (size is None or other[4] is not None)
            for other in own
        )
        for tid, layer, ts, dur, size in own
    ]


@settings(max_examples=examples(200), deadline=None)
@given(ROWS, st.integers(1, 30))
def test_nested_calls_match_naive_search(rows: list[Row], piece: int) -> None:
    ordered = frame(rows)
    marker = nesting.Nesting()
    found = pl.concat([marker.mark(part) for part in ordered.iter_slices(piece)])
    assert found["is_nested"].to_list() == twin(ordered)


def test_rows_are_sorted_by_thread_and_unique(tmp_path: Path) -> None:
    rows = frame([(1, 2, 5, 1, 8), (0, 2, 9, 1, 8), (0, 1, 3, 9, 8), (0, 2, 3, 9, 8)])
    rows.write_parquet(tmp_path / "a.parquet")
    rows.head(2).write_parquet(tmp_path / "b.parquet")
    with InputDatabase(tmp_path) as engine:
        (found,) = engine.rows(nesting.IN_ORDER, [tmp_path / "b.parquet", tmp_path / "a.parquet"])
    assert found.select("tid", "ts", "layer").rows() == [(0, 3, 1), (0, 3, 2), (0, 9, 2), (1, 5, 2)]
