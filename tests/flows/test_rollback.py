"""Nights after a rollback ignore rolled-back landings until the rollback ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iosig.settings.model import Settings
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.releases import holds, releases
from iosig.warehouse.store.store import Store
from tests.nights import Cli, land_files, query_release, run_night

GOOD, BAD = 1e6, 1e9


@pytest.fixture(autouse=True)
def _quick(quick_checks: None) -> None:
    """Skip the checks: these tests are about which landings count."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "warehouse")


def land(store: Store, folder: Path, number: int, rate: float = GOOD, hours: int = 24) -> list[str]:
    """Land a day's polls of one rate; return the landings."""
    begin = datetime(2026, 3, number, tzinfo=UTC)
    rows = (f"{begin + timedelta(minutes=10 * step):%FT%TZ},c0,{rate},{rate}" for step in range(hours * 6))
    path = folder / f"polls-{number}-{rate:.0f}-{hours}.csv"
    path.write_text("\n".join(["polled_at,controller,read_bytes_per_s,write_bytes_per_s", *rows]) + "\n")
    return [arrival.landed.landing.landing_id for arrival in land_files(store, path) if arrival.landed]


def query(store: Store, text: str) -> list[Any]:
    return query_release(store, releases.find(store, None), text).rows()


def peaks(store: Store) -> Mapping[int, float]:
    """Return the peak rate of each day of the current release, ignoring zeros."""
    return dict(query(store, "select day(polled_on), peak_bytes_per_s / 2 from polls_daily order by all"))


def days(store: Store) -> list[tuple[int, int, float, bool]]:
    columns = "day(polled_on), expected_poll_count, missing_ratio, is_partial_day"
    return query(store, f"select {columns} from polls_daily order by all")


@pytest.mark.slow
def test_rolled_back_landings_are_published_after_the_rollback_ends(store: Store, tmp_path: Path) -> None:
    land(store, tmp_path, 1)
    first = run_night(store)
    bad = land(store, tmp_path, 2, BAD)
    run_night(store)
    assert peaks(store) == {1: GOOD, 2: BAD}
    _, hold = holds.roll_back(store, "2026-03-01")
    assert list(hold.landing_ids) == bad
    with pytest.raises(NothingToDo, match=r"rollback to .* is in force"):
        run_night(store)
    land(store, tmp_path, 3)
    third = run_night(store)
    assert peaks(store) == {1: GOOD, 3: GOOD}
    assert first.release_id in [release.release_id for release in releases.lineage(releases.history(store), third)]
    holds.end(store)
    run_night(store)
    assert peaks(store) == {1: GOOD, 2: BAD, 3: GOOD}


@pytest.mark.long
def test_frozen_table_is_kept_and_catches_up_after_the_rollback(store: Store, tmp_path: Path) -> None:
    land(store, tmp_path, 1)
    run_night(store)
    land(store, tmp_path, 2, BAD)
    run_night(store)
    holds.roll_back(store, "2026-03-01", table_names=["polls_daily"])
    run_night(store)
    land(store, tmp_path, 3)
    run_night(store)
    assert peaks(store) == {1: GOOD}
    ticks = query(store, "select distinct day(polled_on) from filesystem_rates order by all")
    assert ticks == [(1,), (2,), (3,)], "the other tables are published"
    holds.end(store)
    last = run_night(store)
    assert peaks(store) == {1: GOOD, 2: BAD, 3: GOOD}
    assert last.input_count == 0, "all landings are in the release already"
    assert holds.read(store) is None
    with pytest.raises(NothingToDo):
        run_night(store)


@pytest.mark.long
def test_changed_settings_are_refused_unless_landings_are_named(store: Store, tmp_path: Path) -> None:
    land(store, tmp_path, 1)
    run_night(store)
    bad = land(store, tmp_path, 2, BAD)
    changed = Settings.model_validate({"polls": {"max_controller_bytes_per_s": 1e12}})
    run_night(store, changed)
    holds.roll_back(store, releases.history(store)[0].release_id)
    with pytest.raises(UsageError, match=r"settings differ from those .*rollback --end"):
        run_night(store, changed)
    assert peaks(store) == {1: GOOD}
    holds.roll_back(store, releases.history(store)[0].release_id, landing_ids=bad)
    run_night(store, changed)
    assert peaks(store) == {1: GOOD}


@pytest.mark.slow
def test_rollback_command_begins_and_ends_a_rollback(store: Store, tmp_path: Path, cli: Cli) -> None:
    land(store, tmp_path, 1)
    run_night(store)
    land(store, tmp_path, 2, BAD)
    run_night(store)
    at = ("--warehouse", store.root)
    code, out, _ = cli(*at, "rollback", "2026-03-01")
    assert (code, "runs exclude 1 landing (" in out, "rollback --end`" in out) == (0, True, True)
    for command in ("status", "releases"):
        code, out, _ = cli(*at, command)
        assert (code, "is in force since" in out, "All is well" in out) == (0, True, False)
    _, _, err = cli(*at, "run", "--inline")
    assert "is in force since" in err
    assert cli(*at, "rollback", "2026-03-01")[0] == 0
    assert cli(*at, "rollback", "2026-03-01", "--strict")[0] == 5
    assert cli(*at, "rollback", "--end")[0] == 0
    assert cli(*at, "rollback", "--end", "--strict")[0] == 5
    _, out, _ = cli(*at, "run", "--inline")
    assert "is in force" not in out
    assert peaks(store) == {1: GOOD, 2: BAD}


@pytest.mark.long
def test_partial_last_day_becomes_whole_when_later_days_land(store: Store, tmp_path: Path) -> None:
    land(store, tmp_path, 1)
    land(store, tmp_path, 2, hours=12)
    run_night(store)
    assert days(store) == [(1, 144, 0.0, False), (2, 72, 0.0, True)]
    land(store, tmp_path, 3)
    run_night(store)
    assert days(store) == [(1, 144, 0.0, False), (2, 144, 0.5, False), (3, 144, 0.0, False)]


@pytest.mark.slow
def test_only_day_is_recounted_when_a_second_day_lands(store: Store, tmp_path: Path) -> None:
    land(store, tmp_path, 1, hours=12)
    run_night(store)
    assert days(store) == [(1, 72, 0.0, True)]
    land(store, tmp_path, 2)
    run_night(store)
    assert days(store) == [(1, 144, 0.5, False), (2, 144, 0.0, False)]
