"""Backfill computes every requested day once, however often it is interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as bounded, strategies as st

from iosig.flows import backfill as module
from iosig.flows.backfill import DayRange, backfill, day_ranges
from iosig.settings.model import Settings
from iosig.warehouse.errors import MachineFault, NothingToDo, UsageError
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.store.store import Store
from tests.budget import examples

FIRST, LAST = date(2026, 3, 1), date(2026, 3, 10)


def tell(*_: object) -> None:
    pass


def backfilled(store: Store, settings: Settings, since: date, until: date, day_count: int) -> Iterator[DayRange]:
    return backfill(
        store, settings, since, until, day_count, partial(module.run_days_inline, store, settings, tell, 0.0, tell)
    )


@bounded(max_examples=examples(50))
@given(st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.dates(date(2000, 1, 1), date(2030, 1, 1)), st.integers(1, 400))
def test_day_ranges_cover_each_day_once(one: date, other: date, day_count: int) -> None:
    since, until = sorted((one, other))
    found = day_ranges(since, until, day_count)
    assert (found[0].since, found[-1].until) == (since, until)
    assert all((after.since - before.until).days == 1 for before, after in pairwise(found))
    assert all((days.until - days.since).days + 1 == day_count for days in found[:-1])


def test_day_ranges_refuse_days_in_the_wrong_order() -> None:
    with pytest.raises(UsageError, match=r"since \(2026-03-10\) comes after"):
        day_ranges(LAST, FIRST, 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "warehouse")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[date, date]]:
    """Ranges that were run; the third fails at first, and the second has no data."""
    found: list[tuple[date, date]] = []

    def run(*_: object, since: date, until: date, **__: Any) -> str:
        found.append((since, until))
        if len(found) == 3:
            raise MachineFault("the disk is full")
        if since.day == 5:
            raise NothingToDo("no landings")
        return f"release {since}"

    monkeypatch.setattr(module, "run_inline", run)
    return found


def days(found: list[DayRange]) -> list[tuple[int, int, bool]]:
    return [(one.since.day, one.until.day, one.release is not None) for one in found]


@pytest.mark.usefixtures("checks_here")
def test_interrupted_backfill_resumes_at_the_failed_range(asked: list[tuple[date, date]], store: Store) -> None:
    ended: list[DayRange] = []
    with pytest.raises(MachineFault):
        ended.extend(backfilled(store, Settings(), FIRST, LAST, 4))
    again = list(backfilled(store, Settings(), FIRST, LAST, 4))
    assert days(again) == [(1, 4, False), (5, 8, False), (9, 10, True)]
    assert [since.day for since, _ in asked] == [1, 5, 9, 9]
    whole = list(backfilled(store, Settings(), FIRST, LAST, 4))
    assert days(whole) == [(1, 4, True), (5, 8, False), (9, 10, True)], "all was done: it begins anew"


@pytest.mark.usefixtures("checks_here")
@pytest.mark.parametrize("changed", ["until", "chunk", "settings"])
def test_changed_arguments_restart_the_backfill(asked: list[tuple[date, date]], store: Store, changed: str) -> None:
    with pytest.raises(MachineFault):
        list(backfilled(store, Settings(), FIRST, LAST, 4))
    until = date(2026, 3, 9) if changed == "until" else LAST
    own = Settings.model_validate({"quality": {"machine_node_count": 7}}) if changed == "settings" else Settings()
    list(backfilled(store, own, FIRST, until, 5 if changed == "chunk" else 4))
    assert asked[3][0] == FIRST


@pytest.mark.long
@pytest.mark.usefixtures("quick_checks")
def test_backfill_releases_equal_a_single_run(site: Store, tmp_path: Path) -> None:
    shutil.copytree(site.root, tmp_path / "whole")
    whole = Store(tmp_path / "whole")
    release = module.run_inline(whole, Settings(), tell)
    days_of = sorted(date.fromisoformat(day) for day in release.dates if day)
    ended = list(backfilled(site, Settings(), days_of[0] - timedelta(days=1), days_of[-1], 1))
    assert [one.release for one in ended if one.release] == releases.history(site)
    with open_release(site, releases.history(site)[-1]) as ours, open_release(whole, release) as theirs:
        for table in ("job_io", "samples", "classes", "polls_daily"):
            query = f"select * from {table} order by all"
            assert ours.sql(query).fetchall() == theirs.sql(query).fetchall()
