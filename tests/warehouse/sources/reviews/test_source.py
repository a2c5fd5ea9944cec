"""Test reviews of classes: valid rows, optional cells, and quoted names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import Reading
from iosig.warehouse.sources.reviews.source import COLUMNS, SOURCE
from tests.warehouse.sources.batch_reading import tables_of

HEADER = ",".join(COLUMNS)
GOOD = (
    "job,c,job1,2026-03-01T12:00:00+00:00,lake,write,ann,2026-03-02T08:00:00Z,START,START,,",
    "job,c,job7,2026-03-01T13:00:00+00:00,lake,read,ann,2026-03-02T09:00:00Z,HILL,END,120.5,correct",
    "job,c,job9,2026-03-01T14:00:00+00:00,lake,write,bob,2026-03-02T10:00:00Z,OTHER,unsure,60,unsure",
)


def read(path: Path, *lines: str) -> list[dict[str, object]]:
    path.write_text("\n".join((HEADER, *lines)) + "\n")
    return tables_of(SOURCE.read(path, Reading()))["review_records"].to_dicts()


def test_cells_become_values(tmp_path: Path) -> None:
    row = read(tmp_path / "reviews.csv", *GOOD)[1]
    assert row["started_at"] == datetime(2026, 3, 1, 13, tzinfo=UTC)
    assert row["reviewed_at"] == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert (row["proposed_label"], row["label_verdict"]) == ("HILL", "END")
    assert (row["proposed_period_s"], row["period_verdict"], row["line"]) == (120.5, "correct", 3)


def test_empty_cells_are_null(tmp_path: Path) -> None:
    row = read(tmp_path / "reviews.csv", GOOD[0])[0]
    assert (row["proposed_period_s"], row["period_verdict"]) == (None, None)


def test_quoted_name_keeps_its_comma(tmp_path: Path) -> None:
    (row,) = read(tmp_path / "reviews.csv", GOOD[0].replace(",ann,", ',"Doe, Ann",'))
    assert row["reviewer"] == "Doe, Ann"


def test_table_without_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("subject_id,label_verdict\njob1,START\n")
    with pytest.raises(InputRefused, match="no column cluster"):
        list(SOURCE.read(path, Reading()))
