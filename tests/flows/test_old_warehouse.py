"""A warehouse of commit 18b5d00 can be moved, upgraded, read and run; `test_upgrading.py` describes its contents."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iosig.warehouse.store.store import Store
from tests.nights import Cli
from tests.warehouse.releases.test_upgrading import IDS, unpack

_FIRST, _SECOND, _ROLLBACK = IDS
_DAY = datetime(2026, 3, 4, tzinfo=UTC)


@pytest.fixture
def old_warehouse(tmp_path: Path, cli: Cli) -> Path:
    """Unpack the warehouse, which moves it, and upgrade it."""
    folder = tmp_path / "iosig"
    unpack(Store(folder))
    code, _, error = cli("--warehouse", folder, "upgrade")
    assert code == 0, error
    return folder


def test_old_warehouse_is_upgraded_in_place(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "iosig"
    unpack(Store(folder))
    code, _, error = cli("--warehouse", folder, "sql", "from jobs")
    assert code == 2
    assert "has the form 2 of an older iosig" in error
    code, output, error = cli("--warehouse", folder, "upgrade", "--check")
    assert (code, "Form 2 to 3" in output, "settings are renamed" in output) == (0, True, True), error
    code, output, error = cli("--warehouse", folder, "upgrade")
    assert (code, "has form 3" in output, "the old file is" in output) == (0, True, True), error
    assert cli("--warehouse", folder, "verify", "--all")[0] == 0
    assert cli("--warehouse", folder, "upgrade")[0] == 0
    assert cli("--warehouse", folder, "upgrade", "--strict")[0] == 5
    assert _count(cli, folder, "jobs", _SECOND) == 24
    for query, name in (("select trust from signatures", "expected_correlation"), ("from poll_days", "polls_daily")):
        code, _, error = cli("--warehouse", folder, "sql", query)
        assert (code, f"It was renamed to {name}." in error) == (2, True), error


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
    for release in (_FIRST, _SECOND):
        row_count = _count(cli, old_warehouse, "job_io", release)
        assert row_count > 0
        assert _count(cli, old_warehouse, "job_io where filesystem_bytes > 0", release) > 0
        assert _count(cli, old_warehouse, "job_io_sources where own_bytes > 0 and filesystem_bytes > 0", release) == 0
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
def test_night_runs_on_an_upgraded_warehouse(old_warehouse: Path, cli: Cli, tmp_path: Path, checks_here: None) -> None:
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
    # classes and periods of shared traffic are not converted, so this run computes them for every day
    releases = json.loads(cli("--warehouse", old_warehouse, "releases", "--json")[1])["releases"]
    newest = releases[-1]["release_id"]
    for table in ("classes", "periods"):
        answers = f"{table} where subject_kind = 'job'"
        assert _count(cli, old_warehouse, answers, _SECOND) == 0
        assert _count(cli, old_warehouse, f"{table} where basis is null", newest) == 0
        assert _count(cli, old_warehouse, f"{answers} and outcome in ('classified', 'periodic')", newest) == 25
    assert _count(cli, old_warehouse, "job_io where estimate_source is null", newest) == 0
    assert _count(cli, old_warehouse, "job_io_sources", newest) == _count(cli, old_warehouse, "job_io", newest)
    assert _count(cli, old_warehouse, "attribution_daily where excess_attributed_bytes is null", newest) == 0
