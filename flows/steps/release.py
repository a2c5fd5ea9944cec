"""The release: all that was built and checked becomes visible at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import polars as pl

from flows.settings import Settings
from flows.steps import plan as planning
from flows.steps.run import Run, Work
from warehouse.contracts.quality import QUALITY
from warehouse.releases import expiring, publishing
from warehouse.releases.expiring import Freed
from warehouse.releases.publishing import Draft
from warehouse.releases.releases import Release
from warehouse.store.store import Store


def release(run: Run, works: Iterable[Work]) -> Release:
    """Publish all that works built and checks let pass, as one release, tell of it, and remove the plan's folder."""
    from expectations import docs, gate

    plan = run.plan
    draft = Draft(
        release_id=plan.release_id,
        fingerprint=plan.fingerprint,
        dates=plan.days,
        inputs=plan.inputs,
        removed_inputs=plan.removed_inputs,
        parameters=plan.parameters,
        code_version=planning.code_version(),
        verdict=gate.decide(pl.read_parquet(run.path(QUALITY, None))),
    )
    built = {
        table.name: {file.day if file.bucket is None else file.bucket: run.store.root / file.path for file in files}
        for work in works
        for table, files in work.files(run).items()
        if table.is_published
    }
    published = publishing.publish(run.store, draft, built)
    docs.of_release(run.store, published)
    shutil.rmtree(run.folder, ignore_errors=True)
    maintain(run.store, run.settings)
    return published


def maintain(store: Store, settings: Settings) -> Freed:
    """Have releases expire that the settings do not keep, and remove the files of those that did."""
    return expiring.maintain(store, settings.storage.keep_releases, is_nightly=True)


def complete(store: Store) -> None:
    """Leave what belongs to the current release, where a run was killed right after it."""
    from expectations import docs

    publishing.complete(store)
    docs.complete(store)
