from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from iosig.warehouse.contracts import TABLES, frames
from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.sources.rows.faults import (
    NOTED,
    Fault,
    blank_missing,
    build_contract_faults,
    build_number_fault,
    sift,
    validate_rows,
)


def fault(column: str, limit: int) -> Fault:
    return Fault(pl.col(column) > limit, pl.format("{} is above {}.", pl.col(column), pl.lit(limit)), "Less.")


def test_row_is_refused_with_its_first_fault() -> None:
    rows = pl.DataFrame({"line": [1, 2, 3, 4], "a": [1, 9, None, 9], "b": [1, 1, 9, 9], "raw": list("wxyz")})
    found = sift(rows, [fault("a", 5), fault("b", 5)])
    assert found.rows.rows() == [(1, 1, 1, "w")]
    assert found.refused.rows() == [
        (2, "9 is above 5.", "Less.", "x"),
        (3, "9 is above 5.", "Less.", "y"),
        (4, "9 is above 5.", "Less.", "z"),
    ]


def test_rows_without_raw_text_are_refused_without_raw_text() -> None:
    found = sift(pl.DataFrame({"line": [7], "a": [9]}), [fault("a", 5)])
    assert found.refused.rows() == [(7, "9 is above 5.", "Less.", None)]


def test_no_faults_or_rows_change_nothing() -> None:
    rows = pl.DataFrame({"line": [1], "a": [1]})
    assert sift(rows, []).rows.equals(rows)
    assert sift(rows, [fault("a", 5)]).refused.is_empty()
    assert sift(rows.clear(), [fault("a", 0)]).refused.is_empty()


def test_every_rule_of_a_contract_has_a_message() -> None:
    for table in TABLES:
        assert len(build_contract_faults(table)) == len(frames.rules(table))
    names = frames.rules(POLLS)
    assert len(build_contract_faults(POLLS, but=("interval_s_not_null",))) == len(names) - 1
    said = [fault.reason for fault in build_contract_faults(POLLS)]
    assert "The controller is missing." in said
    assert "The read_bytes_per_s is not a finite number." in said
    assert "The interval_s is below 1e-06." in said
    assert "The flag is not one of the allowed values." in said


def test_invalid_number_is_quoted_in_reason() -> None:
    rows = pl.DataFrame({"line": [1, 2, 3], "given": ["x" * 100, None, "4"], "n": [None, None, 4.0]})
    found = sift(rows, [build_number_fault("given", "n")])
    assert found.rows["line"].to_list() == [2, 3]
    assert found.refused["reason"].to_list() == [f"`{'x' * 60}` is not a number; the column is n."]


def test_rows_are_validated_and_missing_nullable_columns_added() -> None:
    rows = pl.DataFrame({"line": [1, 2, 3], "controller": ["a", "b", "c"], "reason": [None, "Why.", None],
                         "remedy": [None, "How.", None], "interval_s": [1.0, 1.0, -1.0]})  # fmt: skip
    kept = rows.with_columns(polled_at=pl.lit(datetime(2026, 1, 1, tzinfo=UTC)), filesystem=pl.lit("lake"))
    found = validate_rows(POLLS, kept, NOTED)
    assert found.rows.select("line", "read_iops").rows() == [(1, None)]
    assert found.refused.select("line", "reason").rows() == [(2, "Why."), (3, "The interval_s is below 1e-06.")]


def test_only_texts_for_a_missing_number_become_null() -> None:
    cells = pl.Series(["1", "NaN", " na ", "NULL", "-", "\\N", "x", "1,5", None, "none", "<NA>", "inf"])
    numbers = cells.cast(pl.Float64, strict=False).fill_nan(None)
    assert blank_missing(cells, numbers).to_list() == [
        *("1", None, None, None, None, None, "x", "1,5", None, None, None, "inf")
    ]
    assert blank_missing(numbers, numbers).equals(numbers)
