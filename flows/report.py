"""The report of a release that a night made, where the settings want one; who wants none imports nothing that draws."""

from __future__ import annotations

from iosig.settings.model import Settings
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store


def after_release(store: Store, settings: Settings, release: Release) -> tuple[str, int] | None:
    """Write the report where the settings want one; return what is to be told of it, and how many files are new.

    Never raises: the release stands, whatever befalls its pages.
    """
    if settings.report.into is None:
        return None
    try:
        from iosig.answers.report import build
        from iosig.answers.report.pseudonyms import hider_of
        from iosig.flows.lineage import table_rows

        hider = hider_of(store, settings) if settings.report.hide_users else None
        written = build.report(store, release, settings.report.into, table_rows, hider, settings)
    except Exception as error:
        return f"report: not written, the release stands: {type(error).__name__}: {error}", 0
    return f"report {written.page}", written.new_count
