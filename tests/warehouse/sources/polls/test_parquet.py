from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.polls import parquet
from iosig.warehouse.sources.polls.parquet import SOURCE
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.warehouse.sources.batch_reading import read_input

ZERO = datetime(2026, 1, 1)


def write(folder: Path, **columns: Any) -> Path:
    times = [ZERO + timedelta(seconds=2 * index) for index in range(4)]
    table: dict[str, Any] = {
        "polled_at": times,
        "controller": ["a", "b", "a", "b"],
        "read_bytes_per_s": [1.0, 2.0, 3.0, 4.0],
        "write_bytes_per_s": [5, 6, 7, 8],
    }
    path = folder / "polls.parquet"
    pl.DataFrame(table | columns, strict=False).write_parquet(path)
    return path


def test_polls_are_read(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert rows["polled_at"].to_list() == [
        (ZERO + timedelta(seconds=2 * index)).replace(tzinfo=UTC) for index in range(4)
    ]
    assert rows["interval_s"].to_list() == [2.0] * 4
    assert rows["write_bytes_per_s"].to_list() == [5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize(
    "times",
    [
        pl.Series([1767225600, 1767225602, 1767225604, 1767225606]),
        pl.Series([1767225600.0, 1767225602.0, 1767225604.0, 1767225606.0]),
        pl.Series([ZERO + timedelta(seconds=2 * index) for index in range(4)], dtype=pl.Datetime("ms")),
        pl.Series([ZERO + timedelta(seconds=2 * index) for index in range(4)], dtype=pl.Datetime("ns")),
        pl.Series([f"2026-01-01T00:00:0{2 * index}Z" for index in range(4)]),
        pl.Series([ZERO + timedelta(seconds=2 * index) for index in range(4)])
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone("Asia/Tokyo"),
    ],
)
def test_times_may_be_of_any_type(tmp_path: Path, times: pl.Series) -> None:
    rows, refused = read_input(SOURCE, write(tmp_path, polled_at=times))
    assert refused.is_empty()
    assert rows["polled_at"].equals(read_input(SOURCE, write(tmp_path))[0]["polled_at"])


def test_naive_times_are_local_and_ambiguous_times_are_refused(tmp_path: Path) -> None:
    times = [datetime(2026, 10, 25, 1), datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 3), None]
    rows, refused = read_input(SOURCE, write(tmp_path, polled_at=times), Reading(time_zone="Europe/Berlin"))
    assert rows["polled_at"].to_list() == [
        datetime(2026, 10, 24, 23, tzinfo=UTC),
        datetime(2026, 10, 25, 2, tzinfo=UTC),
    ]
    assert refused["line"].to_list() == [2, 4]
    assert "Europe/Berlin" in refused["reason"][0]
    assert refused["reason"][1] == "The polled_at is missing."


def test_bad_rows_are_refused_with_row_number_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PIECE_ROWS", 2)
    path = write(tmp_path, read_bytes_per_s=["1", "x", None, "-4"], controller=[1, 2, 3, None])
    rows, refused = read_input(SOURCE, path)
    assert rows.select("controller", "read_bytes_per_s", "flag").rows() == [("1", 1.0, None), ("3", None, "missing")]
    assert refused["line"].to_list() == [2, 4]
    assert "`x` is not a number" in refused["reason"][0]
    assert '"write_bytes_per_s":"6"' in refused["raw"][0]


def test_wrong_columns_and_types_are_refused_with_their_name(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="no column ts"):
        read_input(SOURCE, write(tmp_path), Reading(time_zone="UTC", columns={"polled_at": "ts"}))
    with pytest.raises(InputRefused, match="of type List"):
        read_input(SOURCE, write(tmp_path, polled_at=[[1], [2], [3], [4]]))
    with pytest.raises(InputRefused):
        read_input(SOURCE, write(tmp_path, read_bytes_per_s=[[1], [2], [3], [4]]))


@pytest.mark.parametrize("held_rows", [0, 3, 100])
def test_intervals_do_not_depend_on_number_of_buffered_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_rows: int
) -> None:
    monkeypatch.setattr(parquet, "MAX_BUFFERED_ROWS", held_rows)
    monkeypatch.setattr(parquet, "PIECE_ROWS", 3)
    rows, refused = read_input(SOURCE, write(tmp_path, controller=["a", "b", None, "b"]))
    assert rows["polled_at"].dt.second().to_list() == [0, 2, 6]
    assert rows["interval_s"].to_list() == [2.0] * 3
    assert refused["line"].to_list() == [3]
