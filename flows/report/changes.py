"""What a release changed against the one on which it builds, for the report."""

from __future__ import annotations

import polars as pl

from flows.signatures.changes import signature_changes
from reports.site.changes import ChangeFrames
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release
from warehouse.store.store import Store

_SUBJECT = ["application_id", "filesystem", "direction"]


def read(store: Store, release: Release, before: Release | None) -> ChangeFrames:
    """Return the frames; before: the release to compare with, None where none is there."""
    if before is None:
        return ChangeFrames(None, _signatures(store, release, release), _periods(store, release, release))
    return ChangeFrames(before.release_id, _signatures(store, release, before), _periods(store, release, before))


def _signatures(store: Store, release: Release, before: Release) -> pl.DataFrame:
    changed = signature_changes(store, before, release)
    for one, suffix in ((before, "_before"), (release, "")):
        with opened(store, one, "signatures") as connection:
            counts = connection.sql(_BURSTS).pl().rename({"burst_count": f"burst_count{suffix}"})
        changed = changed.join(counts, on=_SUBJECT, how="left", maintain_order="left")
    return changed


def _periods(store: Store, release: Release, before: Release) -> pl.DataFrame:
    with opened(store, before, "periods") as connection:
        old = connection.sql(_PERIODS).pl()
    with opened(store, release, "periods") as connection:
        new = connection.sql(_PERIODS).pl()
    both = old.join(new, on=_SUBJECT, how="full", coalesce=True, suffix="_after")
    told: pl.DataFrame = both.rename({"period_s": "period_s_before", "period_s_after": "period_s"}).sort(_SUBJECT)
    return told


_BURSTS = """
    select application_id, filesystem, direction, burst_count
    from signatures
    where is_default and outcome = 'extracted'
"""

_PERIODS = """
    select subject_id as application_id, filesystem, direction, period_s
    from periods
    where subject_kind = 'application' and is_default and outcome = 'periodic'
"""
