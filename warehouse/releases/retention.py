"""Delete raw polls of days that were published long ago; those days are never computed again.

The poll ticks of these days can then not be recomputed with other settings or with late polls. The published ticks
stay, and so do results derived from them, such as runs that end on such a day. Data that a run on top of any kept
release may need are never deleted, so rollbacks remain possible. Only landings that consist of polls alone, without
refused rows, are deleted: job logs and traces are small in comparison, and later runs read them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import polars as pl

from iosig.warehouse.contracts.polls import POLLS
from iosig.warehouse.releases import releases, seals
from iosig.warehouse.store import ledger
from iosig.warehouse.store.files import LockHeldError
from iosig.warehouse.store.manifests import manifest_in
from iosig.warehouse.store.state import put_state, read_state
from iosig.warehouse.store.store import Store

_CLOSED = "closed_days.json"


@dataclass(frozen=True, slots=True)
class ClearedDays:
    """Number and size of the landings that a clearing deleted, and the days that it closed."""

    landing_count: int
    byte_count: int
    days: tuple[date, ...]


def read_closed_days(store: Store) -> set[date]:
    """Return the days that are never computed again, because their raw polls have been or are being deleted.

    Raises MachineFault if the list is damaged.
    """
    return {date.fromisoformat(day) for day in read_state(store, _CLOSED) or ()}


def clear(store: Store, keep_days: int) -> ClearedDays:
    """Delete landed polls older than `keep_days`, except on days with newer polls. The caller must lock the warehouse.

    keep_days: 1 or more. Nothing is deleted while a release is being read. If a clearing is killed, the next one
    completes it.
    """
    index = ledger.read(store)
    expired = _going(store, index, datetime.now(UTC) - timedelta(days=keep_days))
    if expired.is_empty():
        return ClearedDays(0, 0, ())
    files = index.files.join(expired, on="folder", how="semi")
    names = [f"landed/{folder}" for folder in expired["folder"]]
    days, closed = set(files["day"].to_list()), read_closed_days(store)
    try:
        with store.files.lock(releases.READING):
            put_state(store, _CLOSED, sorted(day.isoformat() for day in closed | days))
            size = sum(int(mark[0]) for name in files["path"] if (mark := store.files.mark(name)))
            seals.unseal(store, {manifest_in(folder) for folder in expired["folder"]})
            store.files.remove(*names)
    except LockHeldError:
        return ClearedDays(0, 0, ())
    # update the index now, before a new folder reuses the name or the inode of a deleted one
    ledger.read(store)
    return ClearedDays(expired.height, size, tuple(sorted(days - closed)))


def _going(store: Store, index: ledger.Ledger, before: datetime) -> pl.DataFrame:
    """Select old landings that consist of polls only, on days without newer landings."""
    files = index.files
    other_files = files.filter((pl.col("table") != POLLS.name) | pl.col("day").is_null() | pl.col("is_shared"))
    old = pl.col("landed_at").str.to_datetime(time_zone="UTC") < before
    may_go = (
        index.landings.filter(old & (pl.col("refused_count") == 0) & (pl.col("row_count") > 0))
        .join(other_files, on="folder", how="anti")
        .join(_find_needed_landings(store, index), on="landing_id", how="anti")
    )
    polls = files.filter(pl.col("table") == POLLS.name).select("folder", "day")
    while True:
        remaining_landings = index.landings.join(may_go, on="folder", how="anti")
        open_days = polls.join(remaining_landings, on="folder", how="semi").select("day").unique()
        open_polls = polls.join(open_days, on="day", how="semi")
        remaining = may_go.join(open_polls, on="folder", how="anti")
        if remaining.height == may_go.height:
            return remaining
        may_go = remaining


def _find_needed_landings(store: Store, landings: ledger.Ledger) -> pl.DataFrame:
    """Return the landings that any kept release lacks, because a run on top of that release may read them."""
    kept_releases = releases.list_readable(store)
    in_all = _in_all(releases.landings_in(store, release) for release in kept_releases)
    # once no release contains the earlier landing of a content that landed again, no run needs it
    in_any = pl.concat(
        [pl.Series("landing_id", [], pl.String), *(releases.landings_in(store, release) for release in kept_releases)]
    )
    ids = landings.landings.select("landing_id")
    replaced = ids.join(landings.in_force, on="landing_id", how="anti")
    unneeded = replaced.join(in_any.to_frame(), on="landing_id", how="anti")
    return ids.join(pl.concat([in_all, unneeded]), on="landing_id", how="anti")


def _in_all(sets: Iterable[pl.Series]) -> pl.DataFrame:
    """Return the ids that all sets contain; without sets, none."""
    common: pl.DataFrame | None = None
    for ids in sets:
        frame = ids.to_frame("landing_id")
        common = frame if common is None else common.join(frame, on="landing_id", how="semi")
    return pl.DataFrame(schema={"landing_id": pl.String}) if common is None else common
