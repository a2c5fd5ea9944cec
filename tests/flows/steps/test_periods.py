"""Rows of periods: the segments of those that stay are those that the release before has of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.flows.steps.periods import _segments_of
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.periods import PERIOD_SEGMENTS, PERIODS
from tests.sql.given import rows


def test_segments_stay_with_their_rows_of_periods(tmp_path: Path) -> None:
    text = "subject_id cluster filesystem segment \n a . fs 1 \n a . fs 2 \n b . fs 1 \n a . other 1"
    # as an older version wrote them: without a column
    before = rows("transforms.period_segments", text).select(PERIOD_SEGMENTS.column_names)
    before.drop("duty_ratio").write_parquet(tmp_path / "before.parquet")
    files = (TableFile(PERIOD_SEGMENTS.name, "before.parquet", is_released=True),)
    given = StepContext(tmp_path, WorkItem("periods", "periods", "m:f", files, (), (None,), Settings(), "builds", ""))
    kept = rows("transforms.periods", "subject_id cluster filesystem \n a . fs").select(PERIODS.column_names)
    found = _segments_of(given, kept)
    assert found.columns == list(PERIOD_SEGMENTS.column_names)
    assert found.select("subject_id", "filesystem", "segment").rows() == [("a", "fs", 1), ("a", "fs", 2)]
    assert _segments_of(given, frames.empty(PERIODS)).is_empty()
    none = StepContext(tmp_path, WorkItem("periods", "periods", "m:f", (), (), (None,), Settings(), "builds", ""))
    assert _segments_of(none, kept).equals(frames.empty(PERIOD_SEGMENTS))
    assert found.schema == pl.Schema(frames.schema(PERIOD_SEGMENTS))
