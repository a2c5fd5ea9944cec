from __future__ import annotations

import polars as pl
import pytest

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.quality import REJECTS
from iosig.warehouse.sources.protocol import RAW_LIMIT_CHARS
from iosig.warehouse.sources.rows.rejects import (
    REJECT_SCHEMA,
    ParsedRows,
    build_refused_rows,
    build_reject_frame,
    refuse_non_text,
    reject_frame,
    rejects,
)


def test_rejects_are_a_batch_of_the_contract() -> None:
    batch = rejects([(3, "Cut.", "Mend it.", "a|b"), (None, "Damaged.", "Fetch it.", None)])
    assert batch.table is REJECTS
    frames.require(batch.rows, REJECTS)
    assert batch.rows.select("line", "reason", "remedy", "raw").rows() == [
        (3, "Cut.", "Mend it.", "a|b"),
        (None, "Damaged.", "Fetch it.", None),
    ]


def test_no_rejects_are_an_empty_batch_of_the_contract() -> None:
    assert rejects([]).rows.schema == frames.schema(REJECTS)
    assert rejects([]).rows.is_empty()


@pytest.mark.parametrize("character", ["x", "ä", "\U0001f4be"])
def test_raw_text_is_truncated_at_2000_characters(character: str) -> None:
    assert RAW_LIMIT_CHARS == 2000
    sizes = (0, 1999, 2000, 2001, 100_000)
    batch = rejects([(1, "r", "m", character * size) for size in sizes])
    assert batch.rows["raw"].str.len_chars().to_list() == [0, 1999, 2000, 2000, 2000]
    assert batch.rows["raw"][4] == character * 2000


def test_reject_frame_drops_extra_columns_and_casts_line() -> None:
    rows = pl.DataFrame({"raw": ["x"], "more": [1], "remedy": ["m"], "reason": ["r"], "line": [7]})
    batch = reject_frame(rows.with_columns(pl.col("line").cast(pl.UInt32)))
    frames.require(batch.rows, REJECTS)
    assert batch.rows.equals(rejects([(7, "r", "m", "x")]).rows)


def test_reject_schema_of_sources_lacks_only_columns_of_landing() -> None:
    schema = frames.schema(REJECTS)
    assert {name: schema[name] for name in schema if name not in ("landing_id", "source_file")} == dict(REJECT_SCHEMA)


def test_batches_of_sifted_rows_omit_empty_frames() -> None:
    refused = build_reject_frame([refuse_non_text(3, "\\xff")])
    good = rejects([(1, "r", "m", None)]).rows.with_columns(more=pl.lit(1))
    both = list(ParsedRows(good, refused).batches(REJECTS))
    assert [batch.rows["line"].to_list() for batch in both] == [[1], [3]]
    assert all(batch.rows.columns == list(REJECTS.column_names) for batch in both)
    assert list(ParsedRows(good.clear(), refused.clear()).batches(REJECTS)) == []


def test_refused_rows_share_a_reason_or_have_separate_reasons() -> None:
    rows = pl.DataFrame(
        {"line": [3, 5], "text": ["x", "y"], "said": ["one.", "two."]}, schema_overrides={"line": pl.Int32}
    )
    assert build_refused_rows(rows, "Why.", "How.").rows() == [(3, "Why.", "How.", None), (5, "Why.", "How.", None)]
    found = build_refused_rows(rows, pl.col("said"), "How.", "text")
    assert found.schema == REJECT_SCHEMA
    assert found.rows() == [(3, "one.", "How.", "x"), (5, "two.", "How.", "y")]
