from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pytest

from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.polls import grids, h5lmt, lmt_database
from iosig.warehouse.sources.polls.tokio import SOURCE
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.warehouse.sources import archives
from tests.warehouse.sources.batch_reading import read_input

ZERO = 1517126400
TIMES = [ZERO, ZERO + 5, ZERO + 10]
READ = [[5, 50], [10, 100], [15, 150]]
WRITE = [[0, 0], [5, 5], [10, 10]]


@pytest.fixture
def in_a_child() -> None:
    """Mark a test that reads in a child process as landing does, which is slower."""


@pytest.fixture(autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "in_a_child" not in request.fixturenames:
        monkeypatch.setattr(grids, "arrays_from_child", lambda function, *arguments: function(*arguments))


def cells(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    columns = ("polled_at", "read_bytes_per_s", "write_bytes_per_s", "flag")
    return rows.filter(controller=archives.NAMES[0]).sort("polled_at").select(columns).rows()


def at(second: int) -> datetime:
    return datetime.fromtimestamp(ZERO + second, UTC)


def test_left_edges_become_right_edges_and_bytes_become_rates(tmp_path: Path) -> None:
    path = archives.tokio(tmp_path / "a.hdf5", TIMES, READ, WRITE)
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert cells(rows) == [(at(5), 1.0, 0.0, None), (at(10), 2.0, 1.0, None), (at(15), 3.0, 2.0, None)]
    assert rows["interval_s"].unique().to_list() == [5.0]
    assert rows["filesystem"].unique().to_list() == ["fs1"]
    assert read_input(SOURCE, path, Reading("mine"))[0]["filesystem"].unique().to_list() == ["mine"]


def test_datasets_of_rates_are_kept(tmp_path: Path) -> None:
    path = archives.tokio(tmp_path / "a.hdf5", TIMES, READ, WRITE, kind="rates")
    assert cells(read_input(SOURCE, path)[0])[0] == (at(5), 5.0, 0.0, None)


def test_negative_zero_is_missing_but_zero_is_idle(tmp_path: Path) -> None:
    path = archives.tokio(tmp_path / "a.hdf5", TIMES, [[-0.0, 1], [0, 1], [np.nan, 1]], [[-0.0, 1], [0, 1], [5, 1]])
    assert cells(read_input(SOURCE, path)[0]) == [
        (at(5), None, None, "missing"),
        (at(10), 0.0, 0.0, None),
        (at(15), None, 1.0, "missing"),
    ]


def test_gap_in_grid_is_kept(tmp_path: Path) -> None:
    path = archives.tokio(tmp_path / "a.hdf5", [ZERO, ZERO + 20, ZERO + 25], READ, WRITE)
    rows, _ = read_input(SOURCE, path)
    assert [row[0] for row in cells(rows)] == [at(5), at(25), at(30)]
    assert rows["interval_s"].unique().to_list() == [5.0]


@pytest.mark.usefixtures("in_a_child")
def test_three_formats_of_same_data_yield_equal_polls(shared_data: Path) -> None:
    folder = shared_data / "lmt"
    order = ("polled_at", "controller")
    from_tokio, refused = read_input(SOURCE, folder / "snx11025_2018-01-28.hdf5")
    from_pylmt, _ = read_input(h5lmt.SOURCE, folder / "snx11025_2018-01-28.h5lmt")
    pacific = Reading(time_zone="America/Los_Angeles")
    from_lmt, _ = read_input(lmt_database.SOURCE, folder / "snx11025_2018-01-28.sqlite3", pacific)
    assert refused.is_empty()
    assert from_tokio.height == 24 * 60
    assert from_tokio["flag"].null_count() == 24 * 60
    assert from_tokio["write_bytes_per_s"].max() == pytest.approx(383_316_497.0)
    assert from_pylmt.sort(order).equals(from_tokio.sort(order))
    assert from_lmt.sort(order).equals(from_tokio.sort(order))


@pytest.mark.parametrize(("kind", "unit_s"), [("oprates", 1), ("ops", 5)])
def test_operations_are_rates_or_counts(tmp_path: Path, kind: str, unit_s: int) -> None:
    path = archives.tokio(tmp_path / "a.hdf5", TIMES, READ, WRITE)
    with h5py.File(path, "r+") as file:
        for direction, values in (("read", [[5, 0], [-0.0, 0], [15, 0]]), ("write", [[0, 1], [5, 1], [10, 1]])):
            dataset = file.create_dataset(f"datatargets/{direction}{kind}", data=np.asarray(values, np.float64))
            dataset.attrs["columns"] = file["datatargets/readbytes"].attrs["columns"]
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    ordered = rows.filter(controller=archives.NAMES[0]).sort("polled_at")
    assert ordered["read_iops"].to_list() == [5 / unit_s, None, 15 / unit_s]
    assert ordered["write_iops"].to_list() == [0, 5 / unit_s, 10 / unit_s]
    assert ordered["flag"].null_count() == 3
