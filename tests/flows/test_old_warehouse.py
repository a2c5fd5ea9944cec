"""A warehouse made by commit 18b5d00 can be moved, upgraded, read and run again.

`warehouse-18b5d00.tar.zst` holds two nights and a rollback to the first one. Each day has twelve runs on the file
system `scratch`: flash writes and milc reads 300 GB, five bursts of 30 s every 300 s. The second night also landed
`dxt.darshan`, an example of PyDarshan. The warehouse was made in `/data/iosig`.
"""

from __future__ import annotations

import io
import json
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import zstandard

from tests.nights import Cli

_ARCHIVE = Path(__file__).parent / "warehouse-18b5d00.tar.zst"
_FIRST, _SECOND, _ROLLBACK = "2026-03-02-520d754c", "2026-03-03-81a5cb72", "2026-03-02-520d754c-again1"
_DAY = datetime(2026, 3, 4, tzinfo=UTC)


def _unpack(tmp_path: Path) -> Path:
    data = zstandard.ZstdDecompressor().decompressobj().decompress(_ARCHIVE.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "iosig"


@pytest.fixture
def old_warehouse(tmp_path: Path, cli: Cli) -> Path:
    """Unpack, repair (it was moved) and upgrade the warehouse."""
    folder = _unpack(tmp_path)
    for command in ("repair", "upgrade"):
        code, _, error = cli("--warehouse", folder, command)
        assert code in (0, 5), error
    return folder


def test_an_old_warehouse_is_upgraded_where_it_lies(tmp_path: Path, cli: Cli) -> None:
    folder = _unpack(tmp_path)
    assert cli("--warehouse", folder, "verify")[0] == 6, "the catalogue has no checksum"
    code, output, error = cli("--warehouse", folder, "upgrade")
    assert (code, "has form 2" in output, "gets a checksum" in output) == (0, True, True), error
    assert cli("--warehouse", folder, "verify")[0] == 0
    assert cli("--warehouse", folder, "upgrade")[0] == 0
    assert cli("--warehouse", folder, "upgrade", "--strict")[0] == 5
    assert _count(cli, folder, "jobs", _SECOND) == 24


def _count(cli: Cli, warehouse: Path, table: str, release: str) -> int:
    code, output, error = cli(
        "--warehouse", warehouse, "sql", f"select count(*) from {table}", "--release", release, "--format", "csv"
    )
    assert code == 0, error
    return int(output.split()[-1])


def test_releases_of_an_old_warehouse_stay_readable(old_warehouse: Path, cli: Cli) -> None:
    job_counts = [_count(cli, old_warehouse, "jobs", release) for release in (_FIRST, _SECOND, _ROLLBACK)]
    assert job_counts == [12, 24, 12]
    assert cli("--warehouse", old_warehouse, "verify")[0] == 0
    # job I/O has the form of this version: one row per run, file system and direction, and the one that it replaced
    for release in (_FIRST, _SECOND):
        row_count = _count(cli, old_warehouse, "best_job_io", release)
        assert row_count > 0
        assert _count(cli, old_warehouse, "job_io", release) == row_count
        shared = "best_job_io where volume_bytes is not null and is_shared_traffic"
        assert _count(cli, old_warehouse, "job_io where filesystem_bytes > 0", release) == _count(
            cli, old_warehouse, f"{shared} and volume_bytes > 0", release
        )
    attributed = "job_io where estimate_source = 'attributed'"
    assert (
        _count(cli, old_warehouse, f"{attributed} and not estimated_bytes between 1 and filesystem_bytes", _SECOND) == 0
    )
    assert _count(cli, old_warehouse, attributed, _SECOND) > 0


def _write_third_day(folder: Path) -> None:
    start, end = _DAY + timedelta(hours=1), _DAY + timedelta(hours=2)
    (folder / "jobs.sacct").write_text(
        "JobID|User|Account|JobName|Partition|State|Submit|Start|End|NNodes|NodeList|Comment\n"
        f"1200|ada|astro|flash|batch|COMPLETED|{start:%FT%TZ}|{start:%FT%TZ}|{end:%FT%TZ}|4|nid[0001-0004]|fs=scratch\n"
    )
    times = [_DAY + timedelta(seconds=10 * step) for step in range(1, 1081)]
    rows = [f"{time:%FT%TZ},c0,scratch,1000000,{2_000_000_000 * (n % 30 < 3)}\n" for n, time in enumerate(times)]
    header = "polled_at,controller,filesystem,read_bytes_per_s,write_bytes_per_s\n"
    (folder / "polls.csv").write_text(header + "".join(rows))


@pytest.mark.slow
def test_a_night_runs_on_an_upgraded_warehouse(
    old_warehouse: Path, cli: Cli, tmp_path: Path, checks_here: None
) -> None:
    _write_third_day(tmp_path)
    assert cli("--warehouse", old_warehouse, "land", tmp_path / "jobs.sacct", tmp_path / "polls.csv")[0] == 0
    code, _, error = cli("--warehouse", old_warehouse, "run", "--since", "2026-03-04")
    assert code == 2
    assert "Run once without --since and --until" in error
    code, _, error = cli("--warehouse", old_warehouse, "run")
    assert code == 0, error
    code, output, _ = cli("--warehouse", old_warehouse, "sql", "select count(*) from jobs", "--format", "csv")
    assert (code, output.split()[-1]) == (0, "25")
    assert _count(cli, old_warehouse, "jobs", _SECOND) == 24
    # classes and periods of shared traffic are hidden in old releases, and replaced on every day by this night
    releases = json.loads(cli("--warehouse", old_warehouse, "releases", "--json")[1])["releases"]
    newest = releases[-1]["release_id"]
    for table in ("classes", "periods"):
        answers = f"{table} where subject_kind = 'job'"
        assert _count(cli, old_warehouse, answers, _SECOND) == 0
        assert _count(cli, old_warehouse, f"{table} where basis is null", newest) == 0
        assert _count(cli, old_warehouse, f"{answers} and outcome in ('classified', 'periodic')", newest) == 25
    assert _count(cli, old_warehouse, "job_io where estimate_source is null", newest) == 0
    assert _count(cli, old_warehouse, "job_io_sources", newest) == _count(cli, old_warehouse, "job_io", newest)
    assert _count(cli, old_warehouse, "explained_days where over_attributed_bytes is null", newest) == 0
