"""Build the static pages of a release, and write those that changed: the entry point of the report."""

from __future__ import annotations

import json
from pathlib import Path

from iosig.answers.report import pages, writing
from iosig.answers.report.pages import Lineage, ReportInput
from iosig.answers.report.pseudonyms import Pseudonymizer
from iosig.answers.report.writing import WriteSummary
from iosig.reports.site.packing import Content
from iosig.reports.site.pages import NIGHT
from iosig.reports.site.shells import root_page
from iosig.settings.model import Settings
from iosig.warehouse.releases import releases
from iosig.warehouse.releases.reading import open_release
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store


def report(
    store: Store,
    release: Release,
    folder: Path,
    lineage: Lineage,
    hider: Pseudonymizer | None = None,
    settings: Settings | None = None,
) -> WriteSummary:
    """Write the report of a release and point `latest/` to the newest one.

    Remove pages of expired releases and, when users become hidden, all pages that name users.

    Raises UsageError if the folder is not a report, or another process is writing to it.
    """
    with writing.lock(folder):
        report_input = ReportInput(
            store, release, tuple(releases.list_readable(store)), lineage, hider, settings or Settings()
        )
        return _write(report_input, folder)


def _write(report_input: ReportInput, folder: Path) -> WriteSummary:
    release, releases = report_input.release, report_input.kept
    removed_ids = writing.begin(folder, is_hiding=report_input.hider is not None)
    builder = pages.PageBuilder(report_input, writing.open_cache(folder, release.release_id))
    with open_release(report_input.store, release) as connection:
        count, size, new = writing.write(folder, release.release_id, pages.build_pages(builder, connection))
    ids = [item.release_id for item in releases]
    removed = (*(item for item in removed_ids if item != release.release_id), *writing.remove_all_but(folder, ids))
    folder_names = {path.name for path in writing.folders(folder)}
    kept_releases = [item for item in releases if item.release_id in folder_names]
    writing.set_latest(folder, kept_releases[-1].release_id)
    listed = [(item.release_id, item.created_at, item.verdict) for item in reversed(kept_releases)]
    # a script next to the release folders, loaded by every page
    writing.write_shared(folder, Content("releases.js", f"iosigReleases({json.dumps(listed)});\n".encode()))
    writing.write_shared(folder, root_page(listed))
    return WriteSummary(folder / writing.LATEST / NIGHT.file_name, count, size, new, removed)
