"""Releases of commit 18b5d00: their job I/O is read as this version has it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases import older, reading, releases
from iosig.warehouse.releases.export import export_table
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.releases.whole_release import export_database, export_folder
from iosig.warehouse.store.store import Store
from tests.flows.attributed_releases import attributed
from tests.sql.given import expect

_OLDER = """
    select '2018-02-09'::date as ended_on, 'cluster' as cluster, job_id,
        timestamptz '2018-02-09 09:00:00Z' as started_at, 'lake' as filesystem, 'write' as direction, source,
        null::varchar as trace_id, 'measured' as outcome, volume_bytes,
        1.0 as mean_bytes_per_s, 2.0 as peak_bytes_per_s, 3 as poll_count, 0.0 as missing_ratio,
        1 as concurrent_job_count, null::bigint as metadata_operation_count
    from (values ('1', 'server', 5000.0), ('2', 'server', 5000.0), ('2', 'jobstats', 700.0))
        as t(job_id, source, volume_bytes)
"""


@pytest.fixture
def older_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Release]:
    """A release whose files of `job_io` and `best_job_io` are of the older form."""
    store = Store(tmp_path / "warehouse")
    release = attributed(store)
    path = store.root / "older.parquet"
    duckdb.execute(f"copy ({_OLDER}) to '{path}'")
    (one,) = releases.files_of(store, release)["attributed_io"]
    cut = store.root / "attributed.parquet"
    pl.read_parquet(one).drop("estimate_source").with_columns(cluster=pl.lit("cluster")).write_parquet(cut)
    files = releases.files_of(store, release) | {"job_io": [path], "best_job_io": [path], "attributed_io": [cut]}
    for module in (releases, older):
        monkeypatch.setattr(module, "files_of", lambda *_: dict(files))
    return store, release


def test_job_io_is_a_view_over_older_files(older_release: tuple[Store, Release]) -> None:
    store, release = older_release
    assert older.is_older(store, release)
    columns = "job_id, estimate_source, estimated_bytes, estimated_low_bytes, filesystem_bytes"
    query = f"select {columns} from job_io order by all"
    with reading.opened(store, release, query) as connection:
        found = connection.sql(query).pl()
    expect(
        found,
        """
        job_id estimate_source estimated_bytes estimated_low_bytes filesystem_bytes
        1      attributed      400             300                 5000
        2      counted         700             700                 5000
        """,
    )
    query = "select source, sum(own_bytes), sum(filesystem_bytes) from job_io_sources group by all order by 1"
    with reading.opened(store, release, query) as connection:
        assert connection.sql(query).fetchall() == [("jobstats", 700.0, None), ("server", None, 10000.0)]
        assert "older" not in str(connection.sql("show tables").fetchall())
    with reading.opened(store, release, "from best_job_io") as connection:
        assert connection.sql("select sum(volume_bytes) from best_job_io").fetchall() == [(10700.0,)]


def test_files_of_another_form_are_exported_table_by_table(
    older_release: tuple[Store, Release], tmp_path: Path
) -> None:
    store, release = older_release
    assert export_table(store, release, "job_io", tmp_path / "io.parquet") == 2
    assert pl.read_parquet(tmp_path / "io.parquet")["estimated_bytes"].sum() == 1100
    with pytest.raises(UsageError, match="older iosig: its job_io has another form"):
        export_folder(store, release, tmp_path / "plain")
    with pytest.raises(UsageError, match="older iosig"):
        export_database(store, release, tmp_path / "release.duckdb")
