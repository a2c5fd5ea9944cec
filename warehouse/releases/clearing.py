"""Clearing: raw polls of days that are long published go, and those days are never computed anew.

What is lost is to make these days' ticks again: with other settings, or with polls that come late. What was published
of them stays, and so does all that is made of it: runs that end on such a day are cut from its ticks. Nothing goes that
the next run after any kept release may need, going back to it included; nor what holds refused rows, or anything but
polls: job logs and traces are small beside them, and asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.releases import releases, seals
from iosig.warehouse.store import ledger
from iosig.warehouse.store.files import Busy
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.state import put_state, read_state
from iosig.warehouse.store.store import Store

_CLOSED = "closed_days.json"


@dataclass(frozen=True, slots=True)
class Cleared:
    """What went: landings of polls, the bytes of their files, and the days that were closed with them."""

    landing_count: int
    byte_count: int
    days: tuple[date, ...]


def closed_days(store: Store) -> set[date]:
    """Return the days whose raw polls are gone, or going: they are not computed anew.

    Raises MachineFault where nobody can know.
    """
    return {date.fromisoformat(day) for day in read_state(store, _CLOSED) or ()}


def clear(store: Store, keep_days: int) -> Cleared:
    """Remove the polls that were landed longer ago, of days of which all polls were. Hold the warehouse for it.

    keep_days: at least 1. Nothing is removed while somebody reads a release. A clearing that was killed is ended by
    the next one.
    """
    known = ledger.read(store)
    going = _going(store, known, datetime.now(UTC) - timedelta(days=keep_days))
    if going.is_empty():
        return Cleared(0, 0, ())
    files = known.files.join(going, on="folder", how="semi")
    names = [f"landed/{folder}" for folder in going["folder"]]
    days, closed = set(files["day"].to_list()), closed_days(store)
    try:
        with store.files.held(releases.READING):
            put_state(store, _CLOSED, sorted(day.isoformat() for day in closed | days))
            size = sum(int(mark[0]) for name in files["path"] if (mark := store.files.mark(name)))
            seals.unseal(store, {manifest_in(folder) for folder in going["folder"]})
            store.files.remove(*names)
    except Busy:
        return Cleared(0, 0, ())
    # the index forgets them before such a name, or such a number of a folder, comes again
    ledger.read(store)
    return Cleared(going.height, size, tuple(sorted(days - closed)))


def _going(store: Store, known: ledger.Ledger, before: datetime) -> pl.DataFrame:
    """Return the landings that go: old ones of polls alone, whose days have no others."""
    files = known.files
    others = files.filter((pl.col("table") != POLLS.name) | pl.col("day").is_null() | pl.col("is_shared"))
    old = pl.col("landed_at").str.to_datetime(time_zone="UTC") < before
    may_go = (
        known.landings.filter(old & (pl.col("refused_count") == 0) & (pl.col("row_count") > 0))
        .join(others, on="folder", how="anti")
        .join(_needed(store, known), on="landing_id", how="anti")
    )
    polls = files.filter(pl.col("table") == POLLS.name).select("folder", "day")
    while True:
        stays = known.landings.join(may_go, on="folder", how="anti")
        open_days = polls.join(stays, on="folder", how="semi").select("day").unique()
        held = polls.join(open_days, on="day", how="semi")
        left = may_go.join(held, on="folder", how="anti")
        if left.height == may_go.height:
            return left
        may_go = left


def _needed(store: Store, known: ledger.Ledger) -> pl.DataFrame:
    """Return the landings that a run on top of a kept release may read: those that are not in all of them."""
    kept = releases.kept(store)
    in_all = _in_all(releases.landings_in(store, release) for release in kept)
    # of a content that was landed anew, the earlier landing is needed by nobody once no release has it
    in_any = pl.concat([pl.Series("landing_id", [], pl.String), *(releases.landings_in(store, each) for each in kept)])
    ids = known.landings.select("landing_id")
    replaced = ids.join(known.in_force, on="landing_id", how="anti")
    free = replaced.join(in_any.to_frame(), on="landing_id", how="anti")
    return ids.join(pl.concat([in_all, free]), on="landing_id", how="anti")


def _in_all(sets: Iterable[pl.Series]) -> pl.DataFrame:
    """Return the ids that are in all sets; none where there are no sets."""
    found: pl.DataFrame | None = None
    for each in sets:
        frame = each.to_frame("landing_id")
        found = frame if found is None else found.join(frame, on="landing_id", how="semi")
    return pl.DataFrame(schema={"landing_id": pl.String}) if found is None else found
