"""What a release changed against the one on which it builds, for the report."""

from __future__ import annotations

from flows.signatures.changes import signature_changes
from flows.wall.release_changes import TABLES, pairs
from reports.site.changes import ChangeFrames
from warehouse.releases.reading import opened
from warehouse.releases.releases import Release
from warehouse.store.store import Store


def read(store: Store, release: Release, before: Release | None) -> ChangeFrames:
    """Return the frames; before: the release to compare with, None where none is there."""
    changed = signature_changes(store, before or release, release)
    with opened(store, before or release, TABLES) as old, opened(store, release, TABLES) as new:
        return ChangeFrames(before.release_id if before else None, changed, pairs(old, new))
