"""Test queries through Slurm's commands: the form of the reply, and the errors without a reply."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.external import processes
from iosig.warehouse.sources.jobs.slurm_commands import query_sacct, query_squeue
from iosig.warehouse.sources.protocol import Reading
from tests.fake_slurm import FakeSlurm, fake_slurm
from tests.servers import is_over

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    fake = fake_slurm(tmp_path / "bin", monkeypatch)
    noon = round(AT.timestamp())
    fake.add(1, noon - 100, noon - 50, noon - 10, name="a|b")
    fake.add(2, noon - 90, noon - 40)
    fake.add(3, noon - 9_000, noon - 8_000, noon - 7_000)
    return fake


def asked(folder: Path, timeout_s: float = 60.0) -> tuple[str, pl.DataFrame]:
    source, path = query_sacct(AT - timedelta(hours=1), AT, folder, timeout_s)
    (batch,) = source.read(path, Reading(time_zone="UTC"))
    return source.name, batch.rows.sort("job_id")


def test_sacct_json_and_text_yield_equal_rows(slurm: FakeSlurm, tmp_path: Path) -> None:
    first, rows = asked(tmp_path)
    slurm.tell(has_json=False)
    second, again = asked(tmp_path)
    assert (first, second) == ("sacct-json", "sacct")
    assert rows["job_id"].to_list() == ["1", "2"]
    assert rows["job_name"].to_list() == ["a|b", "ior"]
    assert rows["ended_at"].to_list() == [AT - timedelta(seconds=10), None]
    told = ["job_id", "user", "job_name", "node_count", "submitted_at", "started_at", "ended_at", "state"]
    assert rows.select(told).equals(again.select(told))


def test_json_with_errors_falls_back_to_text(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.tell(told_errors=True)
    assert asked(tmp_path)[0] == "sacct"


def test_error_message_of_failed_command_is_reported(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.tell(fault="Slurm accounting storage is disabled")
    with pytest.raises(InputRefused, match=r"`sacct` failed: Slurm accounting storage is disabled .*manually"):
        asked(tmp_path)


def test_command_is_killed_after_timeout(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.tell(sleep_s=60)
    with pytest.raises(InputRefused, match=r"`sacct` did not answer within 0\.2 s"):
        asked(tmp_path, timeout_s=0.2)


def test_command_ignoring_sigterm_is_killed_with_its_children(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    command = slurm.folder / "sacct"
    command.write_text(f"#!/bin/sh\ntrap '' TERM\nsleep 60 &\necho $! > {tmp_path}/child\nwait\nsleep 60\n")
    with pytest.raises(InputRefused, match="did not answer within 1 s"):
        asked(tmp_path, timeout_s=1.0)
    assert is_over(int((tmp_path / "child").read_text()))


def test_missing_command_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputRefused, match="`sacct` is not installed on this machine"):
        asked(tmp_path)


def test_squeue_json_and_text_yield_equal_rows(slurm: FakeSlurm, tmp_path: Path) -> None:
    slurm.add(4, round(AT.timestamp()), limit=30)
    found = []
    for has_json in (True, False):
        slurm.tell(has_json=has_json)
        source, path = query_squeue(AT, tmp_path, 60.0)
        assert source.name == ("squeue-json" if has_json else "squeue")
        (batch,) = source.read(path, Reading(time_zone="UTC"))
        assert batch.rows["observed_at"].unique().to_list() == [AT]
        found.append(batch.rows.select("job_id", "user", "job_name", "submitted_at", "time_limit_s", "queue_state"))
    assert found[0].equals(found[1])
    assert found[0]["job_id"].to_list() == ["2", "4"]
    assert found[0]["time_limit_s"].to_list() == [None, 1_800.0]
