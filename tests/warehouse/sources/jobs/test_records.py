from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.jobs import JOB_RECORDS
from iosig.warehouse.sources.jobs.records import settle


def test_record_that_violates_contract_is_refused() -> None:
    cells = pl.DataFrame({"line": [0, 1, 2], "job_id": ["a", "b", None], "raw": ["zero", "one", "two"]})
    records = settle(cells, "UTC")
    assert records.rows["line"].to_list() == [1]
    assert records.refused.select("line", "reason", "raw").rows() == [
        (0, "The line is below 1.", "zero"),
        (2, "The record has no job id.", "two"),
    ]
    assert records.refused["remedy"].null_count() == 0


def test_fault_found_by_source_takes_precedence() -> None:
    cells = pl.DataFrame(
        {
            "line": [1, 2],
            "job_id": [None, "b"],
            "state": ["odd", "CD"],
            "reason": ["Cut.", None],
            "remedy": ["Mend it.", None],
        }
    )
    records = settle(cells, "UTC")
    assert records.refused.rows() == [(1, "Cut.", "Mend it.", None)]
    assert records.rows["state"].to_list() == ["COMPLETED"]


def test_typed_instants_are_kept() -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    late = datetime(2270, 1, 1, tzinfo=UTC)
    times = pl.Series([start, late], dtype=pl.Datetime("us", "UTC"))
    records = settle(pl.DataFrame({"line": [1, 2], "job_id": ["a", "b"], "started_at": times}), "Europe/Berlin")
    assert records.rows["started_at"].to_list() == [start]
    assert records.refused["reason"].to_list() == ["The start time is outside 1970 to 2261."]


def test_empty_cells_yield_no_records() -> None:
    records = settle(pl.DataFrame(schema={"line": pl.Int64, "job_id": pl.String, "elapsed": pl.String}), "UTC")
    assert records.rows.schema == frames.schema(JOB_RECORDS)
    assert list(records.batches(JOB_RECORDS)) == []
