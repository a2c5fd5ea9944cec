"""A release as static pages: read, made into files, and written where they changed."""

from __future__ import annotations

import json
from pathlib import Path

from iosig.answers.report import pages, writing
from iosig.answers.report.pages import Lineage, Reported
from iosig.answers.report.pseudonyms import Hider
from iosig.answers.report.writing import Written
from iosig.reports.site.packing import Content
from iosig.reports.site.pages import NIGHT
from iosig.reports.site.shells import root_page
from iosig.settings.model import Settings
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import opened
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store


def report(
    store: Store,
    release: Release,
    folder: Path,
    lineage: Lineage,
    hider: Hider | None = None,
    settings: Settings | None = None,
) -> Written:
    """Write the report of a release, have `latest/` be the newest there is, and remove what may not stay.

    Pages of expired releases go, and, where users are hidden from now on, all that name them.

    Raises UsageError where the folder holds something else, or where another report is written into it.
    """
    with writing.locked(folder):
        told = Reported(store, release, tuple(releases.kept(store)), lineage, hider, settings or Settings())
        return _written(told, folder)


def _written(told: Reported, folder: Path) -> Written:
    release, kept = told.release, told.kept
    named = writing.begin(folder, is_hiding=told.hider is not None)
    made = pages.Making(told, writing.known_in(folder, release.release_id))
    with opened(told.store, release) as connection:
        count, size, new = writing.write(folder, release.release_id, pages.of(made, connection))
    ids = [one.release_id for one in kept]
    gone = (*(one for one in named if one != release.release_id), *writing.remove_all_but(folder, ids))
    there = {path.name for path in writing.folders(folder)}
    shown = [one for one in kept if one.release_id in there]
    writing.show(folder, shown[-1].release_id)
    listed = [(one.release_id, one.created_at, one.verdict) for one in reversed(shown)]
    # a script beside the folders, which every page loads
    writing.put(folder, Content("releases.js", f"iosigReleases({json.dumps(listed)});\n".encode()))
    writing.put(folder, root_page(listed))
    return Written(folder / writing.LATEST / NIGHT.file_name, count, size, new, gone)
