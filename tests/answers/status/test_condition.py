"""The condition of a warehouse: releases, waiting inputs, rejects, missing polls and the lock."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from iosig.answers.status.condition import _incomplete, next_run, read_condition
from iosig.settings.model import ScheduleSettings, Settings
from iosig.warehouse.store.form import mark_form
from iosig.warehouse.store.store import Store, lock_warehouse
from tests.nights import Night, land_files

JOBS = "JobID|User|JobName|Partition|NNodes|Start|End|State\n"


def test_condition_before_the_first_release(landed_site: Store) -> None:
    found = read_condition(landed_site, Settings())
    assert (found.release_id, found.released_at, found.filesystems) == (None, None, ())
    assert {"job_records", "polls"} <= {source.table for source in found.sources}
    assert 0 < len(found.waiting) <= sum(len(source.landed_at) for source in found.sources)
    assert 0 < found.disk_free_bytes < found.disk_total_bytes
    assert found.held_by is None


def test_condition_after_a_night(quick_night: Night) -> None:
    found = read_condition(quick_night.store, Settings())
    assert (found.release_id, found.verdict) == (quick_night.release.release_id, quick_night.release.verdict)
    assert found.waiting == ()
    (filesystem,) = found.filesystems
    assert filesystem.bytes_moved > 0
    assert (filesystem.missing_ratio, filesystem.is_partial_day, filesystem.incomplete_days) == (0.0, True, ())
    assert abs(found.at - datetime.now(UTC)) < timedelta(minutes=5)


def test_only_recent_refused_inputs_are_listed(tmp_path: Path) -> None:
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "jobs.sacct").write_text(
        f"{JOBS}1|ann|a|b|8|2026-03-03T00:00:00Z|2026-03-03T01:00:00Z|COMPLETED\n104|ann\n"
    )
    store = Store(tmp_path / "warehouse")
    land_files(store, tmp_path / "torn.parquet", tmp_path / "jobs.sacct", allows_refusals=True)
    found = read_condition(store, Settings()).refused_inputs
    assert [(Path(one.file).name, one.refused_rows, one.rows) for one in found] == [
        ("torn.parquet", 1, 0),
        ("jobs.sacct", 1, 1),
    ]
    assert read_condition(store, Settings(), datetime.now(UTC) + timedelta(days=8)).refused_inputs == ()


def on(day: int) -> date:
    return date(2026, 3, day)


@pytest.mark.parametrize(
    ("missing", "newest", "expected"),
    [
        ({1: 0.0, 2: 0.05, 3: 0.0}, 3, {}),
        ({1: 0.0, 2: 0.2, 3: 0.0}, 3, {2: 0.2}),
        ({1: 0.0, 4: 0.0}, 4, {2: 1.0, 3: 1.0}),
        ({1: 0.0, 2: 0.0}, 3, {}),
        ({1: 0.0, 2: 0.0}, 5, {3: 1.0, 4: 1.0}),
        ({1: 0.0, 2: 0.0}, 20, {}),
    ],
    ids=["whole", "a gap", "days without polls", "polled today later", "silent", "decommissioned"],
)
def test_incomplete_days_are_found(missing: dict[int, float], newest: int, expected: dict[int, float]) -> None:
    found = _incomplete({on(day): ratio for day, ratio in missing.items()}, on(newest), 0.1)
    assert {one.day.day: one.missing_ratio for one in found} == expected


def test_lock_holder_is_reported_unless_it_died(tmp_path: Path) -> None:
    store = Store(tmp_path)
    mark_form(store)
    with lock_warehouse(store):
        assert (read_condition(store, Settings()).held_by or {})["process"] == os.getpid()
    assert read_condition(store, Settings()).held_by is None
    with lock_warehouse(store):
        told = json.loads((tmp_path / "lock.json").read_text())
    for change, is_told in (({"process": 2**22 - 3}, False), ({"process": "x"}, False), ({"host": "elsewhere"}, True)):
        (tmp_path / "lock.json").write_text(json.dumps(told | change))
        assert (read_condition(store, Settings()).held_by is not None) == is_told


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("UTC", "2026-03-21T02:30"), ("Europe/Berlin", "2026-03-21T01:30"), ("Asia/Tokyo", "2026-03-20T17:30")],
)
def test_next_run_uses_the_time_zone_of_the_schedule(zone: str, expected: str) -> None:
    found = next_run(ScheduleSettings(time_zone=zone), datetime(2026, 3, 20, 12, tzinfo=UTC))
    assert found.isoformat()[:16] == expected
