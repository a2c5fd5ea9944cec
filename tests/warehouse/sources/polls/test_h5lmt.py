from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.opening import read_head
from iosig.warehouse.sources.polls import grids
from iosig.warehouse.sources.polls.h5lmt import SOURCE
from iosig.warehouse.sources.protocol import Reading, recognize
from tests.warehouse.sources import archives
from tests.warehouse.sources.batch_reading import read_input

GIB = 2.0**30
ZERO = 1517126400
TIMES = [ZERO + 5 * index for index in range(5)]
READ = [[0, 1, 2, 3, 4], [0, 10, 20, 30, 40]]
WRITE = [[0, 5, 6, 7, 8], [0, 50, 60, 70, 80]]


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in this process, which is faster than in a child."""
    monkeypatch.setattr(grids, "arrays_from_child", lambda function, *arguments: function(*arguments))


def cells(rows: pl.DataFrame, controller: str = archives.NAMES[0]) -> list[tuple[object, ...]]:
    columns = ("polled_at", "read_bytes_per_s", "write_bytes_per_s", "flag")
    return rows.filter(controller=controller).sort("polled_at").select(columns).rows()


def at(step: int) -> datetime:
    return datetime.fromtimestamp(ZERO + 5 * step, UTC)


def test_times_are_right_edges_and_first_step_is_dropped(tmp_path: Path) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, READ, WRITE)
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    assert cells(rows) == [(at(step), float(step), 4.0 + step, None) for step in range(1, 5)]
    assert cells(rows, archives.NAMES[1])[0] == (at(1), 10.0, 50.0, None)
    assert rows["interval_s"].unique().to_list() == [5.0]


def test_bytes_in_first_step_are_refused(tmp_path: Path) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, [[9, 1, 2, 3, 4], READ[1]], WRITE)
    rows, refused = read_input(SOURCE, path)
    assert rows.height == 8
    assert refused.select("line", "raw").rows() == [(1, "fs1-OST0000: read 9.0, write 0.0")]


def test_steps_after_last_activity_are_not_recorded(tmp_path: Path) -> None:
    still = [[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, still, np.zeros((2, 5)), load=[1, 1, 0.5, 0, 0])
    rows, _ = read_input(SOURCE, path)
    assert cells(rows) == [
        (at(1), 1.0, 0.0, None),
        (at(2), 0.0, 0.0, None),
        (at(3), None, None, "not_recorded"),
        (at(4), None, None, "not_recorded"),
    ]


def test_marked_cell_is_missing_unless_it_has_bytes(tmp_path: Path) -> None:
    missing = [[0, 1, 0, 0, 0], [0, 1, 0, 0, 0]]
    read = [[0, 0, 2, 3, float("nan")], [0, 0, 20, 30, 40]]
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, read, [[0, 0, 6, 7, 8], WRITE[1]], missing=missing)
    rows, _ = read_input(SOURCE, path)
    assert cells(rows)[0] == (at(1), None, None, "missing")
    assert cells(rows)[3] == (at(4), None, 8.0, "missing")
    assert cells(rows, archives.NAMES[1])[0] == (at(1), 0.0, 50.0, None)


def test_negative_and_infinite_rates_are_refused_by_cell(tmp_path: Path) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, [[0, -1, 2, np.inf, 4], READ[1]], WRITE)
    rows, refused = read_input(SOURCE, path)
    assert rows.height == 6
    assert refused["line"].to_list() == [2, 4]
    assert refused["raw"][0].startswith("fs1-OST0000: read -1.0")


def test_unordered_or_duplicate_steps_are_refused(tmp_path: Path) -> None:
    times = [ZERO, ZERO + 5, ZERO + 5, ZERO + 1, ZERO + 10]
    rows, refused = read_input(SOURCE, archives.pylmt(tmp_path / "a.h5lmt", times, READ, WRITE))
    assert refused["line"].to_list() == [3, 4]
    assert cells(rows) == [(at(1), 1.0, 5.0, None), (at(2), 4.0, 8.0, None)]


@pytest.mark.parametrize("bad", [-5.0, float("nan"), float("inf"), 1e300])
def test_invalid_times_are_refused(tmp_path: Path, bad: float) -> None:
    times = [float(ZERO), bad, ZERO + 10.0, ZERO + 15.0, ZERO + 20.0]
    rows, refused = read_input(SOURCE, archives.pylmt(tmp_path / "a.h5lmt", times, READ, WRITE))
    assert refused["line"].to_list() == [2]
    # The rate of step 3 covers 5 s, not the 10 s since the last good step.
    assert rows["interval_s"].unique().to_list() == [5.0]


def test_filesystem_comes_from_option_attribute_or_target_prefix(tmp_path: Path) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, READ, WRITE, fs="attribute")
    assert read_input(SOURCE, path, Reading("mine"))[0]["filesystem"].unique().to_list() == ["mine"]
    assert read_input(SOURCE, path)[0]["filesystem"].unique().to_list() == ["attribute"]
    path = archives.pylmt(tmp_path / "b.h5lmt", TIMES, READ, WRITE, names=["fs1-OST0", "bare"])
    assert sorted(read_input(SOURCE, path)[0]["filesystem"].unique()) == ["default", "fs1"]


def test_targets_are_matched_by_name(tmp_path: Path) -> None:
    path = archives.pylmt(tmp_path / "a.h5lmt", TIMES, READ, WRITE, write_names=archives.NAMES[::-1])
    assert cells(read_input(SOURCE, path)[0])[0] == (at(1), 1.0, 50.0, None)
    path = archives.pylmt(tmp_path / "b.h5lmt", TIMES, READ, WRITE, write_names=["x", "y"])
    with pytest.raises(InputRefused, match="same targets"):
        read_input(SOURCE, path)


@pytest.fixture(scope="module")
def edison(shared_data: Path) -> pl.DataFrame:
    path = shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt"
    assert recognize(read_head(path)) is SOURCE
    rows, refused = read_input(SOURCE, path)
    assert refused.is_empty()
    return rows


def test_real_day_has_all_polls_and_an_unrecorded_tail(edison: pl.DataFrame) -> None:
    assert edison.height == 24 * 17_280
    assert edison["filesystem"].unique().to_list() == ["snx11025"]
    tail = edison.filter(flag="not_recorded")
    assert tail.height == 24 * 5_040
    assert tail["polled_at"].min() == datetime(2018, 2, 10, 1, 0, 5, tzinfo=UTC)
    assert edison.filter(pl.col("polled_at") < tail["polled_at"].min())["flag"].value_counts().sort("flag").rows() == [
        (None, 24 * 12_240 - 146),
        ("missing", 146),
    ]


def test_real_day_has_all_bytes_of_archive(edison: pl.DataFrame, shared_data: Path) -> None:
    with h5py.File(shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt", locking=False) as file:
        for direction, group in (("read", "OSTReadGroup/OSTBulkRead"), ("write", "OSTWriteGroup/OSTBulkWrite")):
            rates = edison[f"{direction}_bytes_per_s"] * edison["interval_s"]
            assert rates.sum() == pytest.approx(file[f"{group}DataSet"][:].sum() * 5, rel=1e-12)


def test_real_day_reproduces_known_bytes_of_runs(edison: pl.DataFrame, shared_data: Path) -> None:
    with (shared_data / "lmt" / "edison-join-golden.csv").open(encoding="utf-8") as file:
        golden = list(csv.DictReader(file))
    assert golden
    for run in golden:
        start = datetime.fromisoformat(run["start"]).replace(tzinfo=UTC)
        end = start + timedelta(seconds=float(run["dur"]) + 5)
        polls = edison.filter(pl.col("polled_at").is_between(start, end, closed="left"))
        for direction, column in (("read", "fs_tot_gibs_read"), ("write", "fs_tot_gibs_written")):
            moved = float((polls[f"{direction}_bytes_per_s"] * polls["interval_s"]).sum()) / GIB
            assert moved == pytest.approx(float(run[column]), rel=1e-9)
