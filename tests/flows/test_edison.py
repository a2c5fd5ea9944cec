"""Real logs end to end: Edison's job log joined with the polls of one of its file systems."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from iosig.answers.single.periods import Query, find_periods
from iosig.settings.model import Settings
from iosig.streams.landing import ReadOptions
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.nights import land_files, run_night

pytestmark = pytest.mark.slow

SETTINGS = Settings.model_validate({"filesystems": {"scratch1": "snx11025"}})


@pytest.fixture(scope="module")
def job_io(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    store = Store(tmp_path_factory.mktemp("edison"))
    files = ["lmt/edison-snx11025_2018-02-09.h5lmt", "jobs/edison-2018-02-09.sacct"]
    arrivals = land_files(store, *[str(shared_data / name) for name in files], settings=SETTINGS, time_zone="UTC")
    assert not any(arrival.has_refusals for arrival in arrivals)
    release = run_night(store, SETTINGS)
    query = "select jobs.application, job_io.* from job_io inner join jobs using (cluster, job_id, started_at)"
    with open_release(store, release) as connection:
        return connection.sql(query).pl()


@pytest.mark.long
def test_volumes_equal_the_golden_join(job_io: pl.DataFrame, shared_data: Path) -> None:
    golden = pl.read_csv(shared_data / "lmt" / "edison-join-golden.csv")
    assert golden.height == 4
    for row in golden.iter_rows(named=True):
        started = datetime.fromisoformat(row["start"]).replace(tzinfo=UTC)
        run = job_io.filter(pl.col("application") == row["app"], pl.col("started_at") == started)
        for direction, column in (("read", "fs_tot_gibs_read"), ("write", "fs_tot_gibs_written")):
            (volume,) = run.filter(pl.col("direction") == direction)["filesystem_bytes"]
            assert volume / 2**30 == pytest.approx(row[column], rel=1e-9, abs=0)


def test_runs_on_other_file_systems_have_no_volumes(job_io: pl.DataFrame) -> None:
    others = job_io.filter(pl.col("filesystem") != "snx11025")
    assert others["job_id"].n_unique() == 16
    assert set(others["outcome"]) == {"no_polls"}
    for column in ("filesystem_bytes", "own_bytes", "estimated_bytes"):
        assert others[column].null_count() == others.height == 32
    assert set(others["estimate_source"]) == {"none"}


def test_missing_polls_are_reported_as_missing_ratio(job_io: pl.DataFrame) -> None:
    on_scratch1 = job_io.filter(pl.col("filesystem") == "snx11025")
    assert on_scratch1["filesystem_bytes"].null_count() == 0
    assert on_scratch1["missing_ratio"].max() > 0.1, "one run has a hole in its polls"


def test_hour_of_periodic_bursts_is_found_in_a_day_of_polls(shared_data: Path) -> None:
    found = find_periods(
        shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt",
        Settings(),
        ReadOptions(time_zone="UTC"),
        Query(direction="read"),
    )
    (row,) = found.rows.iter_rows(named=True)
    assert (row["outcome"], row["method"], row["basis"]) == ("periodic", "null_tested", "polled")
    assert 128 <= row["period_s"] <= 130
    assert found.zero_s is not None
    began, ended = (datetime.fromtimestamp(found.zero_s + row[f"window_{end}_s"], UTC) for end in ("start", "end"))
    assert datetime(2018, 2, 9, 13, 52, tzinfo=UTC) < began < datetime(2018, 2, 9, 13, 55, tzinfo=UTC)
    assert datetime(2018, 2, 9, 14, 48, tzinfo=UTC) < ended < datetime(2018, 2, 9, 14, 52, tzinfo=UTC)
    # Of the about 205 GiB of a burst, the bytes above the mean rate.
    assert row["bytes_per_period"] == pytest.approx(205 * 2**30, rel=0.15)
