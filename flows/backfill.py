"""Recompute many days, range by range, and publish a release for each range; a stopped backfill resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from iosig.flows import executors
from iosig.flows.nightly import Begin, Report, run_inline
from iosig.flows.steps.plan import require_order
from iosig.settings.model import Settings
from iosig.warehouse.errors import NothingToDo
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store, put_document, read_cache

_STATE = "backfill.json"


@dataclass(frozen=True, slots=True)
class DayRange:
    """A range of days that are recomputed together, from `since` to `until` inclusive.

    release: None if an earlier backfill has computed the days, or if they have no data.
    """

    since: date
    until: date
    release: Release | None = None
    duration_s: float = 0.0


def day_ranges(since: date, until: date, day_count: int) -> list[DayRange]:
    """Divide days into ranges of equal length; the last one may be shorter."""
    require_order(since, until)
    starts = [since + timedelta(days=first) for first in range(0, (until - since).days + 1, day_count)]
    return [DayRange(start, min(start + timedelta(days=day_count - 1), until)) for start in starts]


def backfill(
    store: Store,
    settings: Settings,
    since: date,
    until: date,
    day_count: int,
    run_days: Callable[[date, date], Release],
) -> Iterator[DayRange]:
    """Recompute days range by range, and yield each range with its release.

    run_days: computes a range and publishes a release; raises NothingToDo if it has no data. The warehouse records
    completed ranges until all are complete: a call with the same days and settings resumes after them.
    """
    request = [since.isoformat(), until.isoformat(), str(day_count), settings.parameters()]
    completed = _read_progress(store, request)
    for days in day_ranges(since, until, day_count):
        if days.since.isoformat() in completed:
            yield days
            continue
        start_s, release = time.monotonic(), None
        with suppress(NothingToDo):
            release = run_days(days.since, days.until)
        completed.append(days.since.isoformat())
        put_document(store, _STATE, {"asked": request, "done": completed})
        yield DayRange(days.since, days.until, release, time.monotonic() - start_s)
    store.files.remove(_STATE)


def run_days_inline(
    store: Store, settings: Settings, report: Report, lock_timeout_s: float, begin: Begin, since: date, until: date
) -> Release:
    """Compute a range of days without Prefect, after landing new inputs, and publish a release."""
    with executors.open_engine(settings, store.root) as engine:
        run = partial(run_inline, since=since, until=until, kind="backfill")
        return run(store, settings, report, engine=engine, lock_timeout_s=lock_timeout_s, begin=begin)


def _read_progress(store: Store, request: list[str]) -> list[str]:
    completed = read_cache(store, _STATE, lambda state: list(state["done"]) if state["asked"] == request else [])
    return completed or []
