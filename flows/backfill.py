"""Backfill: many days made anew, some at a time, each with a release; one that was stopped goes on where it was."""

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
from iosig.warehouse.store.store import Store, cached, put_document

_STATE = "backfill.json"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Days that are made together, both ends included; release: what came of them, None where they were done before."""

    since: date
    until: date
    release: Release | None = None
    duration_s: float = 0.0


def chunks(since: date, until: date, day_count: int) -> list[Chunk]:
    """Cut days into chunks of so many, the last one perhaps shorter."""
    require_order(since, until)
    begins = [since + timedelta(days=first) for first in range(0, (until - since).days + 1, day_count)]
    return [Chunk(begin, min(begin + timedelta(days=day_count - 1), until)) for begin in begins]


def backfill(
    store: Store,
    settings: Settings,
    since: date,
    until: date,
    day_count: int,
    run_chunk: Callable[[date, date], Release],
) -> Iterator[Chunk]:
    """Recompute days, a chunk at a time, and yield each with its release.

    run_chunk: computes the days of a chunk and publishes a release; raises NothingToDo if there is nothing. The chunks
    that are done are kept in the warehouse until all are: called again with the same days, chunks and settings, it
    continues after them.
    """
    asked = [since.isoformat(), until.isoformat(), str(day_count), settings.parameters()]
    done = _done(store, asked)
    for chunk in chunks(since, until, day_count):
        if chunk.since.isoformat() in done:
            yield chunk
            continue
        began, release = time.monotonic(), None
        with suppress(NothingToDo):
            release = run_chunk(chunk.since, chunk.until)
        done.append(chunk.since.isoformat())
        put_document(store, _STATE, {"asked": asked, "done": done})
        yield Chunk(chunk.since, chunk.until, release, time.monotonic() - began)
    store.files.remove(_STATE)


def run_inline_chunk(
    store: Store, settings: Settings, report: Report, wait_s: float, begin: Begin, since: date, until: date
) -> Release:
    """Compute the days of a chunk without Prefect, after landing what is new, and publish a release."""
    with executors.opened(settings, store.root) as engine:
        chunked = partial(run_inline, since=since, until=until, kind="backfill")
        return chunked(store, settings, report, engine=engine, wait_s=wait_s, begin=begin)


def _done(store: Store, asked: list[str]) -> list[str]:
    told = cached(store, _STATE, lambda told: list(told["done"]) if told["asked"] == asked else [])
    return told or []
