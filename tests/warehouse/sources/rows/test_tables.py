"""Test tables in batches: text and Parquet yield equal rows, fast or row by row, in order, with or without threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.rows.faults import Fault, build_number_fault, sift
from iosig.warehouse.sources.rows.rejects import ParsedRows
from iosig.warehouse.sources.rows.tables import (
    has_header,
    merge_pieces,
    parquet_names,
    parquet_pieces,
    read_ahead,
    text,
    text_pieces,
)

ROWS = pl.DataFrame({"n": [*range(40)], "other": ["x"] * 40})


def locate(names: Sequence[str]) -> dict[str, str]:
    if "n" not in names:
        raise InputRefused("There is no n.", "Add it.")
    return {"number": "n"}


def read(rows: pl.DataFrame) -> ParsedRows | None:
    """Refuse sevens and cells that are not numbers."""
    typed = rows.with_columns(value=pl.col("number").cast(pl.Int64, strict=False))
    seven = Fault(pl.col("value") == 7, pl.lit("Seven."), pl.lit("Take another one."))
    found = sift(typed, [build_number_fault("number", "value"), seven])
    return None if found.refused.height and "raw" not in rows.columns else found


def numbers(pieces: list[ParsedRows]) -> tuple[list[int], list[tuple[int, str]]]:
    rows = [value for piece in pieces for value in piece.rows["value"].to_list()]
    return rows, [row for piece in pieces for row in piece.refused.select("line", "raw").rows()]


@pytest.mark.parametrize("thread_count", [0, 1, 3])
@pytest.mark.parametrize("block_bytes", [8, 30, 1 << 20])
def test_text_is_read_in_order_and_invalid_rows_are_refused(
    tmp_path: Path, thread_count: int, block_bytes: int
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ROWS.write_csv() + "forty\tx,x\n41,x,x\n42,x\n")
    pieces = list(text_pieces(path, locate, read, block_bytes=block_bytes, thread_count=thread_count))
    rows, refused = numbers(pieces)
    assert rows == [number for number in range(40) if number != 7] + [42]
    assert refused == [(9, "7,x"), (42, "forty\tx,x"), (43, "41,x,x")]


@pytest.mark.parametrize("piece_rows", [3, 1000])
def test_parquet_is_read_in_batches_and_invalid_rows_are_refused(tmp_path: Path, piece_rows: int) -> None:
    path = tmp_path / "t.parquet"
    ROWS.write_parquet(path)
    rows, refused = numbers(list(parquet_pieces(path, locate, read, piece_rows)))
    assert rows == [number for number in range(40) if number != 7]
    assert refused == [(8, '{"number":"7"}')]


def test_column_names_are_read_without_reading_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    ROWS.write_parquet(path)
    assert parquet_names(path) == ["n", "other"]
    path.write_bytes(path.read_bytes()[:-9])
    assert parquet_names(path) == []
    assert has_header(["# by hand", "", "n;other", "1;x"], ["n"])
    assert not has_header(["n;other", "1;x"], ["n", "more"])
    assert not has_header([], ["n"])
    assert not has_header([""], ["n"])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputRefused, match="no n"):
        list(text_pieces(path, locate, read))


def test_empty_cells_are_null() -> None:
    rows = pl.DataFrame({"a": [" x ", "", None], "n": [1, None, 3]})
    found = rows.select(text(rows, "a"), text(rows, "n"), text(rows, "absent").alias("absent"))
    assert found.rows() == [("x", "1", None), (None, None, None), (None, "3", None)]


def test_read_ahead_is_bounded_and_keeps_order() -> None:
    asked: list[int] = []

    def pieces() -> Iterator[int]:
        for number in range(9):
            asked.append(number)
            yield number

    found = read_ahead(lambda number: number * number, pieces(), 2)
    assert next(found) == (0, 0)
    assert len(asked) == 3
    assert list(found) == [(number, number * number) for number in range(1, 9)]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
@pytest.mark.parametrize(
    "cells",
    [["a", "b", "a"], ["a", None, "b c"], [" a", "a", "b\t"], ["a", "", "  "], [None, None], ["ü ", "\xa0b"], []],
)
def test_texts_are_stripped_and_empty_texts_are_null(cells: list[str | None], dtype: pl.DataType) -> None:
    rows = pl.DataFrame({"name": pl.Series(cells, dtype=dtype)})
    found = rows.select(found=text(rows, "name"))["found"]
    assert found.dtype == pl.String
    assert found.to_list() == [(cell.strip() or None) if cell else None for cell in cells]


def test_small_batches_are_merged_and_refused_rows_count_more() -> None:
    def pieces(good: int, refused: int) -> Iterator[ParsedRows]:
        for number in range(100):
            taken.append(number)
            yield ParsedRows(ROWS.head(good), ROWS.select(line="n").head(refused))

    for good, refused, count in ((10, 0, 4), (10, 1, 4), (0, 2, 2), (10, 4, 1)):
        taken: list[int] = []
        first = next(merge_pieces(pieces(good, refused), 40))
        assert (len(taken), first.rows.height, first.refused.height) == (count, count * good, count * refused)
