"""Write the report on a release into the folder of the settings; without a folder, no drawing library is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosig.settings.model import Settings
from iosig.warehouse.errors import UsageError
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.answers.report.writing import WriteSummary


def write_report(store: Store, settings: Settings, release: Release) -> WriteSummary:
    """Write the pages of a release into the folder of the settings. Raises UsageError if they name none."""
    if settings.report.output is None:
        raise UsageError("The settings have no folder for the report: set `output` in [report].")
    from iosig.answers.report import build
    from iosig.answers.report.pseudonyms import create_pseudonymizer
    from iosig.flows.lineage import table_rows

    hider = create_pseudonymizer(store, settings) if settings.report.hide_users else None
    return build.report(store, release, settings.report.output, table_rows, hider, settings)


def after_release(store: Store, settings: Settings, release: Release) -> tuple[str, int] | None:
    """Write the report if the settings name a folder; return a line about it, and the number of new files.

    Never raises: the release remains valid even if writing its pages fails.
    """
    if settings.report.output is None:
        return None
    try:
        written = write_report(store, settings, release)
    except Exception as error:
        return f"report: not written; the release is not affected: {type(error).__name__}: {error}", 0
    return f"report {written.page}", written.new_count
